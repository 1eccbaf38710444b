//! A real server on a free port with its own folder.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{self, Ran};

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Polls until `condition` holds.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what} did not come true");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A server process, and the folder that outlives it.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) folder: TempDir,
    child: Child,
    port: u16,
}

impl Server {
    /// Starts one in a fresh folder.
    pub(crate) fn start(more: &[&str]) -> Self {
        Self::start_in(TempDir::new().unwrap(), more)
    }

    /// Starts one that may not answer in plain HTTP: it has said where it listens, no more is known.
    pub(crate) fn start_silently(folder: TempDir, more: &[&str]) -> Self {
        let (child, port) = spawn(folder.path(), more, &[]);
        Self { folder, child, port }
    }

    /// Starts one in this folder.
    pub(crate) fn start_in(folder: TempDir, more: &[&str]) -> Self {
        Self::start_with(folder, more, &[])
    }

    /// Starts one in this folder, with more of its environment.
    pub(crate) fn start_with(folder: TempDir, more: &[&str], environment: &[(&str, &str)]) -> Self {
        let (child, port) = spawn(folder.path(), more, environment);
        let server = Self { folder, child, port };
        until("readiness", || server.get("/readyz").is_some_and(|(status, _)| status == 200));
        server
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What it wrote on stdout and stderr so far.
    pub(crate) fn log(&self) -> String {
        read(&self.path().join("out.log")) + &read(&self.path().join("err.log"))
    }

    /// One GET; `None` when nobody answers.
    pub(crate) fn get(&self, path: &str) -> Option<(u16, String)> {
        exchange(
            self.port,
            &format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"),
        )
    }

    /// One tool call; `None` when there is no answer.
    pub(crate) fn try_call(&self, tool: &str, arguments: &Value) -> Option<Value> {
        call(self.port, tool, arguments)
    }

    /// One tool call that must be answered.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.try_call(tool, arguments)
            .unwrap_or_else(|| panic!("no answer to {tool}: {}", self.log()))
    }

    /// One tool call with somebody's token, which must be answered.
    pub(crate) fn call_as(&self, token: &str, tool: &str, arguments: &Value) -> Value {
        let header = format!("authorization: Bearer {token}\r\n");
        call_with(self.port, &header, tool, arguments)
            .unwrap_or_else(|| panic!("no answer to {tool}: {}", self.log()))
    }

    /// The port, for callers in other threads.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Runs a command in the folder of the server.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        binary::run(self.path(), arguments)
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = std::process::Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "the server goes on: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks it to end, and asserts that it does so with 0.
    pub(crate) fn stop(mut self) -> TempDir {
        self.signal("TERM");
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "{}", self.log());
        self.keep()
    }

    /// Ends it without asking.
    pub(crate) fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.keep()
    }

    fn keep(mut self) -> TempDir {
        std::mem::replace(&mut self.folder, TempDir::new().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `serve` on a port of its choice and reads from its first lines which one that is.
fn spawn(folder: &Path, more: &[&str], environment: &[(&str, &str)]) -> (Child, u16) {
    let out = folder.join("out.log");
    let mut child = binary::command(folder)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(more)
        .envs(environment.iter().copied())
        .stdout(Stdio::from(File::create(&out).unwrap()))
        .stderr(Stdio::from(File::create(folder.join("err.log")).unwrap()))
        .spawn()
        .expect("the binary starts");
    let mut port = None;
    until("the address", || {
        port = port_in(&read(&out));
        if let (None, Some(status)) = (port, child.try_wait().unwrap()) {
            panic!("serve ended with {status}: {}", read(&folder.join("err.log")));
        }
        port.is_some()
    });
    (child, port.unwrap())
}

fn port_in(text: &str) -> Option<u16> {
    let (before, _) = text.split_once("/mcp")?;
    let (_, port) = before.rsplit_once(':')?;
    port.parse().ok()
}

/// At most a MiB of it: a test may have put a device there that never ends.
pub(crate) fn read(path: &PathBuf) -> String {
    let mut text = Vec::new();
    let done = File::open(path).and_then(|file| file.take(1 << 20).read_to_end(&mut text));
    done.map(|_| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
}

/// One tool call on its own connection; the structured content.
pub(crate) fn call(port: u16, tool: &str, arguments: &Value) -> Option<Value> {
    call_with(port, "", tool, arguments)
}

fn call_with(port: u16, headers: &str, tool: &str, arguments: &Value) -> Option<Value> {
    let body = json!({
        "jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": { "name": tool, "arguments": arguments },
    })
    .to_string();
    let (_, answer) = exchange(
        port,
        &format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-11-25\r\n\
             {headers}content-length: {}\r\n\r\n{body}",
            body.len()
        ),
    )?;
    let answer: Value = serde_json::from_str(&answer).ok()?;
    answer.pointer("/result/structuredContent").cloned()
}

/// One request; status and body, or `None` when the connection is refused or breaks.
pub(crate) fn exchange(port: u16, request: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some((status, body.to_owned()))
}
