//! S4: an asset held by another workflow is `Conflict::Asset` carrying the row, nothing written; several: all or none.

use wf_core::locks::{LockChange, LockRow};
use wf_core::ports::{Commit, CommitError, Conflict};

use super::cast::{ann, bob, plant, start, start_by, step_after, wf};
use super::look::{self, Store};
use super::{ContractFixture, Verdict, Violation, check, check_eq};
use crate::build::{CommitBuilder, asset};

const PUMP: &str = "PUMP-7";
const GAUGE: &str = "GAUGE:3";

/// The row of an asset as it is now.
async fn row(store: &Store, id: &str) -> Result<Option<LockRow>, Violation> {
    look::lock(store, &plant(), &asset(id)).await
}

/// The conflict about an asset as it is now.
async fn contention(store: &Store, id: &str) -> Result<Conflict, Violation> {
    Ok(Conflict::Asset { asset_id: asset(id), row: row(store, id).await? })
}

/// The workflow number that holds an asset, and the asset's fence.
async fn holding(store: &Store, id: &str) -> Result<(Option<String>, u64), Violation> {
    let row = row(store, id).await?;
    let row = row.ok_or_else(|| Violation::new(format!("{id} has no row")))?;
    let holder = row.holder.map(|holder| holder.workflow_id.to_string());
    Ok((holder, row.fence))
}

fn change(commit: &Commit, change: LockChange) -> CommitBuilder {
    step_after(commit, 10).lock(change)
}

/// An asset that another workflow holds is refused with its row, and with the next fence as with the old one.
///
/// # Errors
/// When the store breaks the law.
pub async fn s04_held_asset_conflicts_with_row(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let holder = start(1).acquire(&asset(PUMP), 1).build();
    store.commit(holder).await?;
    check_eq!(holding(&store, PUMP).await?, (Some("wf-0001".to_owned()), 1), "the holder");
    for fence in [1, 2] {
        let contender = start_by(2, &bob()).acquire(&asset(PUMP), fence).build();
        look::refused(&store, &contender, contention(&store, PUMP).await?).await?;
    }
    Ok(())
}

/// A workflow cannot acquire what it holds already: the asset is not free.
///
/// # Errors
/// When the store breaks the law.
pub async fn s04_own_asset_is_not_free(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).acquire(&asset(PUMP), 1).build();
    store.commit(first.clone()).await?;
    let again = LockChange::Acquire { asset_id: asset(PUMP), fence: 2 };
    let commit = change(&first, again).build();
    look::refused(&store, &commit, contention(&store, PUMP).await?).await
}

/// Several assets are acquired all or none: a free one stays free when another is held, in any order.
///
/// # Errors
/// When the store breaks the law.
pub async fn s04_assets_all_or_none(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    store.commit(start(1).acquire(&asset(GAUGE), 1).build()).await?;
    for order in [[PUMP, GAUGE, "VALVE.1"], [GAUGE, PUMP, "VALVE.1"], ["VALVE.1", PUMP, GAUGE]] {
        let acquire = |b: CommitBuilder, id: &&str| b.acquire(&asset(id), 1);
        let contender = order.iter().fold(start_by(2, &bob()), acquire).build();
        look::refused(&store, &contender, contention(&store, GAUGE).await?).await?;
        check_eq!(row(&store, PUMP).await?, None, "an asset that was not acquired");
    }
    let all = start_by(2, &bob()).acquire(&asset(PUMP), 1).acquire(&asset("VALVE.1"), 1).build();
    store.commit(all).await?;
    check_eq!(holding(&store, "VALVE.1").await?, (Some("wf-0002".to_owned()), 1), "the holder");
    Ok(())
}

/// The fence of an acquisition is the row's fence and one; 1 for an asset that was never held.
///
/// # Errors
/// When the store breaks the law.
pub async fn s04_fence_must_follow(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    for fence in [0, 2, 7] {
        let commit = start(1).acquire(&asset(PUMP), fence).build();
        look::refused(&store, &commit, contention(&store, PUMP).await?).await?;
    }
    let first = start(1).acquire(&asset(PUMP), 1).build();
    store.commit(first.clone()).await?;
    let end = step_after(&first, 10).complete().release_assets().build();
    store.commit(end).await?;
    for fence in [0, 1, 3] {
        let commit = start_by(2, &bob()).acquire(&asset(PUMP), fence).build();
        look::refused(&store, &commit, contention(&store, PUMP).await?).await?;
    }
    store.commit(start_by(2, &bob()).acquire(&asset(PUMP), 2).build()).await?;
    check_eq!(holding(&store, PUMP).await?, (Some("wf-0002".to_owned()), 2), "the next holder");
    Ok(())
}

