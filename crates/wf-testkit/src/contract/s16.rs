//! S16: a purge takes a completed workflow whole and leaves its tombstone; never one that is open or has another revision,
//! whose keys count, or, unless asked, whose messages were not delivered.

use wf_core::models::Timestamp;
use wf_core::ports::{Commit, ListQuery, Purge, Purged, Recent, Settled, Settlement, Tombstone};

use super::cast::{ann, bob, other_plant, plant, start, wf};
use super::look::{self, MANY, Store};
use super::{ContractFixture, Verdict, Violation, check_eq};
use crate::build::{CommitBuilder, asset, at};

/// When keys have expired.
const LATER_MS: i64 = 90 * 24 * 3_600_000;

/// Workflow `n` with an asset and a message, and its end under a key of its own.
async fn ended(store: &Store, n: u32, fence: u64) -> Result<Vec<Commit>, Violation> {
    let first = start(n).acquire(&asset("PUMP-7"), fence).note("one").message("log").build();
    store.commit(first.clone()).await?;
    let when = first.next.updated_at.plus_ms(1_000);
    let last = CommitBuilder::next(&first.next, when).complete().release_assets().build();
    store.commit(last.clone()).await?;
    Ok(vec![first, last])
}

/// Everything that is due is delivered.
async fn deliver(store: &Store, ms: i64) -> Verdict {
    let claim = look::claim(ms, &format!("t{ms}"));
    for stream in store.claim_outbox(&claim).await? {
        let results = stream.rows.iter().map(|row| (row.message.id.clone(), Settled::Delivered));
        let settlement = Settlement {
            results: results.collect(),
            tenant: stream.tenant,
            workflow_id: stream.workflow_id,
            recipient: stream.recipient,
            token: claim.token.clone(),
            now: at(ms),
        };
        store.settle_outbox(&settlement).await?;
    }
    Ok(())
}

/// All keys of what is completed have expired at `LATER_MS`. Nothing is old enough to be deleted by it.
async fn expire(store: &Store) -> Verdict {
    store.sweep(at(0), 1_000, MANY).await?;
    Ok(())
}

fn purge(of: &Commit) -> Purge {
    let reason = Some("no longer needed".to_owned());
    Purge {
        tombstone: Tombstone::of(&of.next, at(LATER_MS), bob(), reason),
        retention_ms: i64::MAX,
        undelivered_too: false,
        check_only: false,
    }
}

/// Until there is no more to do.
async fn whole(store: &Store, purge: &Purge) -> Result<Purged, Violation> {
    for _ in 0..100 {
        match store.purge(purge).await? {
            Purged::More => {}
            end @ (Purged::Done | Purged::Changed | Purged::KeysCount | Purged::Undelivered(_)) => {
                return Ok(end);
            }
        }
    }
    Err(Violation::new("a purge does not come to its end"))
}

async fn listed(store: &Store) -> Result<Vec<String>, Violation> {
    let page = store.list(&ListQuery { limit: MANY, ..ListQuery::default() }).await?;
    Ok(page.items.iter().map(|workflow| workflow.id.to_string()).collect())
}

