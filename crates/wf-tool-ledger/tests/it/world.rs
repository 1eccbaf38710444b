//! A server with one tool, and a client that speaks JSON lines to it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, serve_server};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use wf_tool_ledger::{Attempt, Ledger, LedgerConfig, RetrySafe, Unfinished};

/// How the tool ends a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Sent,
    Refused,
    Broken,
    Doubt,
    Panic,
    /// Waits until it is let go, then is sent.
    Held,
}

/// What happened in the world, and what will.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Effect key and number of each run that had its effect.
    pub(crate) effects: Mutex<Vec<(String, u32)>>,
    pub(crate) runs: AtomicU32,
    pub(crate) ends: Mutex<VecDeque<End>>,
    pub(crate) let_go: Notify,
}

impl Sent {
    pub(crate) fn count(&self) -> usize {
        self.effects.lock().unwrap().len()
    }

    pub(crate) fn then(&self, end: End) {
        self.ends.lock().unwrap().push_back(end);
    }
}

struct Post(Arc<Sent>);

impl ServerHandler for Post {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({ "type": "object", "properties": { "to": { "type": "string" } } });
        let schema = Arc::new(schema.as_object().cloned().unwrap());
        let tools = ["send", "look"].map(|name| Tool::new(name, "A tool.", Arc::clone(&schema)));
        Ok(ListToolsResult::with_all_items(tools.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        assert!(!arguments.contains_key("idempotency_key"), "the key is not the tool's");
        let run = self.0.runs.fetch_add(1, Ordering::SeqCst) + 1;
        let attempt = context.extensions.get::<Attempt>().cloned();
        let effect = || {
            let attempt = attempt.as_ref();
            let key = attempt.map(|a| a.effect_key().to_owned()).unwrap_or_default();
            self.0.effects.lock().unwrap().push((key, attempt.map_or(0, Attempt::number)));
        };
        let end = self.0.ends.lock().unwrap().pop_front().unwrap_or(End::Sent);
        match end {
            End::Sent => effect(),
            End::Held => {
                effect();
                self.0.let_go.notified().await;
            }
            End::Doubt => {
                effect();
                attempt.unwrap().in_doubt();
                return Err(ErrorData::internal_error("the wire broke", None));
            }
            End::Panic => {
                effect();
                unreachable!("a bug");
            }
            End::Refused => return Ok(CallToolResult::structured_error(json!({"no": 1})).into()),
            End::Broken => return Err(ErrorData::invalid_params("no", None)),
        }
        Ok(CallToolResult::structured(json!({ "run": run, "to": arguments.get("to") })).into())
    }
}

/// A client of a server that lives as long as it does.
pub(crate) struct Client {
    lines: Lines<BufReader<tokio::io::ReadHalf<DuplexStream>>>,
    write: tokio::io::WriteHalf<DuplexStream>,
    server: JoinHandle<()>,
    number: u64,
}

/// Times that make a lease end soon where a test waits for that.
pub(crate) fn times(lease: Duration) -> LedgerConfig {
    LedgerConfig { lease, patience: Duration::ZERO, ..LedgerConfig::default() }
}

impl Client {
    /// A server over this file, and its client.
    pub(crate) async fn of(
        folder: &Path,
        sent: &Arc<Sent>,
        unfinished: Unfinished,
        config: LedgerConfig,
    ) -> Self {
        let ledger = Ledger::open(folder.join("calls.db"), config).unwrap();
        let handler = RetrySafe::new(Post(Arc::clone(sent)), ledger)
            .tool("send", unfinished)
            .scope(|context| {
                let whose = context.meta.get("who").and_then(Value::as_str);
                whose.unwrap_or_default().to_owned()
            });
        let (here, there) = tokio::io::duplex(64 * 1024);
        let server = tokio::spawn(async move {
            let running = serve_server(handler, tokio::io::split(there)).await.unwrap();
            running.waiting().await.unwrap();
        });
        let (read, write) = tokio::io::split(here);
        let lines = BufReader::new(read).lines();
        let mut client = Self { lines, write, server, number: 0 };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "t", "version": "1" },
        });
        client.ask("initialize", hello).await;
        client
    }

    pub(crate) async fn write(&mut self, method: &str, params: Value) -> u64 {
        self.number += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.number, "method": method, "params": params });
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        self.number
    }

    pub(crate) async fn read(&mut self, id: u64) -> Value {
        let wait = tokio::time::timeout(Duration::from_secs(20), self.lines.next_line());
        let line = wait.await.expect("an answer in time").unwrap().expect("an answer");
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.write(method, params).await;
        self.read(id).await
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    pub(crate) async fn send(&mut self, key: &str) -> Value {
        self.call("send", json!({ "to": "ann", "idempotency_key": key })).await
    }

    /// Goes away without a word.
    pub(crate) async fn leave(self) {
        drop((self.lines, self.write));
        drop(self.server.await);
    }
}

/// The code of a refusal.
pub(crate) fn refusal(answer: &Value) -> &str {
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{answer}");
    result["_meta"]["checkpoint/retry"]["code"].as_str().expect("a code")
}

pub(crate) fn is_duplicate(answer: &Value) -> bool {
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["_meta"]["checkpoint/duplicate"] == true
}

/// Polls until `condition` holds.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let end = tokio::time::Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(tokio::time::Instant::now() < end, "{what} did not come true");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs a server in a runtime of its own until `ready`, then ends that at once: what is in the middle stays there, as when
/// a process is killed.
pub(crate) fn killed_in_the_middle(folder: &Path, sent: &Arc<Sent>, config: LedgerConfig) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (begun, mut seen) = watch::channel(false);
    let (folder, its) = (folder.to_owned(), Arc::clone(sent));
    its.then(End::Held);
    runtime.spawn(async move {
        let mut client = Client::of(&folder, &its, Unfinished::Refuse, config).await;
        client
            .write(
                "tools/call",
                json!({ "name": "send", "arguments": { "to": "ann", "idempotency_key": "k" } }),
            )
            .await;
        until("the effect", || its.count() == 1).await;
        begun.send_replace(true);
        std::future::pending::<()>().await;
    });
    runtime.block_on(seen.wait_for(|begun| *begun)).unwrap();
    runtime.shutdown_background();
}
