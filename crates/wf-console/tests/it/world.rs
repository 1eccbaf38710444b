//! A console over a small procedure, tokens that are names, and a browser of few talents.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde_json::{Map, Value};
use wf_console::{Console, ConsoleParts, Door, Turned};
use wf_core::access::Visibility;
use wf_core::engine::{Call, CallMeta, Engine, EngineParts, Policies, Request as Asked, Settings};
use wf_core::models::{Actor, Locale, Principal, Scopes, StepId, TenantId, WorkflowId};
use wf_core::ports::ClockPort;
use wf_core::state_machine::command::SubmittedValue;
use wf_testkit::clock::ManualClock;
use wf_testkit::ids::SequentialIds;
use wf_testkit::model::ModelStore;
use wf_testkit::notification::RecordingSink;
use wf_testkit::orchestrator::ImmediateOrchestrator;

/// Where the browser thinks that the console is.
pub(crate) const HOST: &str = "127.0.0.1:9000";

const PROCEDURE: &str = "
schema: checkpoint/procedure/v1
id: round
version: 1
title: Round
order: sequence
assets:
  - { role: thing, say: thing, id: { prefix: T-, digits: { max: 4, leading_zeros: drop } }, example: T-7 }
steps:
  - id: amount
    kind: number
    say: amount
    prompt: What is the amount?
    unit: g
    range: { instrument: [0, 100], accept: [0, 10] }
    out_of_range:
      code: TOO_HIGH
      escalate: { to: lead, severity: high }
      decisions: [accept_deviation, require_redo, abort]
results:
  - { id: passed, say: passed }
";

/// Tokens are names; what counts can change.
#[derive(Debug, Default)]
pub(crate) struct Names {
    open: Option<Arc<Principal>>,
    known: Mutex<BTreeMap<String, Result<Arc<Principal>, Turned>>>,
}

impl Names {
    pub(crate) fn set(&self, token: &str, who: Result<Principal, Turned>) {
        self.known.lock().unwrap().insert(token.to_owned(), who.map(Arc::new));
    }
}

#[async_trait]
impl Door for Names {
    fn open_to(&self) -> Option<Arc<Principal>> {
        self.open.clone()
    }

    async fn recognise(&self, token: &str) -> Result<Arc<Principal>, Turned> {
        let known = self.known.lock().unwrap();
        known.get(token).cloned().unwrap_or(Err(Turned::Unknown))
    }
}

pub(crate) fn person(name: &str, tenant: &str, supervise: bool) -> Principal {
    Principal {
        tenant: TenantId::parse(tenant).unwrap(),
        actor: Actor::User(name.to_owned()),
        name: Some(name.to_owned()),
        client_id: None,
        scopes: Scopes { read: true, write: true, supervise },
        roles: std::collections::BTreeSet::new(),
    }
}

