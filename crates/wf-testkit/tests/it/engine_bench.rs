//! What the tests of the engine stand on: an engine over a model store with faults, people, and calls by name as a
//! transport makes them. Every answer is checked against the shape of results (`engine_shape`).

use std::sync::Arc;

use serde_json::{Value, json};
use wf_core::access::Visibility;
use wf_core::engine::{CallMeta, Engine, EngineParts, Policies, Reply, Settings};
use wf_core::idempotency::IdempotencyKey;
use wf_core::limits::RECENT_WORKFLOWS_MAX;
use wf_core::models::{Locale, Principal, Scopes, Workflow, WorkflowId};
use wf_core::policy::{Definition, DomainPolicyPort, PolicyCompilerPort};
use wf_core::ports::{LedgerKey, LedgerRow, LoadQuery, OrchestratorPort, StorageBackendPort};
use wf_testkit::build::{tenant, user};
use wf_testkit::calls;
use wf_testkit::clock::ManualClock;
use wf_testkit::fault::{Call as Method, FaultStore};
use wf_testkit::ids::SequentialIds;
use wf_testkit::model::ModelStore;
use wf_testkit::notification::RecordingSink;
use wf_testkit::orchestrator::{ImmediateOrchestrator, SilentOrchestrator};

use crate::engine_shape;
use crate::plain_policy::{PlainPolicy, id};

/// An engine and what a test changes around it.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) model: ModelStore,
    pub(crate) store: FaultStore,
    pub(crate) clock: ManualClock,
    pub(crate) sink: RecordingSink,
    ids: Arc<SequentialIds>,
}

/// Reads back the definitions of plain procedures.
#[derive(Debug)]
pub(crate) struct PlainCompiler;

impl PolicyCompilerPort for PlainCompiler {
    fn compile(&self, definition: &Definition) -> Option<Arc<dyn DomainPolicyPort>> {
        Some(Arc::new(PlainPolicy::compiled(definition)?))
    }
}

/// Somebody of the tenant `main`.
pub(crate) fn person(name: &str, scopes: Scopes) -> Principal {
    Principal {
        tenant: tenant("main"),
        actor: user(&format!("sub|{name}")),
        name: Some(name.to_owned()),
        client_id: None,
        scopes,
        roles: std::collections::BTreeSet::new(),
    }
}

const WORKER: Scopes = Scopes { read: true, write: true, supervise: false };

/// Who does the work.
pub(crate) fn ann() -> Principal {
    person("Ann", WORKER)
}

/// Who does other work.
pub(crate) fn bob() -> Principal {
    person("Bob", WORKER)
}

/// Whom the test kit can hand work over to: it makes names of subjects.
pub(crate) fn cleo() -> Principal {
    Principal { actor: user("cleo"), ..person("Cleo", WORKER) }
}

/// Who supervises.
pub(crate) fn sue() -> Principal {
    person("Sue", Scopes::ALL)
}

/// Who may only look.
pub(crate) fn reader() -> Principal {
    person("Rita", Scopes { read: true, ..Scopes::default() })
}

/// An operator at the command line.
pub(crate) fn operator() -> Principal {
    let scopes = Scopes { supervise: false, ..Scopes::ALL };
    Principal { scopes, ..Principal::operator(tenant("main"), "root") }
}

/// The same person of another tenant.
pub(crate) fn abroad(by: &Principal) -> Principal {
    Principal { tenant: tenant("abroad"), ..by.clone() }
}

fn all_policies() -> Vec<Arc<dyn DomainPolicyPort>> {
    vec![Arc::new(PlainPolicy::new()), Arc::new(PlainPolicy::bare())]
}

/// What is not asked for otherwise.
const SEES: Visibility = Visibility::Tenant;

impl Bench {
    /// `plain` and `bare` may be started; starts are acknowledged at once.
    pub(crate) async fn new() -> Self {
        Self::with(all_policies(), None, true).await
    }

    /// Other policies, a compiler, an orchestrator that is down.
    pub(crate) async fn with(
        policies: Vec<Arc<dyn DomainPolicyPort>>,
        compiler: Option<Arc<dyn PolicyCompilerPort>>,
        acknowledges: bool,
    ) -> Self {
        let model = ModelStore::new();
        let ids = Arc::new(SequentialIds::new());
        let clock = ManualClock::default();
        Self::over(model, ids, clock, policies, compiler, acknowledges, SEES).await
    }

