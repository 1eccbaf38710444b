//! The strict reading of raw bytes, before anything is hashed or decided.
//!
//! `reader` does the work. The result feeds `fingerprint`.
//!
//! Why not `serde_json::from_slice`: it keeps the last of two equal keys, rounds integers beyond
//! 2^53 when they become canonical, and reads `{"$serde_json::private::RawValue": ...}` as something
//! else when any crate of the build turns on one of its features. A custom visitor on top of it would
//! not do: with `arbitrary_precision` on it delivers every number as such an object, and the honest
//! and the forged one look the same. So the bytes are read here.

mod reader;

use serde_json::Value;

use crate::exact::{DEPTH_CEILING, Numbers};
use reader::Reader;

/// How much [`parse_strict`] takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrictLimits {
    /// The longest document, in bytes. A parsed value takes up to some 40 times as much memory
    /// (`[0,0,...]`).
    pub max_bytes: usize,
    /// How many arrays and objects may be open at once: `[[1]]` has depth 2, `1` has depth 0. Values
    /// above [`StrictLimits::DEPTH_CEILING`] count as that.
    pub max_depth: usize,
}

impl StrictLimits {
    /// The greatest depth in effect: what `serde_json` itself reads back, and no danger to a stack.
    pub const DEPTH_CEILING: usize = DEPTH_CEILING;
}

impl Default for StrictLimits {
    /// 1 MiB and 32 levels.
    fn default() -> Self {
        Self { max_bytes: 1024 * 1024, max_depth: 32 }
    }
}

/// Why a document was refused.
///
/// `path` is like a JSON Pointer (RFC 6901), empty for the root; long keys and paths are cut and
/// control characters escaped, so it may be shown and logged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrictError {
    /// More bytes than allowed. Nothing was read.
    #[error("the document has {len} bytes, at most {limit} are allowed")]
    TooLarge {
        /// Bytes found.
        len: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// More nested arrays and objects than allowed.
    #[error("the value at \"{path}\" is nested deeper than {limit} levels")]
    TooDeep {
        /// Where the first container beyond the limit is.
        path: String,
        /// Levels allowed.
        limit: usize,
    },
    /// The same key twice in one object, once escapes are resolved.
    #[error("the key at \"{path}\" appears twice in its object")]
    DuplicateKey {
        /// Where it is, the key included.
        path: String,
    },
    /// A number beyond ±(2^53-1), in whatever notation, or beyond every double.
    #[error(
        "the number at \"{path}\" is beyond ±(2^53-1) and would lose digits; send it as a string"
    )]
    NumberOutOfRange {
        /// Where it is.
        path: String,
    },
    /// A key that starts with `$serde_json::private::`.
    #[error("the key at \"{path}\" is reserved")]
    PrivateKey {
        /// Where it is, the key included.
        path: String,
    },
    /// Not JSON (RFC 8259), not UTF-8, a lone surrogate, a byte order mark, or more than one value.
    #[error("not valid JSON: {problem} at byte {offset}, in the value at \"{path}\"")]
    Syntax {
        /// The innermost value that was being read.
        path: String,
        /// Bytes before the fault.
        offset: usize,
        /// What is wrong, in a few words.
        problem: &'static str,
    },
}

impl StrictError {
    /// The rule that was broken: `too_large`, `too_deep`, `duplicate_key`, `number_out_of_range`,
    /// `private_key` or `syntax`. Stable across releases.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::TooDeep { .. } => "too_deep",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::NumberOutOfRange { .. } => "number_out_of_range",
            Self::PrivateKey { .. } => "private_key",
            Self::Syntax { .. } => "syntax",
        }
    }

    /// Where the fault is, if that is known: empty for the root.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::TooLarge { .. } => None,
            Self::TooDeep { path, .. }
            | Self::DuplicateKey { path }
            | Self::NumberOutOfRange { path }
            | Self::PrivateKey { path }
            | Self::Syntax { path, .. } => Some(path),
        }
    }
}

/// Reads one JSON document (RFC 8259), refusing all that could be understood in two ways.
///
/// Takes any root; a caller that needs an object checks for it. What is accepted is read as
/// `serde_json` reads it. On accepted documents the canonical form is injective up to JSON equality;
/// what stays many-to-one by design: `1`, `1.0` and `1e0`; `-0` and `0`; decimals that are one double
/// (`0.1` and `0.10000000000000000555`); `1e-400` and `0`. Quantities that need more travel as strings.
///
/// ```
/// use wf_idempotency::{StrictLimits, parse_strict};
///
/// let refused = parse_strict(br#"{"a": 1, "\u0061": 2}"#, StrictLimits::default());
/// assert_eq!(refused.map_err(|e| e.rule()), Err("duplicate_key"));
/// ```
///
/// # Errors
///
/// [`StrictError`]: duplicate keys after unescaping, numbers beyond ±(2^53-1) (integers, and floats,
/// which are all integers out there), keys under `$serde_json::private::`, too deep, too large, invalid
/// UTF-8, lone surrogates, `NaN` and `Infinity`, a byte order mark, trailing data, and every other
/// breach of RFC 8259. Takes time linear in the size (times the logarithm of the keys of an object).
pub fn parse_strict(bytes: &[u8], limits: StrictLimits) -> Result<Value, StrictError> {
    if bytes.len() > limits.max_bytes {
        return Err(StrictError::TooLarge { len: bytes.len(), limit: limits.max_bytes });
    }
    let syntax = |offset, problem| StrictError::Syntax { path: String::new(), offset, problem };
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(syntax(0, "a byte order mark"));
    }
    let text = str::from_utf8(bytes).map_err(|e| syntax(e.valid_up_to(), "invalid UTF-8"))?;
    Reader::new(text, limits.max_depth.min(DEPTH_CEILING), Numbers::Exact).document()
}

/// Reads back what [`canonical_string`](crate::canonical_string) wrote: the same grammar, but every
/// number is the double it was, so that floats beyond 2^53 return as they are.
pub(crate) fn read_stored(text: &str) -> Result<Value, StrictError> {
    Reader::new(text, DEPTH_CEILING, Numbers::Doubles).document()
}
