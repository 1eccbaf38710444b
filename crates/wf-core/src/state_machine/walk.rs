//! Walks a history and says what must not be: gaps, links that do not hold, changed events, times that run back, sensitive
//! values that are not the ones in the chain, signatures of something else, a state that is not the fold of its events.
//!
//! `engine::verify` walks the histories of a store with it, `evidence` the one of a document.

use std::collections::BTreeSet;

use crate::models::{Actor, AssetId, Cause, Digest, TenantId, Timestamp, Workflow, WorkflowId};

use super::chain::{event_hash, origin_hash};
use super::event::{Event, EventBody};
use super::evolve::evolve;
use super::signature::signature;

/// One history, walked from its first event on.
pub(crate) struct Walk {
    tip: Digest,
    /// The last event that was looked at.
    pub(crate) seq: u64,
    /// When the last event was.
    at: Option<Timestamp>,
    state: Option<Workflow>,
    over: bool,
    /// Who caused which commit, by its first event.
    pub(crate) causes: Vec<(u64, Actor, Cause)>,
    /// Assets that were released by hand.
    pub(crate) released: BTreeSet<AssetId>,
    /// What must not be: the invariant of domain.md, and what is wrong.
    pub(crate) findings: Vec<(&'static str, String)>,
}

impl Walk {
    /// Before the first event.
    pub(crate) fn new(tenant: &TenantId, id: &WorkflowId) -> Self {
        Self {
            tip: origin_hash(tenant, id),
            seq: 0,
            at: None,
            state: None,
            over: false,
            causes: Vec::new(),
            released: BTreeSet::new(),
            findings: Vec::new(),
        }
    }

    /// Notes what must not be.
    pub(crate) fn find(&mut self, invariant: &'static str, message: String) {
        self.findings.push((invariant, message));
    }

    /// Looks at the next event.
    pub(crate) fn step(&mut self, event: &Event) {
        let due = self.seq.saturating_add(1);
        if event.seq != due {
            self.find("I4", format!("event {} follows event {}", event.seq, self.seq));
        }
        if event.prev_hash != self.tip {
            self.find("I4", format!("event {} does not follow the event before it", event.seq));
        }
        match event_hash(event) {
            Ok(hash) if hash == event.hash => {}
            Ok(_) | Err(_) => {
                self.find("I4", format!("event {} was changed: its hash differs", event.seq));
            }
        }
        if self.at.is_some_and(|before| event.at < before) {
            self.find("I4", format!("event {} is earlier than the event before it", event.seq));
        }
        if self.over {
            self.find("I6", format!("event {} comes after the completion", event.seq));
        }
        self.sensitive(event);
        if let EventBody::LockReleased { asset_id, .. } = &event.body {
            self.released.insert(asset_id.clone());
        }
        if let EventBody::OwnershipTransferred { assets, .. } = &event.body {
            for asset in assets {
                self.released.remove(&asset.id);
            }
        }
        self.signed(event);
        // Two people may use the same key one after the other: these are two commits.
        let known = self
            .causes
            .last()
            .is_some_and(|(_, actor, cause)| *actor == event.actor && cause.key == event.cause.key);
        if event.actor.is_person() && !known {
            self.causes.push((event.seq, event.actor.clone(), event.cause.clone()));
        }
        self.over |= event.body.kind() == "workflow_completed";
        self.tip = event.hash.clone();
        self.at = self.at.max(Some(event.at));
        // Always onwards, whatever number an event claims to have: the walk must end.
        self.seq = event.seq.max(due);
        self.state = evolve(self.state.take(), event);
    }

    /// The history is over: it must lead to `stated`, unless it is damaged anyway.
    pub(crate) fn end(&mut self, stated: &Workflow) {
        if self.findings.is_empty() && self.state.as_ref() != Some(stated) {
            self.find("I13", "the stored state is not the fold of its events".to_owned());
        }
    }

    /// What an event says was signed is what was known before it.
    fn signed(&mut self, event: &Event) {
        let Some(signed) = event.body.recording().and_then(|r| r.signed.as_ref()) else { return };
        let known = self.state.as_ref().and_then(|state| signature(state).ok());
        if known.as_ref() != Some(signed) {
            self.find("I4", format!("event {}: it signs something else than was known", event.seq));
        }
    }

    /// A sensitive value that still stands beside its event must be the one in the chain.
    fn sensitive(&mut self, event: &Event) {
        for beside in &event.sensitive {
            let chained = chained_digest(&event.body, &beside.name);
            if !chained.is_some_and(|chained| beside.fits(&chained)) {
                let message = format!("event {}: a sensitive value was changed", event.seq);
                self.find("I4", message);
            }
        }
    }
}

fn chained_digest(body: &EventBody, name: &str) -> Option<String> {
    if let Some(recording) = body.recording().filter(|_| name == "value") {
        return recording.sensitive_digest.as_ref().map(ToString::to_string);
    }
    if let EventBody::WorkflowStarted { sensitive_inputs, .. } = body {
        let input = name.strip_prefix("inputs.")?;
        return sensitive_inputs.get(input)?.as_str().map(ToOwned::to_owned);
    }
    None
}
