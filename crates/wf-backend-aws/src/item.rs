//! Attributes of an item: what we write (texts and numbers only, in a fixed order), and what we read.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fault::Fail;
use crate::keys::{Key, PK, SK};

/// A value that we write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) enum Value {
    S(String),
    N(String),
}

impl Value {
    pub(crate) fn s(text: impl Into<String>) -> Self {
        Self::S(text.into())
    }

    pub(crate) fn n(number: impl ToString + Copy) -> Self {
        Self::N(number.to_string())
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::S(text) | Self::N(text) => text.len(),
        }
    }

    pub(crate) fn to_sdk(&self) -> AttributeValue {
        match self {
            Self::S(text) => AttributeValue::S(text.clone()),
            Self::N(number) => AttributeValue::N(number.clone()),
        }
    }
}

/// Attributes that we write, or values of an expression. Sorted, so that a request is the same each time it is made.
pub(crate) type Attributes = BTreeMap<&'static str, Value>;

/// What the SDK sends for some attributes.
pub(crate) fn to_sdk(attributes: &Attributes) -> HashMap<String, AttributeValue> {
    attributes.iter().map(|(name, value)| ((*name).to_owned(), value.to_sdk())).collect()
}

/// What the SDK sends for a key.
pub(crate) fn key_to_sdk(key: &Key) -> HashMap<String, AttributeValue> {
    HashMap::from([
        (PK.to_owned(), AttributeValue::S(key.pk.clone())),
        (SK.to_owned(), AttributeValue::S(key.sk.clone())),
    ])
}

/// Writes a value as JSON in an attribute.
pub(crate) fn json<T: Serialize>(value: &T, what: &'static str) -> Result<String, Fail> {
    serde_json::to_string(value).map_err(|error| Fail::unreadable(what, error))
}

/// An item, or a part of it, as it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Item(HashMap<String, AttributeValue>);

impl From<HashMap<String, AttributeValue>> for Item {
    fn from(attributes: HashMap<String, AttributeValue>) -> Self {
        Self(attributes)
    }
}

impl Item {
    pub(crate) fn key(&self) -> Result<Key, Fail> {
        Ok(Key::new(self.text(PK)?.to_owned(), self.text(SK)?))
    }

    pub(crate) fn opt_text(&self, name: &str) -> Result<Option<&str>, Fail> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        match value.as_s() {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(Fail::unreadable(name, "not a text")),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Result<&str, Fail> {
        self.opt_text(name)?.ok_or_else(|| Fail::unreadable(name, "it is missing"))
    }

    pub(crate) fn opt_number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Fail> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let number = value.as_n().ok().and_then(|digits| digits.parse().ok());
        number.map(Some).ok_or_else(|| Fail::unreadable(name, "not such a number"))
    }

    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<T, Fail> {
        self.opt_number(name)?.ok_or_else(|| Fail::unreadable(name, "it is missing"))
    }

    pub(crate) fn opt_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Fail> {
        let Some(text) = self.opt_text(name)? else { return Ok(None) };
        serde_json::from_str(text).map(Some).map_err(|error| Fail::unreadable(name, error))
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, Fail> {
        self.opt_json(name)?.ok_or_else(|| Fail::unreadable(name, "it is missing"))
    }

    /// Reads a text that has a form.
    pub(crate) fn parsed<T: FromStr>(&self, name: &str) -> Result<T, Fail>
    where
        T::Err: std::fmt::Display,
    {
        self.text(name)?.parse().map_err(|error: T::Err| Fail::unreadable(name, error))
    }
}
