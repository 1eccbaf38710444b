//! One case while it runs: its place, its server, its callers, and what was found.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::caller::{Caller, Said};
use super::case::{Case, How};
use super::ground::Place;
use crate::fault::Fault;
use crate::harness::audit::audit;
use crate::harness::client::Client;
use crate::harness::disk::Tap;
use crate::harness::record::Recorder;
use crate::harness::server::{Launch, Server};
use crate::torture::Setting;

/// Callers of a case.
const CALLERS: u32 = 4;

/// How soon writing must work again after a fault is gone.
pub(super) const SOON: Duration = Duration::from_secs(5);

/// Longest wait for something that a case brings about.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// Pause between two looks at something.
const PAUSE: Duration = Duration::from_millis(10);

/// A case.
#[derive(Debug)]
pub(super) struct Scene {
    /// How the server is started.
    pub(super) launch: Launch,
    /// Where it keeps its files.
    pub(super) place: Place,
    /// What callers saw.
    pub(super) recorder: Arc<Recorder>,
    /// What must not be, and how often it was.
    found: BTreeMap<String, u32>,
    /// What was done and measured.
    pub(super) done: Vec<String>,
    /// What stands between the server and its files, where a case wants it.
    pub(super) tap: Option<Tap>,
    /// What is going on, for what is found meanwhile.
    pub(super) at: Option<String>,
    server: Option<Server>,
    callers: Vec<Caller>,
}

impl Scene {
    /// With a server that runs, and callers that know where it is.
    pub(super) fn open(setting: &Setting, case: &Case, place: Place) -> Result<Self, Fault> {
        let launch = Launch::new(&setting.server, &place.folder).env("WF_TELEMETRY_LOG", "warn");
        let launch = case.env.iter().fold(launch, |launch, (name, value)| launch.env(name, *value));
        let (tap, launch) = if let How::Calls(_) = case.how {
            let (tap, launch) = Tap::new(&setting.preload, launch, place.under())?;
            tap.leave_alone()?;
            (Some(tap), launch)
        } else {
            (None, launch)
        };
        let mut scene = Self {
            launch,
            place,
            recorder: Arc::default(),
            tap,
            at: None,
            found: BTreeMap::new(),
            done: Vec::new(),
            server: None,
            callers: Vec::new(),
        };
        scene.start()?;
        Ok(scene)
    }

    /// Starts the server and turns the callers to it.
    pub(super) fn start(&mut self) -> Result<(), Fault> {
        let server = Server::start(&self.launch)?;
        let address = server.address();
        if self.callers.is_empty() {
            let caller = |number| Caller::new(number, address, &self.recorder);
            self.callers = (0..CALLERS).map(caller).collect();
        }
        self.callers.iter_mut().for_each(|caller| caller.turn_to(address));
        self.server = Some(server);
        Ok(())
    }

    /// The server.
    pub(super) fn server(&self) -> Result<&Server, Fault> {
        self.server.as_ref().ok_or_else(|| Fault::Run("there is no server".to_owned()))
    }

    /// Takes the server out, to end it.
    pub(super) fn take_server(&mut self) -> Result<Server, Fault> {
        self.server.take().ok_or_else(|| Fault::Run("there is no server".to_owned()))
    }

    /// Ends the server politely, whatever it says about it: its disk may be gone.
    pub(super) fn stop_somehow(&mut self) -> Result<(), Fault> {
        self.take_server()?.stop().map(|_| ())
    }

    /// Notes something that must not be.
    pub(super) fn wrong(&mut self, what: impl Into<String>) {
        let what = match &self.at {
            Some(at) => format!("{at}: {}", what.into()),
            None => what.into(),
        };
        *self.found.entry(what).or_default() += 1;
    }

    /// What must not be, one line each.
    pub(super) fn found(&self) -> impl Iterator<Item = String> {
        self.found.iter().map(|(what, times)| match times {
            1 => what.clone(),
            times => format!("{times} times: {what}"),
        })
    }

    /// The callers, for cases that use them in their own way.
    pub(super) fn callers(&mut self) -> &mut [Caller] {
        &mut self.callers
    }

    /// Each caller acts so often, all at once. What each attempt said, caller after caller.
    pub(super) async fn round(&mut self, times: u32) -> Result<Vec<Said>, Fault> {
        self.each(move |mut caller| async move {
            let mut said = Vec::new();
            for _ in 0..times {
                said.push(caller.act().await);
            }
            (caller, said)
        })
        .await
    }

