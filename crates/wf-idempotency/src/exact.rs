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
pub(crate) fn check(value: &Value, rule: Numbers) -> Result<(), CanonicalError> {
    walk(value, 0, rule).map_err(Fault::into_error)
}

/// As [`check`], for one member of an object that is not a [`Value`] itself.
pub(crate) fn check_member(key: &str, value: &Value, rule: Numbers) -> Result<(), CanonicalError> {
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
fn walk(value: &Value, depth: usize, rule: Numbers) -> Result<(), Fault> {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
        Value::Number(number) if fits(number, rule) => Ok(()),
        Value::Number(_) => Err(Fault::new(What::Number)),
        Value::Array(_) | Value::Object(_) if depth >= DEPTH_CEILING => {
            Err(Fault::new(What::Depth))
        }
        Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
            walk(item, depth + 1, rule).map_err(|mut fault| {
                fault.trail.push_index(index);
                fault
            })
        }),
        Value::Object(members) => {
            members.iter().try_for_each(|(key, item)| member(key, item, depth + 1, rule))
        }
    }
}

fn member(key: &str, value: &Value, depth: usize, rule: Numbers) -> Result<(), Fault> {
    let checked = if key.starts_with(PRIVATE_PREFIX) {
        Err(Fault::new(What::Private))
    } else {
        walk(value, depth, rule)
    };
    checked.map_err(|mut fault| {
        fault.trail.push_key(key);
        fault
    })
}
