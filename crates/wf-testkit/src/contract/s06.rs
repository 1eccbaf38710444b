//! S6: a commit is read by whoever was told of it; "open of", "blocked" and "offered to" are strongly consistent.

use wf_core::models::{Person, Phase, Workflow};
use wf_core::ports::{Commit, Recent, Snapshot};

use super::cast::{ann, bob, plant, start, start_by, start_with_everything, step_after, wf};
use super::look::{self, MANY, Store};
use super::{ContractFixture, Verdict, Violation, check, check_eq};
use crate::build::{CommitBuilder, asset, at, user};

/// Commits and gives back what was committed.
async fn sent(store: &Store, builder: CommitBuilder) -> Result<Commit, Violation> {
    let commit = builder.build();
    store.commit(commit.clone()).await?;
    Ok(commit)
}

fn ids(workflows: &[Workflow]) -> Vec<&str> {
    workflows.iter().map(|w| w.id.as_str()).collect()
}

/// Each commit is read at once, whole, through the handle that sent it and through another one.
///
/// # Errors
/// When the store breaks the law.
pub async fn s06_commit_is_read_by_every_handle(fixture: &dyn ContractFixture) -> Verdict {
    let here = fixture.open().await?;
    let there = fixture.reopen().await?;
    let mut last = start_with_everything(1, 1).build();
    for round in 0..20 {
        here.commit(last.clone()).await?;
        for store in [&there, &here] {
            let seen = look::load_of(store, &last).await?;
            check_eq!(seen.workflow, Some(last.next.clone()), "the state after commit {round}");
            check_eq!(seen.ledger, Some(last.ledger.clone()), "the row after commit {round}");
            let open = store.open_of(&plant(), &ann(), MANY).await?;
            check_eq!(open, vec![last.next.clone()], "open workflows after commit {round}");
        }
        last = step_after(&last, 10).build();
    }
    Ok(())
}

/// A load with nothing to find finds nothing, and a load that asks for nothing gets nothing.
///
/// # Errors
/// When the store breaks the law.
pub async fn s06_load_of_nothing_is_empty(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let absent = start_with_everything(1, 1).build();
    let seen = look::load_of(&store, &absent).await?;
    check_eq!(seen, Snapshot::default(), "an empty store");
    sent(&store, start_with_everything(1, 1)).await?;
    let seen = store.load(&look::query(&plant())).await?;
    check_eq!(seen, Snapshot::default(), "a question about nothing");
    Ok(())
}

/// A load brings the rows of the workflow's own assets and of those that were named, once each; rows of assets that
/// were never held are absent, rows of free ones are not.
///
/// # Errors
/// When the store breaks the law.
pub async fn s06_load_brings_the_lock_rows(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = sent(&store, start_with_everything(1, 1)).await?;
    let second = sent(&store, start_by(2, &bob()).acquire(&asset("VALVE.1"), 1)).await?;
    sent(&store, step_after(&second, 5).complete().release_assets()).await?;
    sent(&store, start_by(3, &bob()).acquire(&asset("OTHER"), 1)).await?;

    let mut query = look::query(&plant());
    query.workflow = Some(first.next.id);
    query.assets = vec![asset("VALVE.1"), asset("PUMP-7"), asset("NEVER")];
    let seen = store.load(&query).await?;
    let mut rows: Vec<_> = seen.locks.iter().map(|r| r.asset_id.as_str()).collect();
    rows.sort_unstable();
    check_eq!(rows, ["GAUGE:3", "PUMP-7", "VALVE.1"], "the rows");
    Ok(())
}

/// A load for a call that the ledger may have answered brings the row then, and for any other call everything.
///
/// # Errors
/// When the store breaks the law.
pub async fn s06_load_stops_at_its_own_answer_only(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = sent(&store, start_with_everything(1, 1)).await?;
    let mut query = look::query(&plant());
    query.workflow = Some(first.next.id.clone());
    query.ledger = Some(first.ledger.key.clone());
    query.count_open_of = Some(ann());
    let whole = store.load(&query).await?;
    check!(whole.workflow.is_some() && whole.ledger.is_some(), "the whole: {whole:?}");

    query.answered_as = Some(first.ledger.entry.fingerprint);
    let answered = store.load(&query).await?;
    check_eq!(answered.ledger, whole.ledger, "the row that answers");
    let other = sent(&store, start_by(2, &bob())).await?;
    query.answered_as = Some(other.ledger.entry.fingerprint);
    check!(query.answered_as != Some(first.ledger.entry.fingerprint), "two fingerprints");
    check_eq!(store.load(&query).await?, whole, "a call with another fingerprint");
    query.ledger = None;
    let without = Snapshot { ledger: None, ..whole };
    check_eq!(store.load(&query).await?, without, "a call without a key");
    Ok(())
}

