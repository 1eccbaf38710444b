//! `wf-cli doctor`: looks at everything a server needs, and says of each thing whether it is fine and what to do.
//!
//! It changes nothing: a database that is not there is not made, an older one is not migrated. With `--alive` it only asks
//! the running server ([`alive`]).

pub(crate) mod alive;
mod auth;
mod disk;
mod secrets;
#[cfg(feature = "aws")]
mod table;

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use clap::Args;
use serde_json::{Value, json};
use wf_core::engine::verify::{VerifyReport, verify};
use wf_core::models::Timestamp;
use wf_core::policy::DomainPolicyPort as _;
use wf_core::ports::ClockPort as _;
use wf_procedure::LoadError;

use crate::ambient::SystemClock;
use crate::cmd::workflow::looked_at;
use crate::compose;
use crate::config::backend::{AwsTable, BackendConfig};
use crate::config::{self, Config, ConfigArgs, check};
use crate::exit::{Exit, Failure, one_line};
use crate::output::{Output, Tone, counted};
use crate::procedures;

/// Look at everything a server needs
#[derive(Debug, Args)]
#[command(after_help = "It changes nothing, and works beside a running server.
Exit codes: 0 nothing failed, 1 something did, 2 the configuration cannot be used, 4 the database is damaged;
with --alive: 0 it lives, 3 it does not answer, 1 something else does.

Examples:
  wf-cli doctor
  wf-cli doctor --alive
  wf-cli doctor --config checkpoint.toml --json")]
pub(crate) struct DoctorArgs {
    /// Do not read the whole store
    #[arg(long)]
    quick: bool,
    /// Only ask the server that runs with this configuration on this machine whether it lives: for the health check of a
    /// container
    #[arg(long, conflicts_with = "quick")]
    alive: bool,
}

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// Fine.
    Ok,
    /// Worth a look.
    Warn,
    /// A server would not work, or not well.
    Fail,
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug)]
pub(super) struct Check {
    name: &'static str,
    state: State,
    says: String,
    to_do: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &'static str, says: impl fmt::Display) -> Self {
        Self::new(name, State::Ok, says)
    }

    pub(super) fn new(name: &'static str, state: State, says: impl fmt::Display) -> Self {
        Self { name, state, says: says.to_string(), to_do: None }
    }

    pub(super) fn advise(mut self, to_do: impl Into<String>) -> Self {
        self.to_do = Some(to_do.into());
        self
    }
}

/// Runs the command.
pub(crate) async fn run(
    args: &DoctorArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let layers = config.layers(&[])?;
    let accepted = config::accept(&layers)?;
    if args.alive {
        return alive::run(&accepted.server, output).await;
    }
    let mut checks = vec![Check::ok(
        "configuration",
        config
            .config
            .as_deref()
            .map_or("defaults, no file".to_owned(), |path| path.display().to_string()),
    )];
    if let Some(problem) = check::exposure(&layers) {
        checks.push(
            Check::new("exposure", State::Fail, problem)
                .advise("set auth.mode = \"jwt\", or listen on a loopback address"),
        );
    }
    let (found, damaged) = state(&accepted, args.quick, output).await;
    checks.extend(found);
    checks.extend(definitions(&accepted));
    checks.extend(secrets::checks(&accepted));
    checks.extend(auth::checks(&accepted).await);
    checks.push(address("listen", accepted.server.listen));
    checks.extend(accepted.server.admin_listen.map(|admin| address("admin listen", admin)));
    checks.push(clock(SystemClock.now()));
    print(&checks, output)?;
    if checks.iter().any(|check| check.state == State::Fail) {
        let exit = if damaged { Exit::Damage } else { Exit::Failed };
        return Err(Failure::quiet(exit));
    }
    Ok(())
}

