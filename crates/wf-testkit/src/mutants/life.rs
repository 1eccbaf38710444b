//! Broken erasures and purges.

use wf_core::models::Phase;
use wf_core::ports::{Erasure, Purge, Purged, SettleError, StorageBackendPort};

use super::{MutantStore, Mutation};

impl MutantStore {
    pub(super) async fn mutant_erase(&self, erasure: &Erasure) -> Result<bool, SettleError> {
        if self.is(Mutation::ErasureForgotten) {
            let mut as_it_was = erasure.clone();
            as_it_was.becomes.clone_from(&erasure.was);
            return self.faulty().erase(&as_it_was).await;
        }
        let key = (erasure.tenant.clone(), erasure.workflow_id.clone());
        if self.is(Mutation::ErasureUnchecked) {
            let mut state = self.model().lock();
            let events = state.events.get_mut(&key).into_iter().flatten();
            let mut meant = events.filter(|event| event.seq == erasure.seq);
            let event = meant.next();
            return Ok(event.map(|event| event.sensitive.clone_from(&erasure.becomes)).is_some());
        }
        let done = self.faulty().erase(erasure).await?;
        if done && self.is(Mutation::ErasureOfAll) {
            let mut state = self.model().lock();
            for event in state.events.get_mut(&key).into_iter().flatten() {
                if event.seq != erasure.seq {
                    event.sensitive.clear();
                }
            }
        }
        Ok(done)
    }

    pub(super) async fn mutant_purge(&self, purge: &Purge) -> Result<Purged, SettleError> {
        let key = (purge.tombstone.tenant.clone(), purge.tombstone.workflow_id.clone());
        let mut purge = purge.clone();
        let before = self.model().lock().clone();
        if self.is(Mutation::PurgeOfOpen)
            && let Some(workflow) = self.model().lock().workflows.get_mut(&key)
        {
            workflow.phase = Phase::Completed;
            workflow.revision = purge.tombstone.revision;
        }
        if self.is(Mutation::PurgeOfKeys) {
            self.model().lock().ledger.retain(|_, row| row.workflow_id != key.1);
        }
        purge.undelivered_too |= self.is(Mutation::PurgeOfUndelivered);
        purge.check_only &= !self.is(Mutation::PurgeAlthoughAsked);
        let purged = self.faulty().purge(&purge).await?;
        let mut state = self.model().lock();
        let restored = before.events.get(&key).cloned();
        if let Some(events) = restored.filter(|_| self.is(Mutation::PurgedHistoryStays)) {
            state.events.insert(key.clone(), events);
        }
        if self.is(Mutation::PurgedRowsStay) {
            state.ledger = before.ledger;
        }
        if self.is(Mutation::PurgedWithoutTrace) {
            state.tombstones.remove(&key);
        }
        Ok(purged)
    }
}
