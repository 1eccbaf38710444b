//! Far more calls than there is room for, while the store cannot write: what does not fit is refused at once and told
//! when to come back, and costs no memory.
//!
//! Many callers fill every place and come back when they are told to; a few keep asking and measure how soon they are
//! refused.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use http::header::RETRY_AFTER;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use wf_testkit::audit::history::{Attempt, Outcome};

use super::super::caller::{Said, judge};
use super::super::case::{Draw, Running};
use super::super::foreign::Foreign;
use super::super::scene::Scene;
use crate::fault::Fault;
use crate::harness::client::{Client, Lost, outcome, request_body};
use crate::harness::record::Recorder;

/// Calls in all, unless the time is over before.
const CALLS: u32 = 10_000;
const TIME: Duration = Duration::from_secs(10);

/// Callers that keep asking.
const EAGER: u32 = 32;

/// Workflows that the calls are about.
const WORKFLOWS: u32 = 40;

/// How long a refusal of what does not fit may take in the middle.
const AT_ONCE: Duration = Duration::from_secs(2);

/// How much more memory the server may take: in all, and for each connection, however many calls come on it.
const MEMORY_MAX_KIB: u64 = 64 * 1024;
const MEMORY_EACH_KIB: u64 = 128;

/// A patient caller comes back no sooner than this: who is let in waits for as long.
const PATIENT: Duration = Duration::from_secs(2);

/// Above this a refusal is one of a read that took too long, which cannot know when reads will be faster.
const SLOW: Duration = Duration::from_secs(4);

/// When to come back, as those are told who waited for the store in vain. Who was not let in is told another time.
const WAITED_MS: u64 = 250;

/// What a refusal says.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    after: Option<Duration>,
    took: Duration,
    let_in: bool,
}

/// What became of the calls.
#[derive(Debug, Default)]
struct Tally {
    done: u32,
    refused: Vec<Refusal>,
    wrong: BTreeMap<String, u32>,
}

/// More calls than the server takes: 300 callers for 256 places.
pub(in super::super) fn of_requests<'a>(scene: &'a mut Scene, _: &'a Draw) -> Running<'a> {
    Box::pin(flood(scene, 300))
}

/// More calls than the store takes, which is 1,024 that wait and 128 in hand.
pub(in super::super) fn of_commits<'a>(scene: &'a mut Scene, _: &'a Draw) -> Running<'a> {
    Box::pin(flood(scene, 1_200))
}

async fn flood(scene: &mut Scene, patient: u32) -> Result<(), Fault> {
    scene.work(2, "before the flood").await?;
    let workflows = workflows(scene).await?;
    let id = scene.server()?.id();
    let address = scene.server()?.address();
    let before = memory_kib(id, "VmRSS")?;
    let foreign = Foreign::open(&scene.launch.database())?;
    foreign.lock()?;
    let calls = Arc::new(AtomicU32::new(0));
    let mut callers = JoinSet::new();
    for number in 0..patient + EAGER {
        let of = usize::try_from(number % WORKFLOWS).ok().and_then(|of| workflows.get(of));
        callers.spawn(
            Asking {
                number: 1_000 + number,
                waits: number < patient,
                client: Client::new(address),
                workflow: of.cloned().unwrap_or_default(),
                recorder: Arc::clone(&scene.recorder),
                tally: Tally::default(),
            }
            .run(Arc::clone(&calls)),
        );
    }
    let mut tally = Tally::default();
    while let Some(ended) = callers.join_next().await {
        tally.add(ended.map_err(|error| Fault::Run(format!("a caller broke: {error}")))?);
    }
    foreign.leave()?;
    let grown = memory_kib(id, "VmHWM")?.saturating_sub(before);
    tally.judge(scene);
    scene.done.push(format!("{} MiB more", grown >> 10));
    if grown > MEMORY_MAX_KIB + MEMORY_EACH_KIB * u64::from(patient + EAGER) {
        scene.wrong(format!("the server grew by {grown} KiB"));
    }
    scene.recover().await?;
    scene.work(2, "after the flood").await?;
    scene.close()
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.done += other.done;
        self.refused.extend(other.refused);
        for (what, times) in other.wrong {
            *self.wrong.entry(what).or_default() += times;
        }
    }

    fn judge(self, scene: &mut Scene) {
        let kept_out: Vec<&Refusal> = self.refused.iter().filter(|one| !one.let_in).collect();
        let mut waits: Vec<Duration> = kept_out.iter().map(|one| one.took).collect();
        waits.sort_unstable();
        let median = waits.get(waits.len() / 2).copied().unwrap_or_default();
        scene.done.push(format!(
            "{} calls refused, {} of them at once, half of these within {} ms",
            self.refused.len(),
            waits.len(),
            median.as_millis(),
        ));
        if waits.len() < 50 {
            scene.wrong(format!("only {} calls were kept out", waits.len()));
        }
        if median > AT_ONCE {
            scene.wrong(format!("a refusal takes {median:?}"));
        }
        let mute = |one: &&Refusal| one.after.is_none() && one.took < SLOW;
        let mute = self.refused.iter().filter(mute).count();
        if mute > 0 {
            scene.wrong(format!("{mute} refusals do not say when to come back"));
        }
        for (what, times) in self.wrong {
            scene.wrong(format!("{times} calls of a flood got {what}"));
        }
    }
}

