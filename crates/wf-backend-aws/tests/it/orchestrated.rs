//! Workflows on a table of the emulator whose executions are at the double of Step Functions: a technician's process, which
//! only talks to the table, and processes with a reconciler, each on a wire of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::Notify;
use wf_backend_aws::definition;
use wf_backend_aws::execution::{Reconciler, Report};
use wf_core::models::Phase;
use wf_core::policy::DomainPolicyPort;
use wf_core::ports::{ClockPort as _, LoadQuery, StorageBackendPort as _};
use wf_core::state_machine::Event;
use wf_testkit::build::at;
use wf_testkit::clock::ManualClock;
use wf_testkit::step_functions::{Answer, StepFunctions};

use crate::bench::Bench;
use crate::cast::tenant;
use crate::dynamo::Dynamo;
use crate::fixture::{Attributes, rows};
use crate::plain_policy::{PlainPolicy, id};
use crate::wire::{Sent, Wire};

/// More passes than any convergence needs.
const PASSES_MAX: usize = 30;
/// Between passes: longer than a lease and than a start may be invisible; later longer than every back-off of the rules.
const BETWEEN_MS: [i64; 2] = [65_000, 16 * 60 * 1_000];
/// After so many passes the later one.
const PASSES_SOON: usize = 6;
pub(crate) const HOUR_MS: i64 = 60 * 60 * 1_000;

/// All of it.
#[derive(Debug)]
pub(crate) struct World {
    /// The technician's process.
    pub(crate) bench: Bench,
    pub(crate) plane: StepFunctions,
    machine: Mutex<String>,
    /// What names of our executions begin with.
    prefix: String,
    works: Mutex<Vec<String>>,
}

/// A process with a reconciler.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) bench: Bench,
    pub(crate) reconciler: Reconciler,
}

impl Process {
    pub(crate) async fn pass(&self) -> Report {
        self.reconciler.once(false).await.expect("a pass")
    }

    /// What was written since the last time, other than leases; and forgets it.
    pub(crate) fn written(&self) -> Vec<Sent> {
        self.bench.wire.take_log().into_iter().filter(Sent::writes).collect()
    }
}

impl World {
    /// With the plain procedure.
    pub(crate) async fn new() -> Self {
        Self::of(Arc::new(PlainPolicy::new())).await
    }

    pub(crate) async fn of(policy: Arc<dyn DomainPolicyPort>) -> Self {
        let clock = ManualClock::default();
        let plane = StepFunctions::new(clock.clone(), Arc::new(Dynamo::new()));
        let machine = make(&plane);
        let bench = Bench::orchestrated(policy, clock, &machine).await;
        let store = bench.store.identity().await.expect("an identity").id;
        let prefix = format!("{}-", store.get(..8).expect("an id"));
        let works = Mutex::default();
        Self { bench, plane, machine: Mutex::new(machine), prefix, works }
    }

    /// Starts a workflow; its id.
    pub(crate) async fn start(&self, procedure: &str, asset: &str) -> String {
        let reply = self.bench.start_of(procedure, asset, &format!("s-{asset}")).await;
        assert_eq!(reply.outcome.as_str(), "started", "{}", reply.body);
        let work = reply.body["workflow"]["id"].as_str().expect("an id").to_owned();
        self.works.lock().expect("works").push(work.clone());
        work
    }

    /// A process with a reconciler that has seen nothing yet. `eager`: executions go on before its calls are answered.
    pub(crate) async fn process(&self, eager: bool) -> Process {
        let bench = self.bench.beside(Wire::with_states(&self.plane, eager)).await;
        let (engine, clock) = (Arc::clone(bench.engine()), Arc::new(bench.clock.clone()));
        let wake = Arc::new(Notify::new());
        let reconciler = Reconciler::connect(&bench.store, engine, clock, wake).await;
        let reconciler = reconciler.expect("a reconciler").expect("a state machine");
        bench.wire.take_log();
        Process { bench, reconciler }
    }

    /// Calls Step Functions as somebody in the console does.
    pub(crate) fn console(&self, action: &str, body: &Value) -> Answer {
        self.plane.call(action, body)
    }

    pub(crate) fn name(&self, work: &str, fence: u64) -> String {
        format!("{}{work}-{fence}", self.prefix)
    }

    pub(crate) fn machine(&self) -> String {
        self.machine.lock().expect("a machine").clone()
    }

    pub(crate) fn arn(&self, work: &str, fence: u64) -> String {
        let executions = self.machine().replace(":stateMachine:", ":execution:");
        format!("{executions}:{}", self.name(work, fence))
    }

    /// Stops the execution of a fence by hand.
    pub(crate) fn stop(&self, work: &str, fence: u64) {
        let stopped =
            self.console("StopExecution", &json!({ "executionArn": self.arn(work, fence) }));
        assert_eq!(stopped.error(), None, "{stopped:?}");
    }