/// Open workflows of an actor: newest activity first, as ownership and phase are now, with a limit.
///
/// # Errors
/// When the store breaks the law.
pub async fn s06_open_of_follows_ownership(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let open = async |actor, limit| store.open_of(&plant(), actor, limit).await;
    let (ann, bob) = (ann(), bob());
    let first = sent(&store, start(1)).await?;
    let second = sent(&store, start(2)).await?;
    sent(&store, start_by(3, &bob)).await?;
    check_eq!(ids(&open(&ann, 10).await?), ["wf-0002", "wf-0001"], "Ann's");

    let first = sent(&store, step_after(&first, 3_600)).await?;
    check_eq!(ids(&open(&ann, 10).await?), ["wf-0001", "wf-0002"], "Ann's, newest activity first");
    check_eq!(ids(&open(&ann, 1).await?), ["wf-0001"], "Ann's newest");

    let first = sent(&store, step_after(&first, 60).block()).await?;
    check_eq!(open(&ann, 1).await?, vec![first.next.clone()], "a blocked one is open");
    let first = sent(&store, step_after(&first, 60).transfer(&bob)).await?;
    check_eq!(ids(&open(&ann, 10).await?), ["wf-0002"], "Ann's after the transfer");
    check_eq!(ids(&open(&bob, 10).await?), ["wf-0001", "wf-0003"], "Bob's after the transfer");

    sent(&store, step_after(&first, 60).complete()).await?;
    sent(&store, step_after(&second, 60).complete()).await?;
    check_eq!(ids(&open(&ann, 10).await?), [""; 0], "Ann's at the end");
    check_eq!(ids(&open(&bob, 10).await?), ["wf-0003"], "Bob's at the end");
    check_eq!(ids(&open(&user("an"), 10).await?), [""; 0], "nobody's");
    Ok(())
}

/// The number of open workflows of an actor follows starts, transfers and ends.
///
/// # Errors
/// When the store breaks the law.
pub async fn s06_open_count_follows_ownership(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let count = async |actor| {
        let mut query = look::query(&plant());
        query.count_open_of = Some(actor);
        store.load(&query).await.map(|seen| seen.open_count)
    };
    for n in 1..=3 {
        sent(&store, start(n)).await?;
        check_eq!(count(ann()).await?, n, "Ann's open workflows");
    }
    let fourth = sent(&store, start(4)).await?;
    let fourth = sent(&store, step_after(&fourth, 10).transfer(&bob())).await?;
    check_eq!((count(ann()).await?, count(bob()).await?), (3, 1), "after a transfer");
    sent(&store, step_after(&fourth, 10).complete()).await?;
    check_eq!((count(ann()).await?, count(bob()).await?), (3, 0), "after an end");
    Ok(())
}

/// Offers to an actor or to anybody: oldest offer first; gone when withdrawn, taken, or the workflow is over.
///
/// # Errors
/// When the store breaks the law.
pub async fn s06_offered_to_follows_offers(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let offered = async |actor, limit| store.offered_to(&plant(), actor, limit).await;
    let (bob, eve) = (bob(), user("eve"));
    let mut started = Vec::new();
    for n in 1..=4 {
        started.push(sent(&store, start(n)).await?);
    }
    let [first, second, third, fourth] = started.as_slice() else {
        return Err(Violation::new("four workflows"));
    };
    let third = sent(&store, step_after(third, 600).offer(Some(&bob))).await?;
    let first = sent(&store, step_after(first, 1_200).offer(None)).await?;
    let fourth = sent(&store, step_after(fourth, 1_800).offer(Some(&bob))).await?;
    sent(&store, step_after(second, 2_400).offer(Some(&eve))).await?;
    check_eq!(ids(&offered(&bob, 10).await?), ["wf-0003", "wf-0001", "wf-0004"], "Bob's");
    check_eq!(ids(&offered(&eve, 10).await?), ["wf-0001", "wf-0002"], "Eve's");
    check_eq!(ids(&offered(&bob, 2).await?), ["wf-0003", "wf-0001"], "Bob's oldest two");

    sent(&store, step_after(&third, 2_000).withdraw()).await?;
    let first = sent(&store, step_after(&first, 2_000).transfer(&eve)).await?;
    check_eq!(first.next.offer, None, "the offer that was taken");
    check_eq!(ids(&offered(&bob, 10).await?), ["wf-0004"], "Bob's after withdrawal");
    let moved = sent(&store, step_after(&fourth, 2_000).offer(Some(&eve))).await?;
    check_eq!(ids(&offered(&bob, 10).await?), [""; 0], "Bob's after a new offer");
    check_eq!(ids(&offered(&eve, 10).await?), ["wf-0002", "wf-0004"], "Eve's");
    sent(&store, step_after(&moved, 60).complete()).await?;
    check_eq!(ids(&offered(&eve, 10).await?), ["wf-0002"], "Eve's after an end");
    Ok(())
}

