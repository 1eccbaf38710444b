//! Sums over the records of a store that do not depend on their order, so that two stores are compared in bounded memory.
//!
//! A sum of hashes stands for a set: two stores with the same sums hold the same records, unless somebody can make SHA-256
//! say what they want. Sums are kept by kind, to say what differs, and in some hundreds of buckets by workflow, to find
//! which workflows to look at again.
//!
//! The chains are recomputed on the way. An event is hashed anew; and each link is looked at from both of its ends: that
//! event `n` has hash `h`, and that the event after `n` follows `h`. The first of these is started by the origin of the
//! workflow, the second ended by the hash that its head names; where the two sums are equal no chain is broken.

use std::collections::{BTreeMap, BTreeSet};

use crate::models::{Digest, TenantId, WorkflowId};
use crate::ports::copy::{Record, RecordKind, StoreFacts};
use crate::state_machine::Event;
use crate::state_machine::chain::{event_hash, origin_hash};

/// Buckets of workflows.
const BUCKETS: usize = 512;
/// Buckets looked at again, at most, and lines of a report.
const LOOKS_MAX: usize = 8;
/// Lines about single events and workflows.
const LINES_MAX: usize = 20;

/// A sum of hashes: four lanes of 64 bits, each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sum {
    count: u64,
    lanes: [u64; 4],
}

impl Sum {
    fn add(&mut self, digest: &Digest) {
        self.count = self.count.saturating_add(1);
        let text = digest.as_str();
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            let digits = text.get(at * 16..at * 16 + 16).unwrap_or_default();
            *lane = lane.wrapping_add(u64::from_str_radix(digits, 16).unwrap_or_default());
        }
    }

    fn hex(&self) -> String {
        let lanes: String = self.lanes.iter().map(|lane| format!("{lane:016x}")).collect();
        format!("{}:{lanes}", self.count)
    }
}

/// Both ends of the links of some workflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Links {
    made: Sum,
    followed: Sum,
}

impl Links {
    fn see(&mut self, record: &Record) {
        let link = |tenant: &TenantId, id: &WorkflowId, seq: u64, hash: &Digest| {
            Digest::of(format!("{tenant}#{id}#{seq}#{hash}").as_bytes())
        };
        match record {
            Record::Workflow(record) => {
                let state = &record.state;
                let (tenant, id) = (&state.tenant, &state.id);
                self.made.add(&link(tenant, id, 0, &origin_hash(tenant, id)));
                self.followed.add(&link(tenant, id, state.revision, &state.last_hash));
            }
            Record::Event { tenant, event, .. } => {
                let id = &event.workflow_id;
                self.made.add(&link(tenant, id, event.seq, &event.hash));
                let before = event.seq.saturating_sub(1);
                self.followed.add(&link(tenant, id, before, &event.prev_hash));
            }
            Record::Definition(_)
            | Record::Version { .. }
            | Record::Ledger(_)
            | Record::Lock(_)
            | Record::Stream { .. }
            | Record::Message { .. }
            | Record::Person { .. }
            | Record::Tombstone(_)
            | Record::Owner { .. } => {}
        }
    }

    fn are_whole(&self) -> bool {
        self.made == self.followed
    }
}

fn bucket(tenant: &TenantId, id: &WorkflowId) -> usize {
    let digest = Digest::of(format!("{tenant}#{id}").as_bytes());
    let digits = digest.as_str().get(..8).unwrap_or_default();
    let number = u32::from_str_radix(digits, 16).unwrap_or_default();
    usize::try_from(number).unwrap_or_default() % BUCKETS
}

/// Everything in a store.
#[derive(Debug)]
pub(super) struct Tally {
    kinds: BTreeMap<RecordKind, Sum>,
    buckets: Vec<(Sum, Links)>,
    /// Events whose hash is not theirs.
    forged: Vec<String>,
}

impl Default for Tally {
    fn default() -> Self {
        let kinds = RecordKind::ALL.into_iter().map(|kind| (kind, Sum::default())).collect();
        Self { kinds, buckets: vec![Default::default(); BUCKETS], forged: Vec::new() }
    }
}