fn print(checks: &[Check], output: Output) -> Result<(), Failure> {
    if output.is_json() {
        let all: Vec<Value> = checks
            .iter()
            .map(|check| {
                json!({
                    "check": check.name,
                    "state": check.state.as_str(),
                    "says": check.says,
                    "to_do": check.to_do,
                })
            })
            .collect();
        let ok = checks.iter().all(|check| check.state != State::Fail);
        return output.document(&json!({ "ok": ok, "checks": all }));
    }
    for check in checks {
        let tone = match check.state {
            State::Ok => Tone::Good,
            State::Warn => Tone::Warn,
            State::Fail => Tone::Bad,
        };
        output.line(&format!(
            "{}  {:<13}  {}",
            output.paint(tone, &format!("{:<4}", check.state.as_str())),
            check.name,
            one_line(&check.says)
        ))?;
        if let Some(to_do) = &check.to_do {
            let text = format!("      {:<13}  → {}", "", one_line(to_do));
            output.line(&output.paint(Tone::Faint, &text))?;
        }
    }
    Ok(())
}

/// Looks at where the state is; also whether it is damaged.
async fn state(config: &Config, quick: bool, output: Output) -> (Vec<Check>, bool) {
    match &config.backend {
        BackendConfig::Local { path } => database(path, quick, output).await,
        BackendConfig::Aws(table) => in_table(config, table, quick, output).await,
    }
}

/// Looks at the store in a table.
async fn in_table(
    config: &Config,
    table: &AwsTable,
    quick: bool,
    output: Output,
) -> (Vec<Check>, bool) {
    #[cfg(feature = "aws")]
    let (mut checks, has_store) = {
        let looked = table::look(table).await;
        (looked.checks, looked.has_store)
    };
    // Without the backend no configuration that names a table gets here.
    #[cfg(not(feature = "aws"))]
    let (mut checks, has_store) = (vec![Check::ok("table", table)], true);
    if !has_store {
        return (checks, false);
    }
    let examined = async {
        let backend = compose::open_existing(config).await?;
        let bar = output.progress("workflows read");
        let mut progress = |workflows| bar.set_position(workflows);
        let report = if quick {
            None
        } else {
            Some(verify(backend.store().as_ref(), None, &mut progress).await?)
        };
        bar.finish_and_clear();
        Ok::<_, Failure>(report)
    };
    match examined.await {
        Ok(report) => {
            checks.push(integrity(report.as_ref()));
            (checks, report.is_some_and(|report| !report.findings.is_empty()))
        }
        Err(failure) => {
            checks.push(unusable("database", &failure));
            (checks, failure.exit() == Exit::Damage)
        }
    }
}

/// Looks at the database and its folder; also whether it is damaged.
async fn database(path: &Path, quick: bool, output: Output) -> (Vec<Check>, bool) {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut checks = disk::checks(&path);
    // An empty file is what `serve` takes for a new one, too.
    let new =
        std::fs::metadata(&path).map_or(!path.exists(), |file| file.is_file() && file.len() == 0);
    if new {
        let says = format!("{} is not there yet; serve makes it", path.display());
        checks.push(Check::ok("database", says));
        return (checks, false);
    }
    let bar = output.progress("workflows read");
    let mut progress = |workflows| bar.set_position(workflows);
    let found = compose::local::examine(&path, quick, &mut progress).await;
    bar.finish_and_clear();
    match found {
        Ok(found) => {
            let says = format!("{}, {} bytes, schema of this build", path.display(), found.bytes);
            checks.push(Check::ok("database", says));
            checks.push(log_size(found.wal_bytes));
            checks.push(integrity(found.report.as_ref()));
            let damaged = found.report.is_some_and(|report| !report.findings.is_empty());
            (checks, damaged)
        }
        Err(failure) => {
            checks.push(unusable("database", &failure));
            (checks, failure.exit() == Exit::Damage)
        }
    }
}

/// A failure as a check: its first line is the message, the rest is causes and advice.
fn unusable(name: &'static str, failure: &Failure) -> Check {
    let text = failure.text();
    let mut lines = text.lines().map(str::trim);
    let says = lines.next().unwrap_or_default();
    let rest: Vec<&str> = lines.map(|line| line.strip_prefix("to do: ").unwrap_or(line)).collect();
    let check = Check::new(name, State::Fail, says.strip_prefix("error: ").unwrap_or(says));
    if rest.is_empty() { check } else { check.advise(rest.join("; ")) }
}

/// A log of this size means that a reader keeps it from being cut, in bytes.
const WAL_LARGE: u64 = 128 * 1024 * 1024;

