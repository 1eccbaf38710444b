//! Canonical asset ids: however somebody says or types one, one thing has one id, because the id is the lock.

use regex::Regex;
use wf_core::models::{AssetId, Locale, Text};

use crate::format::LeadingZeros;
use crate::words;

/// Longest id looked at, in characters.
const SAID_CHARS_MAX: usize = 256;

/// How ids of an asset look.
#[derive(Debug)]
pub(crate) enum IdForm {
    /// A prefix and a number.
    Numbered { prefix: String, digits_max: usize, leading_zeros: LeadingZeros },
    /// Whatever matches as a whole.
    Pattern(Regex),
}

/// A canonical id and how it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) id: AssetId,
    pub(crate) say: Text,
}

impl IdForm {
    /// A form by pattern; the whole id must match it.
    pub(crate) fn by_pattern(pattern: &str) -> Result<Self, regex::Error> {
        const PROGRAM_BYTES_MAX: usize = 1 << 20;
        // Checked alone first, so that an unbalanced group cannot undo the anchors.
        Regex::new(pattern)?;
        regex::RegexBuilder::new(&format!("^(?:{pattern})$"))
            .size_limit(PROGRAM_BYTES_MAX)
            .build()
            .map(Self::Pattern)
    }

    /// The id that somebody means who says `raw`; `None` when it is none of this form. `say` is how the asset is
    /// called: "pump 204" means the same as "PUMP-204".
    pub(crate) fn canonical(&self, raw: &str, say: &Text) -> Option<Named> {
        if raw.len() > SAID_CHARS_MAX {
            return None;
        }
        match self {
            Self::Numbered { prefix, digits_max, leading_zeros } => {
                let said = letters(raw);
                // "BAL-12", "balance 12" and "12" all name one balance: what is left after one of the words must be a
                // number, so the order in which they are tried does not matter.
                let number = std::iter::once(letters(prefix))
                    .chain(say.wordings().map(letters))
                    .chain(std::iter::once(String::new()))
                    .filter_map(|start| said.strip_prefix(start.as_str()))
                    .find_map(|digits| number(digits, *digits_max, *leading_zeros))?;
                let id = AssetId::parse(&format!("{prefix}{number}")).ok()?;
                let say = words::map(say, |w| format!("{w} {number}"));
                Some(Named { id, say })
            }
            Self::Pattern(pattern) => {
                let trimmed = raw.trim();
                let upper = trimmed.to_ascii_uppercase();
                let found = [trimmed, upper.as_str()]
                    .into_iter()
                    .find(|candidate| pattern.is_match(candidate))?;
                let id = AssetId::parse(found).ok()?;
                let spoken = found.replace(['-', '_', ':', '.'], " ");
                let first = say.get(&Locale::default()).to_lowercase();
                // An id that starts with the asset's own word needs no second one.
                let say = if spoken.to_lowercase().starts_with(&first) {
                    Text::One(spoken)
                } else {
                    words::map(say, |w| format!("{w} {spoken}"))
                };
                Some(Named { id, say })
            }
        }
    }
}

/// Letters and digits in upper case, without the spaces and hyphens that speech recognition puts anywhere.
fn letters(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '-' | '_' | '\u{2010}'..='\u{2015}'))
        .flat_map(char::to_uppercase)
        .collect()
}

fn number(digits: &str, max: usize, zeros: LeadingZeros) -> Option<String> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let kept = match zeros {
        LeadingZeros::Keep => digits,
        LeadingZeros::Drop => match digits.trim_start_matches('0') {
            "" => "0",
            kept => kept,
        },
    };
    (kept.len() <= max).then(|| kept.to_owned())
}
