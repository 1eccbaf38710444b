//! A server that takes the tokens of an issuer, and everybody who calls it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use wf_testkit::audit::history::Outcome;

use super::issuer::{Issuer, Key, Mood};
use super::prober::{Book, Prober};
use super::shown::{Kind, Mint, SKEW_S, Standing};
use super::{FASTER, WAIT_MAX};
use crate::fault::Fault;
use crate::harness::audit::examine;
use crate::harness::client::{Client, request_body};
use crate::harness::gate::Gate;
use crate::harness::record::{self, Recorder};
use crate::harness::server::{Launch, Server};
use crate::harness::workload::{Plan, Someone, Workload};
use crate::torture::kill::database::fresh_folder;
use crate::torture::{Report, Setting};

/// Callers that probe, and callers that work.
const PROBERS: u32 = 56;
const WORKERS: u32 = 8;
/// What the server calls itself; tokens are for its `/mcp`.
const ORIGIN: &str = "http://127.0.0.1:8080";
/// People who work.
const PEOPLE: [&str; 3] = ["ann", "bob", "eve"];

/// A server with its issuer and its callers.
pub(super) struct Session {
    pub(super) issuer: Issuer,
    pub(super) mint: Arc<Mint>,
    pub(super) book: Arc<Book>,
    seed: u64,
    launch: Launch,
    server: Option<Server>,
    recorder: Arc<Recorder>,
    gate: Gate,
    workload: Option<Workload>,
    probers: JoinSet<()>,
    runtime: Runtime,
    found: Vec<String>,
    done: Vec<String>,
    longest: Duration,
}

impl Session {
    /// A server that begins while the issuer is like that, and probers at once.
    pub(super) fn open(
        setting: &Setting,
        name: &str,
        mood: Mood,
        more: &[(&str, &str)],
    ) -> Result<Self, Fault> {
        let folder = fresh_folder(&setting.folder, name)?;
        let (lasting, stranger) = (Key::new("a")?, Key::new("stranger")?);
        let issuer = Issuer::start(mood, &stranger)?;
        issuer.publishes(&[&lasting]);
        let keys = (lasting, stranger, Key::new("b")?);
        let mint = Arc::new(Mint::new(issuer.name(), &format!("{ORIGIN}/mcp"), keys));
        mint.fade();
        let mut launch = Launch::new(&setting.server, &folder)
            .env("WF_AUTH_MODE", "jwt")
            .env("WF_AUTH_ISSUER", issuer.name())
            .env("WF_AUTH_JWKS_URL", issuer.keys())
            .env("WF_AUTH_CLOCK_SKEW", format!("{SKEW_S}s"))
            .env("WF_SERVER_PUBLIC_URL", ORIGIN)
            .env("WF_TELEMETRY_LOG", "error")
            .env("FAILPOINTS", format!("keys.faster=return({FASTER})"));
        for (name, value) in more {
            // The last one counts.
            launch = launch.env(name, *value);
        }
        let server = Server::start(&launch)?;
        let keys = if mood == Mood::Well { Standing::Known } else { Standing::Unknown };
        let (book, gate) = (Arc::new(Book::new(keys)), Gate::default());
        gate.open(server.address());
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(Fault::io("the threads of the probers"))?;
        let mut probers = JoinSet::new();
        for number in 0..PROBERS {
            let (address, mint, book) = (server.address(), Arc::clone(&mint), Arc::clone(&book));
            let prober = Prober { number, address, mint, book };
            probers.spawn_on(prober.run(setting.seed), runtime.handle());
        }
        Ok(Self {
            issuer,
            mint,
            book,
            seed: setting.seed,
            launch,
            server: Some(server),
            recorder: Arc::default(),
            gate,
            workload: None,
            probers,
            runtime,
            found: Vec::new(),
            done: Vec::new(),
            longest: Duration::ZERO,
        })
    }

    /// Honest people begin to work.
    pub(super) fn works(&mut self) -> Result<(), Fault> {
        let person = |subject: &&str| Someone {
            subject: (*subject).to_owned(),
            token: self.mint.good(subject),
        };
        let people = PEOPLE.iter().map(person).collect();
        let plan = Plan { people, ..Plan::new(WORKERS, self.seed) };
        self.workload = Some(Workload::start(&plan, &self.gate, &self.recorder)?);
        Ok(())
    }