    /// `plain` and `checked` may be started; callers see what the setting says.
    pub(crate) async fn seeing(visibility: Visibility) -> Self {
        let policies: Vec<Arc<dyn DomainPolicyPort>> =
            vec![Arc::new(PlainPolicy::new()), Arc::new(PlainPolicy::checked())];
        let (model, ids) = (ModelStore::new(), Arc::new(SequentialIds::new()));
        let clock = ManualClock::default();
        Self::over(model, ids, clock, policies, None, true, visibility).await
    }

    /// Another engine over the same records, as after a restart: other policies, the same clock.
    pub(crate) async fn restarted(
        &self,
        policies: Vec<Arc<dyn DomainPolicyPort>>,
        compiler: Option<Arc<dyn PolicyCompilerPort>>,
    ) -> Self {
        let (model, ids) = (self.model.clone(), Arc::clone(&self.ids));
        Self::over(model, ids, self.clock.clone(), policies, compiler, true, SEES).await
    }

    /// A second replica of the same server.
    pub(crate) async fn replica(&self) -> Self {
        self.restarted(all_policies(), None).await
    }

    async fn over(
        model: ModelStore,
        ids: Arc<SequentialIds>,
        clock: ManualClock,
        policies: Vec<Arc<dyn DomainPolicyPort>>,
        compiler: Option<Arc<dyn PolicyCompilerPort>>,
        acknowledges: bool,
        visibility: Visibility,
    ) -> Self {
        let store = FaultStore::new(Arc::new(model.clone()));
        let sink = RecordingSink::new();
        let orchestrator: Arc<dyn OrchestratorPort> = if acknowledges {
            Arc::new(ImmediateOrchestrator::default())
        } else {
            Arc::new(SilentOrchestrator::default())
        };
        let parts = EngineParts {
            store: Arc::new(store.clone()),
            policies: Policies::new(policies, compiler).unwrap(),
            clock: Arc::new(clock.clone()),
            ids: Arc::clone(&ids) as Arc<_>,
            orchestrator,
            notifications: Arc::new(sink.clone()),
            settings: Settings {
                locale: Locale::default(),
                timezone: "UTC".to_owned(),
                retention_ms: RETENTION_MS,
                visibility,
                public_url: Some("https://wf.example.com".to_owned()),
                recent_workflows: RECENT_WORKFLOWS_MAX,
            },
        };
        let engine = Engine::open(parts).await.unwrap();
        Self { engine, model, store, clock, sink, ids }
    }

    /// Calls a tool that changes something.
    pub(crate) async fn call(&self, by: &Principal, tool: &'static str, args: Value) -> Reply {
        self.call_at(by, tool, args, None).await
    }

    /// The same with an expected revision.
    pub(crate) async fn call_at(
        &self,
        by: &Principal,
        tool: &'static str,
        args: Value,
        expected_revision: Option<u64>,
    ) -> Reply {
        let meta = CallMeta { expected_revision, ..CallMeta::default() };
        let call = calls::call(tool, args.as_object().unwrap(), meta).unwrap();
        engine_shape::checked(self.engine.execute(by, &call).await)
    }

    pub(crate) async fn status(&self, by: &Principal, args: Value) -> Reply {
        let query = calls::status(args.as_object().unwrap()).unwrap();
        engine_shape::checked(self.engine.get_status(by, &query, &CallMeta::default()).await)
    }

    pub(crate) async fn find(&self, by: &Principal, args: Value) -> Reply {
        let query = calls::find(args.as_object().unwrap());
        engine_shape::checked(self.engine.find_work(by, &query, &CallMeta::default()).await)
    }

    pub(crate) async fn check(&self, by: &Principal, args: Value) -> Reply {
        let query = calls::check(args.as_object().unwrap()).unwrap();
        engine_shape::checked(self.engine.check_value(by, &query, &CallMeta::default()).await)
    }

    /// Starts `plain` on an asset; the workflow's id.
    pub(crate) async fn started(&self, by: &Principal, asset: &str) -> String {
        let reply = self.call(by, "start_workflow", start(asset)).await;
        assert_eq!(reply.outcome.as_str(), "started", "{}", reply.body);
        reply.body["workflow"]["id"].as_str().unwrap().to_owned()
    }

    /// Submits without a key and without a read-back.
    pub(crate) async fn submit(
        &self,
        by: &Principal,
        work: &str,
        step: &str,
        value: &str,
    ) -> Reply {
        self.call(by, "submit_step", submit(work, step, value)).await
    }