/// One caller.
struct Asking {
    number: u32,
    /// Comes back when told to.
    waits: bool,
    client: Client,
    workflow: String,
    recorder: Arc<Recorder>,
    tally: Tally,
}

impl Asking {
    /// Calls until there were enough calls.
    async fn run(mut self, calls: Arc<AtomicU32>) -> Tally {
        let end = Instant::now() + TIME;
        while calls.fetch_add(1, Ordering::Relaxed) < CALLS && Instant::now() < end {
            let after = self.call().await;
            if let Some(after) = after.filter(|_| self.waits) {
                tokio::time::sleep(after.max(PATIENT)).await;
            }
        }
        self.tally
    }

    /// One call; when to come back, if it was refused.
    async fn call(&mut self) -> Option<Duration> {
        let call = self.recorder.next_call();
        let arguments = json!({
            "workflow_id": self.workflow, "summary": "it rattles", "severity": "note",
            "idempotency_key": format!("k{call}"),
        });
        let Value::Object(arguments) = arguments else { return None };
        let (sent_ns, begun) = (self.recorder.now_ns(), Instant::now());
        let answer = self.client.post(request_body("report_problem", &arguments)).await;
        let took = begun.elapsed();
        let (outcome, later) = match answer {
            Ok(answer) => {
                let seconds = answer.headers().get(RETRY_AFTER);
                let seconds = seconds.and_then(|s| s.to_str().ok()?.parse().ok());
                (outcome(&answer), seconds.map(Duration::from_secs))
            }
            Err(Lost::NotSent) => (Outcome::NotSent, None),
            Err(Lost::Unknown(why)) => (Outcome::Unknown { why }, None),
        };
        let said = judge(&outcome, outcome.result().as_ref());
        let over_ns = self.recorder.now_ns();
        self.recorder.keep(attempt(self.number, call, arguments, sent_ns, over_ns, outcome));
        let after = match &said {
            Said::Unavailable { after_ms } => after_ms.map(Duration::from_millis),
            Said::Done | Said::Shed | Said::Silent(_) | Said::Wrong(_) => later,
        };
        match said {
            Said::Done => self.tally.done += 1,
            Said::Unavailable { .. } | Said::Shed => {
                let let_in = said == (Said::Unavailable { after_ms: Some(WAITED_MS) });
                self.tally.refused.push(Refusal { after, took, let_in });
                return after;
            }
            Said::Silent(what) | Said::Wrong(what) => {
                *self.tally.wrong.entry(what).or_default() += 1;
            }
        }
        None
    }
}

fn attempt(
    caller: u32,
    call: u64,
    arguments: Map<String, Value>,
    sent_ns: u64,
    over_ns: u64,
    outcome: Outcome,
) -> Attempt {
    Attempt {
        call,
        caller,
        tenant: "default".to_owned(),
        actor: "user:local".to_owned(),
        tool: "report_problem".to_owned(),
        arguments,
        sent_ns,
        over_ns,
        outcome,
    }
}

/// Starts the workflows; their ids.
async fn workflows(scene: &Scene) -> Result<Vec<String>, Fault> {
    let mut client = Client::new(scene.server()?.address());
    let mut ids = Vec::new();
    for number in 0..WORKFLOWS {
        let call = scene.recorder.next_call();
        let arguments = json!({
            "procedure_id": "pump-inspection", "assets": { "pump": format!("PUMP-{}", 900_000 + number) },
            "inputs": { "work_order": format!("WO {call}") }, "idempotency_key": format!("k{call}"),
        });
        let Value::Object(arguments) = arguments else { break };
        let sent_ns = scene.recorder.now_ns();
        let outcome = client.call("start_workflow", &arguments).await;
        let id =
            outcome.result().and_then(|r| Some(r.pointer("/workflow/id")?.as_str()?.to_owned()));
        let over_ns = scene.recorder.now_ns();
        let started = attempt(400, call, arguments, sent_ns, over_ns, outcome);
        scene.recorder.keep(Attempt { tool: "start_workflow".to_owned(), ..started });
        ids.push(id.ok_or_else(|| Fault::Run("a workflow cannot be started".to_owned()))?);
    }
    Ok(ids)
}

/// A line of /proc/ID/status, in KiB.
fn memory_kib(id: u32, name: &str) -> Result<u64, Fault> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).map_err(Fault::io("memory"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib =
        line.and_then(|line| line.trim_matches([':', ' ', '\t']).split(' ').next()?.parse().ok());
    kib.ok_or_else(|| Fault::Run(format!("no {name} in the status of the server")))
}
