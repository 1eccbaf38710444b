//! Emulators that run while tests do. Each is faithful in something else; which tests run on which stands in
//! `crates/wf-backend-aws/tests/it/differences.rs`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::python::Program;
use crate::fault::Fault;

/// How long one may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long it may take to answer its settings.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// An emulator, and how it is started.
pub(super) struct Kind {
    program: Program,
    /// Where tests look for it.
    variable: &'static str,
    /// Tells it where to listen: on 127.0.0.1 only.
    listens: fn(&mut Command, u16),
    /// A path and a JSON body that switch on what is off by default.
    settings: Option<(&'static str, &'static str)>,
}

/// DynamoDB, and Step Functions but for time-outs.
pub(super) const MINISTACK: Kind = Kind {
    program: Program {
        name: "ministack",
        folder: "aws-emulator",
        pins: "crates/wf-backend-aws/tests/emulator.txt",
    },
    variable: "WF_AWS_ENDPOINT",
    listens: |command, port| {
        command
            .env("BIND_HOST", "127.0.0.1")
            .env("MINISTACK_HOST", "127.0.0.1")
            .env("GATEWAY_PORT", port.to_string())
            .env("SERVICES", "dynamodb,stepfunctions")
            .env("LOG_LEVEL", "WARNING");
    },
    settings: None,
};

/// Step Functions with time-outs of tasks; nothing else is asked of it.
pub(super) const MOTO: Kind = Kind {
    program: Program {
        name: "moto_server",
        folder: "aws-moto",
        pins: "crates/wf-backend-aws/tests/moto.txt",
    },
    variable: "WF_MOTO_ENDPOINT",
    listens: |command, port| {
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    },
    settings: Some(("/moto-api/config", r#"{"stepfunctions":{"execute_state_machine":true}}"#)),
};

/// A running emulator; it ends with this value.
#[derive(Debug)]
pub(super) struct Emulator {
    child: Child,
    pub(super) url: String,
    pub(super) variable: &'static str,
}

impl Emulator {
    pub(super) fn start(root: &Path, kind: &Kind) -> Result<Self, Fault> {
        let program = kind.program.install(root)?;
        let log = program.with_file_name("emulator.log");
        let port = free_port()?;
        let output = File::create(&log).map_err(|source| Fault::file(&log, source))?;
        let errors = output.try_clone().map_err(|source| Fault::file(&log, source))?;
        let shown = program.to_string_lossy().into_owned();
        let mut command = Command::new(&program);
        (kind.listens)(&mut command, port);
        let child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|source| Fault::Start { command: shown.clone(), source })?;
        let url = format!("http://127.0.0.1:{port}");
        let mut emulator = Self { child, url, variable: kind.variable };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let deadline = Instant::now() + START_TIMEOUT;
        // It listens once it can answer.
        while TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_err() {
            let ended = emulator.child.try_wait().ok().flatten().is_some();
            if ended || Instant::now() >= deadline {
                let output = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(Fault::Failed { command: shown, output });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        if let Some((path, body)) = kind.settings {
            let answer = post(address, path, body);
            let answer = answer.map_err(|error| Fault::parse(path, &error))?;
            if !answer.contains(" 20") {
                return Err(Fault::Failed { command: shown, output: answer });
            }
        }
        Ok(emulator)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // It holds nothing that is worth keeping; an error means that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Posts JSON; the first line of the answer.
fn post(address: SocketAddr, path: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}

/// A port that nobody listens on just now.
fn free_port() -> Result<u16, Fault> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    let address = address.map_err(|error| Fault::parse("a free port", &error))?;
    Ok(address.port())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{MINISTACK, MOTO, free_port};

    #[test]
    fn a_free_port_can_be_bound() {
        let port = free_port().expect("a port");
        assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok());
    }

    #[test]
    fn each_has_pins_a_folder_and_a_variable_of_its_own() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for kind in [MINISTACK, MOTO] {
            let pins = std::fs::read_to_string(root.join(kind.program.pins)).expect("pins");
            assert!(pins.lines().all(|line| line.contains("==")), "{pins}");
        }
        assert_ne!(MINISTACK.program.folder, MOTO.program.folder);
        assert_ne!(MINISTACK.variable, MOTO.variable);
    }
}