/// A release frees the asset and keeps its row and fence.
///
/// # Errors
/// When the store breaks the law.
pub async fn s04_release_keeps_row_and_fence(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).acquire(&asset(PUMP), 1).acquire(&asset(GAUGE), 1).build();
    store.commit(first.clone()).await?;
    let release = LockChange::Release { asset_id: asset(PUMP), fence: 1 };
    store.commit(change(&first, release).build()).await?;
    check_eq!(holding(&store, PUMP).await?, (None, 1), "the free asset");
    check_eq!(holding(&store, GAUGE).await?, (Some("wf-0001".to_owned()), 1), "the other asset");
    let rows = look::all_locks(&store, Some(&plant()), 10).await?;
    check_eq!(rows.len(), 2, "rows, held and free");
    Ok(())
}

/// A release of what the workflow no longer holds, or holds under another fence, or never held, changes nothing and is
/// no conflict.
///
/// # Errors
/// When the store breaks the law.
pub async fn s04_release_of_lost_asset_is_ignored(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let ours = start(1).acquire(&asset(PUMP), 1).build();
    store.commit(ours.clone()).await?;
    store.commit(start_by(2, &bob()).acquire(&asset(GAUGE), 1).build()).await?;
    let mut last = ours;
    for (id, fence) in [(PUMP, 2), (PUMP, 0), (GAUGE, 1), ("NEVER", 1)] {
        let release = LockChange::Release { asset_id: asset(id), fence };
        let next = change(&last, release).build();
        store.commit(next.clone()).await?;
        last = next;
    }
    check_eq!(holding(&store, PUMP).await?, (Some("wf-0001".to_owned()), 1), "our asset");
    check_eq!(holding(&store, GAUGE).await?, (Some("wf-0002".to_owned()), 1), "their asset");
    check!(row(&store, "NEVER").await?.is_none_or(|row| row.holder.is_none()), "a holder appeared");
    Ok(())
}

/// An assertion that holds lets the commit pass and writes nothing to the row.
///
/// # Errors
/// When the store breaks the law.
pub async fn s04_assert_holds_and_writes_nothing(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).acquire(&asset(PUMP), 1).acquire(&asset(GAUGE), 1).build();
    store.commit(first.clone()).await?;
    let before = look::all_locks(&store, None, 10).await?;
    let second = step_after(&first, 10).assert_assets().build();
    store.commit(second).await?;
    check_eq!(look::all_locks(&store, None, 10).await?, before, "the rows");
    Ok(())
}

/// An assertion fails after a release, under another fence, for somebody else, and for what was never held.
///
/// # Errors
/// When the store breaks the law.
pub async fn s04_assert_fails_when_not_held(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let ours = start(1).acquire(&asset(PUMP), 1).acquire(&asset("VALVE.1"), 1).build();
    store.commit(ours.clone()).await?;
    store.commit(start_by(2, &bob()).acquire(&asset(GAUGE), 1).build()).await?;
    for (id, fence) in [(PUMP, 2), (PUMP, 0), (GAUGE, 1), ("NEVER", 1), ("NEVER", 0)] {
        let assert = LockChange::Assert { asset_id: asset(id), fence };
        let commit = change(&ours, assert).build();
        look::refused(&store, &commit, contention(&store, id).await?).await?;
    }

    let free = LockChange::Release { asset_id: asset(PUMP), fence: 1 };
    let freed = change(&ours, free).by(&bob()).build();
    store.commit(freed.clone()).await?;
    let step = step_after(&freed, 10).assert_assets().build();
    look::refused(&store, &step, contention(&store, PUMP).await?).await?;

    // Once somebody else has it, our old fence is of no use either.
    store.commit(start_by(3, &bob()).acquire(&asset(PUMP), 2).build()).await?;
    look::refused(&store, &step, contention(&store, PUMP).await?).await
}

/// An asset that changes hands within its workflow has its new owner, time and fence, and is never free for others.
///
/// # Errors
/// When the store breaks the law.
pub async fn s04_take_moves_what_is_held(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).acquire(&asset(PUMP), 1).acquire(&asset(GAUGE), 1).build();
    store.commit(first.clone()).await?;
    let moved = step_after(&first, 10).transfer(&bob()).take_assets().build();
    store.commit(moved.clone()).await?;
    for id in [PUMP, GAUGE] {
        check_eq!(holding(&store, id).await?, (Some("wf-0001".to_owned()), 2), "the holder");
        let holder = row(&store, id).await?.and_then(|row| row.holder);
        let holder = holder.ok_or_else(|| Violation::new(format!("{id} is free")))?;
        check_eq!(holder.owner.id, bob(), "the owner of the holder");
        check_eq!(holder.acquired_at, moved.next.updated_at, "since when");
        for fence in [2, 3] {
            let contender = start_by(2, &ann()).acquire(&asset(id), fence).build();
            look::refused(&store, &contender, contention(&store, id).await?).await?;
        }
    }
    // The old fence is of no use any more, the new one is.
    let stale = LockChange::Assert { asset_id: asset(PUMP), fence: 1 };
    let stale = change(&moved, stale).build();
    look::refused(&store, &stale, contention(&store, PUMP).await?).await?;
    store.commit(step_after(&moved, 10).assert_assets().build()).await?;
    Ok(())
}

