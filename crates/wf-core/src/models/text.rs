//! Spoken text in one or several languages.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A language tag as a request or the configuration gives it, for example `en` or `de-CH`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locale(String);

impl Default for Locale {
    fn default() -> Self {
        Self("en".to_owned())
    }
}

impl Locale {
    /// Reads a tag: letters, digits and hyphens, at most 35 characters (RFC 5646 section 4.4.1); `None` otherwise.
    #[must_use]
    pub fn parse(tag: &str) -> Option<Self> {
        let tag = tag.trim().to_ascii_lowercase().replace('_', "-");
        let ok = !tag.is_empty()
            && tag.len() <= 35
            && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        ok.then_some(Self(tag))
    }

    /// The whole tag, lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The primary language, for example `de` of `de-CH`.
    #[must_use]
    pub fn language(&self) -> &str {
        self.0.split('-').next().unwrap_or("en")
    }
}

/// Plain text to show or speak: one wording, or one per language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// The same words for every language.
    One(String),
    /// Words by language tag, lower case; never empty where a policy made it.
    Many(BTreeMap<String, String>),
}

impl Text {
    /// The words for `locale`: its tag, its language, English, else the first there are.
    #[must_use]
    pub fn get(&self, locale: &Locale) -> &str {
        match self {
            Self::One(text) => text,
            Self::Many(map) => map
                .get(locale.as_str())
                .or_else(|| map.get(locale.language()))
                .or_else(|| map.get("en"))
                .or_else(|| map.values().next())
                .map_or("", String::as_str),
        }
    }

    /// Every wording.
    pub fn wordings(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self {
            Self::One(text) => (Some(text.as_str()), None),
            Self::Many(map) => (None, Some(map.values().map(String::as_str))),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::One(text.to_owned())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::One(text)
    }
}