    /// Each caller reads once.
    pub(super) async fn looks(&mut self) -> Result<Vec<Said>, Fault> {
        self.each(|mut caller| async move {
            let said = vec![caller.look().await];
            (caller, said)
        })
        .await
    }

    async fn each<F>(&mut self, work: impl Fn(Caller) -> F) -> Result<Vec<Said>, Fault>
    where
        F: Future<Output = (Caller, Vec<Said>)> + Send + 'static,
    {
        let mut at_work = JoinSet::new();
        for (number, caller) in std::mem::take(&mut self.callers).into_iter().enumerate() {
            let work = work(caller);
            at_work.spawn(async move { (number, work.await) });
        }
        let mut ended = Vec::new();
        while let Some(one) = at_work.join_next().await {
            ended.push(one.map_err(|error| Fault::Run(format!("a caller broke: {error}")))?);
        }
        ended.sort_by_key(|(number, _)| *number);
        let mut all = Vec::new();
        for (_, (caller, said)) in ended {
            self.callers.push(caller);
            all.extend(said);
        }
        Ok(all)
    }

    /// Every caller must get so many calls done.
    pub(super) async fn work(&mut self, times: u32, when: &str) -> Result<(), Fault> {
        for said in self.round(times).await? {
            if said != Said::Done {
                self.wrong(format!("{when}, a call got {said:?}"));
            }
        }
        Ok(())
    }

    /// Waits until every caller gets a call done, and the server says that it is ready. The fault is gone. Answers how
    /// long it took until the calls were done.
    pub(super) async fn recover(&mut self) -> Result<Duration, Fault> {
        let begun = Instant::now();
        let took = loop {
            let said = self.round(1).await?;
            self.condemn(&said);
            let took = begun.elapsed();
            if said.iter().all(|said| *said == Said::Done) {
                break took;
            }
            if took > SOON {
                self.wrong(format!("does not write again within {SOON:?}: {said:?}"));
                break took;
            }
            tokio::time::sleep(PAUSE).await;
        };
        if !self.is_ready_within(true, SOON.saturating_sub(begun.elapsed())).await {
            self.wrong(format!("/readyz is not 200 within {SOON:?}"));
        }
        let mut open = Vec::new();
        for caller in &mut self.callers {
            open.extend(caller.settle(3).await);
        }
        for call in open {
            self.wrong(format!("not settled by three repetitions: {call}"));
        }
        Ok(took)
    }

    /// Notes answers that no fault excuses.
    pub(super) fn condemn(&mut self, said: &[Said]) {
        for said in said {
            if let Said::Wrong(what) | Said::Silent(what) = said {
                self.wrong(format!("a call was answered with {what}"));
            }
        }
    }

    /// Whether `/readyz` says so within this time.
    pub(super) async fn is_ready_within(&self, ready: bool, patience: Duration) -> bool {
        let Ok(server) = self.server() else { return false };
        let wanted = if ready { 200 } else { 503 };
        let end = Instant::now() + patience;
        loop {
            let answer = Client::new(server.address()).get("/readyz").await;
            if answer.is_ok_and(|answer| answer.status().as_u16() == wanted) {
                return true;
            }
            if Instant::now() > end {
                return false;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// A figure of `/metrics`; the first series of the name.
    pub(super) async fn metric(&self, name: &str) -> Option<f64> {
        let page = Client::new(self.server().ok()?.address()).get("/metrics").await.ok()?;
        let page = String::from_utf8_lossy(page.body()).into_owned();
        let line = page.lines().find(|line| line.starts_with(name))?;
        line.rsplit_once(' ')?.1.parse().ok()
    }

    /// The end of the server's log.
    pub(super) fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.launch.folder.join("serve.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(4).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }

    /// Ends the server and holds what callers saw against what it left.
    pub(super) fn close(&mut self) -> Result<(), Fault> {
        if let Some(server) = self.server.take() {
            let ended = server.stop()?;
            if !ended.success() {
                self.wrong(format!("the server ends with {ended}"));
            }
        }
        let attempts = self.recorder.attempts();
        for violation in audit(&self.launch.database(), &attempts)? {
            self.wrong(violation);
        }
        self.done.push(format!("{} attempts", attempts.len()));
        Ok(())
    }
}
