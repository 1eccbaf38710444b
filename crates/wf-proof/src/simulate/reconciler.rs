//! The reconciler of a server: takes the lease, and passes over what the rows ask for. The pass is the product's
//! ([`wf_core::engine::pass`]); how it is driven is as in wf-backend-aws, with one shard and one workflow at a time.

use std::time::Duration;

use tokio::time::Instant;
use wf_core::engine::Engine;
use wf_core::engine::pass::{Hands, Looked};
use wf_core::limits::LEASE_MS;
use wf_core::ports::{Attention, ClockPort as _, Epoch, ReadError};
use wf_core::reconcile::Observation;

use super::executions::Executions;
use super::outside::Outside;
use super::replica::Clock;
use super::rows::Rows;
use super::sea::Sea;
use super::wire::Wire;

/// How long it rests between two turns.
pub(super) const REST: Duration = Duration::from_secs(1);
/// A lease is renewed after this, by the monotonic clock; no work begins under an older one.
const RENEW: Duration = Duration::from_millis(LEASE_MS.unsigned_abs() / 3);

/// What a server has of it.
#[derive(Debug)]
pub(super) struct Reconciler {
    rows: Rows,
    executions: Executions,
    clock: Clock,
    /// Its own, of each start of a server.
    holder: u64,
    held: Option<(Epoch, Instant)>,
}

impl Reconciler {
    pub(super) fn new(wire: &Wire, outside: &Outside, clock: &Clock) -> Self {
        let rows = Rows { wire: wire.clone(), outside: outside.clone() };
        let executions = Executions { wire: wire.clone(), outside: outside.clone() };
        let holder = outside.lock().new_holder();
        Self { rows, executions, clock: clock.clone(), holder, held: None }
    }

    fn sea(&self) -> &Sea {
        &self.rows.wire.sea
    }

    /// The epoch under which something may begin.
    async fn epoch(&mut self) -> Result<Option<Epoch>, ReadError> {
        if let Some((epoch, _)) = self.held.filter(|(_, since)| since.elapsed() < RENEW) {
            return Ok(Some(epoch));
        }
        // Counted from before the call: the lease is never younger than we believe.
        let (since, now, holder) = (Instant::now(), self.clock.now(), self.holder);
        self.held = None;
        let held = self.rows.write("lease", move |state| state.hold(holder, now, LEASE_MS)).await?;
        self.held = held.map(|epoch| (epoch, since));
        Ok(held)
    }

    /// Looks once at everything that the rows ask for.
    pub(super) async fn turn(&mut self, engine: &Engine) -> Result<(), ReadError> {
        if self.epoch().await?.is_none() {
            return Ok(());
        }
        let now = self.clock.now();
        let due = self.rows.read("due", |state| state.due(now)).await?;
        self.over(engine, due).await
    }

    /// Passes over these, while the lease is young enough.
    pub(super) async fn over(
        &mut self,
        engine: &Engine,
        due: Vec<Attention>,
    ) -> Result<(), ReadError> {
        for attention in due {
            let Some(epoch) = self.epoch().await? else { return Ok(()) };
            let fraction = f64::from(u32::try_from(self.sea().below(1_000)).unwrap_or(0)) / 1_000.0;
            let hands = Hands { engine, rows: &self.rows, executions: &self.executions };
            let looked = hands.pass(&attention, epoch, Observation::Nothing, fraction).await;
            self.note(&looked);
        }
        Ok(())
    }

    fn note(&self, looked: &Looked) {
        self.rows.outside.lock().passes += 1;
        let (replica, id) = (self.rows.wire.replica, &looked.workflow_id);
        for step in &looked.steps {
            self.sea().note(format_args!("{replica} pass {id} {step}"));
        }
        self.sea().note(format_args!("{replica} pass {id} {}", looked.end));
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tokio::time::Instant;
    use wf_core::engine::pass::Hands;
    use wf_core::models::{Phase, TenantId, WorkflowId};
    use wf_core::ports::{Answered, Attention, Epoch, Execution, ExecutionPort, Told, UnclearCall};
    use wf_core::reconcile::{Observation, Run};

    use super::super::outside::{Outside, Work};
    use super::super::rows::Rows;
    use super::super::world::tests::alone;

    /// An execution whose time is over, and that has registered anew, in the moment in which it is answered.
    #[derive(Debug)]
    struct WakesUp(Outside, WorkflowId);

    #[async_trait]
    impl ExecutionPort for WakesUp {
        async fn start(&self, _: &Execution<'_>) -> Result<Run, UnclearCall> {
            Ok(Run::Running)
        }

        async fn describe(&self, _: &Execution<'_>) -> Result<Run, UnclearCall> {
            Ok(Run::Running)
        }

        async fn stop(&self, _: &Execution<'_>, _: &str) -> Result<(), UnclearCall> {
            Ok(())
        }

        async fn answer(&self, _: &str, _: &Told<'_>) -> Result<Answered, UnclearCall> {
            let now = self.0.now();
            assert!(self.0.lock().register((&self.1, 1), "the new one", 1, now));
            Ok(Answered::Dead)
        }
    }

    #[test]
    fn a_token_that_was_registered_since_is_not_dropped_for_a_dead_one() {
        alone(async |replica, wire| {
            let engine = replica.open().await.expect("an engine");
            let outside = Outside::new(None, Instant::now());
            let (tenant, now) = (TenantId::parse("acme").expect("an id"), outside.now());
            let id = WorkflowId::parse("wf_1").expect("an id");
            let work = Work {
                tenant: tenant.clone(),
                revision: 2,
                phase: Phase::Running,
                completed_at: None,
                next_due: None,
            };
            outside.lock().committed(id.clone(), work, Some(1), now);
            assert!(outside.lock().register((&id, 1), "the old one", 1, now));
            let rows = Rows { wire, outside: outside.clone() };
            let executions = WakesUp(outside.clone(), id.clone());
            let hands = Hands { engine: &engine, rows: &rows, executions: &executions };
            let attention = Attention {
                tenant,
                workflow_id: id.clone(),
                wanted_revision: Some(2),
                not_before: now,
                looks: 0,
            };
            let looked = hands.pass(&attention, Epoch(1), Observation::Nothing, 0.5).await;
            let state = outside.lock();
            let token = state.rows.get(&id).and_then(|row| row.token.as_deref());
            assert_eq!(token, Some("the new one"), "{looked:?}");
        });
    }
}
