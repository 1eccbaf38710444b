//! Reads the entries of one map: known keys are taken one by one, what is left over is a problem.

use std::collections::BTreeMap;

use wf_core::limits::SPOKEN_TEXT_CHARS_MAX;
use wf_core::models::{Locale, Text};

use super::{Bound, Bounds, Cel, DurationMs, Id, Located, Say};
use crate::decimal::{Decimal, NUMBER_CHARS_MAX};
use crate::problem::{Position, Problems, did_you_mean, one_of};
use crate::tree::{Content, Entry, Node};

/// The entries of one map.
pub(crate) struct Fields<'n, 'p> {
    /// What the map is, in words.
    what: &'static str,
    /// Where it starts.
    pub(crate) at: Position,
    entries: &'n [Entry],
    keys: &'static [&'static str],
    taken: Vec<&'static str>,
    pub(crate) problems: &'p mut Problems,
}

impl<'n, 'p> Fields<'n, 'p> {
    /// Opens a map; `None`, with a problem, when the node is none.
    pub(crate) fn open(
        node: &'n Node,
        what: &'static str,
        keys: &'static [&'static str],
        problems: &'p mut Problems,
    ) -> Option<Self> {
        let Content::Map(entries) = &node.content else {
            problems.add(
                node.at,
                format!("{what} is {}", node.what()),
                format!("write a map with the keys {}", keys.join(", ")),
            );
            return None;
        };
        Some(Self { what, at: node.at, entries, keys, taken: Vec::new(), problems })
    }

    /// The value under `key`; an empty value is a problem.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<&'n Node> {
        self.taken.push(key);
        let entry = self.entries.iter().find(|e| e.key == key)?;
        if entry.value.content == Content::Null {
            self.problems.add(
                entry.key_at,
                format!("{key} is empty"),
                "write a value or remove the key",
            );
            return None;
        }
        Some(&entry.value)
    }

    /// The value under a key that must be there.
    pub(crate) fn need(&mut self, key: &'static str) -> Option<&'n Node> {
        if !self.entries.iter().any(|e| e.key == key) {
            self.problems.add(
                self.at,
                format!("{} has no {key}", self.what),
                format!("add {key}:"),
            );
        }
        self.take(key)
    }

    /// Reads the value under `key`, when it is there.
    pub(crate) fn read<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&'n Node, &mut Problems) -> Option<T>,
    ) -> Option<T> {
        let node = self.take(key)?;
        read(node, self.problems)
    }

    /// Reads the value under a key that must be there.
    pub(crate) fn must<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&'n Node, &mut Problems) -> Option<T>,
    ) -> Option<T> {
        let node = self.need(key)?;
        read(node, self.problems)
    }

    /// Refuses keys that were not taken. `elsewhere` are keys that other maps of this sort have, with their owner.
    pub(crate) fn close(self, elsewhere: &[(&str, &str)]) {
        for entry in self.entries {
            if self.taken.contains(&entry.key.as_str()) {
                continue;
            }
            let key = entry.key.as_str();
            if let Some((_, owner)) = elsewhere.iter().find(|(k, _)| *k == key) {
                let message = format!("{} has no {key}", self.what);
                let hint = format!("{key} belongs to {owner}");
                self.problems.add(entry.key_at, message, hint);
            } else if key == "<<" {
                let hint = "write the keys out";
                self.problems.add(entry.key_at, "merge keys (<<) are not supported", hint);
            } else {
                let message = format!("{} has no key \"{key}\"", self.what);
                self.problems.add(entry.key_at, message, one_of(key, self.keys));
            }
        }
    }
}

fn not_a(node: &Node, wanted: &str, hint: &str, problems: &mut Problems) {
    let message = format!("this is {}, not {wanted}", node.what());
    problems.add(node.at, message, hint);
}

/// Text of any sort.
pub(crate) fn text(node: &Node, problems: &mut Problems) -> Option<Located<String>> {
    if let Content::Text(text) = &node.content {
        return Some(Located { value: text.clone(), at: node.at });
    }
    not_a(node, "text", "put it in quotes if it is meant as text", problems);
    None
}