pub(crate) struct World {
    pub(crate) console: Console,
    pub(crate) engine: Arc<Engine>,
    pub(crate) names: Arc<Names>,
    pub(crate) clock: Arc<ManualClock>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(None, Visibility::Tenant).await
    }

    /// Nobody has to sign in.
    pub(crate) async fn open() -> Self {
        Self::with(Some(Arc::new(Principal::local())), Visibility::Tenant).await
    }

    pub(crate) async fn with(open: Option<Arc<Principal>>, visibility: Visibility) -> Self {
        let clock = Arc::new(ManualClock::default());
        let ids = Arc::new(SequentialIds::new());
        let procedure = wf_procedure::parse(PROCEDURE, "round.yaml").expect("a good procedure");
        let parts = EngineParts {
            store: Arc::new(ModelStore::new()),
            policies: Policies::new(vec![Arc::new(procedure)], None).unwrap(),
            clock: Arc::clone(&clock) as Arc<dyn ClockPort>,
            ids: Arc::clone(&ids) as _,
            orchestrator: Arc::new(ImmediateOrchestrator::default()),
            notifications: Arc::new(RecordingSink::new()),
            settings: Settings {
                locale: Locale::default(),
                timezone: "UTC".to_owned(),
                retention_ms: 1_000_000,
                visibility,
                public_url: None,
                recent_workflows: wf_core::limits::RECENT_WORKFLOWS_MAX,
            },
        };
        let engine = Arc::new(Engine::open(parts).await.unwrap());
        let names = Arc::new(Names { open, ..Names::default() });
        names.set("sue", Ok(person("sue", "default", true)));
        names.set("tom", Ok(person("tom", "default", false)));
        names.set("eve", Ok(person("eve", "elsewhere", true)));
        let console = Console::new(ConsoleParts {
            engine: Arc::clone(&engine),
            door: Arc::clone(&names) as _,
            clock: Arc::clone(&clock) as _,
            ids,
            timezone: "Europe/Berlin".to_owned(),
        });
        Self { console, engine, names, clock }
    }

    async fn execute(&self, by: &Principal, operation: &'static str, request: Asked) -> Value {
        let call = Call {
            operation,
            arguments: Map::new(),
            key: None,
            request,
            meta: CallMeta::default(),
        };
        let reply = self.engine.execute(by, &call).await;
        assert_eq!(reply.error, None, "{}", reply.body);
        reply.body
    }

    /// Starts a round on a thing.
    pub(crate) async fn start(&self, by: &Principal, thing: &str) -> WorkflowId {
        let assets = BTreeMap::from([("thing".to_owned(), thing.to_owned())]);
        let request = Asked::Start { procedure_id: "round".to_owned(), assets, inputs: Map::new() };
        let body = self.execute(by, "start_workflow", request).await;
        WorkflowId::parse(body["workflow"]["id"].as_str().unwrap()).unwrap()
    }

    /// Stops it by a value that is too high.
    pub(crate) async fn stop(&self, by: &Principal, workflow: &WorkflowId) {
        let value = SubmittedValue { value: Some("50".to_owned()), ..SubmittedValue::default() };
        let step_id = StepId::parse("amount").unwrap();
        let request = Asked::SubmitStep { workflow_id: workflow.clone(), step_id, value };
        let body = self.execute(by, "submit_step", request).await;
        assert_eq!(body["workflow"]["state"], "BLOCKED", "{body}");
    }

    /// How many events it has.
    pub(crate) async fn revision(&self, by: &Principal, workflow: &WorkflowId) -> u64 {
        let view = self.engine.workflow_view(by, workflow, &CallMeta::default()).await.unwrap();
        view["workflow"]["revision"].as_u64().unwrap()
    }
}

/// A browser: one cookie, and forms sent from where it is.
pub(crate) struct Browser<'w> {
    world: &'w World,
    pub(crate) cookie: Option<String>,
    pub(crate) origin: Option<String>,
    pub(crate) address: IpAddr,
}

/// An answer, read.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) status: StatusCode,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Shown {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The value of the first field of this name, in a form of this action.
    pub(crate) fn field(&self, action: &str, name: &str) -> String {
        let form = self.text.split("<form").find(|form| form.contains(action));
        let form = form.unwrap_or_else(|| unreachable!("no form {action} in {}", self.text));
        let (_, rest) = form.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

impl<'w> Browser<'w> {
    pub(crate) fn new(world: &'w World) -> Self {
        let address = IpAddr::from([127, 0, 0, 1]);
        Self { world, cookie: None, origin: Some(format!("http://{HOST}")), address }
    }

    /// One that is signed in.
    pub(crate) async fn of(world: &'w World, token: &str) -> Self {
        let mut browser = Self::new(world);
        let answer = browser.post("/console/sign-in", &[("token", token)]).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        browser
    }

    pub(crate) async fn get(&mut self, path: &str) -> Shown {
        self.send("GET", path, String::new()).await
    }

    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Shown {
        let encoded = |text: &str| text.bytes().map(|b| format!("%{b:02X}")).collect::<String>();
        let pairs = fields.iter().map(|(n, v)| format!("{}={}", encoded(n), encoded(v)));
        self.send("POST", path, pairs.collect::<Vec<_>>().join("&")).await
    }

    /// Follows where an answer leads.
    pub(crate) async fn follow(&mut self, answer: &Shown) -> Shown {
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        let place = answer.header("location").to_owned();
        self.get(&place).await
    }

    pub(crate) async fn send(&mut self, method: &str, path: &str, body: String) -> Shown {
        let mut request = Request::builder().method(method).uri(path).header("host", HOST);
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", format!("checkpoint_console={cookie}"));
        }
        if method == "POST" {
            request = request.header("content-type", "application/x-www-form-urlencoded");
            if let Some(origin) = &self.origin {
                request = request.header("origin", origin);
            }
        }
        let request = request.body(Bytes::from(body)).unwrap();
        let answer: Response<Bytes> = self.world.console.answer(request, self.address).await;
        let (head, body) = answer.into_parts();
        if let Some(cookie) = head.headers.get("set-cookie") {
            let text = cookie.to_str().unwrap();
            let (_, value) = text.split(';').next().unwrap().split_once('=').unwrap();
            self.cookie = (!value.is_empty()).then(|| value.to_owned());
        }
        let text = String::from_utf8(body.to_vec()).unwrap();
        Shown { status: head.status, headers: head.headers, text }
    }
}
