//! All figures: rounds in which everything is measured one after the other, and what is said of them ([`verdicts`]).
//!
//! A figure is a ratio of two things of the same round, so that a machine that is busy for a while is busy for both. The
//! order of a round is turned around in every other one.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::contenders::{Contenders, LIST, serve, temporary};
use super::fill::{self, fill};
use super::growth::{Growing, Growth, Sizes};
use super::load::Measured;
use super::machine::Machine;
use super::peers::{Installed, Settings};
use super::raw::Raw;
use super::run::say;
use super::start::{Start, start};
use super::verdicts::{Verdict, verdicts};
use super::wire::Connection;
use crate::fault::Fault;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The built server.
    pub server: PathBuf,
    /// The Python peer's Python, if there is one.
    pub python: Option<PathBuf>,
    /// Engines of durable work, those that are there.
    pub engines: Installed,
    /// Where databases are made; the filled ones stay there.
    pub folder: PathBuf,
    /// How often everything is measured.
    pub rounds: usize,
    /// How long each thing is measured in a round.
    pub time: Duration,
    /// Callers of the wide load.
    pub callers: usize,
    /// Workflows of the small and the large database.
    pub workflows: (u64, u64),
    /// Events of the long history.
    pub history: u64,
}

/// One round.
#[derive(Debug, Clone, Serialize)]
pub struct Round {
    /// Raw SQLite, a transaction a step.
    pub raw_one: Raw,
    /// Raw SQLite, 64 steps in a transaction.
    pub raw_many: Raw,
    /// The bare echo under one caller.
    pub echo_one: Measured,
    /// The bare echo under many.
    pub echo_many: Measured,
    /// The Python peer under one caller.
    pub peer_one: Option<Measured>,
    /// The Python peer under many.
    pub peer_many: Option<Measured>,
    /// Restate under one caller.
    pub restate_one: Option<Measured>,
    /// Restate under many.
    pub restate_many: Option<Measured>,
    /// DBOS under one caller.
    pub dbos_one: Option<Measured>,
    /// DBOS under many.
    pub dbos_many: Option<Measured>,
    /// The product under one caller, with replays.
    pub product_one: Measured,
    /// The product under many.
    pub product_many: Measured,
    /// The product's list of tools under one caller.
    pub list_one: Measured,
    /// The bare echo with the sizes of that, under one caller.
    pub list_echo_one: Measured,
    /// What a call costs as the database grows.
    pub growth: Growth,
    /// Starts on the large database, one with it in memory, one without.
    pub starts: [Start; 2],
}

/// The length of the list of tools, in characters of compact JSON.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ToolList {
    /// Without the schemas of results.
    pub bare: usize,
    /// With them.
    pub whole: usize,
}

/// Everything that was measured, and what is said of it.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// Version of the server.
    pub version: String,
    /// When, in seconds since the Unix epoch.
    pub at: u64,
    /// The machine.
    pub machine: Machine,
    /// What the engines ran with.
    pub settings: Vec<Settings>,
    /// How long each thing was measured in a round, in seconds.
    pub seconds: f64,
    /// Callers of the wide load.
    pub callers: usize,
    /// Workflows of the small and the large database.
    pub workflows: (u64, u64),
    /// Size of the large database, in bytes.
    pub large_bytes: u64,
    /// Events of the long history.
    pub history: u64,
    /// The list of tools.
    pub tools: ToolList,
    /// What is said.
    pub verdicts: Vec<Verdict>,
    /// The rounds.
    pub rounds: Vec<Round>,
}