    /// Starts an execution of a fence by hand, as it would have been.
    pub(crate) fn start_execution(&self, work: &str, fence: u64) {
        let table = &self.bench.config.table;
        let input = json!({
            "table": table, "tenant": tenant(), "workflow_id": work, "fence": fence
        });
        let started = self.console(
            "StartExecution",
            &json!({
                "stateMachineArn": self.machine(),
                "name": self.name(work, fence),
                "input": input.to_string(),
            }),
        );
        assert_eq!(started.error(), None, "{started:?}");
    }

    /// Makes the state machine anew, as `aws init` does after it was deleted.
    pub(crate) fn make_machine(&self) {
        assert_eq!(make(&self.plane), self.machine());
    }

    /// The binding.
    pub(crate) async fn binding(&self, work: &str) -> Attributes {
        let key = (format!("T#{}#WF#{work}", tenant()), "ORCH".to_owned());
        rows(&self.bench.config).await.remove(&key).unwrap_or_default()
    }

    pub(crate) async fn number(&self, work: &str, name: &str) -> Option<u64> {
        self.binding(work).await.get(name)?.as_n().ok()?.parse().ok()
    }

    pub(crate) async fn fence(&self, work: &str) -> u64 {
        self.number(work, "fence").await.unwrap_or_default()
    }

    /// The history of a workflow.
    pub(crate) async fn events(&self, work: &str) -> Vec<Event> {
        self.bench.store.events(tenant(), &id(work), 0, 100).await.expect("a read")
    }

    /// How often each kind of event is in a history.
    pub(crate) async fn kinds(&self, work: &str) -> BTreeMap<&'static str, usize> {
        let mut kinds = BTreeMap::new();
        for event in self.events(work).await {
            *kinds.entry(event.body.kind()).or_default() += 1;
        }
        kinds
    }

    /// What is not as it should be: each open workflow has one execution, which waits and knows what it must; a completed
    /// one has none; nothing else runs, and nothing asks for a look.
    pub(crate) async fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let rows = rows(&self.bench.config).await;
        let asking = rows.keys().filter(|(pk, _)| pk.starts_with("ATTN#"));
        wrong.extend(asking.map(|key| format!("{key:?} asks for a look")));
        let mut wanted = Vec::new();
        let works = self.works.lock().expect("works").clone();
        for work in works {
            let query = LoadQuery {
                tenant: tenant().clone(),
                workflow: Some(id(&work)),
                ledger: None,
                assets: Vec::new(),
                answered_as: None,
                count_open_of: None,
            };
            let seen = self.bench.store.load(&query).await.expect("a read");
            let workflow = seen.workflow.expect("a workflow");
            let binding = rows.get(&(format!("T#{}#WF#{work}", tenant()), "ORCH".to_owned()));
            let Some(binding) = binding else {
                wrong.push(format!("{work}: no binding"));
                continue;
            };
            if workflow.phase == Phase::Completed {
                if !binding.contains_key("closed") {
                    wrong.push(format!("{work}: the binding is open"));
                }
                continue;
            }
            if workflow.phase == Phase::Created {
                wrong.push(format!("{work}: not acknowledged"));
            }
            let due = workflow.deadlines.values().any(|d| d.fire_at <= self.bench.clock.now());
            if due {
                wrong.push(format!("{work}: something is due"));
            }
            if !binding.contains_key("task_token") {
                wrong.push(format!("{work}: it does not wait"));
            }
            let fence = binding.get("fence").and_then(|fence| fence.as_n().ok());
            wanted.push(format!("{}{work}-{}", self.prefix, fence.cloned().unwrap_or_default()));
        }
        wanted.sort();
        if self.plane.running() != wanted {
            wrong.push(format!("{:?} run, not {wanted:?}", self.plane.running()));
        }
        wrong
    }

    /// Lets time pass until so long after the world began.
    pub(crate) async fn until(&self, ms: i64) {
        self.plane.pass_time(at(ms).since_ms(self.bench.clock.now())).await;
    }

    /// Passes until all is as it should be, and one more, which must write nothing. How many there were.
    pub(crate) async fn converges(&self, process: &Process) -> usize {
        for passes in 1..=PASSES_MAX {
            self.plane.run().await;
            process.pass().await;
            self.plane.run().await;
            if self.wrong().await.is_empty() {
                process.written();
                process.pass().await;
                let written = process.written();
                assert!(written.is_empty(), "a pass over a converged world wrote {written:#?}");
                return passes;
            }
            let [soon, late] = BETWEEN_MS;
            self.plane.pass_time(if passes < PASSES_SOON { soon } else { late }).await;
        }
        let wrong = self.wrong().await;
        let last = process.pass().await;
        unreachable!(
            "{PASSES_MAX} passes, and {wrong:#?}\n{last:#?}\n{:#?}",
            self.plane.executions()
        );
    }
}

/// The state machine of the product; its ARN.
fn make(plane: &StepFunctions) -> String {
    let made = plane.call(
        "CreateStateMachine",
        &json!({
            "name": "checkpoint",
            "definition": definition("aws").to_string(),
            "roleArn": "arn:aws:iam::000000000000:role/checkpoint",
        }),
    );
    assert_eq!(made.error(), None, "{made:?}");
    made.body["stateMachineArn"].as_str().expect("an ARN").to_owned()
}
