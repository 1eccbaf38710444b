//! S1: a commit is all or nothing.

use wf_core::locks::LockHolder;
use wf_core::ports::{Conflict, DeadlineChange, OutboxState};

use super::cast::{ann, bob, plant, start, start_by, start_with_everything, step_after, wf};
use super::look::{self, World};
use super::{ContractFixture, Verdict, check, check_eq};
use crate::build::{asset, person};

/// Every part of a commit is there afterwards, as it was given.
///
/// # Errors
/// When the store breaks the law; so for every clause.
pub async fn s01_commit_writes_every_part(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commit = start_with_everything(1, 1).build();
    store.commit(commit.clone()).await?;

    let world = World::of(&store, &[&commit.ledger.key]).await?;
    check_eq!(world.workflows, vec![commit.next.clone()], "the state");
    check_eq!(world.events, vec![commit.events.clone()], "the events");
    check_eq!(world.ledger, vec![Some(commit.ledger.clone())], "the ledger");

    let held: Vec<_> = world.locks.iter().map(|row| (row.asset_id.as_str(), row.fence)).collect();
    check_eq!(held, [("GAUGE:3", 1), ("PUMP-7", 1)], "assets and fences");
    let holder = LockHolder {
        workflow_id: wf(1),
        owner: person(&ann()),
        acquired_at: commit.next.updated_at,
    };
    for row in &world.locks {
        check_eq!(row.tenant, plant(), "the tenant of a lock");
        check_eq!(row.holder, Some(holder.clone()), "the holder");
    }

    check_eq!(world.people, Vec::from_iter(commit.seen.clone()), "who caused it");

    let mut messages = commit.outbox.clone();
    messages.sort_by(|a, b| a.id.cmp(&b.id));
    let stored: Vec<_> = world.outbox.iter().map(|row| row.message.clone()).collect();
    check_eq!(stored, messages, "the messages");
    for row in &world.outbox {
        check_eq!(row.status.state, OutboxState::Pending, "a new message");
        check_eq!(row.status.attempts, 0, "attempts of a new message");
        check_eq!(row.status.last_error, None, "the error of a new message");
    }

    let due: Vec<_> = world.deadlines.into_iter().map(|d| DeadlineChange::Set(d.3)).collect();
    check_eq!(due, commit.deadlines, "the deadlines");
    Ok(())
}

/// The second commit of a workflow replaces its state and adds the rest.
///
/// # Errors
/// When the store breaks the law.
pub async fn s01_next_commit_adds_to_the_first(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start_with_everything(1, 1).build();
    store.commit(first.clone()).await?;
    let second = step_after(&first, 30).build();
    store.commit(second.clone()).await?;

    let world = World::of(&store, &[&first.ledger.key, &second.ledger.key]).await?;
    check_eq!(world.workflows, vec![second.next.clone()], "the state");
    let history = [first.events, second.events].concat();
    check_eq!(world.events, vec![history], "the events");
    let rows = vec![Some(first.ledger), Some(second.ledger)];
    check_eq!(world.ledger, rows, "the ledger");
    check_eq!(world.outbox.len(), 3, "messages of both");
    check_eq!(world.deadlines.len(), 3, "deadlines of both");
    Ok(())
}

/// A commit with every part is refused for each reason there is, and none of its parts is there.
///
/// # Errors
/// When the store breaks the law.
pub async fn s01_refused_commit_writes_no_part(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let other = start_by(9, &bob()).acquire(&asset("PUMP-7"), 1).build();
    store.commit(other.clone()).await?;
    let first = start(1).build();
    store.commit(first.clone()).await?;
    let second = step_after(&first, 30).build();
    store.commit(second).await?;

    // Everything in these commits would be new, but for the one condition.
    let stale = step_after(&first, 60).key("stale").build();
    look::refused(&store, &stale, Conflict::Revision { current: 2 }).await?;

    let twin = start_with_everything(2, 1).key(first.ledger.key.key.as_str()).build();
    let known = Conflict::Ledger(Box::new(first.ledger.clone()));
    look::refused(&store, &twin, known).await?;

    let contender = start_with_everything(3, 1).build();
    let row = look::lock(&store, &plant(), &asset("PUMP-7")).await?;
    check!(row.is_some(), "the asset that is held has no row");
    let held = Conflict::Asset { asset_id: asset("PUMP-7"), row };
    look::refused(&store, &contender, held).await?;
    for id in [wf(2), wf(3)] {
        let seen = look::workflow(&store, &plant(), &id).await?;
        check_eq!(seen, None, "a workflow that never started");
    }
    Ok(())
}