/// `true` or `false`.
pub(crate) fn flag(node: &Node, problems: &mut Problems) -> Option<Located<bool>> {
    if let Content::Bool(value) = node.content {
        return Some(Located { value, at: node.at });
    }
    not_a(node, "true or false", "write true or false", problems);
    None
}

/// A whole number between `min` and `max`.
pub(crate) fn whole(
    node: &Node,
    (min, max): (u32, u32),
    problems: &mut Problems,
) -> Option<Located<u32>> {
    let found = match &node.content {
        Content::Number(digits) => digits.parse::<u32>().ok(),
        Content::Null
        | Content::Bool(_)
        | Content::Text(_)
        | Content::List(_)
        | Content::Map(_) => None,
    };
    match found.filter(|n| (min..=max).contains(n)) {
        Some(value) => Some(Located { value, at: node.at }),
        None => {
            let hint = if max == u32::MAX {
                format!("write a whole number from {min} up, without quotes")
            } else {
                format!("write a whole number from {min} to {max}, without quotes")
            };
            problems.add(node.at, "not a whole number in its bounds", hint);
            None
        }
    }
}

/// An identifier.
pub(crate) fn id(node: &Node, problems: &mut Problems) -> Option<Located<Id>> {
    let found = text(node, problems)?;
    if wf_core::models::StepId::parse(&found.value).is_ok() {
        return Some(Located { value: Id(found.value), at: found.at });
    }
    let shown = wf_core::redaction::Quoted(&found.value);
    problems.add(node.at, format!("{shown} is no id"), "use 1 to 128 of A-Z a-z 0-9 . _ : -");
    None
}

