//! Outbox and deadlines under lease, and the sweep.

use wf_core::models::Timestamp;
use wf_core::ports::{
    Backlog, Claim, ClaimedDeadline, ClaimedStream, Deadline, Finished, LeaseToken, OutboxPurge,
    OutboxRow, OutboxState, OutboxStatus, SettleError, Settled, Settlement, Swept,
};

use super::state::{StreamKey, rows};
use super::{Lease, Queued, State};

/// Most rows of one claimed stream.
const STREAM_ROWS_MAX: usize = 16;

/// The stream that a row belongs to.
pub(crate) fn stream_of(row: &OutboxRow) -> StreamKey {
    let message = &row.message;
    (message.tenant.clone(), message.workflow_id.clone(), message.recipient.clone())
}

impl State {
    pub(crate) fn claim_outbox(&mut self, claim: &Claim) -> Vec<ClaimedStream> {
        let mut claimed = Vec::new();
        for key in self.streams() {
            if claimed.len() == rows(claim.limit) {
                break;
            }
            let live = self.stream_leases.get(&key).is_some_and(|lease| lease.is_live(claim));
            let rows = self.due_rows(&key, claim.now);
            if live || rows.is_empty() {
                continue;
            }
            self.stream_leases.insert(key.clone(), Lease::of(claim));
            let (tenant, workflow_id, recipient) = key;
            claimed.push(ClaimedStream {
                tenant,
                workflow_id,
                recipient,
                token: claim.token.clone(),
                rows,
            });
        }
        claimed
    }

    /// Every stream once.
    fn streams(&self) -> Vec<StreamKey> {
        let mut streams: Vec<_> = self.outbox.values().map(|q| stream_of(&q.row)).collect();
        streams.sort();
        streams.dedup();
        streams
    }

    /// The pending rows of a stream, lowest place first, up to the first that is not due.
    pub(crate) fn due_rows(&self, key: &StreamKey, now: Timestamp) -> Vec<OutboxRow> {
        let of_stream = self.outbox.values().map(|q| &q.row).filter(|row| stream_of(row) == *key);
        let mut pending: Vec<_> =
            of_stream.filter(|row| row.status.state == OutboxState::Pending).collect();
        pending.sort_by_key(|row| row.message.seq);
        let due = pending.into_iter().take_while(|row| row.status.next_attempt_at <= now);
        due.take(STREAM_ROWS_MAX).cloned().collect()
    }

    pub(crate) fn settle_outbox(&mut self, settlement: &Settlement) -> Result<(), SettleError> {
        let key = (
            settlement.tenant.clone(),
            settlement.workflow_id.clone(),
            settlement.recipient.clone(),
        );
        match self.stream_leases.get(&key) {
            Some(lease) if lease.token == settlement.token => {}
            Some(_) | None => return Err(SettleError::LeaseLost),
        }
        self.settle_rows(&key, settlement);
        self.stream_leases.remove(&key);
        Ok(())
    }

    pub(crate) fn settle_rows(&mut self, key: &StreamKey, settlement: &Settlement) {
        for (id, settled) in &settlement.results {
            let queued = self.outbox.get_mut(id);
            let queued = queued.filter(|q| stream_of(&q.row) == *key);
            if let Some(queued) = queued.filter(|q| q.row.status.state == OutboxState::Pending) {
                settle(queued, settled, settlement.now);
            }
        }
    }

    pub(crate) fn revive_outbox(&mut self, id: &str, now: Timestamp) -> bool {
        let Some(queued) = self.outbox.get_mut(id) else {
            return false;
        };
        let status = &mut queued.row.status;
        if status.state != OutboxState::Dead {
            return false;
        }
        status.state = OutboxState::Pending;
        status.attempts = 0;
        status.next_attempt_at = now;
        true
    }

    pub(crate) fn outbox_backlog(&self, limit: u32) -> Backlog {
        let all = |state| {
            let rows = self.outbox.values().map(|queued| &queued.row);
            rows.filter(move |row| row.status.state == state)
        };
        let count = |state| u64::try_from(all(state).count()).unwrap_or(u64::MAX);
        Backlog {
            pending: count(OutboxState::Pending).min(limit.into()),
            dead: count(OutboxState::Dead).min(limit.into()),
            oldest_pending: all(OutboxState::Pending).map(|row| row.message.time).min(),
        }
    }

    pub(crate) fn purge_outbox(&mut self, purge: &OutboxPurge) -> u64 {
        let goes = |queued: &Queued| {
            let OutboxStatus { state, next_attempt_at, .. } = &queued.row.status;
            match purge.which {
                Finished::Delivered => queued.delivered_at.is_some_and(|at| at <= purge.until),
                Finished::Dead => *state == OutboxState::Dead && *next_attempt_at <= purge.until,
            }
        };
        let old = self.outbox.iter().filter(|(_, queued)| goes(queued)).map(|(id, _)| id.clone());
        let old: Vec<String> = old.take(rows(purge.limit)).collect();
        if !purge.count_only {
            self.outbox.retain(|id, _| !old.contains(id));
        }
        u64::try_from(old.len()).unwrap_or(u64::MAX)
    }

