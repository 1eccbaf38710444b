//! S8: pages are stable and complete while others write.

use std::collections::BTreeMap;

use wf_core::models::Phase;
use wf_core::ports::{
    Commit, Cursor, ListQuery, OutboxQuery, OutboxState, ReadError, Settled, Settlement,
};

use super::cast::{plant, start, step_after, wf};
use super::look::{self, Store};
use super::{ContractFixture, Verdict, Violation, check, check_eq};
use crate::build::asset;

/// Starts of workflows 10, 20, … 10 × `count`, each with an asset and a message; there is room between the ids.
async fn started(store: &Store, count: u32) -> Result<Vec<Commit>, Violation> {
    let mut commits = Vec::new();
    for n in (1..=count).map(|n| n * 10) {
        let commit = start(n).acquire(&asset(&format!("A-{n:04}")), 1).message("log").build();
        store.commit(commit.clone()).await?;
        commits.push(commit);
    }
    Ok(commits)
}

/// How often each id was seen.
fn tally<'a>(ids: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for id in ids {
        *counts.entry(id).or_default() += 1;
    }
    counts
}

/// Every page size shows every row once, in order.
///
/// # Errors
/// When the store breaks the law.
pub async fn s08_pages_cover_everything_once(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = started(&store, 11).await?;
    let states: Vec<_> = commits.iter().map(|c| c.next.clone()).collect();
    for limit in [1, 2, 3, 5, 11, 12] {
        let listed = look::all_workflows(&store, Some(&plant()), None, limit).await?;
        check_eq!(listed, states, "workflows, {limit} a page");
        check_eq!(look::all_workflows(&store, None, None, limit).await?, states, "all tenants");
        let locks = look::all_locks(&store, Some(&plant()), limit).await?;
        let assets: Vec<_> = locks.iter().map(|r| r.asset_id.clone()).collect();
        let held: Vec<_> = states.iter().flat_map(|w| &w.assets).map(|a| a.id.clone()).collect();
        check_eq!(assets, held, "locks, {limit} a page");
        let outbox = look::all_outbox(&store, limit).await?;
        let messages: Vec<_> = outbox.into_iter().map(|row| row.message).collect();
        let sent: Vec<_> = commits.iter().flat_map(|c| c.outbox.clone()).collect();
        check_eq!(messages, sent, "messages, {limit} a page");
    }
    Ok(())
}

/// A list of one phase shows the workflows of that phase and no others.
///
/// # Errors
/// When the store breaks the law.
pub async fn s08_phase_filter_keeps_its_phase(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    for (n, first) in (0..).zip(started(&store, 12).await?) {
        let next = match n % 3 {
            0 => step_after(&first, 10).block(),
            1 => step_after(&first, 10).complete(),
            _ => step_after(&first, 10),
        };
        store.commit(next.build()).await?;
    }
    for (phase, count) in
        [(Phase::Created, 0), (Phase::Running, 4), (Phase::Blocked, 4), (Phase::Completed, 4)]
    {
        for limit in [1, 3, 4, 100] {
            let listed = look::all_workflows(&store, None, Some(phase), limit).await?;
            check_eq!(listed.len(), count, "{phase:?}, {limit} a page");
            check!(listed.iter().all(|w| w.phase == phase), "another phase in {phase:?}");
        }
    }
    Ok(())
}

/// While others start, change and end workflows between two pages, each that is there all the time appears once.
///
/// # Errors
/// When the store breaks the law.
pub async fn s08_pages_stable_while_writing(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let writer = fixture.reopen().await?;
    let commits = started(&store, 12).await?;
    let mut query = ListQuery { tenant: Some(plant()), limit: 3, ..ListQuery::default() };
    let mut seen = Vec::new();
    for round in 1..10 {
        let page = store.list(&query).await?;
        seen.extend(page.items.into_iter().map(|w| w.id));
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
        // New ones behind and in the middle, one of them before the cursor; two old ones change, one of them ends.
        for n in [round, 500 + round, 50 + round] {
            writer.commit(start(n).build()).await?;
        }
        let at_hand = usize::try_from(round * 2).unwrap_or(0);
        for (n, old) in commits.iter().enumerate().skip(at_hand).take(2) {
            let next = step_after(old, 90);
            let next = if n % 2 == 0 { next.complete() } else { next };
            writer.commit(next.build()).await?;
        }
    }
    check!(query.after.is_none(), "the pages do not end");
    let counts = tally(seen.iter().map(wf_core::models::WorkflowId::as_str));
    let double: Vec<_> = counts.iter().filter(|(_, times)| **times != 1).collect();
    check!(double.is_empty(), "seen more than once: {double:?}");
    for n in (1..=12).map(|n| n * 10) {
        check!(counts.contains_key(wf(n).as_str()), "{} was there all the time, unseen", wf(n));
    }
    Ok(())
}

