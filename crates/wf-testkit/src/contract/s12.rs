//! S12: a record too large for any backend is `TooLarge`, nothing written.

use serde_json::{Value, json};
use wf_core::limits::{EVENT_BYTES_MAX, STATE_BYTES_MAX};
use wf_core::ports::{Commit, CommitError};

use super::cast::{start, start_with_everything, step_after};
use super::look::{self, Store, World};
use super::{ContractFixture, Verdict, Violation, check_eq};

/// Larger than an item of any backend (400 KB on DynamoDB).
const HUGE_BYTES: usize = 450_000;

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

async fn too_large(store: &Store, commit: Commit) -> Verdict {
    let key = commit.ledger.key.clone();
    let before = World::of(store, &[&key]).await?;
    match store.commit(commit).await {
        Err(CommitError::TooLarge { .. }) => {}
        Err(error) => {
            return Err(Violation::new(format!("a commit that is too large got {error:?}")));
        }
        Ok(()) => return Err(Violation::new("a commit that is too large was taken")),
    }
    check_eq!(World::of(store, &[&key]).await?, before, "a commit that is too large wrote");
    Ok(())
}

/// A state that is too large is refused, at the start and later.
///
/// # Errors
/// When the store breaks the law.
pub async fn s12_too_large_state(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let mut commit = start_with_everything(1, 1).build();
    commit.next.inputs.insert("story".to_owned(), Value::from(text(HUGE_BYTES)));
    too_large(&store, commit).await?;
    let first = start(2).build();
    store.commit(first.clone()).await?;
    let mut second = step_after(&first, 10).build();
    second.next.inputs.insert("story".to_owned(), Value::from(text(HUGE_BYTES)));
    too_large(&store, second).await
}

/// An event that is too large is refused, and with it the others of its commit.
///
/// # Errors
/// When the store breaks the law.
pub async fn s12_too_large_event(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commit = start_with_everything(1, 1).note(&text(HUGE_BYTES)).note("small").build();
    too_large(&store, commit).await
}

/// A ledger row that is too large is refused.
///
/// # Errors
/// When the store breaks the law.
pub async fn s12_too_large_result(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let result = json!({ "speech": text(HUGE_BYTES) });
    too_large(&store, start_with_everything(1, 1).result(result).build()).await
}

/// A message that is too large is refused.
///
/// # Errors
/// When the store breaks the law.
pub async fn s12_too_large_message(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let data = json!({ "story": text(HUGE_BYTES) });
    too_large(&store, start_with_everything(1, 1).message_with("log2", data).build()).await
}

/// What is within the core's limits is taken, and comes back whole.
///
/// # Errors
/// When the store breaks the law.
pub async fn s12_largest_allowed_is_taken(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let message = json!({ "story": text(EVENT_BYTES_MAX - 2_000) });
    let mut commit = start_with_everything(1, 1)
        .note(&text(EVENT_BYTES_MAX - 2_000))
        .message_with("log2", message)
        .result(json!({ "speech": text(STATE_BYTES_MAX - 2_000) }))
        .build();
    let story = Value::from(text(STATE_BYTES_MAX - 20_000));
    commit.next.inputs.insert("story".to_owned(), story);
    store.commit(commit.clone()).await?;
    let seen = look::load_of(&store, &commit).await?;
    check_eq!(seen.workflow, Some(commit.next.clone()), "the state");
    check_eq!(seen.ledger, Some(commit.ledger), "the ledger row");
    let events = look::events(&store, &commit.next.tenant, &commit.next.id).await?;
    check_eq!(events, commit.events, "the events");
    let outbox = look::all_outbox(&store, 10).await?;
    check_eq!(outbox.len(), commit.outbox.len(), "the messages");
    Ok(())
}
