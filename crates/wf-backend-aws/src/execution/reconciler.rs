//! The reconciler as it runs: takes the lease of shards, looks at what their rows ask for, some workflows at once.
//!
//! It is driven by rows: it never asks Step Functions what there is. Only [`Reconciler::once`] lists executions, for a
//! command that somebody runs. Neighbours: `pass` (one workflow), `shard` (one shard under lease), `strays` (executions of
//! nobody).

mod shard;
mod strays;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use wf_core::engine::Engine;
use wf_core::engine::pass::{Looked, in_words};
use wf_core::ports::{Attention, ClockPort, LeaseToken, ReadError, StorageBackendPort as _};
use wf_core::reconcile::Observation;

use super::SHARDS;
use super::pass::Hands;
use super::report::Report;
use super::states::States;
use crate::keys;
use crate::store::AwsStore;
use shard::{Shard, WIDTH};

/// How long commits that follow each other are gathered before they are looked at together: most ask for no look, and each
/// round reads every shard.
const GATHER: Duration = Duration::from_secs(1);
/// How long giving the leases back may take when it ends. What stays is free when the lease is over.
const LAST_WORK: Duration = Duration::from_secs(2);
/// Workflows of one shard that `once` looks at.
const ONCE_MAX: u32 = 10_000;

/// Keeps one execution for each open workflow, as the rules say ([`wf_core::reconcile`]).
///
/// Any number of processes may run one on the same table: each shard is worked on under a lease, and of two that believe to
/// have it, one cannot write.
#[derive(Debug)]
pub struct Reconciler {
    hands: Arc<Hands>,
    wake: Arc<Notify>,
    token: LeaseToken,
}

/// Why there is no reconciler.
#[derive(Debug, thiserror::Error)]
pub enum ReconcilerError {
    /// The store did not answer.
    #[error("the store cannot be read")]
    Store(#[source] ReadError),
    /// What is configured is not the ARN of a state machine.
    #[error("the state machine cannot be used: {0}")]
    Machine(String),
    /// The system gives no random numbers.
    #[error("no randomness: {0}")]
    Randomness(String),
}

impl Reconciler {
    /// A reconciler for the state machine in the configuration of the store; none when none is configured. Sends nothing to
    /// Step Functions yet. `wake` is notified after commits of this process that may ask for a look; what it misses, the
    /// reconciler finds within seconds.
    ///
    /// # Errors
    /// [`ReconcilerError`].
    pub async fn connect(
        store: &AwsStore,
        engine: Arc<Engine>,
        clock: Arc<dyn ClockPort>,
        wake: Arc<Notify>,
    ) -> Result<Option<Self>, ReconcilerError> {
        let store_id = store.identity().await.map_err(ReconcilerError::Store)?.id;
        let states = States::connect(store.config(), &store_id).await;
        let states = states.map_err(|trouble| ReconcilerError::Machine(in_words(&trouble)))?;
        let Some(states) = states else { return Ok(None) };
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random)
            .map_err(|error| ReconcilerError::Randomness(error.to_string()))?;
        let token = LeaseToken(random.iter().map(|byte| format!("{byte:02x}")).collect());
        let hands = Hands { bindings: store.bindings(), states, engine, clock };
        Ok(Some(Self { hands: Arc::new(hands), wake, token }))
    }

