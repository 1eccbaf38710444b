//! Takes single arguments out of the object that a client sent, by the tool table, and says precisely what is wrong.
//!
//! A VALIDATION_ERROR names the argument (`field`), the rule and, where there is a list, what is `valid`. Nothing is
//! guessed: null is no way to leave an argument out, and an empty key is no missing key.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use wf_core::idempotency::canonical_bytes;
use wf_core::limits::{ASSETS_MAX, INPUTS_BYTES_MAX, VALUE_CHARS_MAX};
use wf_core::models::IdError;
use wf_core::state_machine::Rejection;

use super::envelope::json_type;
use crate::tools::{Kind, Spec};

/// The arguments of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    spec: &'static Spec,
    map: &'a Map<String, Value>,
}

impl<'a> Reader<'a> {
    /// Refuses arguments that the tool does not have.
    pub(crate) fn new(spec: &'static Spec, map: &'a Map<String, Value>) -> Result<Self, Rejection> {
        match map.keys().find(|key| spec.param(key).is_none()) {
            Some(unknown) => Err(unknown_argument(spec, unknown)),
            None => Ok(Self { spec, map }),
        }
    }

    fn missing(&self, name: &str) -> Rejection {
        let required: Vec<_> =
            self.spec.params.iter().filter(|p| p.required).map(|p| p.name).collect();
        Rejection::invalid(name, "is required").with("required", required)
    }

    /// A text, bounded as the table says.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, Rejection> {
        let Some(value) = self.map.get(name) else {
            return Ok(None);
        };
        let Value::String(text) = value else {
            let rule = match value.as_number() {
                // As a JSON number it has lost its digits already (4.20 is 4.2).
                Some(number) if name == "value" => {
                    format!("must be a string: send it as a string, like \"{number}\"")
                }
                Some(_) | None => format!("must be a string, not {}", json_type(value)),
            };
            return Err(Rejection::invalid(name, &rule));
        };
        let max = match self.spec.param(name).map(|param| param.kind) {
            Some(Kind::Text { max }) => max,
            Some(Kind::Word(_) | Kind::Names | Kind::Object) | None => VALUE_CHARS_MAX,
        };
        within(name, text, max)?;
        Ok(Some(text))
    }

    /// A text that must be there.
    pub(crate) fn required_text(&self, name: &str) -> Result<&'a str, Rejection> {
        let text = self.text(name)?.ok_or_else(|| self.missing(name))?;
        if text.is_empty() {
            return Err(Rejection::invalid(name, "must not be empty"));
        }
        Ok(text)
    }

    /// An identifier.
    pub(crate) fn id<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, IdError>,
    ) -> Result<Option<T>, Rejection> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let parsed = parse(text).map_err(|error| {
            Rejection::invalid(name, &format!("must match {}", error.rule))
                .with("valid", error.rule)
        });
        parsed.map(Some)
    }

    /// An identifier that must be there.
    pub(crate) fn required_id<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, IdError>,
    ) -> Result<T, Rejection> {
        self.id(name, parse)?.ok_or_else(|| self.missing(name))
    }

    /// One of some words.
    pub(crate) fn word<T: Clone>(
        &self,
        name: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, Rejection> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(Some(meaning.clone()));
        }
        let valid: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let rule = format!("must be one of {}", valid.join(", "));
        Err(Rejection::invalid(name, &rule).with("valid", valid))
    }

    /// One of some words, which must be there.
    pub(crate) fn required_word<T: Clone>(
        &self,
        name: &str,
        words: &[(&str, T)],
    ) -> Result<T, Rejection> {
        self.word(name, words)?.ok_or_else(|| self.missing(name))
    }

    /// An object; empty when absent.
    pub(crate) fn object(&self, name: &str) -> Result<Map<String, Value>, Rejection> {
        let Some(value) = self.map.get(name) else {
            return Ok(Map::new());
        };
        let Value::Object(map) = value else {
            let rule = format!("must be an object, not {}", json_type(value));
            return Err(Rejection::invalid(name, &rule));
        };
        let bytes =
            canonical_bytes(value).map_err(|error| Rejection::invalid(name, &error.to_string()))?;
        if bytes.len() > INPUTS_BYTES_MAX {
            let rule = format!("must be at most {INPUTS_BYTES_MAX} bytes of JSON");
            return Err(Rejection::invalid(name, &rule).with("max", INPUTS_BYTES_MAX));
        }
        Ok(map.clone())
    }

    /// An object of names to texts; empty when absent.
    pub(crate) fn names(&self, name: &str) -> Result<BTreeMap<String, String>, Rejection> {
        let map = self.object(name)?;
        if map.len() > ASSETS_MAX {
            let rule = format!("must have at most {ASSETS_MAX} members");
            return Err(Rejection::invalid(name, &rule).with("max", ASSETS_MAX));
        }
        let mut names = BTreeMap::new();
        for (key, value) in map {
            let field = format!("{name}.{key}");
            let Value::String(text) = value else {
                let rule = format!("must be a string, not {}", json_type(&value));
                return Err(Rejection::invalid(&field, &rule));
            };
            if text.is_empty() {
                return Err(Rejection::invalid(&field, "must not be empty"));
            }
            within(&field, &text, VALUE_CHARS_MAX)?;
            names.insert(key, text);
        }
        Ok(names)
    }
}

fn within(field: &str, text: &str, max: usize) -> Result<(), Rejection> {
    // A text has at most as many characters as bytes.
    if text.len() <= max || text.chars().count() <= max {
        return Ok(());
    }
    let rule = format!("must have at most {max} characters");
    Err(Rejection::invalid(field, &rule).with("max", max))
}

fn unknown_argument(spec: &Spec, unknown: &str) -> Rejection {
    let known: Vec<_> = spec.params.iter().map(|param| param.name).collect();
    // Long names are cut: they come back in the answer.
    let shown: String = unknown.chars().take(64).collect();
    let rule = match known.iter().find(|name| alike(name, &shown)) {
        Some(name) => format!("is no argument of {}; did you mean {name}?", spec.name),
        None => format!("is no argument of {}", spec.name),
    };
    Rejection::invalid(&shown, &rule).with("valid", known)
}

/// Whether two names differ by spelling only: case, separators, or at most two letters.
fn alike(known: &str, given: &str) -> bool {
    let plain = |text: &str| -> Vec<char> {
        let letters = text.chars().filter(|c| !matches!(c, '_' | '-' | ' ' | '.'));
        letters.flat_map(char::to_lowercase).collect()
    };
    let (known, given) = (plain(known), plain(given));
    let most = if known.len() < 5 { 1 } else { 2 };
    distance(&known, &given) <= most
}

/// Levenshtein distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b) {
            let here = (diagonal + usize::from(x != y)).min(*cell + 1).min(left + 1);
            diagonal = std::mem::replace(cell, here);
            left = here;
        }
        row[0] = i + 1;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_by_spelling_are_alike() {
        for given in ["workflowId", "WORKFLOW-ID", "workflow id", "workfow_id", "worklfow_id"] {
            assert!(alike("workflow_id", given), "{given}");
        }
        for given in ["id", "step_id", "procedure_id", ""] {
            assert!(!alike("workflow_id", given), "{given}");
        }
        assert!(alike("unit", "units") && !alike("note", "unit"));
    }

    #[test]
    fn distances_are_right() {
        let between = |a: &str, b: &str| {
            distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>())
        };
        assert_eq!(between("", ""), 0);
        assert_eq!(between("abc", ""), 3);
        assert_eq!(between("kitten", "sitting"), 3);
        assert_eq!(between("flaw", "lawn"), 2);
    }
}