/// Nothing of the workflow is found, by anybody; its tombstone is, and everything of others.
///
/// # Errors
/// When the store breaks the law.
pub async fn s16_purge_takes_all_of_a_workflow(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let gone = ended(&store, 1, 1).await?;
    let kept = ended(&store, 2, 2).await?;
    deliver(&store, 300_000).await?;
    expire(&store).await?;
    let lock = look::lock(&store, &plant(), &asset("PUMP-7")).await?;
    let purge = purge(&gone[1]);
    let asked = Purge { check_only: true, ..purge.clone() };
    check_eq!(store.purge(&asked).await?, Purged::Done, "asked only");
    check_eq!(store.tombstone(&plant(), &wf(1)).await?, None, "the tombstone of one that is there");
    check_eq!(listed(&store).await?.len(), 2, "workflows after asking");

    check_eq!(whole(&store, &purge).await?, Purged::Done, "the purge");
    for handle in [&store, &fixture.reopen().await?] {
        check_eq!(look::workflow(handle, &plant(), &wf(1)).await?, None, "the workflow");
        check_eq!(look::events(handle, &plant(), &wf(1)).await?, [], "its events");
        for commit in &gone {
            check_eq!(look::ledger(handle, &commit.ledger.key).await?, None, "its ledger rows");
        }
        let messages = look::all_outbox(handle, MANY).await?;
        check_eq!(messages.len(), 1, "messages of others");
        check_eq!(listed(handle).await?, [wf(2).to_string()], "what is listed");
        for whose in [Recent::OwnedBy(ann()), Recent::OfAsset(asset("PUMP-7"))] {
            let last = handle.last_completed(&plant(), &whose).await?;
            check_eq!(last.map(|w| w.id), Some(wf(2)), "{whose:?} completed last");
        }
        let left = handle.tombstone(&plant(), &wf(1)).await?;
        check_eq!(left.as_ref(), Some(&purge.tombstone), "the tombstone");
        check_eq!(handle.tombstone(&other_plant(), &wf(1)).await?, None, "of another tenant");
        let row = look::lock(handle, &plant(), &asset("PUMP-7")).await?;
        check_eq!(row, lock, "the asset with its fence");
    }
    let history = kept.iter().flat_map(|commit| commit.events.clone()).collect::<Vec<_>>();
    check_eq!(look::events(&store, &plant(), &wf(2)).await?, history, "the history of another");
    check_eq!(whole(&store, &purge).await?, Purged::Done, "the same again");
    Ok(())
}

/// What may not be purged is as it was, until it may.
///
/// # Errors
/// When the store breaks the law.
pub async fn s16_purge_spares_what_counts(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(3).message("log").build();
    store.commit(first.clone()).await?;
    check_eq!(whole(&store, &purge(&first)).await?, Purged::Changed, "an open workflow");
    let gone = ended(&store, 1, 1).await?;
    let right = purge(&gone[1]);
    let mut stale = right.clone();
    stale.tombstone.revision -= 1;
    check_eq!(whole(&store, &stale).await?, Purged::Changed, "another revision");
    let mut nobody = right.clone();
    nobody.tombstone.workflow_id = wf(9);
    check_eq!(whole(&store, &nobody).await?, Purged::Changed, "no workflow");

    check_eq!(whole(&store, &right).await?, Purged::KeysCount, "rows without expiry");
    let end = gone[1].next.updated_at.as_ms();
    let expired = Purge { retention_ms: at(LATER_MS).as_ms() - end, ..right.clone() };
    check_eq!(whole(&store, &expired).await?, Purged::Undelivered(1), "rows that expire now");
    let sooner = Purge { retention_ms: at(LATER_MS).as_ms() - end + 1, ..right.clone() };
    check_eq!(whole(&store, &sooner).await?, Purged::KeysCount, "rows that expire in a moment");
    expire(&store).await?;
    let mut early = right.clone();
    early.tombstone.purged_at = Timestamp::from_ms(gone[1].next.updated_at.as_ms() + 999);
    check_eq!(whole(&store, &early).await?, Purged::KeysCount, "rows that count still");
    check_eq!(whole(&store, &right).await?, Purged::Undelivered(1), "a pending message");
    let history = gone.iter().flat_map(|commit| commit.events.clone()).collect::<Vec<_>>();
    check_eq!(look::events(&store, &plant(), &wf(1)).await?, history, "the history");
    check_eq!(listed(&store).await?.len(), 2, "what is listed");
    check_eq!(store.tombstone(&plant(), &wf(1)).await?, None, "the tombstone");

    let all = Purge { undelivered_too: true, ..right };
    check_eq!(whole(&store, &all).await?, Purged::Done, "with what was not delivered");
    check_eq!(look::all_outbox(&store, MANY).await?.len(), 1, "messages of others");
    Ok(())
}
