//! What `purge_outbox` deletes and what it leaves alone, and how `outbox_backlog` counts.

use wf_core::ports::{Backlog, Finished, OutboxPurge, OutboxState, Settled, Settlement};

use super::cast::start;
use super::look::{self, MANY, Store};
use super::{ContractFixture, Verdict, Violation, check_eq};
use crate::build::at;

/// Messages of one stream: two delivered at 70 and 80 seconds, two given up then, two pending. Their ids, in order.
async fn six(store: &Store) -> Result<Vec<String>, Violation> {
    let mut first = start(1).message("log");
    for n in 1..6 {
        first = first.note(&format!("note {n}")).message("log");
    }
    let first = first.build();
    store.commit(first.clone()).await?;
    let ids: Vec<String> = first.outbox.iter().map(|m| m.id.clone()).collect();
    let dead = || Settled::Dead { error: "gone".to_owned() };
    for (ms, settled) in
        [(70_000, [Settled::Delivered, dead()]), (80_000, [Settled::Delivered, dead()])]
    {
        let claim = look::claim(ms, &format!("t{ms}"));
        let mut streams = store.claim_outbox(&claim).await?;
        let stream = streams.pop().ok_or_else(|| Violation::new("a stream to claim"))?;
        let rows = stream.rows.iter().map(|row| row.message.id.clone());
        let settlement = Settlement {
            tenant: stream.tenant.clone(),
            workflow_id: stream.workflow_id.clone(),
            recipient: stream.recipient.clone(),
            token: claim.token,
            now: at(ms),
            results: rows.zip(settled).collect(),
        };
        store.settle_outbox(&settlement).await?;
    }
    Ok(ids)
}

fn purge(which: Finished, ms: i64) -> OutboxPurge {
    OutboxPurge { which, until: at(ms), limit: MANY, count_only: false }
}

async fn left(store: &Store) -> Result<Vec<String>, Violation> {
    let rows = look::all_outbox(store, MANY).await?;
    Ok(rows.into_iter().map(|row| row.message.id).collect())
}

/// A purge deletes what ended in that way by that time, at most its limit; one that only counts deletes nothing.
///
/// # Errors
/// When the store breaks the law.
pub async fn port_purge_deletes_what_is_old(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let ids = six(&store).await?;
    let without = |gone: &[usize]| -> Vec<String> {
        let kept = ids.iter().enumerate().filter(|(n, _)| !gone.contains(n));
        kept.map(|(_, id)| id.clone()).collect()
    };
    for which in [Finished::Delivered, Finished::Dead] {
        check_eq!(store.purge_outbox(&purge(which, 69_999)).await?, 0, "{which:?}: none is so old");
        for (limit, count) in [(MANY, 2), (1, 1)] {
            let asked = OutboxPurge { count_only: true, limit, ..purge(which, 80_000) };
            check_eq!(store.purge_outbox(&asked).await?, count, "{which:?}: counted to {limit}");
        }
    }
    check_eq!(left(&store).await?, ids, "messages left by those that only count");
    check_eq!(store.purge_outbox(&purge(Finished::Delivered, 70_000)).await?, 1, "delivered");
    check_eq!(left(&store).await?, without(&[0]), "after the first delivered");
    check_eq!(store.purge_outbox(&purge(Finished::Dead, 79_999)).await?, 1, "given up");
    check_eq!(left(&store).await?, without(&[0, 1]), "after the first given up");
    let revived = store.revive_outbox(&ids[1], at(90_000)).await?;
    check_eq!(revived, false, "what is gone comes back");
    check_eq!(store.purge_outbox(&purge(Finished::Dead, 900_000)).await?, 1, "the other given up");
    check_eq!(store.purge_outbox(&purge(Finished::Delivered, 900_000)).await?, 1, "and delivered");
    check_eq!(left(&store).await?, without(&[0, 1, 2, 3]), "messages to be delivered");
    Ok(())
}

/// What is to be delivered is never purged, and comes in its order however much around it went.
///
/// # Errors
/// When the store breaks the law.
pub async fn port_purge_never_takes_a_pending_message(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let ids = six(&store).await?;
    // One that was given up and is to be sent late is pending like any other: it is the first of its stream.
    store.revive_outbox(&ids[1], at(90_000)).await?;
    for which in [Finished::Delivered, Finished::Dead] {
        let one = OutboxPurge { limit: 1, ..purge(which, 900_000) };
        check_eq!(store.purge_outbox(&one).await?, 1, "{which:?}: at most one");
        store.purge_outbox(&purge(which, 900_000)).await?;
    }
    let mut streams = store.claim_outbox(&look::claim(900_000, "t")).await?;
    let stream = streams.pop().ok_or_else(|| Violation::new("a stream to claim"))?;
    let rows: Vec<&str> = stream.rows.iter().map(|row| row.message.id.as_str()).collect();
    check_eq!(rows, [&ids[1], &ids[4], &ids[5]], "what is claimed");
    check_eq!(left(&store).await?.len(), 3, "messages left");
    Ok(())
}

/// What is pending and what was given up is counted, up to the limit; the oldest pending is told.
///
/// # Errors
/// When the store breaks the law.
pub async fn port_backlog_is_counted_up_to_its_limit(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    check_eq!(store.outbox_backlog(MANY).await?, Backlog::default(), "of an empty outbox");
    let ids = six(&store).await?;
    let later = start(3).message("log").message("duty").build();
    store.commit(later.clone()).await?;
    let backlog = store.outbox_backlog(MANY).await?;
    let row = look::outbox_row(&store, &ids[4]).await?;
    let row = row.ok_or_else(|| Violation::new("a pending message"))?;
    check_eq!(row.status.state, OutboxState::Pending, "the fifth message");
    let oldest_pending = Some(row.message.time);
    check_eq!(backlog, Backlog { pending: 4, dead: 2, oldest_pending }, "the backlog");
    let some = store.outbox_backlog(1).await?;
    check_eq!((some.pending, some.dead), (1, 1), "counted up to one");
    Ok(())
}