/// What was lost and is free is taken back; what was never held, too; both beside what is still held, in one commit.
///
/// # Errors
/// When the store breaks the law.
pub async fn s04_take_brings_back_what_is_free(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).acquire(&asset(PUMP), 1).acquire(&asset(GAUGE), 1).build();
    store.commit(first.clone()).await?;
    let free = LockChange::Release { asset_id: asset(PUMP), fence: 1 };
    let freed = change(&first, free).build();
    store.commit(freed.clone()).await?;
    let never = LockChange::Take { asset_id: asset("NEVER"), fence: 1 };
    let back = step_after(&freed, 10).take_assets().lock(never).build();
    store.commit(back).await?;
    for (id, fence) in [(PUMP, 2), (GAUGE, 2), ("NEVER", 1)] {
        check_eq!(holding(&store, id).await?, (Some("wf-0001".to_owned()), fence), "the holder");
    }
    Ok(())
}

/// What another workflow holds is not taken, nor anything beside it; a fence that does not follow takes nothing.
///
/// # Errors
/// When the store breaks the law.
pub async fn s04_take_of_anothers_conflicts(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).acquire(&asset(PUMP), 1).acquire(&asset(GAUGE), 1).build();
    store.commit(first.clone()).await?;
    for fence in [0, 1, 3] {
        let take = LockChange::Take { asset_id: asset(PUMP), fence };
        look::refused(&store, &change(&first, take).build(), contention(&store, PUMP).await?)
            .await?;
    }
    let free = LockChange::Release { asset_id: asset(PUMP), fence: 1 };
    let freed = change(&first, free).build();
    store.commit(freed.clone()).await?;
    store.commit(start_by(2, &bob()).acquire(&asset(PUMP), 2).build()).await?;
    for fence in [2, 3] {
        let take = LockChange::Take { asset_id: asset(PUMP), fence };
        let own = LockChange::Take { asset_id: asset(GAUGE), fence: 2 };
        let commit = step_after(&freed, 10).lock(own).lock(take).build();
        look::refused(&store, &commit, contention(&store, PUMP).await?).await?;
    }
    check_eq!(holding(&store, GAUGE).await?, (Some("wf-0001".to_owned()), 1), "the other asset");
    Ok(())
}

/// A lock is reported before a revision: who lost an asset must hear that first.
///
/// # Errors
/// When the store breaks the law.
pub async fn s04_lock_is_reported_before_revision(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).acquire(&asset(PUMP), 1).build();
    store.commit(first.clone()).await?;
    let freed = step_after(&first, 10).release_assets().build();
    store.commit(freed).await?;
    let stale = step_after(&first, 20).key("stale").assert_assets().build();
    look::refused(&store, &stale, contention(&store, PUMP).await?).await
}

/// Of many workflows that want one asset at once, from two handles, exactly one gets it; the others get its row.
///
/// # Errors
/// When the store breaks the law.
pub async fn s04_one_of_many_starts_wins(fixture: &dyn ContractFixture) -> Verdict {
    let stores = [fixture.open().await?, fixture.reopen().await?];
    let [store, _] = &stores;
    let commit = |n| {
        let own = asset(&format!("OWN-{n}"));
        start_by(n, &ann()).acquire(&own, 1).acquire(&asset(PUMP), 1).build()
    };
    let commits: Vec<_> = (1..=12).map(commit).collect();
    let answers = look::at_once(&stores, &commits).await?;
    let winners = answers.iter().filter(|answer| answer.is_ok()).count();
    check_eq!(winners, 1, "workflows that got one asset");

    let contention = contention(store, PUMP).await?;
    for (n, answer) in (1..).zip(answers) {
        let own = row(store, &format!("OWN-{n}")).await?;
        match answer {
            Ok(()) => {
                let holder = holding(store, PUMP).await?;
                check_eq!(holder, (Some(wf(n).to_string()), 1), "the winner's asset");
                check!(own.is_some(), "the winner did not get its other asset");
            }
            Err(CommitError::Conflict(conflict)) => {
                check_eq!(conflict, contention, "what a loser met");
                check_eq!(own, None, "an asset of a loser");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
