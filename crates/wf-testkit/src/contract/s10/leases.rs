//! Leases of streams: they hide, they end, and only their holder settles.

use std::collections::BTreeMap;
use std::sync::Arc;

use wf_core::ports::{OutboxState, Settled};

use super::{ids, lease_lost, message_ids, messages, no_stream, one_stream, settlement};
use crate::contract::cast::start;
use crate::contract::look::{self, MANY};
use crate::contract::{ContractFixture, Verdict, Violation, check, check_eq};

/// A stream under a live lease is claimed by nobody, from no handle, also when new messages come.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_live_lease_hides_its_stream(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = messages(&store, 1).await?;
    one_stream(&store, 200_000, "t").await?;
    no_stream(&store, 200_001, "its lease is live").await?;
    no_stream(&store, 259_000, "its lease is still live").await?;
    no_stream(&fixture.reopen().await?, 259_000, "another handle holds the lease").await?;
    if let Some(last) = commits.last() {
        let when = last.next.updated_at.plus_ms(1_000);
        let next = crate::build::CommitBuilder::next(&last.next, when).note("more");
        store.commit(next.message("log").build()).await?;
    }
    no_stream(&store, 259_000, "its lease is live in spite of a new message").await
}

/// After its lease a stream is claimed again, with the same rows.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_stream_reappears_after_lease(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = messages(&store, 2).await?;
    one_stream(&store, 200_000, "crashed").await?;
    let stream = one_stream(&fixture.reopen().await?, 260_001, "t").await?;
    check_eq!(ids(&stream.rows), message_ids(&commits), "the rows");
    check_eq!(stream.token.0, "t", "the token");
    no_stream(&store, 320_000, "the new lease is live").await
}

/// Who comes to settle after somebody else claimed is refused, and nothing is written; the new holder settles.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_late_settle_is_refused(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = messages(&store, 1).await?;
    let all = message_ids(&commits);
    let id = all.first().copied().unwrap_or_default();
    let late = one_stream(&store, 200_000, "late").await?;
    let holder = one_stream(&store, 260_001, "holder").await?;
    let before = look::all_outbox(&store, MANY).await?;
    for settled in [
        Settled::Delivered,
        Settled::Dead { error: "late".to_owned() },
        Settled::Retry { at: crate::build::at(1), error: "late".to_owned() },
    ] {
        lease_lost(&store, &settlement(&late, 261_000, &[(id, settled)])).await?;
    }
    check_eq!(look::all_outbox(&store, MANY).await?, before, "rows after a late settlement");
    no_stream(&store, 262_000, "the holder's lease is live").await?;

    store.settle_outbox(&settlement(&holder, 263_000, &[(id, Settled::Delivered)])).await?;
    let row = look::outbox_row(&store, id).await?.map(|row| row.status.state);
    check_eq!(row, Some(OutboxState::Delivered), "the row that the holder settled");
    Ok(())
}

/// A settlement gives the lease back: the stream can be claimed at once, and nothing can be settled twice.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_settle_gives_the_lease_back(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    messages(&store, 1).await?;
    let stream = one_stream(&store, 200_000, "t").await?;
    let nothing = settlement(&stream, 200_001, &[]);
    store.settle_outbox(&nothing).await?;
    lease_lost(&store, &nothing).await?;
    one_stream(&store, 200_002, "u").await?;
    lease_lost(&store, &nothing).await
}

/// A settlement for a stream that nobody claimed is refused.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_unclaimed_stream_cannot_be_settled(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = messages(&store, 1).await?;
    let all = message_ids(&commits);
    let id = all.first().copied().unwrap_or_default();
    let stream = one_stream(&store, 200_000, "t").await?;
    store.settle_outbox(&settlement(&stream, 200_001, &[])).await?;

    let mut forged = settlement(&stream, 200_002, &[(id, Settled::Delivered)]);
    for token in ["", "t", "other"] {
        token.clone_into(&mut forged.token.0);
        lease_lost(&store, &forged).await?;
    }
    forged.recipient = "nobody".to_owned();
    lease_lost(&store, &forged).await?;
    let state = look::outbox_row(&store, id).await?.map(|row| row.status.state);
    check_eq!(state, Some(OutboxState::Pending), "the row");
    Ok(())
}

/// A lease that a clock a little ahead gave is live: also for a claim that began earlier and had to wait.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_lease_of_a_clock_ahead_is_live(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    messages(&store, 1).await?;
    one_stream(&store, 200_000, "t").await?;
    for behind in [1, 1_000, 30_000] {
        no_stream(&store, 200_000 - behind, "somebody whose clock is ahead holds it").await?;
    }
    Ok(())
}

/// A lease that ends later than any lease given now would is no lease: the clock that gave it was wrong.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_lease_from_the_future_is_over(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    messages(&store, 1).await?;
    one_stream(&store, 36_000_000, "ten hours ahead").await?;
    one_stream(&store, 200_000, "t").await?;
    no_stream(&store, 200_001, "a true lease is live").await
}

/// Of many who claim at once, from two handles, each stream goes to one.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_one_of_many_claimers_gets_a_stream(fixture: &dyn ContractFixture) -> Verdict {
    let stores = [fixture.open().await?, fixture.reopen().await?];
    let [store, _] = &stores;
    for n in 1..=6 {
        store.commit(start(n).message("log").build()).await?;
    }
    let mut tasks = Vec::new();
    for (n, handle) in (0..8).zip(stores.iter().cycle()) {
        let handle = Arc::clone(handle);
        let claim = look::claim(600_000, &format!("claimer-{n}"));
        tasks.push(tokio::spawn(async move { handle.claim_outbox(&claim).await }));
    }
    let mut holders = BTreeMap::new();
    for task in tasks {
        let streams = task.await.map_err(|e| Violation::new(format!("a claim died: {e}")))??;
        for stream in streams {
            let holder = stream.token.0.clone();
            let other = holders.insert(stream.workflow_id.clone(), holder);
            check!(other.is_none(), "{stream:?} was given to {other:?} too");
        }
    }
    check_eq!(holders.len(), 6, "streams that were claimed");
    Ok(())
}
