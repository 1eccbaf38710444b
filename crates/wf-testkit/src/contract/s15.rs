//! S15: an erasure changes nothing but what stands beside its event, and only while that is what was read.

use serde_json::json;
use wf_core::models::{Digest, Reading};
use wf_core::ports::{Commit, Erasure};
use wf_core::state_machine::{Erased, EventBody, Recording, SensitiveValue};

use super::cast::{ann, other_plant, plant, start, wf};
use super::look::{self, Store};
use super::{ContractFixture, Verdict, Violation, check_eq};
use crate::build::{CommitBuilder, at, step};

/// A workflow with two sensitive values, in events of one commit, and a plain event before them.
async fn secrets(store: &Store) -> Result<Commit, Violation> {
    let commit = start(1)
        .note("nothing secret")
        .event_with(withheld("one"), vec![secret("4711")])
        .event_with(withheld("two"), vec![secret("4712")])
        .build();
    store.commit(commit.clone()).await?;
    Ok(commit)
}

fn secret(value: &str) -> SensitiveValue {
    SensitiveValue::new("value", "0123456789abcdef0123456789abcdef", json!({ "given": value }))
}

fn withheld(name: &str) -> EventBody {
    EventBody::StepRecorded(Recording {
        step_id: step(name),
        attempt: 1,
        reading: Reading::default().withhold(),
        sensitive_digest: Some(Digest::of(name.as_bytes())),
        out_of_range: false,
        deviation: None,
        warnings: Vec::new(),
        note: None,
        confirmed_by: None,
        signed: None,
    })
}

/// The erasure of what stands beside event `seq`, which is `value`.
fn erasure(seq: u64, value: &str) -> Erasure {
    let was = vec![secret(value)];
    let erased = Erased { at: at(900_000), by: ann(), reason: "asked for \u{1F512}".to_owned() };
    let becomes = was.iter().map(|value| value.erase(erased.clone())).collect();
    Erasure { tenant: plant(), workflow_id: wf(1), seq, was, becomes }
}

/// What is left stands beside the event for every handle; all else is as it was, and the workflow goes on.
///
/// # Errors
/// When the store breaks the law.
pub async fn s15_erasure_replaces_what_stands_beside(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commit = secrets(&store).await?;
    let before = look::load_of(&store, &commit).await?;
    let erasure = erasure(3, "4711");
    check_eq!(store.erase(&erasure).await?, true, "the erasure");
    let mut history = commit.events.clone();
    for event in &mut history {
        if event.seq == 3 {
            event.sensitive.clone_from(&erasure.becomes);
        }
    }
    for handle in [&store, &fixture.reopen().await?] {
        let seen = look::events(handle, &plant(), &wf(1)).await?;
        check_eq!(seen, history, "the history after the erasure");
        check_eq!(look::load_of(handle, &commit).await?, before, "all else");
    }
    let next = CommitBuilder::next(&commit.next, at(950_000)).note("it goes on").build();
    store.commit(next).await?;
    Ok(())
}

/// Whoever read something else, or means no event, erases nothing.
///
/// # Errors
/// When the store breaks the law.
pub async fn s15_erasure_of_something_else_is_refused(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commit = secrets(&store).await?;
    let right = erasure(3, "4711");
    let elsewhere = [
        ("another value", erasure(3, "4712")),
        ("a plain event", erasure(2, "4711")),
        ("no event", erasure(9, "4711")),
        ("another workflow", Erasure { workflow_id: wf(2), ..right.clone() }),
        ("another tenant", Erasure { tenant: other_plant(), ..right.clone() }),
    ];
    for (what, wrong) in elsewhere {
        check_eq!(store.erase(&wrong).await?, false, "{what}");
    }
    let seen = look::events(&store, &plant(), &wf(1)).await?;
    check_eq!(seen, commit.events, "the history after refused erasures");
    check_eq!(store.erase(&right).await?, true, "the right one");
    check_eq!(store.erase(&right).await?, false, "the same again");
    Ok(())
}