fn log_size(bytes: u64) -> Check {
    let says = format!("{bytes} bytes");
    if bytes < WAL_LARGE {
        return Check::ok("log size", says);
    }
    Check::new("log size", State::Warn, says)
        .advise("something reads for very long: end old readers, or restart the server to cut it")
}

fn integrity(report: Option<&VerifyReport>) -> Check {
    let Some(report) = report else {
        return Check::ok("integrity", "not looked at");
    };
    let read = format!("{} read and recomputed", looked_at(report));
    match report.findings.first() {
        None => Check::ok("integrity", read),
        Some(first) => Check::new(
            "integrity",
            State::Fail,
            format!(
                "{read}, {}, the first: {} {} {}",
                counted(report.findings.len(), "finding"),
                first.invariant,
                first.workflow_id,
                first.message
            ),
        )
        .advise("stop the server, keep a copy of the files, and restore a backup"),
    }
}

fn definitions(config: &Config) -> Vec<Check> {
    let mut checks = vec![match procedures::load(None) {
        Ok(loaded) => Check::ok("procedures", format!("{} (built in)", loaded.names())),
        Err(failure) => Check::new("procedures", State::Fail, failure.text()),
    }];
    let Some(dir) = config.procedures.as_deref() else {
        return checks;
    };
    match wf_procedure::load_dir(dir) {
        Ok(found) if found.files.is_empty() => checks.push(
            Check::new(
                "procedures",
                State::Warn,
                format!("{} holds no procedure files", dir.display()),
            )
            .advise("put *.yaml or *.json files there, or unset procedures.dir"),
        ),
        Ok(found) => checks.extend(found.files.iter().map(|(path, procedure)| {
            let definition = procedure.definition();
            let says =
                format!("{}: {} version {}", path.display(), definition.id, definition.version);
            Check::ok("procedure", says)
        })),
        Err(LoadError::Problems(problems)) => checks.extend(problems.into_iter().map(|problem| {
            Check::new("procedure", State::Fail, problem)
                .advise("mend the file; `wf-cli procedure check FILE` checks it again")
        })),
        Err(LoadError::List { path, source }) => checks.push(
            Check::new(
                "procedures",
                State::Fail,
                format!("{} cannot be listed: {source}", path.display()),
            )
            .advise("make the folder, or name another with procedures.dir"),
        ),
    }
    checks
}

fn address(name: &'static str, address: SocketAddr) -> Check {
    match TcpListener::bind(address) {
        Ok(_) => Check::ok(name, format!("{address} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Check::new(name, State::Warn, format!("{address} is taken"))
                .advise("fine when that is the server; otherwise choose another address")
        }
        Err(error) => Check::new(name, State::Fail, format!("{address}: {error}"))
            .advise("choose an address of this machine and a port above 1023"),
    }
}

/// 2026-01-01T00:00:00Z: this build is younger, so an earlier clock is wrong.
const BUILT_AFTER_MS: i64 = 1_767_225_600_000;
/// 2100-01-01T00:00:00Z.
const FAR_FUTURE_MS: i64 = 4_102_444_800_000;

fn clock(now: Timestamp) -> Check {
    if (BUILT_AFTER_MS..FAR_FUTURE_MS).contains(&now.as_ms()) {
        Check::ok("clock", now)
    } else {
        Check::new("clock", State::Fail, format!("{now} cannot be right"))
            .advise("set the clock, for example with NTP; histories record these times")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_clock_is_noticed() {
        assert_eq!(clock(Timestamp::from_ms(0)).state, State::Fail);
        assert_eq!(clock(Timestamp::from_ms(BUILT_AFTER_MS)).state, State::Ok);
        assert_eq!(clock(Timestamp::from_ms(FAR_FUTURE_MS)).state, State::Fail);
    }

    #[test]
    fn a_taken_address_is_a_warning_and_a_foreign_one_a_failure() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let here = taken.local_addr().unwrap();
        assert_eq!(address("listen", here).state, State::Warn);
        drop(taken);
        assert_eq!(address("listen", here).state, State::Ok);
        let foreign = SocketAddr::from(([192, 0, 2, 1], 8080));
        assert_eq!(address("listen", foreign).state, State::Fail);
    }
}
