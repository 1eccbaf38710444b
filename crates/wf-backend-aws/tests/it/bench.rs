//! An engine over a store of this backend, with a plain procedure, and calls as a transport makes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use wf_backend_aws::{AwsConfig, AwsStore};
use wf_core::access::Visibility;
use wf_core::engine::{Call, CallMeta, Engine, EngineParts, Policies, Reply, Request, Settings};
use wf_core::idempotency::IdempotencyKey;
use wf_core::models::{Locale, Principal, Scopes};
use wf_core::policy::DomainPolicyPort;
use wf_core::ports::OrchestratorPort;
use wf_core::state_machine::command::SubmittedValue;
use wf_testkit::build::{tenant, user};
use wf_testkit::clock::ManualClock;
use wf_testkit::ids::SequentialIds;
use wf_testkit::notification::RecordingSink;
use wf_testkit::orchestrator::{ImmediateOrchestrator, SilentOrchestrator};

use crate::fixture::store;
use crate::plain_policy::{PlainPolicy, id};
use crate::wire::Wire;

/// An engine and what a test changes around it. A clone is the same bench.
#[derive(Debug, Clone)]
pub(crate) struct Bench {
    engine: Arc<Engine>,
    ids: Arc<SequentialIds>,
    policy: Arc<dyn DomainPolicyPort>,
    pub(crate) config: AwsConfig,
    caller: Principal,
    pub(crate) store: AwsStore,
    pub(crate) wire: Wire,
    pub(crate) clock: ManualClock,
}

/// Who does the work.
pub(crate) fn ann() -> Principal {
    person("ann", "Ann")
}

