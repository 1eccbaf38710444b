//! S2: a stale expected revision is `Conflict::Revision`, nothing written.

use wf_core::ports::{CommitError, Conflict};

use super::cast::{plant, start, start_with_everything, step_after, wf};
use super::look::{self, World};
use super::{ContractFixture, Verdict, Violation, check_eq};
use crate::build::{CommitBuilder, at};

/// A commit that was decided on an older revision is refused with the current one.
///
/// # Errors
/// When the store breaks the law.
pub async fn s02_stale_revision_conflicts(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start_with_everything(1, 1).build();
    store.commit(first.clone()).await?;
    let second = step_after(&first, 10).note("and a note").build();
    store.commit(second.clone()).await?;

    let stale = step_after(&first, 20).key("stale").build();
    let current = second.next.revision;
    look::refused(&store, &stale, Conflict::Revision { current }).await
}

/// A commit that was decided on a revision that does not exist yet is refused too.
///
/// # Errors
/// When the store breaks the law.
pub async fn s02_future_revision_conflicts(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).build();
    store.commit(first.clone()).await?;
    let skipped = step_after(&first, 10).build();
    let early = step_after(&skipped, 20).build();
    look::refused(&store, &early, Conflict::Revision { current: 1 }).await
}

/// A workflow that exists cannot start again.
///
/// # Errors
/// When the store breaks the law.
pub async fn s02_existing_workflow_cannot_start_again(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).record("pressure", "4.20").build();
    store.commit(first).await?;
    let again = start(1).key("again").build();
    look::refused(&store, &again, Conflict::Revision { current: 2 }).await
}

/// A workflow that does not exist has revision 0.
///
/// # Errors
/// When the store breaks the law.
pub async fn s02_absent_workflow_has_revision_zero(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let never_sent = start(1).build();
    let orphan = step_after(&never_sent, 10).build();
    look::refused(&store, &orphan, Conflict::Revision { current: 0 }).await?;
    check_eq!(look::workflow(&store, &plant(), &wf(1)).await?, None, "the workflow");
    Ok(())
}

/// Of many commits on one revision that are sent at once from two handles, exactly one is taken.
///
/// # Errors
/// When the store breaks the law.
pub async fn s02_one_of_many_writers_wins(fixture: &dyn ContractFixture) -> Verdict {
    const WRITERS: i64 = 12;
    let stores = [fixture.open().await?, fixture.reopen().await?];
    let [store, _] = &stores;
    let first = start(1).build();
    store.commit(first.clone()).await?;
    let commit = |n: i64| {
        let key = format!("writer-{n}");
        let builder = CommitBuilder::next(&first.next, at(100_000 + n));
        builder.key(&key).record("pressure", &n.to_string()).build()
    };
    let commits: Vec<_> = (0..WRITERS).map(commit).collect();

    let mut taken = Vec::new();
    for (answer, commit) in look::at_once(&stores, &commits).await?.into_iter().zip(&commits) {
        match answer {
            Ok(()) => taken.push(commit),
            Err(CommitError::Conflict(conflict)) => {
                check_eq!(conflict, Conflict::Revision { current: 2 }, "a loser's answer");
            }
            Err(error) => return Err(error.into()),
        }
    }
    let [winner] = taken.as_slice() else {
        return Err(Violation::new(format!("{} commits on one revision were taken", taken.len())));
    };
    let keys: Vec<_> = commits.iter().map(|c| &c.ledger.key).collect();
    let world = World::of(store, &keys).await?;
    check_eq!(world.workflows, vec![winner.next.clone()], "the state");
    let rows: Vec<_> = world.ledger.into_iter().flatten().collect();
    check_eq!(rows, vec![winner.ledger.clone()], "the ledger rows");
    let history = [first.events, winner.events.clone()].concat();
    check_eq!(world.events, vec![history], "the events");
    Ok(())
}
