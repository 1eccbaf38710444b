//! S7: tenants never see each other.

use wf_core::models::{TenantId, Workflow};
use wf_core::ports::{Commit, LedgerKey, Recent, SettleError, Settled, Settlement};

use super::cast::{ann, bob, other_plant, plant, wf};
use super::look::{self, MANY, Store};
use super::{ContractFixture, Verdict, Violation, check, check_eq};
use crate::build::{CommitBuilder, asset, at};

/// Ann starts workflow `n` with an asset, in one of the plants.
fn start_in(tenant: &TenantId, n: u32) -> CommitBuilder {
    let asset = asset("PUMP-7");
    CommitBuilder::start(tenant, &wf(n), &ann(), at(0)).acquire(&asset, 1)
}

async fn sent(store: &Store, builder: CommitBuilder) -> Result<Commit, Violation> {
    let commit = builder.build();
    store.commit(commit.clone()).await?;
    Ok(commit)
}

/// The same workflow id, asset and key in two tenants are two of each.
///
/// # Errors
/// When the store breaks the law.
pub async fn s07_same_names_do_not_meet(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let ours = sent(&store, start_in(&plant(), 1).record("pressure", "1")).await?;
    let theirs =
        sent(&store, start_in(&other_plant(), 1).record("pressure", "2").note("x")).await?;
    for commit in [&ours, &theirs] {
        let seen = look::load_of(&store, commit).await?;
        check_eq!(seen.workflow, Some(commit.next.clone()), "the state");
        check_eq!(seen.ledger, Some(commit.ledger.clone()), "the ledger row");
        check!(seen.locks.iter().all(|r| r.tenant == commit.next.tenant), "locks {seen:?}");
        check_eq!(seen.locks.len(), 1, "lock rows");
        let events = look::events(&store, &commit.next.tenant, &wf(1)).await?;
        check_eq!(events, commit.events, "the events");
    }
    Ok(())
}

/// People of one tenant are unknown in another.
///
/// # Errors
/// When the store breaks the law.
pub async fn s07_people_stay_in_their_tenant(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    sent(&store, start_in(&plant(), 1).seen(&ann(), Some("Ann"))).await?;
    check_eq!(store.people(&other_plant(), MANY).await?, [], "people of the other tenant");
    sent(&store, start_in(&other_plant(), 2).seen(&ann(), Some("Another Ann"))).await?;
    for (tenant, name) in [(plant(), "Ann"), (other_plant(), "Another Ann")] {
        let people = store.people(&tenant, MANY).await?;
        let names: Vec<_> = people.iter().filter_map(|p| p.name.as_deref()).collect();
        check_eq!(names, [name], "people of {tenant}");
    }
    Ok(())
}

/// Nothing of one tenant is found by asking in another.
///
/// # Errors
/// When the store breaks the law.
pub async fn s07_nothing_is_found_elsewhere(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let ours = sent(&store, start_in(&plant(), 1)).await?;
    let mut query = look::query(&other_plant());
    query.workflow = Some(wf(1));
    query.assets = vec![asset("PUMP-7")];
    query.count_open_of = Some(ann());
    query.ledger = Some(LedgerKey { tenant: other_plant(), ..ours.ledger.key });
    let seen = store.load(&query).await?;
    check_eq!(seen, wf_core::ports::Snapshot::default(), "what the other tenant loads");
    let events = look::events(&store, &other_plant(), &wf(1)).await?;
    check_eq!(events, [], "what the other tenant reads");
    Ok(())
}

