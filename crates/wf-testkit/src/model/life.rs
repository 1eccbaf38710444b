//! Erasures and purges.

use wf_core::models::Phase;
use wf_core::ports::{Erasure, LedgerRow, OutboxState, Purge, Purged};

use super::state::WorkflowKey;
use super::{State, StreamKey};

impl State {
    pub(crate) fn erase(&mut self, erasure: &Erasure) -> bool {
        let key = (erasure.tenant.clone(), erasure.workflow_id.clone());
        let events = self.events.get_mut(&key).into_iter().flatten();
        let mut meant = events.filter(|event| event.seq == erasure.seq);
        match meant.next() {
            Some(event) if event.sensitive == erasure.was && !erasure.was.is_empty() => {
                event.sensitive.clone_from(&erasure.becomes);
                true
            }
            Some(_) | None => false,
        }
    }

    pub(crate) fn purge(&mut self, purge: &Purge) -> Purged {
        let left = &purge.tombstone;
        let key = (left.tenant.clone(), left.workflow_id.clone());
        let Some(workflow) = self.workflows.get(&key) else {
            let gone = self.tombstones.contains_key(&key);
            return if gone { Purged::Done } else { Purged::Changed };
        };
        if workflow.phase != Phase::Completed || workflow.revision != left.revision {
            return Purged::Changed;
        }
        let now = left.purged_at.as_ms();
        let of_it = |row: &&LedgerRow| row.key.tenant == key.0 && row.workflow_id == key.1;
        let mut rows = self.ledger.values().filter(of_it);
        if rows.any(|row| row.entry.expires_at_ms.unwrap_or_else(|| purge.expiry_ms()) > now) {
            return Purged::KeysCount;
        }
        let undelivered = self.outbox.values().filter(|queued| {
            let message = &queued.row.message;
            message.tenant == key.0
                && message.workflow_id == key.1
                && queued.row.status.state != OutboxState::Delivered
        });
        let undelivered = u64::try_from(undelivered.count()).unwrap_or(u64::MAX);
        if undelivered > 0 && !purge.undelivered_too {
            return Purged::Undelivered(undelivered);
        }
        if !purge.check_only {
            self.delete(&key);
            self.tombstones.insert(key, left.clone());
        }
        Purged::Done
    }

    fn delete(&mut self, key: &WorkflowKey) {
        self.workflows.remove(key);
        self.events.remove(key);
        self.ledger.retain(|row, is| row.tenant != key.0 || is.workflow_id != key.1);
        self.outbox.retain(|_, queued| {
            let message = &queued.row.message;
            message.tenant != key.0 || message.workflow_id != key.1
        });
        let of_it = |(tenant, workflow, _): &StreamKey| *tenant == key.0 && *workflow == key.1;
        self.stream_leases.retain(|stream, _| !of_it(stream));
        self.deadlines.retain(|deadline, _| !of_it(deadline));
        self.deadline_leases.retain(|deadline, _| !of_it(deadline));
    }
}
