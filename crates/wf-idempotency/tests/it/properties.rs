//! Laws that hold for all documents, checked on random ones, with two oracles: `serde_json` for the
//! reader and `serde_jcs` for the writer.

use proptest::prelude::*;
use serde_json::{Value, json};
use wf_idempotency::{
    Fingerprint, LedgerEntry, StrictError, StrictLimits, canonical_bytes, canonical_string,
    parse_strict, replay,
};

use crate::generators::{
    Choices, any_value, arguments, choices, exact_value, same_json, tiny_value, written,
};

fn strict(text: &str) -> Result<Value, StrictError> {
    parse_strict(text.as_bytes(), StrictLimits::default())
}

/// The relation of the strict reader to `serde_json` on any bytes: it takes less, reads what it takes
/// alike, and whatever else it refuses breaks one of the named rules.
fn agrees_with_serde_json(bytes: &[u8]) -> Result<(), TestCaseError> {
    let plain = serde_json::from_slice::<Value>(bytes);
    match (parse_strict(bytes, StrictLimits::default()), plain) {
        (Ok(strict), Ok(plain)) => prop_assert_eq!(strict, plain),
        (Ok(strict), Err(error)) => prop_assert!(false, "took {strict}: {error}"),
        (Err(error), Ok(_)) => prop_assert_ne!(error.rule(), "syntax", "{}", error),
        (Err(_), Err(_)) => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Order of members, space, escapes and notation of numbers do not count.
    #[test]
    fn every_way_to_write_a_value_has_one_canonical_form(
        value in exact_value(), first in choices(), second in choices(),
    ) {
        let first = written(&value, &mut Choices::new(first));
        let second = written(&value, &mut Choices::new(second));
        let expected = canonical_bytes(&value).unwrap();
        for text in [&first, &second] {
            let read = strict(text).map_err(|e| TestCaseError::fail(format!("{e}: {text}")))?;
            prop_assert!(same_json(&read, &value), "{text}");
            prop_assert_eq!(&canonical_bytes(&read).unwrap(), &expected, "{}", text);
        }
    }

    #[test]
    fn every_way_to_write_arguments_has_one_fingerprint(
        sent in arguments(), first in choices(), second in choices(),
    ) {
        let mut fingerprints = Vec::new();
        for choices in [first, second] {
            let text = written(&Value::Object(sent.clone()), &mut Choices::new(choices));
            let read = strict(&text).map_err(|e| TestCaseError::fail(format!("{e}: {text}")))?;
            fingerprints.push(Fingerprint::of("op", read.as_object().unwrap(), &["a"]).unwrap());
        }
        prop_assert_eq!(fingerprints[0], fingerprints[1]);
        // Leaving a member out by name is the same as not having it, and as not sending it.
        let mut without = sent.clone();
        without.remove("a");
        prop_assert_eq!(fingerprints[0], Fingerprint::of("op", &without, &[]).unwrap());
        prop_assert_ne!(fingerprints[0], Fingerprint::of("op2", &without, &[]).unwrap());
    }

    /// Different values differ: the form is injective up to JSON equality.
    #[test]
    fn two_values_share_a_form_only_if_they_mean_the_same(a in tiny_value(), b in tiny_value()) {
        let same = same_json(&a, &b);
        prop_assert_eq!(canonical_bytes(&a).unwrap() == canonical_bytes(&b).unwrap(), same);
        let print = |value: &Value| {
            Fingerprint::of("op", json!({ "x": value }).as_object().unwrap(), &[]).unwrap()
        };
        prop_assert_eq!(print(&a) == print(&b), same);
    }

    #[test]
    fn canonical_text_is_a_fixed_point(value in exact_value()) {
        let once = canonical_string(&value).unwrap();
        let read = strict(&once).map_err(|e| TestCaseError::fail(format!("{e}: {once}")))?;
        prop_assert!(same_json(&read, &value));
        prop_assert_eq!(canonical_string(&read).unwrap(), once);
    }

    #[test]
    fn an_independent_writer_agrees(value in any_value()) {
        let ours = canonical_string(&value).unwrap();
        prop_assert_eq!(canonical_bytes(&value).unwrap(), ours.as_bytes());
        prop_assert_eq!(serde_jcs::to_string(&value).unwrap(), ours);
    }

    #[test]
    fn an_independent_writer_agrees_on_every_double(bits in any::<u64>()) {
        let double = f64::from_bits(bits);
        prop_assume!(double.is_finite());
        let value = Value::from(double);
        let ours = canonical_string(&value).unwrap();
        prop_assert_eq!(serde_jcs::to_string(&value).unwrap(), ours.clone());
        prop_assert_eq!(ours.parse::<f64>().unwrap(), double);
    }

    /// A stored result comes back byte for byte, whatever doubles it holds.
    #[test]
    fn a_replay_changes_nothing_but_the_flag(
        members in prop::collection::btree_map("[a-e]|duplicate", any_value(), 0..6),
    ) {
        let mut result = Value::Object(members.into_iter().collect());
        let entry = LedgerEntry {
            operation: "op".to_owned(),
            fingerprint: Fingerprint::of("op", &serde_json::Map::new(), &[]).unwrap(),
            result_version: 1,
            result: canonical_string(&result).unwrap(),
            created_at_ms: 0,
            expires_at_ms: None,
        };
        result["duplicate"] = json!(true);
        let answer = replay(&entry).unwrap();
        prop_assert_eq!(canonical_string(&answer).unwrap(), canonical_string(&result).unwrap());
        // Replaying a replay changes nothing more.
        let again = LedgerEntry { result: canonical_string(&answer).unwrap(), ..entry };
        prop_assert_eq!(replay(&again).unwrap(), answer);
    }

    #[test]
    fn the_reader_agrees_with_serde_json_on_documents(value in any_value(), how in choices()) {
        agrees_with_serde_json(written(&value, &mut Choices::new(how)).as_bytes())?;
    }

    #[test]
    fn the_reader_agrees_with_serde_json_on_damaged_documents(
        value in any_value(),
        how in choices(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..3, any::<u8>()), 1..4),
    ) {
        let mut bytes = written(&value, &mut Choices::new(how)).into_bytes();
        for (place, kind, byte) in damage {
            let special = b"{}[]\",:\\u0.-+eE19tfn \x00\x7f\xff\xed\xa0";
            let byte = if byte < 128 { special[usize::from(byte) % special.len()] } else { byte };
            let at = place.index(bytes.len() + 1);
            match kind {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                _ if at < bytes.len() => drop(bytes.remove(at)),
                _ => {}
            }
        }
        agrees_with_serde_json(&bytes)?;
    }

    #[test]
    fn the_reader_agrees_with_serde_json_on_soup(
        text in "[\\[\\]{},:\"\\\\ua0-9eE.+\\- tfn]{0,24}", bytes in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        agrees_with_serde_json(text.as_bytes())?;
        agrees_with_serde_json(&bytes)?;
    }
}
