//! Serialisation of types that are one text: a key, a fingerprint, an id, a time.
//!
//! `serde`'s `try_from = "String", into = "String"` copies the text once more on either way. A ledger row or a workflow
//! holds hundreds of such texts, so these two functions are what their types serialise with.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// Reads a `T` from its text, which is not copied first. For `#[serde(deserialize_with)]` or an own `Deserialize`.
///
/// # Errors
/// The format's own error for anything but a text, and [`FromStr::Err`] in its words.
///
/// ```
/// use serde::{Deserialize, Deserializer};
///
/// #[derive(Debug, PartialEq)]
/// struct Port(u16);
/// # impl std::str::FromStr for Port {
/// #     type Err = std::num::ParseIntError;
/// #     fn from_str(text: &str) -> Result<Self, Self::Err> { text.parse().map(Self) }
/// # }
/// impl<'de> Deserialize<'de> for Port {
///     fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
///         wf_idempotency::from_text(deserializer)
///     }
/// }
/// assert_eq!(serde_json::from_str::<Port>("\"80\"").unwrap(), Port(80));
/// assert!(serde_json::from_str::<Port>("80").is_err());
/// ```
pub fn from_text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: Display,
{
    deserializer.deserialize_str(Text(PhantomData))
}

struct Text<T>(PhantomData<T>);

impl<T> Visitor<'_> for Text<T>
where
    T: FromStr,
    T::Err: Display,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}