/// Every listing of a tenant shows its own and nothing else.
///
/// # Errors
/// When the store breaks the law.
pub async fn s07_lists_show_their_own(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    for (tenant, n) in [(plant(), 1), (other_plant(), 11)] {
        sent(&store, start_in(&tenant, n).block().offer(Some(&bob()))).await?;
        let over = CommitBuilder::start(&tenant, &wf(n + 1), &ann(), at(i64::from(n) * 1_000));
        let over = over.acquire(&asset("VALVE.1"), 1).complete();
        sent(&store, over).await?;
    }
    for (tenant, n) in [(plant(), 1), (other_plant(), 11)] {
        let first = vec![wf(n)];
        let only = |seen: Vec<Workflow>| -> Vec<_> { seen.into_iter().map(|w| w.id).collect() };
        check_eq!(only(store.open_of(&tenant, &ann(), MANY).await?), first, "open of Ann");
        check_eq!(only(store.offered_to(&tenant, &bob(), MANY).await?), first, "offered to Bob");
        check_eq!(only(store.blocked(&tenant, MANY).await?), first, "blocked");
        for whose in [Recent::OwnedBy(ann()), Recent::OfAsset(asset("VALVE.1"))] {
            let last = store.last_completed(&tenant, &whose).await?;
            check_eq!(last.map(|w| w.id), Some(wf(n + 1)), "the last of {whose:?}");
        }
        let listed = look::all_workflows(&store, Some(&tenant), None, MANY).await?;
        check_eq!(only(listed), vec![wf(n), wf(n + 1)], "the list");
        let locks = look::all_locks(&store, Some(&tenant), MANY).await?;
        check_eq!(locks.len(), 2, "lock rows");
        check!(locks.iter().all(|row| row.tenant == tenant), "foreign lock rows: {locks:?}");
    }
    let everybody = look::all_workflows(&store, None, None, MANY).await?;
    check_eq!(everybody.len(), 4, "what an operator lists");
    check_eq!(look::all_locks(&store, None, MANY).await?.len(), 4, "locks an operator lists");
    Ok(())
}

/// A lease of one tenant settles nothing of another.
///
/// # Errors
/// When the store breaks the law.
pub async fn s07_lease_is_of_one_tenant(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let ours = sent(&store, start_in(&plant(), 1).message("log").deadline(at(500))).await?;
    let claimed = store.claim_outbox(&look::claim(1_000, "t")).await?;
    check_eq!(claimed.len(), 1, "claimed streams");
    let id = ours.outbox.first().map(|m| m.id.clone()).unwrap_or_default();
    let elsewhere = Settlement {
        tenant: other_plant(),
        workflow_id: wf(1),
        recipient: "log".to_owned(),
        token: look::claim(1_000, "t").token,
        now: at(2_000),
        results: vec![(id, Settled::Delivered)],
    };
    let answer = store.settle_outbox(&elsewhere).await;
    check!(matches!(answer, Err(SettleError::LeaseLost)), "a foreign settlement: {answer:?}");
    let rows = look::all_outbox(&store, MANY).await?;
    check!(rows.iter().all(|r| r.status.state == wf_core::ports::OutboxState::Pending), "{rows:?}");

    let due = store.claim_deadlines(&look::claim(1_000, "t")).await?;
    let [mine] = due.as_slice() else {
        return Err(Violation::new(format!("claimed deadlines: {due:?}")));
    };
    let mut elsewhere = mine.clone();
    elsewhere.tenant = other_plant();
    let answer = store.settle_deadline(&elsewhere).await;
    check!(matches!(answer, Err(SettleError::LeaseLost)), "a foreign settlement: {answer:?}");
    check_eq!(look::all_deadlines(&store).await?.len(), 1, "deadlines");
    Ok(())
}

/// What ends in one tenant goes on under the same names in another: its assets, its deadlines, its keys.
///
/// # Errors
/// When the store breaks the law.
pub async fn s07_ends_stay_in_their_tenant(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let ours =
        sent(&store, start_in(&plant(), 1).deadline(at(500)).record("pressure", "1")).await?;
    let theirs = sent(&store, start_in(&other_plant(), 1).deadline(at(500))).await?;
    let mut end = CommitBuilder::next(&ours.next, at(100)).complete().release_assets();
    for deadline in ours.next.deadlines.keys() {
        end = end.clear_deadline(deadline);
    }
    sent(&store, end).await?;
    let swept = store.sweep(at(1_000), 0, MANY).await?;
    check_eq!(swept.expiries_set, 2, "rows of what ended");
    store.sweep(at(1_000_000), 0, MANY).await?;

    check_eq!(look::ledger(&store, &ours.ledger.key).await?, None, "our row");
    let seen = look::load_of(&store, &theirs).await?;
    check_eq!(seen.workflow, Some(theirs.next.clone()), "their state");
    check_eq!(seen.ledger, Some(theirs.ledger.clone()), "their row");
    let holders: Vec<_> = seen.locks.iter().filter_map(|row| row.holder.as_ref()).collect();
    check_eq!(holders.len(), 1, "what they hold");
    let due = look::all_deadlines(&store).await?;
    let tenants: Vec<_> = due.iter().map(|claimed| claimed.tenant.clone()).collect();
    check_eq!(tenants, vec![other_plant()], "whose deadlines are left");
    let next = CommitBuilder::next(&theirs.next, at(2_000)).assert_assets().note("going on");
    sent(&store, next).await?;
    Ok(())
}
