//! The judgement table and the replay.

use serde_json::{Value, json};
use wf_idempotency::{
    Fingerprint, LedgerEntry, ReplayError, Verdict, canonical_string, judge, replay,
};

fn print(n: i64) -> Fingerprint {
    Fingerprint::of("submit", json!({ "n": n }).as_object().unwrap(), &[]).unwrap()
}

fn entry(expires_at_ms: Option<i64>) -> LedgerEntry {
    LedgerEntry {
        operation: "submit".to_owned(),
        fingerprint: print(1),
        result_version: 1,
        result: r#"{"a":1,"duplicate":false}"#.to_owned(),
        created_at_ms: 1_000,
        expires_at_ms,
    }
}

fn name(verdict: Verdict<'_>) -> &'static str {
    match verdict {
        Verdict::Fresh => "fresh",
        Verdict::Replay(_) => "replay",
        Verdict::Conflict(_) => "conflict",
        Verdict::Expired(_) => "expired",
    }
}

#[test]
fn the_judgement_table() {
    // Expiry of the row (its row exists), operation, arguments, now, verdict.
    let table = [
        (None, "submit", 1, 5_000, "replay"),
        (None, "submit", 1, i64::MAX, "replay"),
        (None, "submit", 2, 5_000, "conflict"),
        (None, "skip", 1, 5_000, "conflict"),
        (None, "skip", 2, 5_000, "conflict"),
        (None, "Submit", 1, 5_000, "conflict"),
        (Some(9_000), "submit", 1, 5_000, "replay"),
        (Some(9_000), "submit", 1, 8_999, "replay"),
        (Some(9_000), "submit", 2, 8_999, "conflict"),
        // Its time has come: looked at before anything is compared.
        (Some(9_000), "submit", 1, 9_000, "expired"),
        (Some(9_000), "submit", 1, 9_001, "expired"),
        (Some(9_000), "submit", 2, 9_001, "expired"),
        (Some(9_000), "skip", 1, 9_001, "expired"),
        // The clock stood back: the row counts, though it was written "later".
        (Some(9_000), "submit", 1, 0, "replay"),
        (Some(9_000), "submit", 1, -1, "replay"),
        (Some(i64::MIN), "submit", 1, i64::MIN, "expired"),
        (Some(i64::MAX), "submit", 1, i64::MAX - 1, "replay"),
    ];
    for (expires, operation, arguments, now, expected) in table {
        let row = entry(expires);
        let verdict = judge(Some(&row), operation, &print(arguments), now);
        assert_eq!(name(verdict), expected, "{expires:?} {operation} {arguments} {now}");
        let found = match verdict {
            Verdict::Fresh => None,
            Verdict::Replay(found) | Verdict::Conflict(found) | Verdict::Expired(found) => {
                Some(found)
            }
        };
        assert!(
            found.is_some_and(|found| std::ptr::eq(found, &row)),
            "the row itself is handed on"
        );
    }
    for now in [i64::MIN, 0, i64::MAX] {
        assert_eq!(judge(None, "submit", &print(1), now), Verdict::Fresh);
    }
}

/// The fault of a well-known library: the row was found, so the result was answered.
#[test]
fn a_row_alone_is_not_enough_and_neither_is_the_hash_of_another_recipe() {
    let row = entry(None);
    let naive = Some(&row).map(|row| row.result.clone());
    assert!(naive.is_some(), "whoever looks only for a row answers another call's result");
    assert_eq!(judge(Some(&row), "submit", &print(2), 0), Verdict::Conflict(&row));

    let other: Fingerprint = print(1).to_string().replacen("v1:", "v2:", 1).parse().unwrap();
    assert_eq!(judge(Some(&row), "submit", &other, 0), Verdict::Conflict(&row));
}

#[test]
fn a_replay_turns_the_top_level_flag_and_nothing_else() {
    let stored = json!({
        "duplicate": false,
        "inner": { "duplicate": false, "list": [{ "duplicate": false }] },
        "big": 1e30,
        "beyond": 9_007_199_254_740_992.0,
        "small": 1e-7,
        "text": "é\u{1}\"",
        "null": null,
    });
    let row = LedgerEntry { result: canonical_string(&stored).unwrap(), ..entry(None) };
    let answer = canonical_string(&replay(&row).unwrap()).unwrap();
    let expected =
        row.result.replacen("\"duplicate\":false,\"inner\"", "\"duplicate\":true,\"inner\"", 1);
    assert_ne!(expected, row.result);
    assert_eq!(answer, expected);
    assert_eq!(answer.matches("\"duplicate\":false").count(), 2);
}

#[test]
fn the_flag_is_set_whatever_was_there() {
    for (stored, expected) in [
        ("{}", json!({ "duplicate": true })),
        (r#"{"duplicate":true}"#, json!({ "duplicate": true })),
        (r#"{"duplicate":"no"}"#, json!({ "duplicate": true })),
        (r#" {"b":1, "a":2} "#, json!({ "a": 2, "b": 1, "duplicate": true })),
    ] {
        let row = LedgerEntry { result: stored.to_owned(), ..entry(None) };
        assert_eq!(replay(&row).unwrap(), expected, "{stored}");
    }
}

#[test]
fn a_damaged_row_is_an_error_not_an_answer() {
    let with = |result: &str| replay(&LedgerEntry { result: result.to_owned(), ..entry(None) });
    for text in ["[]", "null", "1", "\"{}\"", "true"] {
        assert!(matches!(with(text), Err(ReplayError::NotAnObject)), "{text}");
    }
    for text in ["", "{", "{}{}", r#"{"a":1,"a":2}"#, r#"{"a":1e400}"#, "\u{feff}{}"] {
        let error = with(text).unwrap_err();
        assert!(matches!(error, ReplayError::Unreadable(_)), "{text}");
        // The message does not repeat its source.
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(!error.to_string().contains(&source), "{error}");
    }
}

#[test]
fn a_row_survives_serde() {
    for row in [entry(None), entry(Some(5))] {
        let json: Value = serde_json::to_value(&row).unwrap();
        assert_eq!(serde_json::from_value::<LedgerEntry>(json.clone()).unwrap(), row);
        assert_eq!(json["fingerprint"], json!(print(1).to_string()));
    }
    let mut damaged = serde_json::to_value(entry(None)).unwrap();
    damaged["fingerprint"] = json!("v1:00");
    assert!(serde_json::from_value::<LedgerEntry>(damaged).is_err());
}
