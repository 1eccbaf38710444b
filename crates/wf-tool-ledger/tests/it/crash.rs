//! A server that dies between the effect and its record.

use std::sync::Arc;
use std::time::Duration;

use wf_tool_ledger::Unfinished;

use crate::world::{Client, Sent, is_duplicate, killed_in_the_middle, refusal, times};

const SHORT: Duration = Duration::from_millis(400);

/// Asks again until the lease of the dead server is over.
async fn after_the_lease(client: &mut Client) -> serde_json::Value {
    let end = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let answer = client.send("k").await;
        let result = &answer["result"];
        let after = &result["_meta"]["checkpoint/retry"]["after_ms"];
        let Some(after) = after.as_u64() else { return answer };
        assert!(after <= 400 && tokio::time::Instant::now() < end, "{answer}");
    }
}

#[test]
fn at_most_once_the_outcome_is_unknown_and_stays_so() {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
    killed_in_the_middle(folder.path(), &sent, times(SHORT));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut client = Client::of(folder.path(), &sent, Unfinished::Refuse, times(SHORT)).await;
        assert_eq!(refusal(&after_the_lease(&mut client).await), "OUTCOME_UNKNOWN");
        assert_eq!(refusal(&client.send("k").await), "OUTCOME_UNKNOWN");
    });
    assert_eq!(sent.count(), 1);
}

#[test]
fn at_least_once_it_runs_again_under_the_same_effect_key() {
    let (folder, sent) = (tempfile::tempdir().unwrap(), Arc::new(Sent::default()));
    killed_in_the_middle(folder.path(), &sent, times(SHORT));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut client = Client::of(folder.path(), &sent, Unfinished::Repeat, times(SHORT)).await;
        assert!(!is_duplicate(&after_the_lease(&mut client).await));
        assert!(is_duplicate(&client.send("k").await));
    });
    let effects = sent.effects.lock().unwrap().clone();
    let [(first, 1), (second, 2)] = effects.as_slice() else { unreachable!("{effects:?}") };
    assert_eq!(first, second);
}
