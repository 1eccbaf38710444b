//! Any bytes for the strict reader: what it takes is what `serde_json` reads and has nothing that two readers could understand
//! differently; what it refuses has exactly that fault, or is no JSON for `serde_json` either.

#![no_main]

use checkpoint_fuzz::json::{Witness, witness};
use checkpoint_fuzz::planted;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use wf_idempotency::{StrictError, StrictLimits, parse_strict};

/// Longer than any message needs to be: paths and keys in it are cut.
const MESSAGE_BYTES_MAX: usize = 1_024;

fuzz_target!(|data: &[u8]| {
    let seen = witness(data);
    let wide = StrictLimits { max_bytes: data.len(), max_depth: usize::MAX };
    judge(data, wide, seen.as_ref());
    judge(data, StrictLimits::default(), seen.as_ref());
    for max_depth in [0, 2] {
        judge(data, StrictLimits { max_depth, ..wide }, seen.as_ref());
    }
    // The depth that it has, and one less.
    if let Some(depth) = seen.as_ref().map(|seen| seen.depth) {
        judge(data, StrictLimits { max_depth: depth, ..wide }, seen.as_ref());
        judge(data, StrictLimits { max_depth: depth.saturating_sub(1), ..wide }, seen.as_ref());
    }
    if !data.is_empty() {
        judge(data, StrictLimits { max_bytes: data.len() - 1, ..wide }, seen.as_ref());
    }
});

fn judge(data: &[u8], limits: StrictLimits, seen: Option<&Witness>) {
    let depth_max = limits.max_depth.min(StrictLimits::DEPTH_CEILING);
    match (read(data, limits), seen) {
        (Ok(value), seen) => {
            assert!(data.len() <= limits.max_bytes, "more bytes than allowed");
            let seen = seen.expect("what serde_json does not take is no JSON");
            assert!(!seen.duplicate, "two equal keys");
            assert!(!seen.inexact, "a number that loses digits");
            assert!(!seen.private, "a private key");
            assert!(seen.depth <= depth_max, "{} levels, {depth_max} allowed", seen.depth);
            assert_eq!(value, seen.value, "read as serde_json does");
        }
        (Err(error), seen) => {
            well_said(&error, data.len());
            let too_large = data.len() > limits.max_bytes;
            assert_eq!(error.rule() == "too_large", too_large, "{error}");
            let Some(seen) = seen.filter(|_| !too_large) else { return };
            // It is JSON: the fault must be the one that was found.
            match error {
                StrictError::DuplicateKey { .. } => assert!(seen.duplicate, "{error}"),
                StrictError::NumberOutOfRange { .. } => assert!(seen.inexact, "{error}"),
                StrictError::PrivateKey { .. } => assert!(seen.private, "{error}"),
                StrictError::TooDeep { .. } => assert!(seen.depth > depth_max, "{error}"),
                StrictError::Syntax { .. } | StrictError::TooLarge { .. } => {
                    panic!("serde_json reads it: {error}")
                }
            }
        }
    }
}

/// A message can be shown and logged whatever the document says.
fn well_said(error: &StrictError, length: usize) {
    let text = error.to_string();
    assert!(text.len() <= MESSAGE_BYTES_MAX, "{} bytes of message", text.len());
    assert!(!text.chars().any(char::is_control), "{text:?}");
    if let StrictError::Syntax { offset, .. } = error {
        assert!(*offset <= length, "a fault at {offset} of {length} bytes");
    }
}

/// The reader. In a control it compares keys before it resolves their escapes.
fn read(data: &[u8], limits: StrictLimits) -> Result<Value, StrictError> {
    let read = parse_strict(data, limits);
    let careless = planted() && data.windows(2).any(|pair| pair == b"\\u");
    match read {
        Err(error @ StrictError::DuplicateKey { .. }) if careless => {
            serde_json::from_slice(data).map_err(|_| error)
        }
        other => other,
    }
}
