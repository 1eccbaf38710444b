//! Documents made to be slow or to break the reader: each must be answered in time linear in its size.
//!
//! The bound is far above the times measured (optimised: a millisecond for a million digits, 0.4 s for
//! a million keys, 12 MB; ten times that without) and far below what anything quadratic needs for a
//! million elements. The default limit of 1 MiB keeps the worst case at some 30 ms.
#![expect(clippy::disallowed_methods, reason = "measuring time is what this module is for")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::Value;
use wf_idempotency::{StrictError, StrictLimits, canonical_bytes, parse_strict};

const MILLION: usize = 1_000_000;
const BOUND: Duration = Duration::from_secs(120);

fn timed(what: &str, text: &str) -> Result<Value, StrictError> {
    let limits = StrictLimits { max_bytes: usize::MAX, max_depth: usize::MAX };
    let start = Instant::now();
    let answer = parse_strict(text.as_bytes(), limits);
    let took = start.elapsed();
    assert!(took < BOUND, "{what} took {took:?}");
    answer
}

#[test]
fn a_million_digits() {
    let digits = "7".repeat(MILLION);
    for text in [digits.clone(), format!("-{digits}"), format!("{digits}.5"), format!("1e{digits}")]
    {
        assert_eq!(timed("digits", &text).unwrap_err().rule(), "number_out_of_range");
    }
    // Digits that vanish are within range.
    assert_eq!(timed("fraction", &format!("0.{digits}")).unwrap(), 0.777_777_777_777_777_8);
    assert_eq!(timed("tiny", &format!("1e-{digits}")).unwrap(), 0.0);
    assert_eq!(timed("zeros", &format!("0.{}1", "0".repeat(MILLION))).unwrap(), 0.0);
}

#[test]
fn a_million_keys() {
    let mut text = String::from("{");
    for n in 0..MILLION {
        let _ = write!(text, "\"k{n}\":0,");
    }
    let distinct = format!("{}\"last\":0}}", text);
    let read = timed("distinct keys", &distinct).unwrap();
    assert_eq!(read.as_object().unwrap().len(), MILLION + 1);

    let repeated = format!("{text}\"k0\":0}}");
    assert_eq!(timed("a duplicate at the end", &repeated).unwrap_err().rule(), "duplicate_key");
}

#[test]
fn a_million_open_brackets() {
    for open in ["[", "{\"a\":", "[{\"a\":"] {
        let error = timed("brackets", &open.repeat(MILLION)).unwrap_err();
        assert_eq!(error.rule(), "too_deep");
        assert!(error.to_string().len() < 1_500, "{error}");
    }
}

#[test]
fn a_million_elements_and_escapes() {
    let zeros = format!("[{}0]", "0,".repeat(MILLION));
    assert_eq!(timed("elements", &zeros).unwrap().as_array().unwrap().len(), MILLION + 1);
    let escapes = format!("\"{}\"", "\\ud83d\\ude00\\n".repeat(MILLION / 4));
    assert_eq!(timed("escapes", &escapes).unwrap().as_str().unwrap().len(), 5 * MILLION / 4);
    let spaces = format!("{}1{}", " ".repeat(MILLION), "\n".repeat(MILLION));
    assert_eq!(timed("spaces", &spaces).unwrap(), 1);
    let open = format!("[{}", "\"x\",".repeat(MILLION));
    assert_eq!(timed("never closed", &open).unwrap_err().rule(), "syntax");
}

/// The writer copies a nested object once a level: the worst case is size times depth.
#[test]
fn a_deep_and_long_value_is_written() {
    let text = format!("{}\"{}\"{}", "{\"a\":".repeat(32), "x".repeat(MILLION), "}".repeat(32));
    let value = timed("deep and long", &text).unwrap();
    let start = Instant::now();
    assert_eq!(canonical_bytes(&value).unwrap().len(), text.len());
    assert!(start.elapsed() < BOUND, "took {:?}", start.elapsed());
}