    pub(crate) fn next_deadline(&self, now: Timestamp, lease_ms: i64) -> Option<Timestamp> {
        let claim = Claim { now, lease_ms, token: LeaseToken(String::new()), limit: 0 };
        let at = |(key, due): (&StreamKey, &Deadline)| {
            let hidden = self.hidden_until(key, &claim).filter(|_| due.fire_at <= now);
            hidden.unwrap_or(due.fire_at)
        };
        self.deadlines.iter().map(at).min()
    }

    /// Until when a live lease hides a deadline: its own, or that of an earlier one of the same workflow.
    fn hidden_until(&self, key: &StreamKey, claim: &Claim) -> Option<Timestamp> {
        let due = self.deadlines.get(key)?;
        let not_later = self.deadlines.iter().filter(|(other, earlier)| {
            (&other.0, &other.1) == (&key.0, &key.1)
                && (earlier.fire_at, &other.2) <= (due.fire_at, &key.2)
        });
        let leases = not_later.filter_map(|(other, _)| self.deadline_leases.get(other));
        leases.filter(|lease| lease.is_live(claim)).map(|lease| lease.expires_at).max()
    }

    pub(crate) fn claim_deadlines(&mut self, claim: &Claim) -> Vec<ClaimedDeadline> {
        let mut due: Vec<_> = self.deadlines.iter().collect();
        due.retain(|(key, deadline)| {
            deadline.fire_at <= claim.now && self.hidden_until(key, claim).is_none()
        });
        due.sort_by_key(|(key, deadline)| (deadline.fire_at, *key));
        let claimed: Vec<_> = due
            .into_iter()
            .take(rows(claim.limit))
            .map(|(key, deadline)| ClaimedDeadline {
                tenant: key.0.clone(),
                workflow_id: key.1.clone(),
                deadline: deadline.clone(),
                token: claim.token.clone(),
            })
            .collect();
        for one in &claimed {
            self.deadline_leases.insert(deadline_key(one), Lease::of(claim));
        }
        claimed
    }

    pub(crate) fn settle_deadline(&mut self, claimed: &ClaimedDeadline) -> Result<(), SettleError> {
        let key = deadline_key(claimed);
        match self.deadline_leases.get(&key) {
            Some(lease) if lease.token == claimed.token => {}
            Some(_) | None => return Err(SettleError::LeaseLost),
        }
        self.deadline_leases.remove(&key);
        self.deadlines.remove(&key);
        Ok(())
    }

    pub(crate) fn sweep(&mut self, now: Timestamp, retention_ms: i64, limit: u32) -> Swept {
        Swept {
            expiries_set: self.set_expiries(retention_ms, limit),
            ledger_deleted: self.delete_expired(now, limit),
            outbox_deleted: self.delete_delivered(now, retention_ms, limit),
        }
    }

    fn set_expiries(&mut self, retention_ms: i64, limit: u32) -> u64 {
        let mut count = 0;
        for row in self.ledger.values_mut() {
            let key = (row.key.tenant.clone(), row.workflow_id.clone());
            let over = self.workflows.get(&key).filter(|w| !w.phase.is_open());
            let completed_at = over.and_then(|w| w.completed_at);
            if let Some(at) = completed_at.filter(|_| row.entry.expires_at_ms.is_none())
                && count < u64::from(limit)
            {
                row.entry.expires_at_ms = Some(at.plus_ms(retention_ms).as_ms());
                count += 1;
            }
        }
        count
    }

    fn delete_expired(&mut self, now: Timestamp, limit: u32) -> u64 {
        let mut count = 0;
        self.ledger.retain(|_, row| {
            let past = row.entry.expires_at_ms.is_some_and(|at| at <= now.as_ms());
            let delete = past && count < u64::from(limit);
            count += u64::from(delete);
            !delete
        });
        count
    }

    fn delete_delivered(&mut self, now: Timestamp, retention_ms: i64, limit: u32) -> u64 {
        let mut count = 0;
        self.outbox.retain(|_, queued| {
            let old = queued.delivered_at.is_some_and(|at| at.plus_ms(retention_ms) <= now);
            let delete = old && count < u64::from(limit);
            count += u64::from(delete);
            !delete
        });
        count
    }
}

fn deadline_key(claimed: &ClaimedDeadline) -> StreamKey {
    (claimed.tenant.clone(), claimed.workflow_id.clone(), claimed.deadline.id.clone())
}

fn settle(queued: &mut Queued, settled: &Settled, now: Timestamp) {
    let status = &mut queued.row.status;
    match settled {
        Settled::Delivered => {
            status.state = OutboxState::Delivered;
            queued.delivered_at = Some(now);
        }
        Settled::Retry { at, error } => {
            status.attempts += 1;
            status.next_attempt_at = *at;
            status.last_error = Some(error.clone());
        }
        Settled::Dead { error } => {
            status.attempts += 1;
            status.state = OutboxState::Dead;
            status.next_attempt_at = now;
            status.last_error = Some(error.clone());
        }
    }
}