    /// Works until `stop` is true (or its sender is gone), then gives its leases back. Ends within seconds; it loses nothing
    /// by being dropped instead.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        let mut shards: Vec<Shard> = (0..SHARDS).map(Shard::new).collect();
        loop {
            let wait = tokio::select! {
                () = stopped(&mut stop) => break,
                wait = self.round(&mut shards) => wait,
            };
            let next = async {
                tokio::select! {
                    () = sleep(wait) => {}
                    () = self.wake.notified() => sleep(GATHER).await,
                }
            };
            tokio::select! {
                () = stopped(&mut stop) => break,
                () = next => {}
            }
        }
        if timeout(LAST_WORK, self.release()).await.is_err() {
            tracing::warn!("the leases of the reconciler are left to their end: the store is slow");
        }
    }

    /// All shards side by side, once; how long until there is something to do.
    async fn round(&self, shards: &mut Vec<Shard>) -> Duration {
        let mut turns = JoinSet::new();
        for mut shard in std::mem::take(shards) {
            let (hands, token) = (Arc::clone(&self.hands), self.token.clone());
            turns.spawn(async move {
                let wait = shard.turn(&hands, &token).await;
                (shard, wait)
            });
        }
        let mut soonest = shard::IDLE;
        while let Some(ended) = turns.join_next().await {
            match ended {
                Ok((shard, wait)) => {
                    soonest = soonest.min(wait);
                    shards.push(shard);
                }
                Err(error) => shard::panicked(&error, "a turn"),
            }
        }
        // A shard whose turn ended by a bug begins anew.
        let known: Vec<u8> = shards.iter().map(Shard::number).collect();
        shards.extend((0..SHARDS).filter(|number| !known.contains(number)).map(Shard::new));
        soonest
    }

    async fn release(&self) {
        for shard in 0..SHARDS {
            if let Err(error) = self.hands.bindings.release(shard, &self.token).await {
                tracing::debug!(%error, shard, "a lease is left to its end");
            }
        }
    }

    /// Looks once at everything that the rows ask for now, at open workflows that have no row because they were there before
    /// the state machine, and then at executions that no row knows (R7): the only place
    /// that lists them. When it `only_looks`, it writes nothing, takes no lease, and says of each workflow what it would do first.
    ///
    /// # Errors
    /// [`ReadError`] when the rows cannot be read at all. What befalls single workflows is in the report.
    pub async fn once(&self, only_looks: bool) -> Result<Report, ReadError> {
        let mut report = Report::default();
        let mut shards: Vec<Shard> = (0..SHARDS).map(Shard::new).collect();
        let unbound = self.without_binding(only_looks).await?;
        for shard in &mut shards {
            if !only_looks && !shard.hold(&self.hands, &self.token).await? {
                report.elsewhere.push(shard.number());
                continue;
            }
            let now = self.hands.clock.now();
            let mut due = self.hands.bindings.due(shard.number(), now, ONCE_MAX).await?;
            let mine = |one: &&Attention| {
                keys::shard_of(&one.tenant, &one.workflow_id) == shard.number()
                    && !due.iter().any(|other| {
                        (&other.tenant, &other.workflow_id) == (&one.tenant, &one.workflow_id)
                    })
            };
            let more: Vec<Attention> = unbound.iter().filter(mine).cloned().collect();
            due.extend(more);
            let met = |attention| (attention, Observation::Nothing);
            let due = due.into_iter().map(met).collect();
            report.workflows.extend(self.look_at(shard, due, only_looks).await?);
        }
        self.strays(&mut shards, only_looks, &mut report).await?;
        if !only_looks {
            self.release().await;
        }
        Ok(report)
    }

    /// Open workflows that were there before the state machine. Unless it only reads, a row asks for each of them, so that it
    /// is looked at even where this ends early.
    async fn without_binding(&self, only_looks: bool) -> Result<Vec<Attention>, ReadError> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.hands.bindings.without_binding(after.as_ref(), !only_looks).await?;
            found.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    /// Looks at some workflows of a shard, some at once.
    async fn look_at(
        &self,
        shard: &mut Shard,
        all: Vec<(Attention, Observation)>,
        only_looks: bool,
    ) -> Result<Vec<Looked>, ReadError> {
        let mut looked = Vec::with_capacity(all.len());
        let mut running = JoinSet::new();
        for (attention, met) in all {
            if running.len() == WIDTH {
                looked.extend(shard::ended(running.join_next().await));
            }
            let epoch = if only_looks {
                None
            } else {
                if !shard.hold(&self.hands, &self.token).await? {
                    break;
                }
                shard.epoch()
            };
            let hands = Arc::clone(&self.hands);
            running.spawn(async move {
                match epoch {
                    Some(epoch) => hands.pass(&attention, epoch, met).await,
                    None => hands.propose(&attention, met).await,
                }
            });
        }
        while let Some(one) = running.join_next().await {
            looked.extend(shard::ended(Some(one)));
        }
        looked.sort_by(|a, b| (&a.tenant, &a.workflow_id).cmp(&(&b.tenant, &b.workflow_id)));
        Ok(looked)
    }
}

/// Ready when it is to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A sender that is gone stops, too.
    let _ = stop.wait_for(|stop| *stop).await;
}
