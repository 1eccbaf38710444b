//! What `sweep` does and what it leaves alone.

use wf_core::ports::{Commit, Conflict, OutboxState, Settled, Settlement, Swept};

use super::cast::{plant, start, step_after};
use super::look::{self, MANY, Store, World};
use super::{ContractFixture, Verdict, Violation, check, check_eq};
use crate::build::at;

const HOUR_MS: i64 = 3_600_000;

/// Workflow `n` starts and completes two minutes later.
async fn completed(store: &Store, n: u32) -> Result<[Commit; 2], Violation> {
    let first = start(n).build();
    store.commit(first.clone()).await?;
    let second = step_after(&first, 120).complete().build();
    store.commit(second.clone()).await?;
    Ok([first, second])
}

/// Ledger rows of completed workflows get their expiry, once; rows of open ones do not.
///
/// # Errors
/// When the store breaks the law.
pub async fn port_sweep_sets_expiry_after_completion(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let over = completed(&store, 1).await?;
    let open = start(2).build();
    store.commit(open.clone()).await?;
    let swept = store.sweep(at(600_000), HOUR_MS, MANY).await?;
    let both = Swept { expiries_set: 2, ..Swept::default() };
    check_eq!(swept, both, "the first sweep");
    let again = store.sweep(at(600_000), HOUR_MS, MANY).await?;
    check_eq!(again, Swept::default(), "the second sweep");

    let [_, last] = &over;
    for commit in &over {
        let mut row = commit.ledger.clone();
        row.entry.expires_at_ms = Some(last.next.updated_at.plus_ms(HOUR_MS).as_ms());
        let seen = look::ledger(&store, &commit.ledger.key).await?;
        check_eq!(seen, Some(row.clone()), "a row of the completed workflow");
        // Until it is deleted it still is the row under this key.
        let reuse = start(3).key(commit.ledger.key.key.as_str()).build();
        look::refused(&store, &reuse, Conflict::Ledger(Box::new(row))).await?;
    }
    let seen = look::ledger(&store, &open.ledger.key).await?;
    check_eq!(seen, Some(open.ledger), "the row of the open workflow");
    Ok(())
}

/// Ledger rows are deleted after their expiry, not before, and nothing else goes with them.
///
/// # Errors
/// When the store breaks the law.
pub async fn port_sweep_deletes_expired_rows(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let [first, second] = completed(&store, 1).await?;
    let open = start(2).build();
    store.commit(open.clone()).await?;
    let end = second.next.updated_at;
    store.sweep(end.plus_ms(1_000), HOUR_MS, MANY).await?;
    let early = store.sweep(end.plus_ms(HOUR_MS - 1_000), HOUR_MS, MANY).await?;
    check_eq!(early, Swept::default(), "a sweep before the expiry");
    let keys = [&first.ledger.key, &second.ledger.key, &open.ledger.key];
    let before = World::of(&store, &keys).await?;

    let swept = store.sweep(end.plus_ms(HOUR_MS + 1_000), HOUR_MS, MANY).await?;
    let both = Swept { ledger_deleted: 2, ..Swept::default() };
    check_eq!(swept, both, "a sweep after the expiry");
    let after = World::of(&store, &keys).await?;
    check_eq!(after.ledger, vec![None, None, Some(open.ledger)], "the rows");
    let rest = World { ledger: before.ledger.clone(), ..after };
    check_eq!(rest, before, "everything else");
    let reuse = start(3).key(first.ledger.key.key.as_str()).build();
    store.commit(reuse).await?;
    Ok(())
}

/// Delivered messages are deleted when they are old; pending and dead ones never.
///
/// # Errors
/// When the store breaks the law.
pub async fn port_sweep_deletes_old_deliveries(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).message("log").note("x").message("log").note("x").message("log");
    let first = first.build();
    store.commit(first.clone()).await?;
    let claim = look::claim(61_000, "t");
    check_eq!(store.claim_outbox(&claim).await?.len(), 1, "claimed streams");
    let ids: Vec<String> = first.outbox.iter().map(|m| m.id.clone()).collect();
    let [delivered, dead, pending] = ids.as_slice() else {
        return Err(Violation::new("three messages"));
    };
    let error = "gone".to_owned();
    let settlement = Settlement {
        tenant: plant(),
        workflow_id: first.next.id,
        recipient: "log".to_owned(),
        token: claim.token,
        now: at(62_000),
        results: vec![
            (delivered.clone(), Settled::Delivered),
            (dead.clone(), Settled::Dead { error }),
        ],
    };
    store.settle_outbox(&settlement).await?;

    let early = store.sweep(at(HOUR_MS), HOUR_MS, MANY).await?;
    check_eq!(early, Swept::default(), "a sweep within the retention");
    let swept = store.sweep(at(3 * HOUR_MS), HOUR_MS, MANY).await?;
    check_eq!(swept.outbox_deleted, 1, "messages deleted");
    let rows = look::all_outbox(&store, MANY).await?;
    let left: Vec<_> = rows.iter().map(|r| (&r.message.id, r.status.state)).collect();
    let expected = [(dead, OutboxState::Dead), (pending, OutboxState::Pending)];
    check_eq!(left, expected, "messages left");
    Ok(())
}

/// A call of sweep touches at most `limit` rows of each kind; calls go on until nothing is left.
///
/// # Errors
/// When the store breaks the law.
pub async fn port_sweep_keeps_its_limit(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    for n in 1..=5 {
        completed(&store, n).await?;
    }
    let mut total = Swept::default();
    for _ in 0..30 {
        let swept = store.sweep(at(100 * HOUR_MS), HOUR_MS, 3).await?;
        check!(swept.expiries_set <= 3 && swept.ledger_deleted <= 3, "too many: {swept:?}");
        total.expiries_set += swept.expiries_set;
        total.ledger_deleted += swept.ledger_deleted;
    }
    check_eq!((total.expiries_set, total.ledger_deleted), (10, 10), "rows in all calls");
    Ok(())
}
