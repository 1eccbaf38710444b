//! S3: a ledger key that exists is `Conflict::Ledger` carrying the row, nothing written, unless it equals `replaces`.

use wf_core::ports::{CommitError, Conflict};

use super::cast::{ann, bob, other_plant, plant, start, start_by, step_after, wf};
use super::look::{self, World};
use super::{ContractFixture, Verdict, Violation, check_eq};
use crate::build::{CommitBuilder, asset, at};

/// A key that has a row is refused with the whole row, whatever else is new.
///
/// # Errors
/// When the store breaks the law.
pub async fn s03_ledger_key_conflicts_with_row(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).key("k").build();
    store.commit(first.clone()).await?;
    let known = || Conflict::Ledger(Box::new(first.ledger.clone()));

    look::refused(&store, &start(2).key("k").build(), known()).await?;
    look::refused(&store, &step_after(&first, 10).key("k").build(), known()).await
}

/// A key belongs to its tenant and actor: others use the same text for their own.
///
/// # Errors
/// When the store breaks the law.
pub async fn s03_key_belongs_to_tenant_and_actor(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let ours = start(1).key("k").build();
    let by_bob = start_by(2, &bob()).key("k").build();
    let elsewhere = CommitBuilder::start(&other_plant(), &wf(3), &ann(), at(0)).key("k").build();
    // Same subject, other kind of actor.
    let at_the_desk = start_by(4, &wf_core::models::Actor::Cli("ann".to_owned())).key("k").build();
    let all = [ours, by_bob, elsewhere, at_the_desk];
    for commit in &all {
        store.commit(commit.clone()).await?;
    }
    for commit in &all {
        let row = look::ledger(&store, &commit.ledger.key).await?;
        check_eq!(row, Some(commit.ledger.clone()), "the row of each");
    }
    Ok(())
}

/// Keys are compared byte for byte.
///
/// # Errors
/// When the store breaks the law.
pub async fn s03_keys_are_compared_byte_for_byte(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    for (n, key) in (1..).zip(["k", "K", "k%", "k_", "k#1", "k/1", "'k'", "k\\"]) {
        store.commit(start(n).key(key).build()).await?;
    }
    let known = start(99).key("K").build();
    let row = look::ledger(&store, &known.ledger.key).await?;
    check_eq!(row.map(|row| row.workflow_id), Some(wf(2)), "whose row it is");
    Ok(())
}

/// A row is replaced only by a commit that names exactly this row, as a row that was judged expired is.
///
/// # Errors
/// When the store breaks the law.
pub async fn s03_expired_row_is_replaced_only_when_equal(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let old = start(1).key("k").expires_at(at(5_000)).build();
    store.commit(old.clone()).await?;
    let known = || Conflict::Ledger(Box::new(old.ledger.clone()));

    look::refused(&store, &start(2).key("k").build(), known()).await?;
    let mut almost = old.ledger.clone();
    almost.entry.expires_at_ms = Some(at(5_001).as_ms());
    look::refused(&store, &start(2).key("k").replaces(&almost).build(), known()).await?;
    let mut almost = old.ledger.clone();
    almost.entry.result = "{}".to_owned();
    look::refused(&store, &start(2).key("k").replaces(&almost).build(), known()).await?;

    let new = start(2).key("k").replaces(&old.ledger).build();
    store.commit(new.clone()).await?;
    let row = look::ledger(&store, &new.ledger.key).await?;
    check_eq!(row, Some(new.ledger.clone()), "the row that replaced the old one");
    let late = start(3).key("k").replaces(&old.ledger).build();
    look::refused(&store, &late, Conflict::Ledger(Box::new(new.ledger))).await
}

/// A row that was judged expired and is gone by now needs no replacing.
///
/// # Errors
/// When the store breaks the law.
pub async fn s03_purged_row_needs_no_replacing(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let purged = start(1).key("k").expires_at(at(0)).build().ledger;
    let commit = start(2).key("k").replaces(&purged).build();
    store.commit(commit.clone()).await?;
    let row = look::ledger(&store, &commit.ledger.key).await?;
    check_eq!(row, Some(commit.ledger), "the row");
    Ok(())
}

/// The ledger is judged before locks and revision: a repeated call must meet its own row.
///
/// # Errors
/// When the store breaks the law.
pub async fn s03_ledger_is_reported_before_lock_and_revision(
    fixture: &dyn ContractFixture,
) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).acquire(&asset("PUMP-7"), 1).build();
    store.commit(first.clone()).await?;
    // The same start again fails all three conditions.
    look::refused(&store, &first, Conflict::Ledger(Box::new(first.ledger.clone()))).await?;
    let second = step_after(&first, 10).build();
    store.commit(second.clone()).await?;
    look::refused(&store, &second, Conflict::Ledger(Box::new(second.ledger.clone()))).await
}

/// Of many commits under one key that are sent at once from two handles, exactly one is taken, and the others get its
/// row.
///
/// # Errors
/// When the store breaks the law.
pub async fn s03_same_key_at_once_commits_once(fixture: &dyn ContractFixture) -> Verdict {
    let stores = [fixture.open().await?, fixture.reopen().await?];
    let [store, _] = &stores;
    let commits: Vec<_> = (1..=12).map(|n| start(n).key("k").build()).collect();

    let mut taken = Vec::new();
    let mut met = Vec::new();
    for (answer, commit) in look::at_once(&stores, &commits).await?.into_iter().zip(&commits) {
        match answer {
            Ok(()) => taken.push(commit.clone()),
            Err(CommitError::Conflict(conflict)) => met.push(conflict),
            Err(error) => return Err(error.into()),
        }
    }
    let [winner] = taken.as_slice() else {
        return Err(Violation::new(format!("{} commits under one key were taken", taken.len())));
    };
    for conflict in met {
        let row = Conflict::Ledger(Box::new(winner.ledger.clone()));
        check_eq!(conflict, row, "what a loser met");
    }
    let world = World::of(store, &[&winner.ledger.key]).await?;
    check_eq!(world.workflows, vec![winner.next.clone()], "the workflows");
    let nothing = look::workflow(store, &plant(), &wf(13)).await?;
    check_eq!(nothing, None, "a workflow nobody started");
    Ok(())
}