    /// Everybody calls for so long.
    pub(super) fn goes_on(&self, long: Duration) {
        // The experiment itself.
        std::thread::sleep(long);
    }

    /// Notes something that must not be.
    pub(super) fn wrong(&mut self, what: impl Into<String>) {
        self.found.push(what.into());
    }

    /// Notes how long something took.
    pub(super) fn took(&mut self, what: &str, time: Duration) {
        self.done.push(format!("{what} after {:.1} s", time.as_secs_f64()));
    }

    /// Whether a kind is answered with this status in time.
    pub(super) fn is_answered(
        &self,
        kind: Kind,
        status: u16,
        patience: Duration,
    ) -> Result<bool, Fault> {
        let Some(server) = &self.server else {
            return Err(Fault::Run("there is no server".to_owned()));
        };
        let (address, end) = (server.address(), Instant::now() + patience);
        self.runtime.block_on(async {
            loop {
                let mut client = Client::new(address);
                client.bears(self.mint.show(kind));
                let answer = client.post(request_body("find_work", &serde_json::Map::new())).await;
                if answer.is_ok_and(|answer| answer.status() == status) {
                    return Ok(true);
                }
                if Instant::now() > end {
                    return Ok(false);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
    }

    /// Good callers must not have waited.
    pub(super) fn judge_waits(&mut self, phase: &str) {
        let mut waits = self.book.waits();
        waits.sort();
        let at = waits.len().saturating_sub(1) * 99 / 100;
        let most = waits.get(at).copied().unwrap_or_default();
        self.longest = self.longest.max(most);
        if most > WAIT_MAX {
            self.wrong(format!(
                "{phase}: 1 of 100 good callers waited for {most:?} and more ({} calls)",
                waits.len()
            ));
        }
    }

    /// Ends everything, and holds what callers saw against what the server left.
    pub(super) fn close(mut self, report: &mut Report) -> Result<(), Fault> {
        self.book.close();
        let probers = &mut self.probers;
        self.runtime.block_on(async { while probers.join_next().await.is_some() {} });
        if let Some(workload) = self.workload.take() {
            workload.finish()?;
        }
        if let Some(server) = self.server.take() {
            let ended = server.stop()?;
            if !ended.success() {
                self.found.push(format!("the server ends with {ended}"));
            }
        }
        let attempts = self.recorder.attempts();
        let refused = attempts.iter().filter(|a| matches!(a.outcome, Outcome::Unknown { .. }));
        if let Some(refused) = refused.clone().next() {
            let times = refused_times(refused.call, &attempts);
            self.found.push(format!(
                "{} calls of people got no answer, one of them {times} times: {:?}",
                attempts.iter().filter(|a| matches!(a.outcome, Outcome::Unknown { .. })).count(),
                refused.outcome
            ));
        }
        let audit = examine(&self.launch.database(), &attempts)?;
        self.found.extend(audit.violations.iter().map(ToString::to_string));
        self.found.extend(self.book.found());
        let answers = self.book.answers();
        let kinds: BTreeMap<Kind, u64> = answers.iter().fold(BTreeMap::new(), |mut all, (k, n)| {
            *all.entry(k.0).or_default() += n;
            all
        });
        let unseen: Vec<_> =
            Kind::GOOD.iter().chain(&Kind::BAD).filter(|kind| !kinds.contains_key(kind)).collect();
        if !unseen.is_empty() {
            self.found.push(format!("never shown in this run: {unseen:?}"));
        }
        let by_status = answers.iter().fold(BTreeMap::new(), |mut all, ((_, status), n)| {
            *all.entry(*status).or_insert(0_u64) += n;
            all
        });
        report.done.push(format!(
            "{} calls with {} kinds of tokens, answers by status {by_status:?}; fetches of keys {:?}; 99 of 100 good calls \
             within {:?}; {audit}",
            self.book.calls(),
            kinds.len(),
            self.issuer.asked(),
            self.longest
        ));
        report.done.extend(self.done);
        if self.found.is_empty() {
            std::fs::remove_dir_all(&self.launch.folder).map_err(Fault::io("removing a folder"))?;
        } else {
            record::write(&self.launch.folder.join("attempts.jsonl"), &attempts)?;
        }
        report.found.extend(self.found);
        Ok(())
    }
}

fn refused_times(call: u64, attempts: &[wf_testkit::audit::history::Attempt]) -> usize {
    attempts.iter().filter(|attempt| attempt.call == call).count()
}