/// The same for lock rows: assets that come and go between pages neither hide nor double the others.
///
/// # Errors
/// When the store breaks the law.
pub async fn s08_lock_pages_stable_while_writing(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = started(&store, 9).await?;
    let mut after = None;
    let mut seen = Vec::new();
    for (n, old) in (0..).zip(&commits) {
        let page = store.list_locks(Some(&plant()), after.as_ref(), 3).await?;
        seen.extend(page.items.into_iter().map(|row| row.asset_id.to_string()));
        after = page.next;
        if after.is_none() {
            break;
        }
        store.commit(step_after(old, 90).release_assets().build()).await?;
        let new = [format!("A-{n:04}-new"), format!("0-{n}"), format!("Z-{n}")];
        for (id, new) in (1_000 + n * 3..).zip(new) {
            store.commit(start(id).acquire(&asset(&new), 1).build()).await?;
        }
    }
    check!(after.is_none(), "the pages do not end");
    let counts = tally(seen.iter().map(String::as_str));
    check!(counts.values().all(|times| *times == 1), "seen more than once: {counts:?}");
    for commit in &commits {
        for held in &commit.next.assets {
            check!(counts.contains_key(held.id.as_str()), "{} was never seen", held.id);
        }
    }
    Ok(())
}

/// The same for outbox rows of one state, while others are delivered and added.
///
/// # Errors
/// When the store breaks the law.
pub async fn s08_outbox_pages_stable_while_writing(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = started(&store, 9).await?;
    let claim = look::claim(36_000_000, "t");
    check_eq!(store.claim_outbox(&claim).await?.len(), 9, "claimed streams");
    let mut query = OutboxQuery { state: Some(OutboxState::Pending), after: None, limit: 3 };
    let mut seen = Vec::new();
    for (n, old) in (0..).zip(&commits) {
        let page = store.list_outbox(&query).await?;
        check!(
            page.items.iter().all(|row| row.status.state == OutboxState::Pending),
            "another state among the pending: {page:?}"
        );
        seen.extend(page.items.into_iter().map(|row| row.message.id));
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
        // Rows 0, 1, … are delivered while the pages are at 3, 6, …: only rows that were seen already.
        let results = old.outbox.iter().map(|m| (m.id.clone(), Settled::Delivered)).collect();
        let delivered = Settlement {
            tenant: plant(),
            workflow_id: old.next.id.clone(),
            recipient: "log".to_owned(),
            token: claim.token.clone(),
            now: claim.now,
            results,
        };
        store.settle_outbox(&delivered).await?;
        // One before the cursor, once: what is added there must not make up for what is delivered there.
        let new = if n == 1 { vec![1, 901] } else { vec![900 + n] };
        for id in new {
            store.commit(start(id).message("log").build()).await?;
        }
    }
    check!(query.after.is_none(), "the pages do not end");
    let counts = tally(seen.iter().map(String::as_str));
    check!(counts.values().all(|times| *times == 1), "seen more than once: {counts:?}");
    for message in commits.iter().flat_map(|c| &c.outbox) {
        check!(counts.contains_key(message.id.as_str()), "{} was never seen", message.id);
    }
    Ok(())
}

/// A text that no page said is refused as that or leads to some page; it is no outage and no damage. The empty one is
/// refused: it does not begin a list, or a client that lost its place would walk in a circle.
///
/// # Errors
/// When the store breaks the law.
pub async fn s08_what_is_no_place_is_refused(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    started(&store, 3).await?;
    let long = "9".repeat(5_000);
    let sort_key = "9".repeat(1_024);
    for text in ["", "\n", "x", "x\ny", "\u{0}", "-1\n\u{fdd0}", "{}", &sort_key, &long] {
        let after = || Some(Cursor(text.to_owned()));
        let told = text.chars().take(8).collect::<String>();
        let mut answers = Vec::new();
        for tenant in [None, Some(plant())] {
            let of = tenant.as_ref();
            answers
                .push(store.list_locks(of, after().as_ref(), 2).await.map(|page| page.items.len()));
            for phase in [None, Some(Phase::Running)] {
                let query = ListQuery { tenant: tenant.clone(), phase, after: after(), limit: 2 };
                answers.push(store.list(&query).await.map(|page| page.items.len()));
            }
        }
        for state in [None, Some(OutboxState::Pending)] {
            let query = OutboxQuery { state, after: after(), limit: 2 };
            answers.push(store.list_outbox(&query).await.map(|page| page.items.len()));
        }
        for answer in answers {
            match answer {
                Err(ReadError::BadCursor) => {}
                Ok(rows) => check!(!text.is_empty() && rows <= 2, "{rows} rows after {told:?}"),
                Err(ReadError::Unavailable { .. } | ReadError::Corrupt { .. }) => {
                    check!(false, "{told:?} instead of a place: {answer:?}");
                }
            }
        }
    }
    Ok(())
}
