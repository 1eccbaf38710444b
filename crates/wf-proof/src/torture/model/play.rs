//! The system under test: servers on one database, to which the operations of a case are done. `compare` holds what
//! they answer against the model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use wf_testkit::audit::history::{Attempt, Outcome};

use super::call::{Arg, Call, Key, Op, Token};
use super::flaw::Flaw;
use super::tally::Tally;
use super::world::{Answer, Hold, Predicted, World};
use super::write;
use crate::fault::Fault;
use crate::harness::client::Client;
use crate::harness::record::Recorder;
use crate::harness::server::{Launch, Server};

const PROCEDURE: &str = include_str!("bench-round.yaml");

/// Why a case ended early.
#[derive(Debug)]
pub(super) enum End {
    /// The server is not as the model says.
    Wrong(String),
    /// The run itself could not go on.
    Fault(Fault),
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A server and the connection to it.
struct Process {
    launch: Launch,
    running: Option<(Server, Client)>,
}

/// Everything of one case.
pub(super) struct Player<'t> {
    pub(super) folder: TempDir,
    runtime: Runtime,
    processes: [Process; 2],
    recorder: Recorder,
    pub(super) tally: &'t mut Tally,
    pub(super) flaw: Option<Flaw>,
    pub(super) begun: SystemTime,
    /// Ids of the workflows, in the order of their starts.
    pub(super) ids: Vec<String>,
    /// Ids of the blocks of each workflow, in the order in which they were opened.
    pub(super) blocks: BTreeMap<(usize, usize), String>,
    pub(super) tokens: Vec<String>,
    pub(super) next_keys: BTreeMap<(usize, u64), String>,
    /// Texts of answers by the number of their call.
    pub(super) answers: BTreeMap<usize, String>,
    /// What `get_status` said last of each workflow, at which revision, and who had its assets.
    pub(super) seen: Vec<((u64, Hold), Value)>,
}