/// Measures everything.
///
/// # Errors
/// When something could not be measured.
pub async fn measure(asked: &Asked) -> Result<Figures, Fault> {
    std::fs::create_dir_all(&asked.folder).map_err(Fault::io("the folder of databases"))?;
    let sizes = Sizes {
        small: filled(asked, asked.workflows.0).await?,
        large: filled(asked, asked.workflows.1).await?,
        history: asked.history,
    };
    let machine = Machine::look(&asked.folder)?;
    let below = Some(asked.folder.as_path());
    let (python, engines) = (asked.python.as_deref(), asked.engines.clone());
    let contenders = Contenders::new(&asked.server, python, engines, below, asked.time).await?;
    let settings = contenders.settings().await?;
    let version = version(&asked.server)?;
    let tools = tools(&asked.server, &asked.folder).await?;
    let growing = Growing::begin(&asked.server, &sizes, below, asked.time).await?;
    let mut measured = Vec::with_capacity(asked.rounds);
    for n in 0..asked.rounds {
        let turned = n % 2 == 1;
        let part = Part::measure(&contenders, asked.callers, turned).await?;
        let growth = growing.round(turned).await?;
        say(&format!(
            "round {} of {}: product {:.0} steps/s with {} callers, {:.0} µs with one",
            n + 1,
            asked.rounds,
            part.product_many.rate,
            asked.callers,
            part.product_one.times.p50_us,
        ));
        measured.push((part, growth));
    }
    growing.end().await?;
    let mut rounds = Vec::with_capacity(asked.rounds);
    for (part, growth) in measured {
        // Starts come last, when nobody else has the large database open.
        let warm = start(&asked.server, &sizes.large, below, false).await?;
        let cold = start(&asked.server, &sizes.large, below, true).await?;
        rounds.push(part.round(growth, [warm, cold]));
    }
    let size = std::fs::metadata(&sizes.large).map_err(Fault::io("measuring the database"))?;
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Ok(Figures {
        version,
        at,
        machine,
        settings,
        seconds: asked.time.as_secs_f64(),
        callers: asked.callers,
        workflows: asked.workflows,
        large_bytes: size.len(),
        history: asked.history,
        tools,
        verdicts: verdicts(&rounds, tools, asked),
        rounds,
    })
}

/// The part of a round that begins with new databases.
#[derive(Debug)]
struct Part {
    raw_one: Raw,
    raw_many: Raw,
    echo_one: Measured,
    echo_many: Measured,
    peer_one: Option<Measured>,
    peer_many: Option<Measured>,
    restate_one: Option<Measured>,
    restate_many: Option<Measured>,
    dbos_one: Option<Measured>,
    dbos_many: Option<Measured>,
    product_one: Measured,
    product_many: Measured,
    list_one: Measured,
    list_echo_one: Measured,
}

impl Part {
    async fn measure(what: &Contenders, callers: usize, turned: bool) -> Result<Self, Fault> {
        // What is compared is measured next to each other. Fields are evaluated in the order in which they are written.
        if turned {
            return Ok(Self {
                peer_many: what.peer(callers).await?,
                dbos_many: what.dbos(callers).await?,
                restate_many: what.restate(callers).await?,
                echo_many: what.echo(callers).await?,
                product_many: what.product(callers, false).await?,
                raw_many: what.raw(true).await?,
                peer_one: what.peer(1).await?,
                dbos_one: what.dbos(1).await?,
                restate_one: what.restate(1).await?,
                echo_one: what.echo(1).await?,
                product_one: what.product(1, true).await?,
                list_echo_one: what.echo_list(1).await?,
                list_one: what.product_list(1).await?,
                raw_one: what.raw(false).await?,
            });
        }
        Ok(Self {
            raw_one: what.raw(false).await?,
            product_one: what.product(1, true).await?,
            echo_one: what.echo(1).await?,
            list_one: what.product_list(1).await?,
            list_echo_one: what.echo_list(1).await?,
            restate_one: what.restate(1).await?,
            dbos_one: what.dbos(1).await?,
            peer_one: what.peer(1).await?,
            raw_many: what.raw(true).await?,
            product_many: what.product(callers, false).await?,
            echo_many: what.echo(callers).await?,
            restate_many: what.restate(callers).await?,
            dbos_many: what.dbos(callers).await?,
            peer_many: what.peer(callers).await?,
        })
    }

