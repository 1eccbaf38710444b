//! Broken leases, settlements and sweeps.

use std::collections::BTreeSet;

use wf_core::models::Timestamp;
use wf_core::ports::{
    Claim, ClaimedDeadline, ClaimedStream, NextDeadline, OutboxPurge, OutboxState, ReadError,
    SettleError, Settled, Settlement, StorageBackendPort, Swept,
};

use super::{MutantStore, Mutation};
use crate::model::{Lease, State, StreamKey, stream_of};

const DECADE_MS: i64 = 10 * 365 * 24 * 3_600_000;

impl MutantStore {
    /// The claim as the mutation reads it.
    fn claim_as_read(&self, claim: &Claim) -> Claim {
        let mut claim = claim.clone();
        if self.is(Mutation::ClaimIgnoresDue) {
            claim.now = claim.now.plus_ms(DECADE_MS);
        }
        if self.is(Mutation::ClaimUnlimited) {
            claim.limit = u32::MAX;
        }
        claim
    }

    pub(super) async fn mutant_claim_outbox(
        &self,
        claim: &Claim,
    ) -> Result<Vec<ClaimedStream>, ReadError> {
        let hidden: BTreeSet<StreamKey> = {
            let mut state = self.model().lock();
            if self.is(Mutation::LeaseIgnored) {
                state.stream_leases.clear();
            }
            if self.is(Mutation::LeaseAheadIgnored) {
                let latest = claim.now.plus_ms(claim.lease_ms);
                state.stream_leases.retain(|_, lease| lease.expires_at <= latest);
            }
            let leases = state.stream_leases.iter().filter(|(_, lease)| {
                let ahead = self.is(Mutation::FutureLeaseHonoured) && lease.expires_at > claim.now;
                ahead || self.is(Mutation::LeaseForever)
            });
            leases.map(|(key, _)| key.clone()).collect()
        };
        let mut claimed = self.faulty().claim_outbox(&self.claim_as_read(claim)).await?;
        claimed.retain(|stream| !hidden.contains(&key_of(stream)));
        if self.is(Mutation::RowsReversed) {
            claimed.iter_mut().for_each(|stream| stream.rows.reverse());
        }
        if self.is(Mutation::WaitingRowsSkipped) {
            let state = self.model().lock();
            for stream in &mut claimed {
                due_anywhere(&state, stream, claim.now);
            }
        }
        if self.is(Mutation::LeasePerWorkflow) {
            claimed.dedup_by(|a, b| a.workflow_id == b.workflow_id);
        }
        Ok(claimed)
    }

    pub(super) async fn mutant_settle_outbox(
        &self,
        settlement: &Settlement,
    ) -> Result<(), SettleError> {
        let mut settlement = settlement.clone();
        let key = {
            let state = self.model().lock();
            let mut key = (
                settlement.tenant.clone(),
                settlement.workflow_id.clone(),
                settlement.recipient.clone(),
            );
            if self.is(Mutation::SettleIgnoresTenant) {
                let same = |k: &&StreamKey| k.1 == key.1 && k.2 == key.2;
                if let Some(other) = state.stream_leases.keys().find(same) {
                    key = other.clone();
                    settlement.tenant = key.0.clone();
                }
            }
            key
        };
        self.change_results(&key, &mut settlement);
        if self.is(Mutation::TokenIgnored) {
            let mut state = self.model().lock();
            state.settle_rows(&key, &settlement);
            state.stream_leases.remove(&key);
            return Ok(());
        }
        let lease = self.model().lock().stream_leases.get(&key).cloned();
        self.faulty().settle_outbox(&settlement).await?;
        let mut state = self.model().lock();
        if self.is(Mutation::SettleKeepsLease)
            && let Some(lease) = lease
        {
            state.stream_leases.insert(key, lease);
        }
        if self.is(Mutation::DeadDeleted) {
            state.outbox.retain(|_, queued| queued.row.status.state != OutboxState::Dead);
        }
        Ok(())
    }

    fn change_results(&self, key: &StreamKey, settlement: &mut Settlement) {
        if self.is(Mutation::DeliveredStaysPending) {
            settlement.results.retain(|(_, settled)| *settled != Settled::Delivered);
        }
        if self.is(Mutation::UnnamedDelivered) {
            let state = self.model().lock();
            let rows = state.outbox.values().map(|queued| &queued.row);
            let of_stream = rows.filter(|row| stream_of(row) == *key);
            let ids = of_stream.map(|row| (row.message.id.clone(), Settled::Delivered));
            settlement.results.extend(ids);
        }
        if self.is(Mutation::RetryAtOnce) {
            for (_, settled) in &mut settlement.results {
                if let Settled::Retry { at, .. } = settled {
                    *at = settlement.now;
                }
            }
        }
    }

    pub(super) async fn mutant_revive_outbox(
        &self,
        id: &str,
        now: Timestamp,
    ) -> Result<bool, SettleError> {
        if self.is(Mutation::ReviveAnything)
            && let Some(queued) = self.model().lock().outbox.get_mut(id)
        {
            queued.row.status.state = OutboxState::Pending;
            queued.row.status.next_attempt_at = now;
            return Ok(true);
        }
        self.faulty().revive_outbox(id, now).await
    }

    pub(super) async fn mutant_purge_outbox(
        &self,
        purge: &OutboxPurge,
    ) -> Result<u64, SettleError> {
        let mut purge = *purge;
        if self.is(Mutation::PurgeIgnoresAge) {
            purge.until = purge.until.plus_ms(DECADE_MS);
        }
        if self.is(Mutation::PurgeUnlimited) {
            purge.limit = u32::MAX;
        }
        if self.is(Mutation::PurgeCountDeletes) {
            purge.count_only = false;
        }
        if self.is(Mutation::PurgeTakesPending) && !purge.count_only {
            let mut state = self.model().lock();
            state.outbox.retain(|_, queued| queued.row.status.state != OutboxState::Pending);
        }
        self.faulty().purge_outbox(&purge).await
    }

