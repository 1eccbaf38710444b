//! Executions that no row knows (R7): of a workflow that there is not, or of another fence than its binding has. They come
//! from a store that was restored to an earlier time, or from a state machine that is used by hand.
//!
//! They are found by listing what runs, which AWS allows a few times a second only; so only a command that somebody runs
//! does it. One that is described is one whose name is not that of a bound execution.

use std::collections::BTreeSet;
use std::time::Duration;

use wf_core::engine::pass::in_words;
use wf_core::ports::{Attention, Execution, ReadError};
use wf_core::reconcile::{Observation, Run};

use super::{Reconciler, Shard};
use crate::execution::SHARDS;
use crate::execution::report::Report;
use crate::execution::states::{Listed, Trouble};
use crate::keys;

/// Between two pages: ListExecutions refills at 5 calls a second, for all that run in the account.
const PAGE_PAUSE: Duration = Duration::from_millis(400);
/// Pages of one list.
const PAGES_MAX: usize = 1_000;

impl Reconciler {
    /// Looks for them and does what the rules say of each.
    pub(super) async fn strays(
        &self,
        shards: &mut [Shard],
        only_looks: bool,
        report: &mut Report,
    ) -> Result<(), ReadError> {
        let (found, listed) = match self.unbound().await? {
            Ok(found) => found,
            Err(trouble) => {
                let why = in_words(&trouble);
                report.problems.push(format!("running executions cannot be listed: {why}"));
                return Ok(());
            }
        };
        report.listed = Some(listed);
        let mut strays: Vec<Vec<(Attention, Observation)>> =
            (0..SHARDS).map(|_| Vec::new()).collect();
        for listed in found {
            match self.stray(&listed).await {
                Ok(Some((attention, met))) => {
                    let shard = keys::shard_of(&attention.tenant, &attention.workflow_id);
                    if let Some(those) = strays.get_mut(usize::from(shard)) {
                        those.push((attention, met));
                    }
                }
                Ok(None) => {}
                Err(trouble) => {
                    let (name, why) = (&listed.name, in_words(&trouble));
                    report
                        .problems
                        .push(format!("the execution {name} cannot be looked at: {why}"));
                }
            }
        }
        for shard in shards {
            let those = strays.get_mut(usize::from(shard.number())).map(std::mem::take);
            if report.elsewhere.contains(&shard.number()) {
                let count = those.map_or(0, |those| those.len());
                if count > 0 {
                    let number = shard.number();
                    report.problems.push(format!(
                        "{count} executions of shard {number} are left: another process has its lease"
                    ));
                }
                continue;
            }
            let looked = self.look_at(shard, those.unwrap_or_default(), only_looks).await?;
            report.workflows.extend(looked);
        }
        Ok(())
    }

    /// Executions of this store that run under a name that no binding has, and how many run in all.
    async fn unbound(&self) -> Result<Result<(Vec<Listed>, usize), Trouble>, ReadError> {
        let machine = self.hands.states.machine();
        let (mut running, mut after) = (Vec::new(), None);
        for page in 0..PAGES_MAX {
            if page > 0 {
                tokio::time::sleep(PAGE_PAUSE).await;
            }
            match self.hands.states.list(after).await {
                Ok((some, next)) => {
                    running.extend(some);
                    after = next;
                }
                Err(trouble) => return Ok(Err(trouble)),
            }
            if after.is_none() {
                break;
            }
        }
        // Read after the list: an execution is bound before it is started.
        let mut bound = BTreeSet::new();
        for shard in 0..SHARDS {
            for (tenant, workflow_id, fence) in self.hands.bindings.open(shard).await? {
                let execution = Execution { tenant: &tenant, workflow_id: &workflow_id, fence };
                bound.insert(machine.name(&execution));
            }
        }
        let listed = running.len();
        running.retain(|one| machine.is_ours(&one.name) && !bound.contains(&one.name));
        Ok(Ok((running, listed)))
    }

    /// Whose it is, if it is of this store and runs.
    async fn stray(&self, listed: &Listed) -> Result<Option<(Attention, Observation)>, Trouble> {
        let Some(input) = self.hands.states.input_of(listed).await? else { return Ok(None) };
        let machine = self.hands.states.machine();
        let Some((tenant, workflow_id, fence)) = machine.whose(&listed.name, &input) else {
            return Ok(None);
        };
        let not_before = self.hands.clock.now();
        let attention =
            Attention { tenant, workflow_id, wanted_revision: None, not_before, looks: 0 };
        Ok(Some((attention, Observation::Seen { fence, run: Run::Running })))
    }
}
