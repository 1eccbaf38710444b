//! The whole server in this process, over a real socket, driven by one thread: what a fuzz target sends its inputs to.
//!
//! The store is the reference model in memory, the procedures are the ones that the product ships.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use wf_core::access::Visibility;
use wf_core::engine::{Engine, EngineParts, Policies, Settings};
use wf_core::models::Locale;
use wf_core::policy::DomainPolicyPort;
use wf_core::ports::{ListQuery, StorageBackendPort};
use wf_mcp_http::{HttpConfig, Server};
use wf_testkit::clock::ManualClock;
use wf_testkit::ids::SequentialIds;
use wf_testkit::model::ModelStore;
use wf_testkit::notification::RecordingSink;
use wf_testkit::orchestrator::ImmediateOrchestrator;

/// The revision that a question is asked in.
pub const MODERN: &str = "2026-07-28";

/// Longer than any answer takes; what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// The shipped procedures. Compiled once: it takes longer than a thousand requests.
pub static PROCEDURES: LazyLock<Vec<Arc<dyn DomainPolicyPort>>> = LazyLock::new(|| {
    let procedures = wf_procedure::builtin().expect("the shipped procedures");
    procedures.into_iter().map(|p| Arc::new(p) as Arc<dyn DomainPolicyPort>).collect()
});

/// A server and a connection to it.
pub struct Room {
    runtime: Runtime,
    address: SocketAddr,
    connection: Option<TcpStream>,
    store: Arc<ModelStore>,
    /// The clock of the engine.
    pub clock: ManualClock,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body; empty where it is a stream.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Nothing of ours failed: no 5xx, and no error that says that something inside did.
    pub fn check(&self, sent: &[u8]) {
        let sent = String::from_utf8_lossy(sent);
        assert!(self.status < 500, "{}: {} after {sent}", self.status, self.text());
        let json = self.json();
        assert_ne!(json["error"]["code"], -32603, "{} after {sent}", self.text());
        let code = &json["result"]["structuredContent"]["error"]["code"];
        assert_ne!(*code, "INTERNAL", "{} after {sent}", self.text());
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Room {
    /// A server with an empty store.
    pub fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (store, clock) = (Arc::new(ModelStore::new()), ManualClock::default());
        let address = runtime.block_on(serve(Arc::clone(&store), clock.clone()));
        Self { runtime, address, connection: None, store, clock }
    }

    /// Posts a body; on the same connection as long as that is open.
    pub fn post(&mut self, headers: &[(&str, String)], body: &[u8]) -> Answer {
        let mut request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
            self.address,
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        let bytes = [request.as_bytes(), body].concat();
        let (address, held) = (self.address, self.connection.take());
        let exchange = async move {
            let mut stream = match held {
                Some(stream) => stream,
                None => connected(address).await,
            };
            if let Some((answer, keeps)) = exchanged(&mut stream, &bytes).await {
                return (answer, keeps.then_some(stream));
            }
            // Closed while it was idle.
            let mut stream = connected(address).await;
            let (answer, keeps) = exchanged(&mut stream, &bytes).await.expect("an answer");
            (answer, keeps.then_some(stream))
        };
        let timed = async { timeout(PATIENCE, exchange).await.expect("in time") };
        let (answer, stream) = self.runtime.block_on(timed);
        self.connection = stream;
        answer
    }

    /// How many events there are, of all workflows.
    pub fn events(&self) -> u64 {
        let query = ListQuery { limit: 1_000, ..ListQuery::default() };
        let page = self.runtime.block_on(self.store.list(&query)).expect("the model answers");
        page.items.iter().map(|workflow| workflow.revision).sum()
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

async fn connected(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("connects")
}

/// Sends and receives; `None` when the connection was closed before an answer began.
async fn exchanged(stream: &mut TcpStream, bytes: &[u8]) -> Option<(Answer, bool)> {
    stream.write_all(bytes).await.ok()?;
    let mut received = Vec::with_capacity(4_096);
    let end = loop {
        if let Some(at) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        match stream.read_buf(&mut received).await {
            Ok(0) | Err(_) if received.is_empty() => return None,
            Ok(0) | Err(_) => panic!("half an answer: {:?}", String::from_utf8_lossy(&received)),
            Ok(_) => {}
        }
    };
    let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let length: Option<usize> = header("content-length: ").and_then(|text| text.parse().ok());
    let Some(length) = length else {
        // A stream of events, or an answer without a body.
        return Some((Answer { status, body: Vec::new() }, status == 202 || status == 204));
    };
    while received.len() < end + length {
        assert_ne!(stream.read_buf(&mut received).await.unwrap_or(0), 0, "half a body");
    }
    let keeps = header("connection: close").is_none();
    Some((Answer { status, body: received[end..end + length].to_vec() }, keeps))
}

async fn serve(store: Arc<ModelStore>, clock: ManualClock) -> SocketAddr {
    let parts = EngineParts {
        store,
        policies: Policies::new(PROCEDURES.clone(), None).expect("policies"),
        clock: Arc::new(clock),
        ids: Arc::new(SequentialIds::new()),
        orchestrator: Arc::new(ImmediateOrchestrator::default()),
        notifications: Arc::new(RecordingSink::new()),
        settings: Settings {
            locale: Locale::default(),
            timezone: "UTC".to_owned(),
            retention_ms: 30 * 24 * 60 * 60 * 1_000,
            visibility: Visibility::default(),
            public_url: None,
            recent_workflows: wf_core::limits::RECENT_WORKFLOWS_MAX,
        },
    };
    let engine = Arc::new(Engine::open(parts).await.expect("opens"));
    let config = HttpConfig { listen: vec![([127, 0, 0, 1], 0).into()], ..HttpConfig::default() };
    let server = Server::builder(config).engine(engine).bind().await.expect("binds");
    let address = server.local_addr();
    tokio::spawn(server.run(std::future::pending()));
    address
}