impl<'t> Player<'t> {
    pub(super) fn begin(
        program: &Path,
        folder: &Path,
        tally: &'t mut Tally,
        flaw: Option<Flaw>,
    ) -> Result<Self, Fault> {
        let folder = tempfile::Builder::new()
            .prefix("model-")
            .tempdir_in(folder)
            .map_err(Fault::io("a folder for a case"))?;
        let made = |path: PathBuf| {
            std::fs::create_dir(&path).map_err(Fault::io("a folder for a case")).map(|()| path)
        };
        let procedures = made(folder.path().join("procedures"))?;
        std::fs::write(procedures.join("bench-round.yaml"), PROCEDURE)
            .map_err(Fault::io("the procedure"))?;
        let second = made(folder.path().join("second"))?;
        let process = |own: &Path| {
            let clock = format!("clock=return({})", folder.path().join("clock").display());
            let mut launch = Launch::new(program, own).env("FAILPOINTS", clock);
            let database = folder.path().join("checkpoint.db");
            for argument in [
                "--database",
                &database.display().to_string(),
                "--procedures",
                &procedures.display().to_string(),
            ] {
                launch.arguments.push(argument.to_owned());
            }
            Process { launch, running: None }
        };
        let processes = [process(folder.path()), process(&second)];
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Fault::io("a runtime"))?;
        let mut player = Self {
            folder,
            runtime,
            processes,
            recorder: Recorder::default(),
            tally,
            flaw,
            begun: SystemTime::now(),
            ids: Vec::new(),
            blocks: BTreeMap::new(),
            tokens: Vec::new(),
            next_keys: BTreeMap::new(),
            answers: BTreeMap::new(),
            seen: Vec::new(),
        };
        player.start(0)?;
        Ok(player)
    }

    /// Does an operation; `world` is the model after it.
    pub(super) fn play(&mut self, op: &Op, world: &World) -> Result<(), End> {
        match op {
            Op::Call(_)
            | Op::Crash(..)
            | Op::Again { .. }
            | Op::Mutated { .. }
            | Op::Confirm { .. }
            | Op::Flood { .. }
            | Op::Look { .. } => {
                for predicted in &world.last {
                    self.ask(predicted, world)?;
                }
            }
            Op::Kill { via } => {
                let which = self.which(*via);
                self.tally.count("killed");
                self.kill(which)?;
                // Under another server that runs, SQLite itself would notice, and no audit would have to.
                let alone = self.processes.iter().all(|process| process.running.is_none());
                if alone && self.flaw == Some(Flaw::LosesCommits) {
                    self.put_back()?;
                }
                self.start(which)?;
            }
            Op::Stop { via } => {
                let which = self.which(*via);
                self.tally.count("stopped in order");
                self.stop(which)?;
                self.start(which)?;
            }
            Op::Second if world.second => {
                self.tally.count("second server");
                self.start(1)?;
            }
            Op::Second => self.stop(1)?,
            Op::Clock { minutes } => {
                self.tally.count(if *minutes < 0 { "clock back" } else { "clock forward" });
                std::fs::write(self.folder.path().join("clock"), world.clock.to_string())
                    .map_err(Fault::io("the clock"))?;
            }
            Op::Release { asset } => self.release(asset, world)?,
        }
        self.look_at_all(world)
    }

    /// The second server where there is one and it is meant, else the first.
    fn which(&self, via: u8) -> usize {
        let second = self.processes.get(1).is_some_and(|process| process.running.is_some());
        usize::from(via == 1 && second)
    }

    fn process(&mut self, which: usize) -> Result<&mut Process, Fault> {
        self.processes.get_mut(which).ok_or_else(|| Fault::Run("no such server".to_owned()))
    }

    fn start(&mut self, which: usize) -> Result<(), Fault> {
        if self.flaw == Some(Flaw::LosesCommits) {
            self.keep_copy()?;
        }
        let process = self.process(which)?;
        let server = Server::start(&process.launch)?;
        let client = Client::new(server.address());
        process.running = Some((server, client));
        Ok(())
    }

    fn kill(&mut self, which: usize) -> Result<(), Fault> {
        match self.process(which)?.running.take() {
            Some((server, _)) => server.kill(),
            None => Ok(()),
        }
    }

    fn stop(&mut self, which: usize) -> Result<(), End> {
        let Some((server, _)) = self.process(which)?.running.take() else { return Ok(()) };
        let status = server.stop()?;
        if status.success() {
            return Ok(());
        }
        Err(End::Wrong(format!("an orderly stop ended with {status}")))
    }

    /// Sends the call, through a crash if that is asked, and compares the answer.
    fn ask(&mut self, predicted: &Predicted, world: &World) -> Result<(), End> {
        let Some(call) = world.calls.get(predicted.number) else {
            return Err(Fault::Run("a call is not in the model".to_owned()).into());
        };
        let arguments = self.arguments(call);
        self.before(call, predicted)?;
        if let Some(after) = predicted.crash {
            self.crash(call, &arguments, after, predicted, world)?;
        } else {
            let text = self.send(call, &arguments)?;
            self.compare(call, predicted, world, &text, false)?;
        }
        self.after(call, predicted)
    }

    /// The answer to a call that must be answered.
    pub(super) fn send(
        &mut self,
        call: &Call,
        arguments: &Map<String, Value>,
    ) -> Result<String, End> {
        match self.attempt(call, arguments, None)? {
            Outcome::Answered { text } => Ok(text),
            other @ (Outcome::NotSent | Outcome::Unknown { .. } | Outcome::Shed { .. }) => {
                let log = self.processes.iter().filter_map(|p| p.running.as_ref());
                let log: String = log.map(|(server, _)| server.log()).collect();
                Err(End::Wrong(format!(
                    "{} was not answered: {other:?}; the server said:\n{log}",
                    call.tool
                )))
            }
        }
    }

    /// Sends the call, kills its server so many microseconds later, starts it, and sends the call again.
    fn crash(
        &mut self,
        call: &Call,
        arguments: &Map<String, Value>,
        after: u32,
        predicted: &Predicted,
        world: &World,
    ) -> Result<(), End> {
        let which = self.which(call.via);
        let first = self.attempt(call, arguments, Some(after))?;
        self.kill(which)?;
        self.start(which)?;
        let answered = if let Outcome::Answered { text } = first {
            self.tally.count("crash after the answer");
            self.compare(call, predicted, world, &text, false)?;
            true
        } else {
            false
        };
        let text = self.send(call, arguments)?;
        if !answered {
            let told = text.contains(r#""duplicate":true"#);
            self.tally.count(if told {
                "crash between commit and answer"
            } else {
                "crash before commit"
            });
        }
        self.compare(call, predicted, world, &text, true)
    }

    fn attempt(
        &mut self,
        call: &Call,
        arguments: &Map<String, Value>,
        kill_after: Option<u32>,
    ) -> Result<Outcome, End> {
        let body = write::body(&call.tool, arguments, call.expects, call.style, call.broken);
        let which = self.which(call.via);
        let (number, sent_ns) = (self.recorder.next_call(), self.recorder.now_ns());
        let running = self.processes.get_mut(which).and_then(|process| process.running.as_mut());
        let Some((server, client)) = running else {
            return Err(Fault::Run("no server is up".to_owned()).into());
        };
        let outcome = self.runtime.block_on(async {
            let sent = client.send(body.into());
            let killed = async {
                let Some(after) = kill_after else { return Ok(()) };
                tokio::time::sleep(Duration::from_micros(after.into())).await;
                server.signal(Signal::KILL)
            };
            let (outcome, killed) = tokio::join!(sent, killed);
            killed.map(|()| outcome)
        })?;
        self.recorder.keep(Attempt {
            call: number,
            caller: 0,
            tenant: "default".to_owned(),
            actor: "user:local".to_owned(),
            tool: call.tool.clone(),
            arguments: arguments.clone(),
            sent_ns,
            over_ns: self.recorder.now_ns(),
            outcome: outcome.clone(),
        });
        Ok(outcome)
    }

    /// The arguments with the ids that the server gave.
    fn arguments(&self, call: &Call) -> Map<String, Value> {
        let id = |found: Option<&String>| found.map_or_else(|| json!("unknown"), |id| json!(id));
        let mut map: Map<String, Value> = call
            .args
            .iter()
            .map(|(name, arg)| {
                let value = match arg {
                    Arg::Json(value) => value.clone(),
                    Arg::Workflow(n) => id(self.ids.get(*n)),
                    Arg::Block(work, nth) => id(self.blocks.get(&(*work, *nth))),
                };
                (name.clone(), value)
            })
            .collect();
        let key = match &call.key {
            None => None,
            Some(_) if self.flaw == Some(Flaw::ForgetsKeys) => None,
            Some(Key::Named(n)) => Some(format!("key-{n}")),
            Some(Key::Next { workflow, revision }) => {
                self.next_keys.get(&(*workflow, *revision)).cloned()
            }
            Some(Key::TooLong) => Some("k".repeat(129)),
        };
        let token = match call.token {
            None => None,
            Some(Token::Given(n)) => self.tokens.get(n).cloned(),
            Some(Token::Junk) => Some("ct1.9999999999999.AAAA".to_owned()),
        };
        for (name, text) in [("idempotency_key", key), ("confirm_token", token)] {
            if let Some(text) = text {
                map.insert(name.to_owned(), json!(text));
            }
        }
        map
    }

    fn release(&mut self, asset: &str, world: &World) -> Result<(), End> {
        let ran = self.command_release(asset)?;
        let freed = ran.status.success();
        self.tally.count(if freed { "asset freed by hand" } else { "nothing to free by hand" });
        if world.released == Some(freed) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        Err(End::Wrong(format!("locks release {asset} ended with {}: {said}", ran.status)))
    }

    pub(super) fn command_release(&mut self, asset: &str) -> Result<std::process::Output, Fault> {
        let process = self.process(0)?;
        let mut arguments = vec!["locks", "release", asset, "--reason", "the bench asks for it"];
        arguments.extend(process.launch.arguments.iter().map(String::as_str));
        process.launch.command(&arguments)
    }

    /// Ends the servers, without asking, and audits what they left.
    pub(super) fn end(mut self, world: &World) -> Result<(), End> {
        self.look_at_all(world)?;
        self.kill(1)?;
        self.kill(0)?;
        let database = self.folder.path().join("checkpoint.db");
        let violations = crate::harness::audit::audit(&database, &self.recorder.attempts())?;
        match violations.as_slice() {
            [] => Ok(()),
            found => Err(End::Wrong(format!("the audit found: {}", found.join("; ")))),
        }
    }

    pub(super) fn count(&mut self, answer: &Answer, call: &Call) {
        let tool = &call.tool;
        let class = match answer {
            Answer::Fresh("transferred") => {
                format!("ok transferred {}", call.text("action").unwrap_or_default())
            }
            Answer::Fresh(outcome) => format!("ok {outcome}"),
            Answer::Refused(code) => format!("error {code}"),
            Answer::Again(_) => format!("duplicate {tool}"),
        };
        self.tally.count(&class);
    }
}
