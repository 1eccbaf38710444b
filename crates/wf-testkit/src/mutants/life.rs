//! Broken erasures.

use wf_core::ports::{Erasure, SettleError, StorageBackendPort};

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
}