/// One of the words of an enum.
pub(crate) fn word<T: Copy>(
    node: &Node,
    words: &[(&'static str, T)],
    problems: &mut Problems,
) -> Option<Located<T>> {
    let found = text(node, problems)?;
    if let Some((_, value)) = words.iter().find(|(w, _)| *w == found.value) {
        return Some(Located { value: *value, at: node.at });
    }
    let known: Vec<&str> = words.iter().map(|(w, _)| *w).collect();
    let shown = wf_core::redaction::Quoted(&found.value);
    problems.add(node.at, format!("{shown} is not known here"), one_of(&found.value, &known));
    None
}

/// Spoken text.
pub(crate) fn say(node: &Node, problems: &mut Problems) -> Option<Located<Say>> {
    let text = match &node.content {
        Content::Text(words) => wording(words, node.at, problems).map(Text::One),
        Content::Map(entries) => languages(node, entries, problems).map(Text::Many),
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::List(_) => {
            not_a(
                node,
                "text",
                "write text in quotes, or a map of languages { en: …, de: … }",
                problems,
            );
            None
        }
    };
    text.map(|t| Located { value: Say(t), at: node.at })
}

fn languages(
    node: &Node,
    entries: &[Entry],
    problems: &mut Problems,
) -> Option<BTreeMap<String, String>> {
    let mut map = BTreeMap::new();
    for entry in entries {
        let tag_ok = Locale::parse(&entry.key).is_some_and(|l| l.as_str() == entry.key);
        if !tag_ok {
            problems.add(
                entry.key_at,
                format!("\"{}\" is no language tag", entry.key),
                "write a lower case tag like en, de or de-ch",
            );
        }
        let words = text(&entry.value, problems)?;
        map.insert(entry.key.clone(), wording(&words.value, words.at, problems)?);
    }
    if map.is_empty() {
        problems.add(node.at, "no wording", "write at least one, like { en: … }");
        return None;
    }
    Some(map)
}

/// One wording: plain text on one line, bounded.
fn wording(words: &str, at: Position, problems: &mut Problems) -> Option<String> {
    let chars = words.chars().count();
    if words.trim().is_empty() {
        problems.add(at, "no words", "write what is shown and spoken");
    } else if chars > SPOKEN_TEXT_CHARS_MAX {
        let message = format!("{chars} characters are too many to be spoken");
        let hint = format!("use at most {SPOKEN_TEXT_CHARS_MAX} characters");
        problems.add(at, message, hint);
    } else if words.chars().any(char::is_control) {
        problems.add(at, "a line break or control character", "write plain text on one line");
    } else {
        return Some(words.trim().to_owned());
    }
    None
}

/// Longest duration: nothing of a workflow takes longer, and every sum of times stays far from its bounds.
const DURATION_MS_MAX: i64 = 366 * 86_400_000;

/// A duration.
pub(crate) fn duration(node: &Node, problems: &mut Problems) -> Option<Located<DurationMs>> {
    let found = text(node, problems)?;
    let parsed = found.value.char_indices().last().and_then(|(i, unit)| {
        let (digits, _) = found.value.split_at(i);
        let plain = !digits.is_empty()
            && digits.len() <= 9
            && digits.bytes().all(|b| b.is_ascii_digit())
            && !digits.starts_with('0');
        let ms = match unit {
            's' => 1_000,
            'm' => 60_000,
            'h' => 3_600_000,
            'd' => 86_400_000,
            _ => return None,
        };
        let n: i64 = if plain { digits.parse().ok()? } else { return None };
        n.checked_mul(ms)
    });
    match parsed {
        None => problems.add(node.at, "not a duration", "write for example 90s, 15m, 4h or 2d"),
        Some(ms) if ms > DURATION_MS_MAX => {
            problems.add(node.at, "longer than a year", "write at most 366d");
            return None;
        }
        Some(_) => {}
    }
    parsed.map(|ms| Located { value: DurationMs(ms), at: node.at })
}

/// A CEL expression; a bare `true` or `false` is one.
pub(crate) fn cel(node: &Node, problems: &mut Problems) -> Option<Located<Cel>> {
    let source = match &node.content {
        Content::Text(text) => text.clone(),
        Content::Bool(b) => b.to_string(),
        Content::Null | Content::Number(_) | Content::List(_) | Content::Map(_) => {
            not_a(
                node,
                "a CEL expression",
                "write it as text, in quotes if it starts with ! or contains \": \"",
                problems,
            );
            return None;
        }
    };
    Some(Located { value: Cel { source, shift: node.shift }, at: node.at })
}

/// A decimal or an expression.
pub(crate) fn bound(node: &Node, problems: &mut Problems) -> Option<Located<Bound>> {
    let value = match &node.content {
        Content::Number(digits) => match Decimal::parse(digits) {
            Some(decimal) => Bound::Fixed(decimal),
            None => {
                let hint = format!("use at most {NUMBER_CHARS_MAX} characters");
                problems.add(node.at, "the number is too long", hint);
                return None;
            }
        },
        Content::Text(text) => match Decimal::parse(text) {
            Some(decimal) => Bound::Fixed(decimal),
            None => Bound::Computed(Cel { source: text.clone(), shift: node.shift }),
        },
        Content::Null | Content::Bool(_) | Content::List(_) | Content::Map(_) => {
            not_a(node, "a bound", "write a decimal, or a CEL expression in quotes", problems);
            return None;
        }
    };
    Some(Located { value, at: node.at })
}

/// `[low, high]`.
pub(crate) fn bounds(node: &Node, problems: &mut Problems) -> Option<Located<Bounds>> {
    let Content::List(items) = &node.content else {
        not_a(node, "two bounds", "write [low, high]", problems);
        return None;
    };
    let [low, high] = items.as_slice() else {
        let message = format!("{} bounds", items.len());
        problems.add(node.at, message, "write two: [low, high]");
        return None;
    };
    let (low, high) = (bound(low, problems), bound(high, problems));
    Some(Located { value: Bounds { low: low?, high: high? }, at: node.at })
}

/// A list, each item read by `read`; items that cannot be read are problems and left out.
pub(crate) fn list<T>(
    node: &Node,
    what: &str,
    problems: &mut Problems,
    mut read: impl FnMut(&Node, &mut Problems) -> Option<T>,
) -> Option<Located<Vec<T>>> {
    let Content::List(items) = &node.content else {
        let hint = format!("write a list of {what}");
        not_a(node, "a list", &hint, problems);
        return None;
    };
    let value: Vec<T> = items.iter().filter_map(|n| read(n, problems)).collect();
    Some(Located { value, at: node.at })
}

/// The hint for a name that is none of the known ones.
pub(crate) fn hint_for<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: &str,
) -> String {
    did_you_mean(word, known).unwrap_or_else(|| otherwise.to_owned())
}
