//! Deadlines under lease: due ones in order, again after the lease, gone when settled or cleared.

use wf_core::ports::{Claim, ClaimedDeadline, Commit, SettleError};

use crate::build::{CommitBuilder, at};
use crate::contract::cast::start;
use crate::contract::look::{self, Store};
use crate::contract::{ContractFixture, Verdict, Violation, check_eq};

const HOUR_MS: i64 = 3_600_000;

/// Workflow `n` sets a deadline for each of these hours.
async fn deadlines(store: &Store, n: u32, hours: &[i64]) -> Result<Commit, Violation> {
    let set = |b: CommitBuilder, hour: &i64| b.deadline(at(hour * HOUR_MS));
    let commit = hours.iter().fold(start(n), set).build();
    store.commit(commit.clone()).await?;
    Ok(commit)
}

async fn claimed(
    store: &Store,
    ms: i64,
    token: &str,
    limit: u32,
) -> Result<Vec<ClaimedDeadline>, Violation> {
    let claim = Claim { limit, ..look::claim(ms, token) };
    Ok(store.claim_deadlines(&claim).await?)
}

fn hours(claimed: &[ClaimedDeadline]) -> Vec<i64> {
    let hour = |c: &ClaimedDeadline| c.deadline.fire_at.since_ms(at(0)) / HOUR_MS;
    claimed.iter().map(hour).collect()
}

async fn one(store: &Store, ms: i64, token: &str) -> Result<ClaimedDeadline, Violation> {
    let mut all = claimed(store, ms, token, 10).await?;
    match (all.pop(), all.len()) {
        (Some(one), 0) => Ok(one),
        (one, more) => Err(Violation::new(format!(
            "a claim brought {one:?} and {more} more, not one deadline"
        ))),
    }
}

/// Due deadlines are claimed earliest first, with their workflow, at most as many as asked for.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_deadlines_come_earliest_first(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = deadlines(&store, 1, &[5, 2, 9]).await?;
    let second = deadlines(&store, 2, &[3, 1, 4]).await?;
    check_eq!(hours(&claimed(&store, HOUR_MS / 2, "a", 10).await?), [0; 0], "none is due");

    let due = claimed(&store, 6 * HOUR_MS, "b", 3).await?;
    check_eq!(hours(&due), [1, 2, 3], "the earliest three");
    let owners: Vec<_> = due.iter().map(|c| c.workflow_id.clone()).collect();
    let expected = [&second, &first, &second].map(|c| c.next.id.clone());
    check_eq!(owners, expected, "their workflows");
    for one in &due {
        let known = [&first, &second].into_iter().find(|c| c.next.id == one.workflow_id);
        let known = known.and_then(|c| c.next.deadlines.get(&one.deadline.id));
        let fire_at = known.map(|known| known.fire_at);
        check_eq!(fire_at, Some(one.deadline.fire_at), "deadline {}", one.deadline.id);
        check_eq!(one.tenant, first.next.tenant, "the tenant");
        check_eq!(one.token.0, "b", "the token");
    }
    let third = deadlines(&store, 3, &[4]).await?;
    let others = claimed(&store, 6 * HOUR_MS, "c", 10).await?;
    let owners: Vec<_> = others.iter().map(|c| c.workflow_id.clone()).collect();
    check_eq!(owners, [third.next.id], "the other due, of a workflow that has none under lease");
    Ok(())
}

/// A deadline is not claimed while an earlier one of its workflow is under lease; those of others are.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_deadlines_of_a_workflow_keep_their_order(
    fixture: &dyn ContractFixture,
) -> Verdict {
    let store = fixture.open().await?;
    deadlines(&store, 1, &[1, 2, 3]).await?;
    deadlines(&store, 2, &[3]).await?;
    let first = one(&store, HOUR_MS, "slow").await?;
    let now = HOUR_MS * 3;
    let slow = Claim { now: at(now), ..look::claim(now, "slow again") };
    let first_again = store.claim_deadlines(&Claim { limit: 1, ..slow }).await?;
    check_eq!(hours(&first_again), [1], "after the first lease");
    let other = claimed(&store, now, "other", 10).await?;
    check_eq!(hours(&other), [3], "deadlines of the other workflow");
    check_eq!(other.iter().any(|o| o.workflow_id == first.workflow_id), false, "no overtaking");
    for one in &first_again {
        store.settle_deadline(one).await?;
    }
    check_eq!(hours(&claimed(&store, now, "c", 10).await?), [2, 3], "once the first is settled");
    Ok(())
}