    /// Submits and confirms the read-back that is asked for.
    pub(crate) async fn confirmed(&self, by: &Principal, tool: &'static str, args: Value) -> Reply {
        let asked = self.call(by, tool, args.clone()).await;
        assert_eq!(asked.outcome.as_str(), "needs_confirmation", "{}", asked.body);
        self.call(by, tool, with(args, "confirm_token", &asked.body["confirm"]["token"])).await
    }

    /// A workflow of Ann whose amount is 70, which blocks it; the workflow and the block.
    pub(crate) async fn blocked(&self, asset: &str) -> (String, String) {
        let work = self.started(&ann(), asset).await;
        self.submit(&ann(), &work, "ready", "yes").await;
        let reply = self.confirmed(&ann(), "submit_step", submit(&work, "amount", "70")).await;
        assert_eq!(reply.outcome.as_str(), "out_of_range", "{}", reply.body);
        let block = reply.body["blocks"][0]["id"].as_str().unwrap().to_owned();
        (work, block)
    }

    /// Does everything that is asked for, the amount being 25.
    pub(crate) async fn settle(&self, by: &Principal, work: &str) {
        for (step, value) in
            [("ready", "yes"), ("amount", "25"), ("shape", "flat"), ("whisper", "CANARY")]
        {
            let reply = self.submit(by, work, step, value).await;
            assert!(reply.error.is_none(), "{}", reply.body);
        }
    }

    /// Starts, does everything, finishes as good.
    pub(crate) async fn finished(&self, by: &Principal, asset: &str) -> String {
        let work = self.started(by, asset).await;
        self.settle(by, &work).await;
        let args = json!({"workflow_id": work, "result": "good"});
        let reply = self.call(by, "finish_workflow", args).await;
        assert_eq!(reply.outcome.as_str(), "finished", "{}", reply.body);
        work
    }

    /// The stored state.
    pub(crate) async fn stored(&self, by: &Principal, work: &str) -> Workflow {
        self.loaded(by, Some(id(work)), None).await.workflow.unwrap()
    }

    /// The stored ledger row of a key.
    pub(crate) async fn row(&self, by: &Principal, key: &str) -> Option<LedgerRow> {
        let key = LedgerKey {
            tenant: by.tenant.clone(),
            actor: by.actor.clone(),
            key: IdempotencyKey::parse(key).unwrap(),
        };
        self.loaded(by, None, Some(key)).await.ledger
    }

    async fn loaded(
        &self,
        by: &Principal,
        workflow: Option<WorkflowId>,
        ledger: Option<LedgerKey>,
    ) -> wf_core::ports::Snapshot {
        let query = LoadQuery {
            tenant: by.tenant.clone(),
            workflow,
            ledger,
            assets: Vec::new(),
            answered_as: None,
            count_open_of: None,
        };
        self.model.load(&query).await.unwrap()
    }

    /// How many commits were sent.
    pub(crate) fn commits(&self) -> usize {
        self.store.count(Method::Commit)
    }
}

/// How long a ledger row outlives its workflow in these tests.
pub(crate) const RETENTION_MS: i64 = 30 * 24 * 60 * 60 * 1_000;

pub(crate) fn start(asset: &str) -> Value {
    json!({"procedure_id": "plain", "assets": {"unit": asset}, "inputs": {"order": "A-1"}})
}

pub(crate) fn submit(work: &str, step: &str, value: &str) -> Value {
    json!({"workflow_id": work, "step_id": step, "value": value})
}

pub(crate) fn correct(work: &str, step: &str, value: &str) -> Value {
    with(submit(work, step, value), "reason_code", &json!("HEARD_WRONG"))
}

pub(crate) fn resolve(work: &str, block: &str, decision: &str) -> Value {
    json!({"workflow_id": work, "block_id": block, "decision": decision, "comment": "looked at it"})
}

pub(crate) fn finish(work: &str, result: &str) -> Value {
    json!({"workflow_id": work, "result": result})
}

/// The arguments with one more, or another, member.
pub(crate) fn with(mut args: Value, name: &str, value: &Value) -> Value {
    args[name] = value.clone();
    args
}

/// The arguments with a key.
pub(crate) fn keyed(args: Value, key: &str) -> Value {
    with(args, "idempotency_key", &json!(key))
}

/// The error code of an answer.
pub(crate) fn code(reply: &Reply) -> &'static str {
    reply.error.map_or("(no error)", wf_core::errors::ErrorCode::as_str)
}
