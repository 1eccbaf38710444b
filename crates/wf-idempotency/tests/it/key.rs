//! Which texts are idempotency keys.

use serde_json::json;
use wf_idempotency::{IdempotencyKey, KeyError};

#[test]
fn every_visible_ascii_character_and_no_other_is_allowed() {
    for code in 0..=0x10_FFFF_u32 {
        let Some(c) = char::from_u32(code) else {
            continue;
        };
        let parsed = IdempotencyKey::parse(&format!("k{c}"));
        if (0x21..=0x7E).contains(&code) {
            assert!(parsed.is_ok(), "{code:#x}");
        } else {
            assert_eq!(parsed, Err(KeyError::BadCharacter { at: 1 }), "{code:#x}");
        }
    }
}

#[test]
fn length_is_1_to_128() {
    assert_eq!(IdempotencyKey::parse(""), Err(KeyError::Empty));
    assert!(IdempotencyKey::parse("k").is_ok());
    assert!(IdempotencyKey::parse(&"k".repeat(128)).is_ok());
    assert_eq!(IdempotencyKey::parse(&"k".repeat(129)), Err(KeyError::TooLong { len: 129 }));
    assert_eq!(
        KeyError::TooLong { len: 129 }.to_string(),
        "an idempotency key has at most 128 characters, this one has 129 bytes"
    );
}

#[test]
fn nothing_is_trimmed_or_folded() {
    assert!(IdempotencyKey::parse(" k").is_err());
    assert!(IdempotencyKey::parse("k\n").is_err());
    let (lower, upper) = (IdempotencyKey::parse("k").unwrap(), IdempotencyKey::parse("K").unwrap());
    assert_ne!(lower, upper);
    assert!(upper < lower, "ordered as bytes");
}

#[test]
fn serde_goes_through_the_same_door() {
    let key: IdempotencyKey = serde_json::from_value(json!("nk_a-1")).unwrap();
    assert_eq!((key.as_str(), key.to_string().as_str()), ("nk_a-1", "nk_a-1"));
    assert_eq!(serde_json::to_value(&key).unwrap(), json!("nk_a-1"));
    assert_eq!("nk_a-1".parse(), Ok(key));
    for wrong in
        [json!(""), json!("a b"), json!("é"), json!("k".repeat(129)), json!(1), json!(null)]
    {
        assert!(serde_json::from_value::<IdempotencyKey>(wrong.clone()).is_err(), "{wrong}");
    }
    let error = serde_json::from_value::<IdempotencyKey>(json!("a b")).unwrap_err();
    assert!(error.to_string().contains("the character at byte 1"), "{error}");
}
