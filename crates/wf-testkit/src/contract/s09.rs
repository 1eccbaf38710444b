//! S9: an unknown outcome is `Ambiguous`, never `Unavailable`; the ledger row resolves it.

use wf_core::ports::{Commit, CommitError, Conflict};

use super::cast::{plant, start, start_with_everything, step_after};
use super::look::{self, Store, World};
use super::{ContractFixture, Verdict, Violation, check, check_eq};
use crate::build::asset;

/// A commit that is sent again although it was applied meets its own row, and nothing is doubled.
///
/// # Errors
/// When the store breaks the law.
pub async fn s09_resend_meets_its_row(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start_with_everything(1, 1).build();
    let second = step_after(&first, 10).assert_assets().build();
    for commit in [&first, &second] {
        store.commit(commit.clone()).await?;
        let row = || Conflict::Ledger(Box::new(commit.ledger.clone()));
        look::refused(&store, commit, row()).await?;
        look::refused(&fixture.reopen().await?, commit, row()).await?;
    }
    Ok(())
}

/// Whatever befalls a commit, its answer is true: `Ok` is there, `Unavailable` is not there and does not come later, and
/// anything else was `Ambiguous`, which the same commit sent again resolves.
///
/// # Errors
/// When the store breaks the law.
pub async fn s09_answers_are_true_when_disturbed(fixture: &dyn ContractFixture) -> Verdict {
    let stores = [fixture.open().await?, fixture.reopen().await?];
    let commit = |n| {
        let asset = asset(&format!("PUMP-{n}"));
        start(n).acquire(&asset, 1).message("log").build()
    };
    let commits: Vec<Commit> = (1..=8).map(commit).collect();
    fixture.disturb(true).await?;
    let answers = look::at_once(&stores, &commits).await?;
    fixture.disturb(false).await?;
    check!(answers.iter().any(Result::is_err), "the disturbance disturbed nothing");

    let store = fixture.reopen().await?;
    for _ in 0..2 {
        for (answer, commit) in answers.iter().zip(&commits) {
            told_truly(&store, answer, commit).await?;
        }
        // What did not land until others did will not land.
        let n = u32::try_from(World::of(&store, &[]).await?.workflows.len()).unwrap_or(0);
        store.commit(start(1_000 + n).build()).await?;
    }
    for (answer, commit) in answers.iter().zip(&commits) {
        resolved(&store, answer, commit).await?;
    }
    Ok(())
}

async fn told_truly(store: &Store, answer: &Result<(), CommitError>, commit: &Commit) -> Verdict {
    let there = whole(store, commit).await?;
    match answer {
        Ok(()) => check!(there, "acknowledged and not there: {commit:?}"),
        Err(CommitError::Unavailable { .. }) => {
            check!(!there, "Unavailable, which means not applied, and there: {commit:?}");
        }
        Err(CommitError::Ambiguous { .. }) => {}
        Err(error) => return Err(Violation::new(format!("a disturbed commit got {error:?}"))),
    }
    Ok(())
}

/// True when the commit is there, whole; false when nothing of it is.
pub(super) async fn whole(store: &Store, commit: &Commit) -> Result<bool, Violation> {
    let seen = look::load_of(store, commit).await?;
    let there = seen.ledger.is_some();
    check_eq!(seen.workflow.is_some(), there, "state and ledger row: {seen:?}");
    let held = seen.locks.iter().filter(|row| row.holder.is_some()).count();
    check_eq!(held, if there { commit.locks.len() } else { 0 }, "locks and ledger row: {seen:?}");
    Ok(there)
}

async fn resolved(store: &Store, answer: &Result<(), CommitError>, commit: &Commit) -> Verdict {
    match store.commit(commit.clone()).await {
        Ok(()) => check!(answer.is_err(), "an acknowledged commit was taken again: {commit:?}"),
        Err(CommitError::Conflict(conflict)) => {
            let row = Conflict::Ledger(Box::new(commit.ledger.clone()));
            check_eq!(conflict, row, "what the same commit met");
            let unavailable = matches!(answer, Err(CommitError::Unavailable { .. }));
            check!(!unavailable, "Unavailable, which means not applied, met its row: {commit:?}");
        }
        Err(error) => return Err(error.into()),
    }
    let events = look::events(store, &plant(), &commit.next.id).await?;
    check_eq!(events, commit.events, "the events in the end");
    let seen = look::load_of(store, commit).await?;
    check_eq!(seen.workflow, Some(commit.next.clone()), "the state in the end");
    Ok(())
}