/// Blocked workflows: longest blocked first; gone when resolved or over.
///
/// # Errors
/// When the store breaks the law.
pub async fn s06_blocked_are_longest_first(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let blocked = async |limit| store.blocked(&plant(), limit).await;
    let mut started = Vec::new();
    for n in 1..=4 {
        let owner = if n % 2 == 0 { bob() } else { ann() };
        started.push(sent(&store, start_by(n, &owner)).await?);
    }
    let [first, second, third, _] = started.as_slice() else {
        return Err(Violation::new("four workflows"));
    };
    let third = sent(&store, step_after(third, 300).block()).await?;
    let first = sent(&store, step_after(first, 600).block()).await?;
    let second = sent(&store, step_after(second, 900).block()).await?;
    check_eq!(ids(&blocked(10).await?), ["wf-0003", "wf-0001", "wf-0002"], "the blocked");
    check_eq!(ids(&blocked(2).await?), ["wf-0003", "wf-0001"], "the longest blocked two");
    // Further events and blocks do not make it younger.
    let third = sent(&store, step_after(&third, 3_600).block()).await?;
    check_eq!(ids(&blocked(1).await?), ["wf-0003"], "the longest blocked");

    let third = sent(&store, step_after(&third, 60).resolve().resolve()).await?;
    check_eq!(third.next.phase, Phase::Running, "the resolved one");
    check_eq!(ids(&blocked(10).await?), ["wf-0001", "wf-0002"], "after a resolve");
    sent(&store, step_after(&first, 60).complete()).await?;
    check_eq!(blocked(10).await?, vec![second.next], "after an end");
    Ok(())
}

/// People that commits name: once each, by their newest name, named last first, with a limit.
///
/// # Errors
/// When the store breaks the law.
pub async fn s06_people_have_their_newest_name(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let people = async |limit| {
        let found = store.people(&plant(), limit).await?;
        let said = |p: Person| format!("{} {}", p.id, p.name.as_deref().unwrap_or("-"));
        Ok::<_, Violation>(found.into_iter().map(said).collect::<Vec<_>>())
    };
    check_eq!(people(10).await?, [""; 0], "before anybody came");
    let first = sent(&store, start(1).seen(&ann(), Some("Ann"))).await?;
    let second = sent(&store, start_by(2, &bob()).seen(&bob(), None)).await?;
    check_eq!(people(10).await?, ["user:bob -", "user:ann Ann"], "two, the last one first");
    // A commit that names nobody changes nothing.
    let first = sent(&store, step_after(&first, 600)).await?;
    check_eq!(people(1).await?, ["user:bob -"], "the last one");
    sent(&store, step_after(&first, 600).seen(&ann(), Some("Ann Ártaud"))).await?;
    sent(&store, step_after(&second, 600).seen(&bob(), Some("Bob"))).await?;
    check_eq!(people(10).await?, ["user:ann Ann Ártaud", "user:bob Bob"], "by their new names");
    Ok(())
}

/// The workflow completed last: of an owner, and of an asset.
///
/// # Errors
/// When the store breaks the law.
pub async fn s06_last_completed_is_the_newest(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let last = async |whose| {
        let seen = store.last_completed(&plant(), &whose).await?;
        Ok::<_, Violation>(seen.map(|w| w.id))
    };
    let of_pump = || Recent::OfAsset(asset("PUMP-7"));
    let of_gauge = || Recent::OfAsset(asset("GAUGE:3"));
    let of_ann = || Recent::OwnedBy(ann());
    let first = sent(&store, start_with_everything(1, 1)).await?;
    let second = sent(&store, start(2)).await?;
    check_eq!(last(of_ann()).await?, None, "nothing is over yet");
    check_eq!(last(of_pump()).await?, None, "nothing is over yet");

    // The second ends before the first does: what counts is the end.
    sent(&store, step_after(&second, 60).complete()).await?;
    check_eq!(last(of_ann()).await?, Some(wf(2)), "Ann's last");
    check_eq!(last(of_pump()).await?, None, "the second had no asset");
    sent(&store, step_after(&first, 3_600).complete().release_assets()).await?;
    check_eq!(last(of_ann()).await?, Some(wf(1)), "Ann's last");
    check_eq!(last(of_gauge()).await?, Some(wf(1)), "the gauge's last");

    let again = CommitBuilder::start(&plant(), &wf(3), &bob(), at(36_000_000));
    let third = sent(&store, again.acquire(&asset("PUMP-7"), 2)).await?;
    check_eq!(last(of_pump()).await?, Some(wf(1)), "the pump's last while in use again");
    sent(&store, step_after(&third, 60).complete().release_assets()).await?;
    check_eq!(last(of_pump()).await?, Some(wf(3)), "the pump's last");
    check_eq!(last(of_gauge()).await?, Some(wf(1)), "the gauge's last is still");
    check_eq!(last(of_ann()).await?, Some(wf(1)), "Ann's last is still");
    check_eq!(last(Recent::OwnedBy(bob())).await?, Some(wf(3)), "Bob's last");
    Ok(())
}
