//! Any value, read from a text or made of any doubles and texts, and its canonical form (RFC 8785): read back it is the same
//! value with the same form, however it was written before; `serde_jcs` writes the same; no two values share a form.

#![no_main]

use checkpoint_fuzz::json::{Choices, same, witness, written};
use checkpoint_fuzz::planted;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use wf_idempotency::{
    CanonicalError, Fingerprint, LedgerEntry, StrictLimits, canonical_bytes, canonical_string,
    parse_strict, replay, sha256_hex,
};

/// As deep as anything that is read.
const WIDE: StrictLimits = StrictLimits { max_bytes: 1 << 20, max_depth: usize::MAX };

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data);
    let built = choices.value(5);
    judge(&built, &mut choices);
    if let Ok(read) = parse_strict(data, WIDE) {
        let form = judge(&read, &mut Choices(data)).expect("what was read has a form");
        apart(&read, &form, &built);
    }
});

/// Judges the form of one value; returns it where there is one.
fn judge(value: &Value, choices: &mut Choices<'_>) -> Option<Vec<u8>> {
    let form = match canonical(value) {
        Ok(form) => form,
        Err(error) => {
            lawful(&error, value);
            return None;
        }
    };
    assert_eq!(canonical_string(value).expect("as bytes").as_bytes(), form, "as text");
    // `serde_jcs` writes what this form refuses, never anything else.
    let peer = serde_jcs::to_vec(value).expect("serde_jcs writes what we do");
    assert_eq!(text(&form), text(&peer), "serde_jcs");
    // Read by others it is the same value.
    let others: Value = serde_json::from_slice(&form).expect("JSON");
    assert!(same(value, &others), "{value} became {others}");
    assert_eq!(stored(&form), value_with_duplicate(value), "read back by replay");
    // Read strictly it is the same value with the same form, in whatever way it is written.
    if witness(&form).is_some_and(|seen| !seen.inexact) {
        let again = parse_strict(&form, WIDE).expect("strict JSON");
        assert!(same(value, &again), "{value} became {again}");
        assert_eq!(text(&canonical(&again).expect("again")), text(&form), "idempotent");
        let other = written(value, choices);
        let other = parse_strict(other.as_bytes(), WIDE).expect("another text of it");
        assert_eq!(text(&canonical(&other).expect("of it")), text(&form), "{other}");
        fingerprints(&form, &again, &other);
    }
    Some(form)
}

/// One fingerprint for all texts of the arguments, another when one of them is another.
fn fingerprints(form: &[u8], one: &Value, other: &Value) {
    let of = |operation: &str, value: &Value| {
        let arguments = Map::from_iter([("a".to_owned(), value.clone()), key()]);
        Fingerprint::of(operation, &arguments, &["k"]).map_err(|_| ())
    };
    let print = of("o", one);
    assert_eq!(print, of("o", other), "two texts of {}", text(form));
    if print.is_ok() {
        assert_ne!(print, of("p", one), "another operation");
        assert_ne!(print, of("o", &Value::from(vec![one.clone()])), "another value");
    }
}

fn key() -> (String, Value) {
    ("k".to_owned(), Value::from("left out"))
}

/// Two values have one form exactly when they mean the same.
fn apart(one: &Value, form: &[u8], other: &Value) {
    if let Ok(others) = canonical(other) {
        assert_eq!(form == others, same(one, other), "{one} and {other}");
    }
}

/// What a ledger row gives back, with the member that it adds to a result.
fn stored(form: &[u8]) -> Option<Value> {
    let result = format!("{{\"v\":{}}}", text(form));
    let fingerprint = Fingerprint::of("o", &Map::new(), &[]).expect("of nothing");
    let entry = LedgerEntry {
        operation: "o".to_owned(),
        fingerprint,
        result_version: 1,
        result,
        created_at_ms: 0,
        expires_at_ms: None,
    };
    let back = replay(&entry).ok()?;
    let bytes = canonical_bytes(back.get("v")?).ok()?;
    Some(Value::from(sha256_hex(&bytes)))
}

/// What [`stored`] gives of a value that came back as it was. One level more may be one too many.
fn value_with_duplicate(value: &Value) -> Option<Value> {
    let bytes = canonical_bytes(value).ok()?;
    let wrapped = Value::Object(Map::from_iter([("v".to_owned(), value.clone())]));
    canonical_bytes(&wrapped).ok().map(|_| Value::from(sha256_hex(&bytes)))
}

/// A refusal names a fault that is there.
fn lawful(error: &CanonicalError, value: &Value) {
    let seen = witness(value.to_string().as_bytes());
    match error {
        CanonicalError::NumberOutOfRange { .. } => {
            assert!(seen.is_none_or(|seen| seen.inexact), "{error}: {value}");
        }
        CanonicalError::PrivateKey { .. } => {
            assert!(seen.is_none_or(|seen| seen.private), "{error}")
        }
        CanonicalError::TooDeep { .. } => {
            assert!(seen.is_none_or(|seen| seen.depth > 127), "{error}")
        }
        CanonicalError::Write(_) => panic!("{error}: {value}"),
    }
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("UTF-8")
}

/// The form. In a control the members are in the order of their UTF-8 bytes, not of their UTF-16 code units.
fn canonical(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    let form = canonical_bytes(value)?;
    if planted() {
        let sorted = serde_json::to_vec(value).unwrap_or_default();
        let whole = serde_json::from_slice::<Value>(&sorted).is_ok_and(|back| back == *value);
        // Only where nothing but the order of the members is another.
        if whole && sorted.len() == form.len() {
            return Ok(sorted);
        }
    }
    Ok(form)
}
