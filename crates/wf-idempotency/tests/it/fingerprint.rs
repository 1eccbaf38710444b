//! The fingerprint's recipe, pinned by values computed elsewhere, and its text form.

use serde_json::{Map, Value, json};
use wf_idempotency::{Fingerprint, FingerprintError, sha256_hex};

fn of(operation: &str, arguments: &Value, excluded: &[&str]) -> Fingerprint {
    Fingerprint::of(operation, arguments.as_object().unwrap(), excluded).unwrap()
}

/// Computed with another SHA-256 over the documented bytes. If one of these changes, the version must.
#[test]
fn version_1_is_what_it_always_was() {
    let call = json!({
        "item": "a-1",
        "value": "4.20",
        "note": "é\n",
        "when": [1, -1, 0.5, 1e-7, true, null],
        "idempotency_key": "k-1",
    });
    for (operation, arguments, text) in [
        (
            "submit",
            json!({}),
            "v1:9d628d6801e1aa1f7ecfaeb3003684add11066cfb7841eab92a85811c7e82efe",
        ),
        ("", json!({}), "v1:5c0f41abedddb7883f170d93f24181f9dcaa99d07f8f48fbce992c8046e1237e"),
        ("record", call, "v1:673787a357a41296845cbeab4c17b62c928440a3d61e56fadc123210d9ffd969"),
    ] {
        assert_eq!(of(operation, &arguments, &["idempotency_key"]).to_string(), text);
    }
}

#[test]
fn the_recipe_is_domain_operation_and_canonical_form_with_nuls_between() {
    let bytes = b"checkpoint/fingerprint/v1\0submit\0{\"a\":1,\"b\":\"x\"}";
    let fingerprint = of("submit", &json!({ "b": "x", "a": 1.0 }), &[]);
    assert_eq!(fingerprint.to_string(), format!("v1:{}", sha256_hex(bytes)));
    assert_eq!(fingerprint.version(), Fingerprint::VERSION);
    let hex: String = fingerprint.as_bytes().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, sha256_hex(bytes));
}

#[test]
fn only_top_level_members_are_excluded_and_only_whole_names() {
    let excluded = ["idempotency_key", "confirm_token"];
    let base = of("op", &json!({ "a": 1 }), &excluded);
    assert_eq!(
        of("op", &json!({ "a": 1, "idempotency_key": "x", "confirm_token": "y" }), &excluded),
        base
    );
    assert_ne!(of("op", &json!({ "a": 1, "idempotency_key": "x" }), &[]), base);
    assert_ne!(of("op", &json!({ "a": 1, "idempotency_key2": "x" }), &excluded), base);
    let inside = |key: &str| of("op", &json!({ "a": { "idempotency_key": key } }), &excluded);
    assert_ne!(inside("x"), inside("y"));
    // An excluded member is not even looked at.
    assert_eq!(of("op", &json!({ "a": 1, "confirm_token": u64::MAX }), &excluded), base);
}

#[test]
fn operation_and_arguments_cannot_run_into_each_other() {
    let empty = json!({});
    let tricky = ["op", "op\0", "op\0{}", "op{}", "", "\0", "OP"];
    let all: std::collections::BTreeSet<_> = tricky.iter().map(|op| of(op, &empty, &[])).collect();
    assert_eq!(all.len(), tricky.len());
}

#[test]
fn too_deep_and_reserved_arguments_have_no_fingerprint() {
    // The object of the arguments is one of the 127 levels.
    let nested = |depth| (0..depth).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    for (depth, allowed) in [(126, true), (127, false), (200, false)] {
        let arguments = json!({ "a": nested(depth) });
        let fingerprint = Fingerprint::of("op", arguments.as_object().unwrap(), &[]);
        let expected = if allowed { Ok(()) } else { Err("too_deep") };
        assert_eq!(fingerprint.map(drop).map_err(|e| e.rule()), expected, "{depth}");
    }

    let mut arguments = Map::new();
    arguments.insert("$serde_json::private::RawValue".to_owned(), json!("1"));
    let refused = Fingerprint::of("op", &arguments, &[]).unwrap_err();
    assert_eq!(refused.rule(), "private_key");
}

#[test]
fn the_text_form_is_the_only_one_and_survives_serde() {
    let fingerprint = of("op", &json!({ "a": 1 }), &[]);
    let text = fingerprint.to_string();
    assert_eq!(text.parse(), Ok(fingerprint));
    assert_eq!(serde_json::to_value(fingerprint).unwrap(), json!(text));
    assert_eq!(serde_json::from_value::<Fingerprint>(json!(text)).unwrap(), fingerprint);
    assert_eq!(format!("{fingerprint:?}"), format!("Fingerprint({text})"));

    let digits = &text[3..];
    let version_2: Fingerprint = format!("v2:{digits}").parse().unwrap();
    assert_ne!(version_2, fingerprint, "same hash, other recipe");
    assert_eq!(version_2.to_string(), format!("v2:{digits}"));

    for wrong in [
        String::new(),
        digits.to_owned(),
        format!("V1:{digits}"),
        format!("v0:{digits}"),
        format!("v01:{digits}"),
        format!("v+1:{digits}"),
        format!("v:{digits}"),
        format!("v65536:{digits}"),
        format!("v1:{}", &digits[1..]),
        format!("v1:{digits}0"),
        format!("v1:{}", digits.to_uppercase()),
        format!("v1:{}g", &digits[1..]),
        format!("v1:é{}", &digits[2..]),
        format!(" {text}"),
        format!("{text}\n"),
    ] {
        assert_eq!(wrong.parse::<Fingerprint>(), Err(FingerprintError), "{wrong}");
        assert!(serde_json::from_value::<Fingerprint>(json!(wrong)).is_err(), "{wrong}");
    }
}

/// FIPS 180-4 examples.
#[test]
fn sha256_is_written_in_lowercase_hexadecimal() {
    assert_eq!(sha256_hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(
        sha256_hex(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}
