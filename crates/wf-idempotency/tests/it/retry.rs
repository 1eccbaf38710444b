//! The point of it all: clients that retry over a line that loses answers, against a plain function
//! (which doubles effects) and the same function behind the ledger (which does not).

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use wf_idempotency::{
    Fingerprint, IdempotencyKey, LedgerEntry, StrictLimits, Verdict, canonical_string, judge,
    parse_strict, replay,
};

use crate::generators::{Choices, choices, written};

/// Effect and ledger rows: what one database would hold.
#[derive(Debug, Default)]
struct Store {
    applied: Vec<i64>,
    rows: BTreeMap<(u8, IdempotencyKey), LedgerEntry>,
}

impl Store {
    /// The plain function.
    fn apply(&mut self, amount: i64) -> Value {
        self.applied.push(amount);
        json!({ "sum": self.applied.iter().sum::<i64>(), "duplicate": false })
    }

    fn plain(&mut self, body: &str) -> Value {
        let call: Value = serde_json::from_str(body).unwrap();
        self.apply(
            call["amount"].as_f64().map(|amount| format!("{amount}").parse().unwrap()).unwrap(),
        )
    }

    /// The same, safe to retry. `Err` is the conflict.
    fn once(&mut self, actor: u8, body: &str, now_ms: i64) -> Result<Value, String> {
        let call = parse_strict(body.as_bytes(), StrictLimits::default()).unwrap();
        let arguments = call.as_object().unwrap();
        let key = IdempotencyKey::parse(arguments["idempotency_key"].as_str().unwrap()).unwrap();
        let fingerprint = Fingerprint::of("apply", arguments, &["idempotency_key"]).unwrap();
        let scope = (actor, key);
        match judge(self.rows.get(&scope), "apply", &fingerprint, now_ms) {
            Verdict::Replay(row) => return Ok(replay(row).unwrap()),
            Verdict::Conflict(row) => return Err(row.operation.clone()),
            Verdict::Fresh | Verdict::Expired(_) => {}
        }
        let amount =
            arguments["amount"].as_f64().map(|amount| format!("{amount}").parse().unwrap());
        let result = self.apply(amount.unwrap());
        let row = LedgerEntry {
            operation: "apply".to_owned(),
            fingerprint,
            result_version: 1,
            result: canonical_string(&result).unwrap(),
            created_at_ms: now_ms,
            expires_at_ms: Some(now_ms + 1_000),
        };
        self.rows.insert(scope, row);
        Ok(result)
    }
}

/// One intention of a client: how often it is sent before an answer gets through.
#[derive(Debug, Clone)]
struct Intention {
    actor: u8,
    amount: i64,
    sends: usize,
}

fn intentions() -> impl Strategy<Value = Vec<Intention>> {
    let one = (0..3_u8, 1..100_i64, 1..5_usize).prop_map(|(actor, amount, sends)| Intention {
        actor,
        amount,
        sends,
    });
    prop::collection::vec(one, 1..12)
}

proptest! {
    #[test]
    fn each_intention_happens_exactly_once(intentions in intentions(), how in choices()) {
        let mut how = Choices::new(how);
        let (mut plain, mut safe) = (Store::default(), Store::default());
        for (number, intention) in intentions.iter().enumerate() {
            let key = format!("k-{number}");
            let call = json!({ "amount": intention.amount, "idempotency_key": key });
            let mut answers = Vec::new();
            for _ in 0..intention.sends {
                // Each attempt spells the same call in its own way.
                let body = written(&call, &mut how);
                plain.plain(&body);
                answers.push(safe.once(intention.actor, &body, 0).unwrap());
            }
            prop_assert_eq!(&answers[0]["duplicate"], &json!(false));
            for answer in &answers[1..] {
                prop_assert_eq!(&answer["duplicate"], &json!(true));
                prop_assert_eq!(&answer["sum"], &answers[0]["sum"]);
            }
        }
        let wanted: Vec<i64> = intentions.iter().map(|intention| intention.amount).collect();
        prop_assert_eq!(&safe.applied, &wanted);
        // Negative control: without the ledger every lost answer is a doubled effect.
        let sends: usize = intentions.iter().map(|intention| intention.sends).sum();
        prop_assert_eq!(plain.applied.len(), sends);
    }
}

#[test]
fn actors_conflicts_and_expiry() {
    let mut store = Store::default();
    let call = r#"{"amount":5,"idempotency_key":"k"}"#;
    let other = r#"{"amount":6,"idempotency_key":"k"}"#;
    assert_eq!(store.once(1, call, 0).unwrap()["sum"], 5);
    assert_eq!(store.once(1, other, 0), Err("apply".to_owned()));
    // The key of another actor is another key.
    assert_eq!(store.once(2, other, 0).unwrap()["sum"], 11);
    // A row whose time is past is replaced, even by another call.
    assert_eq!(store.once(1, call, 999).unwrap()["duplicate"], true);
    assert_eq!(store.once(1, other, 1_000).unwrap()["duplicate"], false);
    assert_eq!(store.once(1, other, 1_001).unwrap()["duplicate"], true);
    assert_eq!(store.applied, [5, 6, 6]);
}
