//! S13: dropping the future of a call at any await leaves all of the commit or none.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use wf_core::ports::{Commit, CommitError, Conflict};

use super::cast::{plant, start, wf};
use super::look::{self, Store, World};
use super::s09::whole;
use super::{ContractFixture, Verdict, Violation, check, check_eq};
use crate::build::{asset, at};

/// More awaits than any call has.
const POLLS_MAX: u32 = 300;

/// Polls a future at most `polls` times, when it asks to be polled, and drops it. `None` when it was not ready by then.
async fn poll_at_most<F: Future>(future: F, polls: u32) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

fn commit(n: u32) -> Commit {
    let pump = asset(&format!("PUMP-{n}"));
    start(n).acquire(&pump, 1).record("pressure", "4.2").message("log").deadline(at(1)).build()
}

/// Sends a commit again that may have been applied. Afterwards it is.
async fn send_again(store: &Store, commit: &Commit) -> Verdict {
    match store.commit(commit.clone()).await {
        Ok(()) => Ok(()),
        Err(CommitError::Conflict(conflict)) => {
            let row = Conflict::Ledger(Box::new(commit.ledger.clone()));
            check_eq!(conflict, row, "what the same commit met");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Every one of these commits is there, once, and nothing else.
async fn exactly(store: &Store, commits: &[Commit]) -> Verdict {
    let keys: Vec<_> = commits.iter().map(|c| &c.ledger.key).collect();
    let world = World::of(store, &keys).await?;
    let states: Vec<_> = commits.iter().map(|c| c.next.clone()).collect();
    check_eq!(world.workflows, states, "the states");
    let histories: Vec<_> = commits.iter().map(|c| c.events.clone()).collect();
    check_eq!(world.events, histories, "the events");
    let rows: Vec<_> = commits.iter().map(|c| Some(c.ledger.clone())).collect();
    check_eq!(world.ledger, rows, "the ledger rows");
    let sent: Vec<_> = world.outbox.into_iter().map(|row| row.message).collect();
    let messages: Vec<_> = commits.iter().flat_map(|c| c.outbox.clone()).collect();
    check_eq!(sent, messages, "the messages");
    check_eq!(world.deadlines.len(), commits.len(), "the deadlines");
    check_eq!(world.locks.len(), commits.len(), "the lock rows");
    Ok(())
}

/// A commit that is dropped after its first, second, … poll is there whole or not at all, and the same commit sent
/// again settles it.
///
/// # Errors
/// When the store breaks the law.
pub async fn s13_dropped_commit_is_all_or_none(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let other = fixture.reopen().await?;
    let mut commits = Vec::new();
    for polls in 0..POLLS_MAX {
        let commit = commit(polls + 1);
        let answer = poll_at_most(store.commit(commit.clone()), polls).await;
        for handle in [&other, &store] {
            let there = whole(handle, &commit).await?;
            check!(there || answer.is_none(), "acknowledged and not there: {commit:?}");
        }
        send_again(&store, &commit).await?;
        commits.push(commit);
        if let Some(answer) = answer {
            answer?;
            return exactly(&other, &commits).await;
        }
    }
    Err(Violation::new(format!("a commit was not ready after {POLLS_MAX} polls")))
}

/// Many dropped calls in a row leave the store working.
///
/// # Errors
/// When the store breaks the law.
pub async fn s13_store_works_after_drops(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits: Vec<_> = (1..=40).map(commit).collect();
    for (polls, commit) in (0..4).cycle().zip(&commits) {
        // The answers, if any, are of no interest: what counts is what is there in the end.
        drop(poll_at_most(store.commit(commit.clone()), polls).await);
        let mut query = look::query(&plant());
        query.workflow = Some(wf(1));
        drop(poll_at_most(store.load(&query), polls).await);
        drop(poll_at_most(store.claim_outbox(&look::claim(-1, "never due")), polls).await);
    }
    for commit in &commits {
        send_again(&store, commit).await?;
    }
    exactly(&store, &commits).await
}
