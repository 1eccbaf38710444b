//! What a store must say of itself, whoever called: keys, ledger rows, states, definitions, fences.

use std::collections::BTreeMap;

use wf_core::models::{AssetId, Phase, TenantId, WorkflowId};
use wf_core::ports::LedgerKey;

use super::Invariant;
use super::books::{Applied, Books, Place, Work};
use super::found::Found;

pub(super) fn check(books: &Books, found: &mut Found) {
    for (key, commits) in &books.by_key {
        once(key, commits, found);
    }
    for (place, work) in &books.works {
        for commit in &work.commits {
            marked(books, place, commit, found);
        }
        state(work, found);
        pinned(work, found);
        asserted(work, found);
    }
    for (key, row) in &books.rows {
        let place = (key.tenant.clone(), row.workflow_id.clone());
        let commit = books.commit(&place, row.seq);
        if commit.is_none_or(|c| c.cause.key != key.key || c.actor != key.actor) {
            let message = format!(
                "its ledger row names event {} of {}, which is no commit of it",
                row.seq, row.workflow_id
            );
            found.add(Invariant::I5, key.key.as_str(), message);
        }
    }
    fences(books, found);
}

/// A key has one commit. (Its row may be replaced when it has expired, long after any run.)
fn once(key: &LedgerKey, commits: &[(Place, usize)], found: &mut Found) {
    if commits.len() > 1 {
        let of: Vec<String> = commits.iter().map(|((_, id), n)| format!("{id}#{n}")).collect();
        let message = format!("{} committed with it {} times: {of:?}", key.actor, commits.len());
        found.add(Invariant::I2, key.key.as_str(), message);
    }
}

/// Every commit has its ledger row.
fn marked(books: &Books, (tenant, id): &Place, commit: &Applied, found: &mut Found) {
    let key = LedgerKey {
        tenant: tenant.clone(),
        actor: commit.actor.clone(),
        key: commit.cause.key.clone(),
    };
    let message = match books.rows.get(&key) {
        None => "has no ledger row",
        Some(row) if row.workflow_id != *id || row.seq != commit.last => {
            "has a ledger row that is of another commit"
        }
        Some(row) if row.fingerprint != commit.cause.fingerprint => {
            "has a ledger row with another fingerprint"
        }
        Some(_) => return,
    };
    let message = format!("the commit of events {}..={} {message}", commit.first, commit.last);
    found.add(Invariant::I5, id.as_str(), message);
}

fn state(work: &Work, found: &mut Found) {
    let w = &work.workflow;
    let completed = w.phase == Phase::Completed;
    if completed != w.result.is_some() || completed != w.completed_at.is_some() {
        let message = format!("{} with result {:?}", w.phase.as_str(), w.result);
        found.add(Invariant::I8, w.id.as_str(), message);
    }
}

fn pinned(work: &Work, found: &mut Found) {
    let now = &work.workflow.procedure;
    if let Some(started) = work.started.as_ref().filter(|started| *started != now) {
        let message = format!("it started with {} and runs by {}", started.digest, now.digest);
        found.add(Invariant::I12, work.workflow.id.as_str(), message);
    }
}

/// A step is recorded only while the workflow holds all of its assets: not after one was freed by hand.
fn asserted(work: &Work, found: &mut Found) {
    let mut lost: Vec<&AssetId> = Vec::new();
    for commit in &work.commits {
        lost.retain(|asset| commit.taken.iter().all(|(taken, _)| taken != *asset));
        if let Some(asset) = lost.first().filter(|_| commit.asserted()) {
            let message = format!("event {} was recorded after {asset} was freed", commit.first);
            found.add(Invariant::I9, work.workflow.id.as_str(), message);
        }
        lost.extend(&commit.freed);
    }
}

/// One time that an asset was acquired.
#[derive(Debug)]
struct Tenure<'a> {
    holder: &'a WorkflowId,
    /// The holder gave it back: it is over, or freed it, or acquired it again.
    given_back: bool,
}

/// Every acquisition of an asset has a fence of its own, and the one before it was given back.
fn fences(books: &Books, found: &mut Found) {
    let mut tenures: BTreeMap<(&TenantId, &AssetId), BTreeMap<u64, Tenure<'_>>> = BTreeMap::new();
    for ((tenant, id), work) in &books.works {
        for (number, commit) in work.commits.iter().enumerate() {
            for (asset, fence) in &commit.taken {
                let later = work.commits.iter().skip(number + 1);
                let given_back = later.clone().any(|c| {
                    c.ends || c.freed.contains(asset) || c.taken.iter().any(|(a, _)| a == asset)
                });
                let of_asset = tenures.entry((tenant, asset)).or_default();
                if let Some(other) = of_asset.insert(*fence, Tenure { holder: id, given_back }) {
                    let holders = format!("{} and {id}", other.holder);
                    let message = format!("fence {fence} was given out twice, to {holders}");
                    found.add(Invariant::I9, asset.as_str(), message);
                }
            }
        }
    }
    for ((_, asset), of_asset) in &tenures {
        let held: Vec<_> = of_asset.iter().filter(|(_, tenure)| !tenure.given_back).collect();
        let last = of_asset.keys().next_back();
        for (fence, tenure) in held.into_iter().filter(|(fence, _)| Some(*fence) != last) {
            let message = format!(
                "{} holds it with fence {fence}, and a later fence was given out",
                tenure.holder
            );
            found.add(Invariant::I9, asset.as_str(), message);
        }
    }
    for row in &books.locks {
        let of_asset = tenures.get(&(&row.tenant, &row.asset_id));
        let highest = of_asset.and_then(|of| of.keys().next_back());
        if let Some(highest) = highest.filter(|highest| **highest > row.fence) {
            let message = format!("its row has fence {}, below {highest}", row.fence);
            found.add(Invariant::I9, row.asset_id.as_str(), message);
        }
    }
}