/// The next deadline is when one is due, or when the lease is over that hides it.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_next_deadline_is_told(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let next = async |ms: i64| store.next_deadline(at(ms), 60_000).await.map(|next| next.at);
    check_eq!(next(0).await?, None, "with no deadline");
    deadlines(&store, 1, &[2, 5]).await?;
    check_eq!(next(0).await?, Some(at(2 * HOUR_MS)), "before it is due");
    check_eq!(next(9 * HOUR_MS).await?, Some(at(2 * HOUR_MS)), "when it is overdue");
    let now = 9 * HOUR_MS;
    let claim = Claim { limit: 1, ..look::claim(now, "a") };
    let held = store.claim_deadlines(&claim).await?;
    check_eq!(next(now + 1).await?, Some(at(now + 60_000)), "when the first is under lease");
    deadlines(&store, 2, &[20]).await?;
    check_eq!(next(now + 1).await?, Some(at(now + 60_000)), "with a later one of another");
    deadlines(&store, 3, &[8]).await?;
    check_eq!(next(now + 1).await?, Some(at(8 * HOUR_MS)), "with a due one of another");
    check_eq!(next(now + 70_000).await?, Some(at(2 * HOUR_MS)), "after the lease");
    for one in &held {
        store.settle_deadline(one).await?;
    }
    check_eq!(next(now + 1).await?, Some(at(5 * HOUR_MS)), "once the first is settled");
    Ok(())
}

/// A deadline under a live lease is hidden; after the lease it comes again.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_deadline_reappears_after_lease(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    deadlines(&store, 1, &[1]).await?;
    let first = one(&store, 2 * HOUR_MS, "crashed").await?;
    let hidden = claimed(&fixture.reopen().await?, 2 * HOUR_MS + 59_000, "b", 10).await?;
    check_eq!(hidden, [], "deadlines under a live lease");
    let again = one(&store, 2 * HOUR_MS + 60_001, "c").await?;
    check_eq!(again.deadline, first.deadline, "the deadline");
    check_eq!(again.token.0, "c", "the token");
    Ok(())
}

/// Who settles a deadline after somebody else claimed it is refused, and it stays.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_late_deadline_settle_is_refused(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    deadlines(&store, 1, &[1]).await?;
    let late = one(&store, 2 * HOUR_MS, "late").await?;
    one(&store, 3 * HOUR_MS, "holder").await?;
    match store.settle_deadline(&late).await {
        Err(SettleError::LeaseLost) => {}
        Err(error) => return Err(error.into()),
        Ok(()) => return Err(Violation::new("a late settlement of a deadline was taken")),
    }
    check_eq!(look::all_deadlines(&store).await?.len(), 1, "deadlines");
    Ok(())
}

/// A deadline that was settled is gone, and only that one.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_settled_deadline_is_gone(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    deadlines(&store, 1, &[1, 5]).await?;
    let due = one(&store, 2 * HOUR_MS, "a").await?;
    store.settle_deadline(&due).await?;
    check_eq!(hours(&claimed(&store, 3 * HOUR_MS, "b", 10).await?), [0; 0], "due deadlines");
    check_eq!(hours(&claimed(&store, 6 * HOUR_MS, "c", 10).await?), [5], "the other one");
    Ok(())
}

/// A deadline that a commit cleared is gone, and one that it set is there; clearing an absent one is no error.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_cleared_deadline_is_gone(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = deadlines(&store, 1, &[1, 5]).await?;
    deadlines(&store, 2, &[2]).await?;
    let id = |fire: i64| {
        let due = first.next.deadlines.iter().find(|(_, d)| d.fire_at == at(fire * HOUR_MS));
        due.map(|(id, _)| id.clone()).unwrap_or_default()
    };
    let second = CommitBuilder::next(&first.next, at(90_000))
        .note("in time")
        .clear_deadline(&id(1))
        .clear_deadline("wf-0001/99/0")
        .deadline(at(3 * HOUR_MS))
        .build();
    store.commit(second).await?;
    let due = claimed(&store, 9 * HOUR_MS, "a", 10).await?;
    check_eq!(hours(&due), [2, 3, 5], "the deadlines that are set");
    Ok(())
}

/// A lease of a deadline that ends later than any lease given now would is no lease.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_deadline_lease_from_the_future_is_over(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    deadlines(&store, 1, &[1]).await?;
    one(&store, 100 * HOUR_MS, "far ahead").await?;
    one(&store, 2 * HOUR_MS, "b").await?;
    let hidden = claimed(&store, 2 * HOUR_MS + 1, "c", 10).await?;
    check_eq!(hidden, [], "deadlines under a true lease");
    let hidden = claimed(&store, 2 * HOUR_MS - 1, "d", 10).await?;
    check_eq!(hidden, [], "deadlines under the lease of a clock that is a little ahead");
    Ok(())
}
