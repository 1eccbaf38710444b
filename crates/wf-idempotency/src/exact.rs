//! Which values survive the trip through a double and through another JSON reader.
//!
//! RFC 8785 writes every number as an IEEE 754 double, so beyond 2^53-1 neighbouring integers share
//! one text. The bounds stand here once, for `strict`, `canonical` and `fingerprint`.

use serde_json::{Number, Value};

use crate::canonical::CanonicalError;
use crate::pointer::Trail;

/// 2^53-1, the largest integer of which a double holds every smaller neighbour (RFC 7493 §2.2).
pub const MAX_SAFE_INTEGER: u64 = 9_007_199_254_740_991;

/// [`MAX_SAFE_INTEGER`] as the double it is.
pub(crate) const MAX_SAFE_DOUBLE: f64 = 9_007_199_254_740_991.0;

/// Nesting that is never exceeded, whatever a caller allows: one less than what `serde_json` reads,
/// and small enough that recursion over a value cannot exhaust a stack.
pub(crate) const DEPTH_CEILING: usize = 127;

/// Keys under this prefix are how `serde_json` smuggles raw text and big numbers through serde. With
/// its `raw_value` or `arbitrary_precision` feature on, anywhere in the build, a client object that
/// uses one is read as something else than it says.
pub(crate) const PRIVATE_PREFIX: &str = "$serde_json::private::";

/// What is asked of a number before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Every finite double; an integer must be exact. The form of results.
    Doubles,
    /// Nothing beyond 2^53-1 in either notation. The form of arguments: a float beyond it may be
    /// an integer that some parser has already rounded.
    Exact,
}

/// Whether an ordinary compact JSON text of a value is its canonical text already.
///
/// It is when every number is an integer (a double is written otherwise by ECMAScript than by others) and the keys of
/// every object are ASCII and in order (UTF-16 and UTF-8 sort them alike). Strings are escaped alike by `serde_json` and
/// by RFC 8785. Nearly everything that is hashed or stored is such a value, and the ordinary writer neither buffers nor
/// sorts members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plain(bool);

impl Plain {
    /// True when the ordinary writer gives the canonical text.
    pub(crate) fn holds(self) -> bool {
        self.0
    }

    /// Of a whole from its parts.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 && other.0)
    }

    /// Of something without parts.
    pub(crate) const YES: Self = Self(true);
}

/// Whether `number` may be written under `rule`.
fn fits(number: &Number, rule: Numbers) -> bool {
    if let Some(n) = number.as_u64() {
        return n <= MAX_SAFE_INTEGER;
    }
    if let Some(n) = number.as_i64() {
        return n.unsigned_abs() <= MAX_SAFE_INTEGER;
    }
    match (number.as_f64(), rule) {
        (Some(n), Numbers::Exact) => n.abs() <= MAX_SAFE_DOUBLE,
        (Some(n), Numbers::Doubles) => n.is_finite(),
        (None, Numbers::Exact | Numbers::Doubles) => false,
    }
}

/// Refuses what the canonical form would change or what cannot be read back as it was.
pub(crate) fn check(value: &Value, rule: Numbers) -> Result<Plain, CanonicalError> {
    walk(value, 0, rule).map_err(Fault::into_error)
}

/// As [`check`], for one member of an object that is not a [`Value`] itself.
pub(crate) fn check_member(
    key: &str,
    value: &Value,
    rule: Numbers,
) -> Result<Plain, CanonicalError> {
    member(key, value, 1, rule).map_err(Fault::into_error)
}

/// A fault on its way out to the root.
#[derive(Debug)]
struct Fault {
    what: What,
    trail: Trail,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Number,
    Private,
    Depth,
}

impl Fault {
    fn new(what: What) -> Self {
        Self { what, trail: Trail::default() }
    }

    fn into_error(self) -> CanonicalError {
        let path = self.trail.into_path();
        match self.what {
            What::Number => CanonicalError::NumberOutOfRange { path },
            What::Private => CanonicalError::PrivateKey { path },
            What::Depth => CanonicalError::TooDeep { path, limit: DEPTH_CEILING },
        }
    }
}

/// `depth` counts the containers around `value`.
fn walk(value: &Value, depth: usize, rule: Numbers) -> Result<Plain, Fault> {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(Plain::YES),
        Value::Number(number) if fits(number, rule) => Ok(Plain(!number.is_f64())),
        Value::Number(_) => Err(Fault::new(What::Number)),
        Value::Array(_) | Value::Object(_) if depth >= DEPTH_CEILING => {
            Err(Fault::new(What::Depth))
        }
        Value::Array(items) => {
            items.iter().enumerate().try_fold(Plain::YES, |plain, (index, item)| {
                let item = walk(item, depth + 1, rule).map_err(|mut fault| {
                    fault.trail.push_index(index);
                    fault
                })?;
                Ok(plain.and(item))
            })
        }
        Value::Object(members) => {
            // A build may turn on a map that keeps members as they came.
            let sorted = members.keys().is_sorted();
            members.iter().try_fold(Plain(sorted), |plain, (key, item)| {
                Ok(plain.and(member(key, item, depth + 1, rule)?))
            })
        }
    }
}

fn member(key: &str, value: &Value, depth: usize, rule: Numbers) -> Result<Plain, Fault> {
    let checked = if key.starts_with(PRIVATE_PREFIX) {
        Err(Fault::new(What::Private))
    } else {
        walk(value, depth, rule).map(|plain| plain.and(Plain(key.is_ascii())))
    };
    checked.map_err(|mut fault| {
        fault.trail.push_key(key);
        fault
    })
}