fn person(subject: &str, name: &str) -> Principal {
    let scopes = Scopes { read: true, write: true, supervise: false };
    let (tenant, actor, name) = (tenant("plant"), user(subject), Some(name.to_owned()));
    Principal { tenant, actor, name, client_id: None, scopes, roles: BTreeSet::new() }
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// With another configuration than the tests' own.
    pub(crate) async fn with(change: impl FnOnce(&mut AwsConfig)) -> Self {
        Self::of(Arc::new(PlainPolicy::new()), change).await
    }

    /// With another procedure, too.
    pub(crate) async fn of(
        policy: Arc<dyn DomainPolicyPort>,
        change: impl FnOnce(&mut AwsConfig),
    ) -> Self {
        let (_, wire, mut config) = store().await;
        change(&mut config);
        let (clock, ids) = (ManualClock::default(), Arc::new(SequentialIds::new()));
        Self::over(policy, config, wire, clock, ids).await
    }

    /// Another process over the same table.
    pub(crate) async fn replica(&self) -> Self {
        let (clock, ids) = (self.clock.clone(), Arc::clone(&self.ids));
        let (policy, wire) = (Arc::clone(&self.policy), self.wire.clone());
        Self::over(policy, self.config.clone(), wire, clock, ids).await
    }

    /// With executions of this state machine.
    pub(crate) async fn orchestrated(
        policy: Arc<dyn DomainPolicyPort>,
        clock: ManualClock,
        machine: &str,
    ) -> Self {
        let (_, wire, mut config) = store().await;
        config.state_machine_arn = Some(machine.to_owned());
        Self::over(policy, config, wire, clock, Arc::new(SequentialIds::new())).await
    }

    /// Another process over the same table, on a wire of its own.
    pub(crate) async fn beside(&self, wire: Wire) -> Self {
        let (clock, ids) = (self.clock.clone(), Arc::clone(&self.ids));
        let config = self.config.clone().with_http_client(wire.clone());
        Self::over(Arc::clone(&self.policy), config, wire, clock, ids).await
    }

    /// A process at a table that there is already.
    pub(crate) async fn at(
        policy: Arc<dyn DomainPolicyPort>,
        config: AwsConfig,
        wire: Wire,
        clock: ManualClock,
    ) -> Self {
        Self::over(policy, config, wire, clock, Arc::new(SequentialIds::new())).await
    }

    /// The same bench with somebody else at it.
    pub(crate) fn by(&self, subject: &str) -> Self {
        Self { caller: person(subject, subject), ..self.clone() }
    }

    async fn over(
        policy: Arc<dyn DomainPolicyPort>,
        config: AwsConfig,
        wire: Wire,
        clock: ManualClock,
        ids: Arc<SequentialIds>,
    ) -> Self {
        let store = AwsStore::open_existing(config.clone()).await.expect("a store");
        let policies = vec![Arc::clone(&policy)];
        let orchestrator: Arc<dyn OrchestratorPort> = match config.state_machine_arn {
            Some(_) => Arc::new(SilentOrchestrator::default()),
            None => Arc::new(ImmediateOrchestrator::default()),
        };
        let parts = EngineParts {
            store: Arc::new(store.clone()),
            policies: Policies::new(policies, None).expect("policies"),
            clock: Arc::new(clock.clone()),
            ids: Arc::clone(&ids) as Arc<_>,
            orchestrator,
            notifications: Arc::new(RecordingSink::new()),
            settings: Settings {
                locale: Locale::default(),
                timezone: "UTC".to_owned(),
                retention_ms: 30 * 24 * 3_600_000,
                visibility: Visibility::Tenant,
                public_url: None,
                recent_workflows: 0,
            },
        };
        let engine = Arc::new(Engine::open(parts).await.expect("an engine"));
        wire.take_log();
        Self { engine, ids, policy, config, caller: ann(), store, wire, clock }
    }

    /// For what is no mutating call.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(crate) async fn call(
        &self,
        tool: &'static str,
        arguments: &Value,
        request: Request,
    ) -> Reply {
        self.call_of(&self.caller, tool, arguments, request).await
    }

    /// A call of somebody.
    pub(crate) async fn call_of(
        &self,
        who: &Principal,
        tool: &'static str,
        arguments: &Value,
        request: Request,
    ) -> Reply {
        let arguments: Map<String, Value> = arguments.as_object().cloned().expect("an object");
        let key = arguments.get("idempotency_key").and_then(Value::as_str);
        let key = key.map(|key| IdempotencyKey::parse(key).expect("a key"));
        let call = Call { operation: tool, key, request, arguments, meta: CallMeta::default() };
        self.engine.execute(who, &call).await
    }

    /// Starts; the workflow's id.
    pub(crate) async fn started(&self, asset: &str, key: &str) -> String {
        let reply = self.start(asset, key).await;
        assert_eq!(reply.outcome.as_str(), "started", "{}", reply.body);
        reply.body["workflow"]["id"].as_str().expect("an id").to_owned()
    }

    pub(crate) async fn start(&self, asset: &str, key: &str) -> Reply {
        self.start_of("plain", asset, key).await
    }

    pub(crate) async fn start_of(&self, procedure: &str, asset: &str, key: &str) -> Reply {
        let arguments = json!({
            "procedure_id": procedure,
            "assets": {"unit": asset},
            "inputs": {"order": "A-1"},
            "idempotency_key": key,
        });
        let request = Request::Start {
            procedure_id: procedure.to_owned(),
            assets: BTreeMap::from([("unit".to_owned(), asset.to_owned())]),
            inputs: Map::from_iter([("order".to_owned(), json!("A-1"))]),
        };
        self.call("start_workflow", &arguments, request).await
    }

    /// Submits a value for the first step.
    pub(crate) async fn submit(&self, work: &str, value: &str, key: &str) -> Reply {
        let arguments = json!({
            "workflow_id": work, "step_id": "ready", "value": value, "idempotency_key": key
        });
        let value = SubmittedValue {
            value: Some(value.to_owned()),
            unit: None,
            note: None,
            confirm_token: None,
            confirmed_by: None,
        };
        let request = Request::SubmitStep { workflow_id: id(work), step_id: id("ready"), value };
        self.call("submit_step", &arguments, request).await
    }

    /// Gives the work up, and confirms that it shall be.
    pub(crate) async fn abandon(&self, work: &str, key: &str) -> Reply {
        let asked = self.give_up(work, key, None).await;
        let token = asked.body["confirm"]["token"].as_str().map(str::to_owned);
        match token {
            Some(token) => self.give_up(work, key, Some(token)).await,
            None => asked,
        }
    }

    async fn give_up(&self, work: &str, key: &str, confirm_token: Option<String>) -> Reply {
        let arguments = json!({
            "workflow_id": work, "result": "abandoned", "note": "no need", "idempotency_key": key
        });
        let request = Request::Finish {
            workflow_id: id(work),
            result: id("abandoned"),
            note: Some("no need".to_owned()),
            confirm_token,
            confirmed_by: None,
        };
        self.call("finish_workflow", &arguments, request).await
    }
}
