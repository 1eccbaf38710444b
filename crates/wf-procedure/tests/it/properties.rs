//! Laws that hold for any input.

use std::sync::LazyLock;

use proptest::prelude::*;
use wf_core::models::Locale;
use wf_core::policy::{DomainPolicyPort, Judgement};

use wf_procedure::Procedure;

use crate::files::sources;
use crate::fixture::{id, judge, pump, workflow};

/// Read once: the CEL parser is slow in a debug build.
static PUMP: LazyLock<Procedure> = LazyLock::new(pump);

/// Pieces of procedure files, so that random texts come past the first key.
fn fragment() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "schema: checkpoint/procedure/v1\n",
        "id: a\n",
        "version: 1\n",
        "title: T\n",
        "steps:\n",
        "  - { id: a, kind: number, prompt: x, unit: bar, range: { accept: [1, ",
        "] } }\n",
        "when: ",
        "inputs: ",
        "steps.a.value",
        " > 1.5",
        "&a ",
        "*a ",
        "? ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        "|",
        ">\n",
        "\"",
        "'",
        "!!str ",
        "<<: *a\n",
        "\t",
        "  ",
        "\n",
        "#",
        ": ",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "0x1",
        "1e999",
        ".inf",
        "\u{feff}",
        "assets: [{ role: a, id: { pattern: '",
        "(((",
        "exists(id, ",
        "kind: choice, choices: [a, b]",
        "\\u0000",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => "\\PC{0,12}", 1 => any::<String>()]
}

/// A good file with a few characters cut out, doubled or replaced.
fn mutated() -> impl Strategy<Value = String> {
    let good: Vec<String> = sources("good").into_iter().map(|(_, s)| s).collect();
    let change = (any::<prop::sample::Index>(), 0_usize..20, fragment());
    (prop::sample::select(good), prop::collection::vec(change, 1..4)).prop_map(
        |(source, changes)| {
            let mut chars: Vec<char> = source.chars().collect();
            for (at, length, with) in changes {
                let start = at.index(chars.len().max(1)).min(chars.len());
                let end = (start + length).min(chars.len());
                chars.splice(start..end, with.chars());
            }
            chars.into_iter().collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_never_panics(parts in prop::collection::vec(fragment(), 0..30)) {
        let source = parts.concat();
        if let Err(problems) = wf_procedure::parse(&source, "x.yaml") {
            prop_assert!(!problems.is_empty(), "refused without a reason: {source:?}");
        }
    }

    #[test]
    fn reading_a_damaged_file_never_panics(source in mutated()) {
        if let Err(problems) = wf_procedure::parse(&source, "x.yaml") {
            prop_assert!(!problems.is_empty());
        }
    }

    #[test]
    fn a_condition_never_panics(when in prop::collection::vec(prop::sample::select(vec![
        "steps", ".", "a", "value", "[", "]", "(", ")", "\"a\"", "&&", "||", "!", "1", "0.5", "-", "+", "*", "?", ":",
        "in", "has", "exists", "all", "map", "filter", ",", "id", "==", "<", " ", "{", "}", "true", "null", "'é'", "b'x'",
        "9223372036854775808", "1.", ".5", "0x", "\\", "\u{1F600}", "@", "_?_", "size", "inputs", "\n",
    ]), 0..25)) {
        let when = serde_json::Value::from(when.concat());
        let source = format!("{{schema: checkpoint/procedure/v1, id: t, version: 1, title: T, steps: [{{id: a, kind: number, prompt: x}}, {{id: b, kind: confirm, prompt: x, when: {when}}}]}}");
        if let Err(problems) = wf_procedure::parse(&source, "x.yaml") {
            prop_assert!(!problems.is_empty());
        }
    }

    #[test]
    fn judging_never_panics_and_speaks(
        step in prop::sample::select(vec!["isolate", "suction_pressure", "vibration", "seal", "remarks", "nowhere"]),
        value in prop_oneof!["\\PC{0,60}", "-?[0-9]{0,45}\\.?[0-9]{0,45} ?(bar|psi|kPa|°F|°C|in/s)?", any::<String>()],
        unit in prop::option::of(prop_oneof!["\\PC{0,20}", Just("psi".to_owned()), Just("mm/s".to_owned())]),
    ) {
        let policy = &*PUMP;
        let state = workflow(policy);
        match judge(policy, &state, step, &value, unit.as_deref()) {
            Judgement::Accept(a) | Judgement::Block(a, _) => {
                prop_assert!(!a.spoken.get(&Locale::default()).is_empty());
                let said = policy.spoken(&id(step), &a.reading, &Locale::default());
                prop_assert_eq!(said.as_str(), a.spoken.get(&Locale::default()));
            }
            Judgement::Reject(r) => prop_assert!(!r.message.is_empty() && !r.say.get(&Locale::default()).is_empty()),
            Judgement::Decline => {}
        }
    }

    #[test]
    fn a_number_is_inside_exactly_when_its_digits_say_so(whole in 0_u32..10, part in 0_u32..100) {
        let policy = &*PUMP;
        let state = workflow(policy);
        let value = format!("{whole}.{part:02}");
        let hundredths = whole * 100 + part;
        let found = judge(policy, &state, "suction_pressure", &value, Some("bar"));
        let (Judgement::Accept(a) | Judgement::Block(a, _)) = found else {
            return Err(TestCaseError::fail("refused"));
        };
        prop_assert_eq!(a.out_of_range, !(150..=600).contains(&hundredths));
        prop_assert_eq!(a.warnings.is_empty(), (200..=550).contains(&hundredths));
        prop_assert_eq!(&a.reading.given, &value);
        prop_assert_eq!(&a.reading.value, &value);
        prop_assert!(a.reading.exact.is_none());
    }

    #[test]
    fn the_same_pressure_in_another_unit_is_judged_the_same(kpa in 150_u32..2400) {
        let policy = &*PUMP;
        let state = workflow(policy);
        let bar = format!("{}.{:02}", kpa / 100, kpa % 100);
        let of = |value: &str, unit: &str| match judge(policy, &state, "suction_pressure", value, Some(unit)) {
            Judgement::Accept(a) => (false, a.out_of_range, a.warnings.len(), a.reading.value, a.reading.exact),
            Judgement::Block(a, _) => (true, a.out_of_range, a.warnings.len(), a.reading.value, a.reading.exact),
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(of(&kpa.to_string(), "kPa"), of(&bar, "bar"));
    }
}
