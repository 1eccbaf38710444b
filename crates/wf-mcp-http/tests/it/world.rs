//! A whole server in this process, on a free loopback port: a neutral two-step procedure over a store in memory.

mod policy;
mod store;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wf_core::access::Visibility;
use wf_core::engine::{Engine, EngineParts, Policies, Settings};
use wf_core::models::Locale;
use wf_core::ports::StorageBackendPort;
use wf_mcp_http::{Authenticator, Builder, Drained, Guest, HttpConfig, Probes, Server};
use wf_testkit::clock::ManualClock;
use wf_testkit::ids::SequentialIds;
use wf_testkit::notification::RecordingSink;
use wf_testkit::orchestrator::ImmediateOrchestrator;

use crate::client::{Answer, Client};
pub(crate) use policy::TwoSteps;
pub(crate) use store::Shelf;

/// A running server and what stands behind it.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) admin: Option<SocketAddr>,
    pub(crate) store: Arc<Shelf>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Drained>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// With other settings than the default.
    pub(crate) async fn with(change: impl FnOnce(&mut HttpConfig)) -> Self {
        Self::build(change, None, Arc::new(Steady)).await
    }

    pub(crate) async fn build(
        change: impl FnOnce(&mut HttpConfig),
        authenticator: Option<Arc<dyn Authenticator>>,
        probes: Arc<dyn Probes>,
    ) -> Self {
        let store = Arc::new(Shelf::default());
        let engine = Arc::new(engine(store.port()).await);
        let mut builder = Server::builder(configured(change)).engine(engine).probes(probes);
        if let Some(authenticator) = authenticator {
            builder = builder.authenticator(authenticator);
        }
        Self::of(store, builder).await
    }

    /// With a guest, beside our tools or alone.
    pub(crate) async fn hosting(
        guest: Guest,
        beside: bool,
        change: impl FnOnce(&mut HttpConfig),
    ) -> Self {
        let store = Arc::new(Shelf::default());
        let mut builder = Server::builder(configured(change)).guest(guest);
        if beside {
            builder = builder.engine(Arc::new(engine(store.port()).await));
        }
        Self::of(store, builder).await
    }

    /// With a guest alone, for whom the authenticator recognises.
    pub(crate) async fn hosting_for(
        guest: Guest,
        authenticator: Arc<dyn Authenticator>,
        change: impl FnOnce(&mut HttpConfig),
    ) -> Self {
        let builder = Server::builder(configured(change)).guest(guest).authenticator(authenticator);
        Self::of(Arc::new(Shelf::default()), builder).await
    }

    pub(crate) async fn of(store: Arc<Shelf>, builder: Builder) -> Self {
        let server = builder.bind().await.expect("binds");
        let (address, admin) = (server.local_addr(), server.admin_addr());
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            let shutdown = async {
                let _ = stopped.await;
            };
            server.run(shutdown).await.expect("runs")
        });
        Self { address, admin, store, stop: Some(stop), running }
    }

    /// Why a server with this configuration does not begin.
    pub(crate) async fn refused(config: HttpConfig) -> String {
        let engine = Arc::new(engine(Shelf::default().port()).await);
        let refused = Server::builder(config).engine(engine).bind().await;
        refused.expect_err("refused").to_string()
    }

    /// Why a server with this guest beside our tools does not begin.
    pub(crate) async fn refused_guest(guest: Guest) -> String {
        let engine = Arc::new(engine(Shelf::default().port()).await);
        let refused = Server::builder(configured(|_| {})).engine(engine).guest(guest).bind().await;
        refused.expect_err("refused").to_string()
    }

    /// Why a server of nothing does not begin.
    pub(crate) async fn refused_nothing() -> String {
        let refused = Server::builder(configured(|_| {})).bind().await;
        refused.expect_err("refused").to_string()
    }

    /// Begins the shutdown.
    pub(crate) fn begin_stop(&mut self) {
        let stop = self.stop.take().expect("not stopped yet");
        stop.send(()).expect("the server runs");
    }

    /// Waits for the end of the shutdown.
    pub(crate) async fn stopped(self) -> Drained {
        within(self.running).await.expect("the server did not panic")
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// Calls a tool and returns its structured content.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.client().tool(tool, arguments).await;
        answer.result()["structuredContent"].clone()
    }

    /// Starts the procedure on an asset; returns the workflow id.
    pub(crate) async fn start(&self, asset: &str) -> String {
        let arguments = json!({"procedure_id": "routine-one", "assets": {"main": asset}});
        let started = self.call("start_workflow", arguments).await;
        assert_eq!(started["outcome"], "started", "{started}");
        started["workflow"]["id"].as_str().expect("an id").to_owned()
    }

    pub(crate) async fn post(&self, body: &Value) -> Answer {
        self.client().post(&[], body.to_string().as_bytes()).await
    }
}

pub(crate) fn configured(change: impl FnOnce(&mut HttpConfig)) -> HttpConfig {
    let mut config = HttpConfig {
        listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
        instance: "t".to_owned(),
        ..HttpConfig::default()
    };
    change(&mut config);
    config
}

/// Nothing in these tests takes this long; what does, hangs.
pub(crate) async fn within<F: IntoFuture>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("in time")
}

pub(crate) async fn engine(store: Arc<dyn StorageBackendPort>) -> Engine {
    Engine::open(parts(store)).await.expect("opens")
}

/// What the engine of these tests is made of.
pub(crate) fn parts(store: Arc<dyn StorageBackendPort>) -> EngineParts {
    EngineParts {
        store,
        policies: Policies::new(vec![Arc::new(TwoSteps::new())], None).expect("one policy"),
        clock: Arc::new(ManualClock::default()),
        ids: Arc::new(SequentialIds::new()),
        orchestrator: Arc::new(ImmediateOrchestrator::default()),
        notifications: Arc::new(RecordingSink::new()),
        settings: Settings {
            locale: Locale::default(),
            timezone: "UTC".to_owned(),
            retention_ms: 30 * 24 * 60 * 60 * 1_000,
            visibility: Visibility::default(),
            public_url: Some("https://wf.example.com".to_owned()),
            recent_workflows: wf_core::limits::RECENT_WORKFLOWS_MAX,
        },
    }
}

/// Always ready.
#[derive(Debug)]
pub(crate) struct Steady;

#[async_trait]
impl Probes for Steady {
    async fn ready(&self) -> Result<(), String> {
        Ok(())
    }

    fn metrics(&self) -> String {
        "# HELP up x\nup 1\n".to_owned()
    }
}