impl Tally {
    pub(super) fn add(&mut self, record: &Record) {
        let digest = record.digest();
        self.kinds.entry(record.kind()).or_default().add(&digest);
        let Some((tenant, id)) = record.workflow() else { return };
        if let Some((sum, links)) = self.buckets.get_mut(bucket(tenant, id)) {
            sum.add(&digest);
            links.see(record);
        }
        if let Record::Event { event, .. } = record
            && is_forged(event)
            && self.forged.len() < LINES_MAX
        {
            self.forged.push(format!("{id} of {tenant}: event {} was changed", event.seq));
        }
    }

    pub(super) fn counts(&self) -> BTreeMap<RecordKind, u64> {
        self.kinds.iter().map(|(kind, sum)| (*kind, sum.count)).collect()
    }

    /// A hash over all of it.
    pub(super) fn evidence(&self, facts: &StoreFacts) -> String {
        let mut text = format!("{} {}", facts.identity.id, facts.fence_base);
        for secret in &facts.identity.secrets {
            text.push_str(&format!(" {}", Digest::of(secret.expose())));
        }
        for (kind, sum) in &self.kinds {
            text.push_str(&format!(" {} {}", kind.name(), sum.hex()));
        }
        Digest::of(text.as_bytes()).to_string()
    }

    /// What is wrong with a copy, by kind, and with the chains in it.
    pub(super) fn differences(&self, copy: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (kind, sum) in &self.kinds {
            let other = copy.kinds.get(kind).copied().unwrap_or_default();
            if other.count != sum.count {
                let (name, here, there) = (kind.name(), sum.count, other.count);
                lines.push(format!("{name}: {here} in the source, {there} in the target"));
            } else if other != *sum {
                lines.push(format!("{}: some differ", kind.name()));
            }
        }
        lines.extend(copy.forged.iter().cloned());
        lines
    }

    /// Buckets that are not the same, or whose chains are broken.
    pub(super) fn unlike(&self, copy: &Self) -> BTreeSet<usize> {
        let pairs = self.buckets.iter().zip(&copy.buckets).enumerate();
        let unlike = pairs.filter(|(_, (a, b))| a != b || !b.1.are_whole());
        unlike.map(|(at, _)| at).take(LOOKS_MAX).collect()
    }
}

fn is_forged(event: &Event) -> bool {
    event_hash(event).is_ok_and(|hash| hash != event.hash)
}

/// Workflows of some buckets, each by itself.
#[derive(Debug)]
pub(super) struct Strangers<'b> {
    buckets: &'b BTreeSet<usize>,
    found: BTreeMap<(TenantId, WorkflowId), (Sum, Links)>,
}

impl<'b> Strangers<'b> {
    pub(super) fn of(buckets: &'b BTreeSet<usize>) -> Self {
        Self { buckets, found: BTreeMap::new() }
    }

    pub(super) fn see(&mut self, record: &Record) {
        let Some((tenant, id)) = record.workflow() else { return };
        if self.buckets.contains(&bucket(tenant, id)) {
            let place = (tenant.clone(), id.clone());
            let (sum, links) = self.found.entry(place).or_default();
            sum.add(&record.digest());
            links.see(record);
        }
    }

    /// Workflows that differ, and those whose chain is broken.
    pub(super) fn differences(&self, copy: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        let places: BTreeSet<_> = self.found.keys().chain(copy.found.keys()).collect();
        for place in places {
            let (tenant, id) = place;
            let (here, there) = (self.found.get(place), copy.found.get(place));
            let what = match (here, there) {
                (Some(_), None) => "is not in the target",
                (None, Some(_)) => "is not in the source",
                (_, Some((_, links))) if !links.are_whole() => "has a broken chain of events",
                (here, there) if here != there => "differs",
                _ => continue,
            };
            lines.push(format!("{id} of {tenant}: {what}"));
        }
        lines.truncate(LINES_MAX);
        lines
    }
}
