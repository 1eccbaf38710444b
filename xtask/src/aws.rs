//! `cargo xtask aws`: cfn-lint over the template, and an emulator of DynamoDB from PyPI with the tests that need one: those
//! of the backend, those of the binary, and suites of tests/outside with servers whose state is in its tables.
//!
//! The emulator is installed into a virtual environment under the target directory, listens on 127.0.0.1 on a free port for as long
//! as the tests run, and is stopped by its process id. Tests find it in `WF_AWS_ENDPOINT`; without it they are ignored.

mod python;
mod template;

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;

use crate::ci::{binary, build};
use crate::fault::Fault;
use crate::process::{Run, available};
use python::Program;

/// The emulator.
const EMULATOR: Program = Program {
    name: "ministack",
    folder: "aws-emulator",
    pins: "crates/wf-backend-aws/tests/emulator.txt",
};
/// Where tests look for it.
const ENDPOINT: &str = "WF_AWS_ENDPOINT";
/// How long it may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Tests that need the emulator: all of the backend's, and the binary's of this name.
const TESTS: [&[&str]; 2] =
    [&["-p", "wf-backend-aws", "--all-features"], &["-p", "wf-cli", "--all-features", "aws"]];
/// Suites of tests/outside that are run on it too: whole jobs by official clients, repeats, kills, people, and a table that
/// fails.
const SUITES: [&str; 7] =
    ["main_job", "idempotency", "bad_table", "python_client", "ts_client", "agent", "people"];

/// What to run.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// Run this instead of the tests, with the endpoint in WF_AWS_ENDPOINT
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Lints the template, starts the emulator, runs the tests and stops it; with a command, runs that on the emulator instead.
/// True if they passed.
pub(crate) fn task(root: &Path, options: &Options) -> Result<bool, Fault> {
    if options.command.is_empty() && !template::lint(root)? {
        return Ok(false);
    }
    let emulator = Emulator::start(root)?;
    let on_it = |run: Run| {
        let run = run.env(ENDPOINT, &emulator.url);
        println!("{}", run.shown());
        run.succeeds()
    };
    if let Some((program, arguments)) = options.command.split_first() {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        return on_it(Run::new(root, program, &arguments));
    }
    for chosen in TESTS {
        if !on_it(tests(root, chosen))? {
            return Ok(false);
        }
    }
    Ok(build(root)? && on_it(outside(root))?)
}

/// The suites from outside.
fn outside(root: &Path) -> Run {
    let program = binary(root, "wf-cli");
    let program = program.to_string_lossy();
    Run::new(root, "bash", &[&["tests/outside/run.sh", &*program], &SUITES[..]].concat())
}

/// The tests that are ignored without it, with the others that are chosen.
fn tests(root: &Path, chosen: &[&str]) -> Run {
    let nextest = available(root, "cargo-nextest", &["nextest", "--version"]);
    let (head, tail): (&[&str], &[&str]) = if nextest {
        (&["nextest", "run", "--profile", "ci"], &["--run-ignored", "all"])
    } else {
        (&["test", "--no-fail-fast"], &["--", "--include-ignored"])
    };
    Run::cargo(root, &[head, chosen, tail].concat())
}

/// A running emulator; it ends with this value.
#[derive(Debug)]
struct Emulator {
    child: Child,
    url: String,
}

impl Emulator {
    fn start(root: &Path) -> Result<Self, Fault> {
        let program = EMULATOR.install(root)?;
        let log = program.with_file_name("emulator.log");
        let port = free_port()?;
        let output = File::create(&log).map_err(|source| Fault::file(&log, source))?;
        let errors = output.try_clone().map_err(|source| Fault::file(&log, source))?;
        let shown = program.to_string_lossy().into_owned();
        let child = Command::new(&program)
            .env("BIND_HOST", "127.0.0.1")
            .env("MINISTACK_HOST", "127.0.0.1")
            .env("GATEWAY_PORT", port.to_string())
            .env("SERVICES", "dynamodb")
            .env("LOG_LEVEL", "WARNING")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|source| Fault::Start { command: shown.clone(), source })?;
        let mut emulator = Self { child, url: format!("http://127.0.0.1:{port}") };
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

    use super::{Options, SUITES, TESTS, free_port, outside, tests};

    #[test]
    fn the_ignored_tests_are_run_too() {
        for (chosen, package) in TESTS.iter().zip(["wf-backend-aws", "wf-cli"]) {
            let shown = tests(Path::new("."), chosen).shown().to_owned();
            assert!(shown.contains(&format!("-p {package} --all-features")), "{shown}");
            assert!(shown.contains("ignored"), "{shown}");
        }
        assert!(Options::default().command.is_empty());
    }

    #[test]
    fn every_suite_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for suite in SUITES {
            let file = ["py", "mjs"].map(|kind| root.join(format!("tests/outside/{suite}.{kind}")));
            assert!(file.iter().any(|file| file.exists()), "{suite}");
        }
        assert!(outside(&root).shown().ends_with("agent people"));
    }

    #[test]
    fn a_free_port_can_be_bound() {
        let port = free_port().expect("a port");
        assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok());
    }
}