    fn round(self, growth: Growth, starts: [Start; 2]) -> Round {
        Round {
            raw_one: self.raw_one,
            raw_many: self.raw_many,
            echo_one: self.echo_one,
            echo_many: self.echo_many,
            peer_one: self.peer_one,
            peer_many: self.peer_many,
            restate_one: self.restate_one,
            restate_many: self.restate_many,
            dbos_one: self.dbos_one,
            dbos_many: self.dbos_many,
            product_one: self.product_one,
            product_many: self.product_many,
            list_one: self.list_one,
            list_echo_one: self.list_echo_one,
            growth,
            starts,
        }
    }
}

/// The filled database of this size; made when it is not there.
async fn filled(asked: &Asked, workflows: u64) -> Result<PathBuf, Fault> {
    let path = asked.folder.join(format!("filled-{workflows}.db"));
    if !path.exists() {
        say(&format!("filling {} with {workflows} workflows", path.display()));
        let to = path.clone();
        // On a runtime of its own, with all processors.
        tokio::task::spawn_blocking(move || fill(&to, workflows, fill::EVENTS))
            .await
            .map_err(|error| Fault::Run(format!("filling: {error}")))??;
    }
    Ok(path)
}

/// The server's name and version. Asked for, and not looked up in a log, whose first line is any.
fn version(server: &Path) -> Result<String, Fault> {
    let asked = std::process::Command::new(server).arg("--version").output();
    let output = asked.map_err(Fault::io("asking the server for its version"))?;
    version_in(&output.stdout)
        .ok_or_else(|| Fault::Run("the server does not tell its version".to_owned()))
}

/// A program's name with a version of three numbers at least, and nothing else.
fn version_in(said: &[u8]) -> Option<String> {
    let said = std::str::from_utf8(said).ok()?.trim();
    let (name, version) = said.split_once(' ')?;
    let numbers = version.split(['.', '-', '+']).take(3);
    let right = numbers.filter(|number| number.parse::<u32>().is_ok()).count() == 3;
    (right && !name.is_empty() && !version.contains(char::is_whitespace)).then(|| said.to_owned())
}

/// The list of tools as a client gets it.
async fn tools(server: &Path, below: &Path) -> Result<ToolList, Fault> {
    let folder = temporary(Some(below))?;
    let running = serve(server, folder.path(), None)?;
    let mut connection = Connection::open(running.address()).await?;
    let answer = connection.call(Bytes::from_static(LIST.as_bytes())).await?;
    running.stop()?;
    tool_list(&answer)
        .ok_or_else(|| Fault::Run("tools/list was not answered with a list".to_owned()))
}

fn tool_list(answer: &[u8]) -> Option<ToolList> {
    let mut parsed: Value = serde_json::from_slice(answer).ok()?;
    let tools = parsed.pointer_mut("/result/tools")?;
    let length = |tools: &Value| tools.to_string().chars().count();
    let whole = length(tools);
    for tool in tools.as_array_mut()? {
        tool.as_object_mut()?.remove("outputSchema");
    }
    Some(ToolList { bare: length(tools), whole })
}

#[cfg(test)]
mod tests {
    use super::{tool_list, version_in};

    #[test]
    fn a_line_of_the_log_is_no_version() {
        assert_eq!(version_in(b"wf-cli 0.1.0\n").as_deref(), Some("wf-cli 0.1.0"));
        assert_eq!(version_in(b"wf-cli 1.2.3-rc.1\n").as_deref(), Some("wf-cli 1.2.3-rc.1"));
        let log = "2026-11-30T14:05:36.741050Z  INFO wf_cli::cmd::serve: there is no console";
        for other in [log, "", "wf-cli", "wf-cli is here", "wf-cli 0.1.0\nCheckpoint 0.1.0"] {
            assert_eq!(version_in(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_list_of_tools_is_measured_with_and_without_the_schemas_of_results() {
        let answer = r#"{"result":{"tools":[{"name":"ä","outputSchema":{"type":"object"}}]}}"#;
        let list = tool_list(answer.as_bytes()).expect("a list");
        assert_eq!(list.bare, r#"[{"name":"ä"}]"#.chars().count());
        assert!(list.whole > list.bare);
        assert!(tool_list(b"{}").is_none());
    }
}
