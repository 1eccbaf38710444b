//! Payloads that differ and yet hash alike when they are read by an ordinary parser, and the proof
//! that none of them does so behind the strict one. Each test shows the fault first.

use serde_json::Value;
use wf_idempotency::{Fingerprint, StrictLimits, parse_strict, sha256_hex};

/// What most servers do: parse, canonicalise, hash.
fn naive_hash(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap();
    sha256_hex(&serde_json_canonicalizer::to_vec(&value).unwrap())
}

/// What this crate does: the fingerprint, or the rule that forbids one.
fn fingerprint(text: &str) -> Result<Fingerprint, &'static str> {
    let value = parse_strict(text.as_bytes(), StrictLimits::default()).map_err(|e| e.rule())?;
    let arguments = value.as_object().unwrap();
    Fingerprint::of("submit", arguments, &[]).map_err(|e| e.rule())
}

/// Documents of one row are different calls that hash alike when read naively.
const COLLISIONS: &[(&[&str], &str)] = &[
    // The last duplicate wins, silently.
    (
        &[r#"{"a":2}"#, r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#, r#"{"\u0061":1,"a":2}"#],
        "duplicate_key",
    ),
    (&[r#"{"x":{"b":[]}}"#, r#"{"x":{"b":9,"b":[]}}"#], "duplicate_key"),
    // Neighbouring integers share a double.
    (
        &[
            r#"{"a":9007199254740992}"#,
            r#"{"a":9007199254740993}"#,
            r#"{"a":9007199254740992.0}"#,
            r#"{"a":9007199254740993.0}"#,
        ],
        "number_out_of_range",
    ),
    (&[r#"{"a":-9007199254740992}"#, r#"{"a":-9007199254740993}"#], "number_out_of_range"),
    (
        &[
            r#"{"a":18446744073709551616}"#,
            r#"{"a":18446744073709551617}"#,
            r#"{"a":18446744073709551615}"#,
        ],
        "number_out_of_range",
    ),
    (
        &[r#"{"a":10000000000000000000000}"#, r#"{"a":10000000000000000000001}"#, r#"{"a":1e22}"#],
        "number_out_of_range",
    ),
    // An object that is read as what it contains (`raw_value` is on in this build).
    (
        &[
            r#"{"a":1}"#,
            r#"{"a":{"$serde_json::private::RawValue":"1"}}"#,
            r#"{"a":{"\u0024serde_json::private::RawValue":"1"}}"#,
        ],
        "private_key",
    ),
    (
        &[r#"{"a":{"b":true}}"#, r#"{"a":{"$serde_json::private::RawValue":"{\"b\":true}"}}"#],
        "private_key",
    ),
];

#[test]
fn an_ordinary_parser_lets_different_calls_share_a_hash() {
    for (documents, _) in COLLISIONS {
        for document in *documents {
            assert_eq!(naive_hash(documents[0]), naive_hash(document), "{document}");
        }
    }
}

#[test]
fn behind_the_strict_reader_none_of_them_does() {
    for (documents, rule) in COLLISIONS {
        let accepted = documents.iter().filter(|document| match fingerprint(document) {
            Ok(_) => true,
            Err(broken) => {
                assert_eq!(broken, *rule, "{document}");
                false
            }
        });
        assert!(accepted.count() <= 1, "{documents:?}");
        assert_eq!(fingerprint(documents[documents.len() - 1]), Err(*rule));
    }
}

/// `arbitrary_precision` would read this one as 1; without the feature it is a plain object. Either
/// way it is refused.
#[test]
fn the_forged_number_is_refused_in_every_build() {
    assert_eq!(fingerprint(r#"{"a":{"$serde_json::private::Number":"1"}}"#), Err("private_key"));
}

/// A caller that skipped the strict reader is still stopped where a value shows the damage.
#[test]
fn values_that_were_rounded_before_are_refused_by_the_fingerprint_too() {
    for text in [
        r#"{"a":9007199254740993}"#,
        r#"{"a":[{"b":9007199254740993.0}]}"#,
        r#"{"a":18446744073709551617}"#,
        r#"{"a":-1e300}"#,
    ] {
        let value: Value = serde_json::from_str(text).unwrap();
        let refused = Fingerprint::of("submit", value.as_object().unwrap(), &[]).unwrap_err();
        assert_eq!(refused.rule(), "number_out_of_range", "{text}");
    }
}

/// What stays one by design, as RFC 8785 has it: the same double is the same number.
#[test]
fn equal_numbers_are_equal_in_every_notation() {
    for (a, b) in [
        ("1", "1.0"),
        ("1", "1e0"),
        ("100", "1E+2"),
        ("0", "-0"),
        ("0", "-0.0"),
        ("0", "1e-400"),
        ("0.1", "0.10000000000000000555"),
        ("9007199254740991", "9007199254740991.0"),
        ("-7", "-70e-1"),
    ] {
        let object = |number: &str| format!(r#"{{"a":{number}}}"#);
        let (first, second) = (fingerprint(&object(a)), fingerprint(&object(b)));
        assert!(first.is_ok(), "{a}");
        assert_eq!(first, second, "{a} {b}");
    }
}

/// And what never may be one.
#[test]
fn different_calls_differ() {
    let calls = [
        r#"{}"#,
        r#"{"a":null}"#,
        r#"{"a":0}"#,
        r#"{"a":-1}"#,
        r#"{"a":1}"#,
        r#"{"a":"1"}"#,
        r#"{"a":true}"#,
        r#"{"a":"true"}"#,
        r#"{"a":[1]}"#,
        r#"{"a":[]}"#,
        r#"{"a":{}}"#,
        r#"{"a":""}"#,
        r#"{"a":" "}"#,
        r#"{"A":1}"#,
        r#"{"a":"4.2"}"#,
        r#"{"a":"4.20"}"#,
        r#"{"a":4.2}"#,
        r#"{"a":9007199254740991}"#,
        r#"{"a":9007199254740990}"#,
        r#"{"a":[1,2]}"#,
        r#"{"a":[2,1]}"#,
        r#"{"a":[[1],2]}"#,
        r#"{"a":1,"b":2}"#,
        r#"{"a":2,"b":1}"#,
        r#"{"a":"\u00e9"}"#,
        r#"{"a":"e\u0301"}"#,
        r#"{"a":"\u0000"}"#,
        r#"{"a":"\\u0000"}"#,
        r#"{"a":0.1}"#,
        r#"{"a":0.1000000000000001}"#,
    ];
    let fingerprints: std::collections::BTreeSet<_> =
        calls.iter().map(|call| fingerprint(call).unwrap()).collect();
    assert_eq!(fingerprints.len(), calls.len());
}
