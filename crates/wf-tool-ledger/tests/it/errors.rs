//! What a tool says of its own failure decides about the key.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use wf_tool_ledger::{Ledger, LedgerConfig, LedgerError, Unfinished};

use crate::world::{Client, End, Sent, is_duplicate, refusal, times};

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn an_error_says_that_nothing_was_done_so_the_key_is_free() {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
    let mut client = Client::of(folder.path(), &sent, Unfinished::Refuse, times(LONG)).await;
    sent.then(End::Refused);
    let refused = client.send("k").await;
    assert_eq!(refused["result"]["structuredContent"], json!({ "no": 1 }));
    sent.then(End::Broken);
    assert_eq!(client.send("k").await["error"]["code"], -32602);
    // With other arguments too: the caller has corrected them.
    let corrected = client.call("send", json!({ "to": "bob", "idempotency_key": "k" })).await;
    assert!(!is_duplicate(&corrected));
    assert_eq!(sent.count(), 1);
}

#[tokio::test]
async fn a_tool_in_doubt_is_not_run_again_at_most_once() {
    for end in [End::Doubt, End::Panic] {
        let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
        let mut client = Client::of(folder.path(), &sent, Unfinished::Refuse, times(LONG)).await;
        sent.then(end);
        for _ in 0..2 {
            let answer = client.send("k").await;
            assert_eq!(refusal(&answer), "OUTCOME_UNKNOWN", "{end:?}");
        }
        assert_eq!(sent.count(), 1);
        let other = client.call("send", json!({ "to": "bob", "idempotency_key": "k" })).await;
        assert_eq!(refusal(&other), "IDEMPOTENCY_CONFLICT");
    }
}

#[tokio::test]
async fn a_tool_in_doubt_is_run_again_with_its_effect_key_at_least_once() {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
    let mut client = Client::of(folder.path(), &sent, Unfinished::Repeat, times(LONG)).await;
    sent.then(End::Doubt);
    assert_eq!(refusal(&client.send("k").await), "OUTCOME_UNKNOWN");
    // The second run fails cleanly. That says nothing about the first, so the key stays this call's.
    sent.then(End::Refused);
    assert_eq!(client.send("k").await["result"]["isError"], true);
    let other = client.call("send", json!({ "to": "bob", "idempotency_key": "k" })).await;
    assert_eq!(refusal(&other), "IDEMPOTENCY_CONFLICT");
    assert!(!is_duplicate(&client.send("k").await));
    assert!(is_duplicate(&client.send("k").await));
    let effects = sent.effects.lock().unwrap().clone();
    let [(first, 1), (second, 3)] = effects.as_slice() else { unreachable!("{effects:?}") };
    assert_eq!(first, second);
    assert_eq!(first.len(), 32);
}

#[test]
fn a_file_of_a_newer_build_or_of_no_ledger_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (path, none) = (folder.path().join("calls.db"), folder.path().join("none.db"));
    drop(Ledger::open(&path, LedgerConfig::default()).unwrap());
    drop(Ledger::open(&path, LedgerConfig::default()).unwrap());
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.execute_batch("PRAGMA user_version = 2").unwrap();
    let refused = Ledger::open(&path, LedgerConfig::default());
    assert!(matches!(refused, Err(LedgerError::Newer { found: 2, known: 1 })));
    std::fs::write(&none, "no database, and long enough to be looked at as if it were one")
        .unwrap();
    let refused = Ledger::open(&none, LedgerConfig::default());
    assert!(matches!(refused, Err(LedgerError::Sqlite(_))));
}