    pub(super) async fn mutant_claim_deadlines(
        &self,
        claim: &Claim,
    ) -> Result<Vec<ClaimedDeadline>, ReadError> {
        let hidden: BTreeSet<StreamKey> = {
            let mut state = self.model().lock();
            if self.is(Mutation::LeaseIgnored) {
                state.deadline_leases.clear();
            }
            if self.is(Mutation::LeaseAheadIgnored) {
                let latest = claim.now.plus_ms(claim.lease_ms);
                state.deadline_leases.retain(|_, lease| lease.expires_at <= latest);
            }
            let leases = state.deadline_leases.iter().filter(|(_, lease)| {
                let ahead = self.is(Mutation::FutureLeaseHonoured) && lease.expires_at > claim.now;
                ahead || self.is(Mutation::LeaseForever)
            });
            leases.map(|(key, _)| key.clone()).collect()
        };
        let mut read = self.claim_as_read(claim);
        if self.is(Mutation::DeadlinesLatestFirst) {
            read.limit = u32::MAX;
        }
        let kept = self
            .is(Mutation::DeadlinesOvertake)
            .then(|| std::mem::take(&mut self.model().lock().deadline_leases));
        let mut claimed = self.faulty().claim_deadlines(&read).await?;
        if let Some(kept) = kept {
            claimed.retain(|one| kept.get(&deadline_key(one)).is_none_or(|l| !l.is_live(claim)));
            let mut state = self.model().lock();
            for (key, lease) in kept {
                state.deadline_leases.insert(key, lease);
            }
            for one in &claimed {
                state.deadline_leases.insert(deadline_key(one), Lease::of(claim));
            }
        }
        claimed.retain(|one| !hidden.contains(&deadline_key(one)));
        if self.is(Mutation::DeadlinesLatestFirst) {
            claimed.reverse();
            claimed.truncate(usize::try_from(claim.limit).unwrap_or(usize::MAX));
        }
        Ok(claimed)
    }

    pub(super) async fn mutant_next_deadline(
        &self,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<NextDeadline, ReadError> {
        if self.is(Mutation::NextIgnoresLeases) {
            self.model().lock().deadline_leases.clear();
        }
        let mut next = self.faulty().next_deadline(now, lease_ms).await?;
        if self.is(Mutation::NextOnlyWhenDue) {
            next.at = next.at.filter(|at| *at <= now);
        }
        Ok(next)
    }

    pub(super) async fn mutant_settle_deadline(
        &self,
        claimed: &ClaimedDeadline,
    ) -> Result<(), SettleError> {
        let key = deadline_key(claimed);
        let mut claimed = claimed.clone();
        if self.is(Mutation::TokenIgnored)
            && let Some(lease) = self.model().lock().deadline_leases.get(&key)
        {
            claimed.token = lease.token.clone();
        }
        self.faulty().settle_deadline(&claimed).await?;
        if self.is(Mutation::DeadlineSettleKeeps) {
            self.model().lock().deadlines.insert(key, claimed.deadline);
        }
        Ok(())
    }

    pub(super) async fn mutant_sweep(
        &self,
        now: Timestamp,
        retention_ms: i64,
        limit: u32,
    ) -> Result<Swept, SettleError> {
        let limit = if self.is(Mutation::SweepUnlimited) { u32::MAX } else { limit };
        {
            let mut state = self.model().lock();
            if self.is(Mutation::SweepDeletesDead) {
                state.outbox.retain(|_, queued| queued.row.status.state != OutboxState::Dead);
            }
            if self.is(Mutation::SweepIgnoresTenant) {
                expire_namesakes(&mut state);
            }
            for row in state.ledger.values_mut() {
                if self.is(Mutation::SweepExpiresOpen) && row.entry.expires_at_ms.is_none() {
                    let expiry = now.plus_ms(retention_ms);
                    row.entry.expires_at_ms = Some(expiry.as_ms());
                }
                if self.is(Mutation::SweepDeletesEarly) && row.entry.expires_at_ms.is_some() {
                    row.entry.expires_at_ms = Some(0);
                }
            }
        }
        self.faulty().sweep(now, retention_ms, limit).await
    }
}

fn key_of(stream: &ClaimedStream) -> StreamKey {
    (stream.tenant.clone(), stream.workflow_id.clone(), stream.recipient.clone())
}

fn deadline_key(claimed: &ClaimedDeadline) -> StreamKey {
    (claimed.tenant.clone(), claimed.workflow_id.clone(), claimed.deadline.id.clone())
}

/// Expires the rows of every workflow that is called like one that ended.
fn expire_namesakes(state: &mut State) {
    let over = state.workflows.values().filter(|w| !w.phase.is_open());
    let over: BTreeSet<_> = over.map(|w| w.id.clone()).collect();
    for row in state.ledger.values_mut().filter(|row| over.contains(&row.workflow_id)) {
        row.entry.expires_at_ms.get_or_insert(0);
    }
}

/// Gives the stream every pending row that is due, also behind one that waits.
fn due_anywhere(state: &State, stream: &mut ClaimedStream, now: Timestamp) {
    let key = key_of(stream);
    let rows = state.outbox.values().map(|queued| &queued.row);
    let pending = rows.filter(|row| row.status.state == OutboxState::Pending);
    let due = pending.filter(|row| row.status.next_attempt_at <= now);
    stream.rows = due.filter(|row| stream_of(row) == key).cloned().collect();
    stream.rows.sort_by_key(|row| row.message.seq);
}
