//! The way of a caller to the servers of the simulation: over a network that delays, loses and repeats.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use wf_core::engine::{Engine, Reply};
use wf_core::idempotency::canonical_string;
use wf_core::models::Principal;
use wf_testkit::audit::history::Outcome;
use wf_testkit::calls;

use super::replica::Replica;
use super::sea::Sea;
use crate::harness::line::Line;
use crate::harness::record::{Call, Recorder};

/// How long a caller waits for an answer.
const PATIENCE: Duration = Duration::from_secs(35);
/// Numbers of those who send copies begin here.
const COPIES: u32 = 1_000;
/// How often a caller looks whether somebody is there.
const LOOK: Duration = Duration::from_millis(5);

/// One caller's way.
#[derive(Debug)]
pub(super) struct Network {
    /// The caller's.
    pub(super) number: u32,
    pub(super) sea: Sea,
    pub(super) replicas: Vec<Replica>,
    pub(super) who: Principal,
    pub(super) recorder: Arc<Recorder>,
    /// The longest that the caller thinks before a call, in milliseconds.
    pub(super) thinks_ms: u64,
    /// Who is called next.
    pub(super) chosen: Option<(Replica, Arc<Engine>)>,
}

impl Network {
    fn any(&self) -> Option<(Replica, Arc<Engine>)> {
        let up: Vec<_> =
            self.replicas.iter().filter_map(|r| Some((r.clone(), r.engine()?))).collect();
        let one = self.sea.below(u64::try_from(up.len()).unwrap_or(0));
        up.into_iter().nth(usize::try_from(one).unwrap_or(0))
    }

    /// Has a server execute the call.
    fn deliver(
        &self,
        to: &(Replica, Arc<Engine>),
        call: &Call,
    ) -> oneshot::Receiver<Option<Reply>> {
        let (answer, answered) = oneshot::channel();
        let (engine, who, call) = (Arc::clone(&to.1), self.who.clone(), call.clone());
        to.0.spawn(async move {
            let reply = calls::answered(&engine, &who, call.tool, &call.arguments).await;
            // Who called may have given up.
            let _ = answer.send(reply);
        });
        answered
    }
}

fn lost(why: &str) -> Outcome {
    Outcome::Unknown { why: why.to_owned() }
}

fn text(reply: Reply) -> Option<String> {
    match reply.text {
        Some(text) => Some(text),
        None => canonical_string(&reply.body).ok(),
    }
}

#[async_trait]
impl Line for Network {
    async fn ready(&mut self) {
        if self.thinks_ms > 0 {
            sleep(Duration::from_millis(self.sea.below(self.thinks_ms))).await;
        }
        loop {
            self.chosen = self.any();
            if self.chosen.is_some() {
                return;
            }
            sleep(LOOK).await;
        }
    }

    async fn call(&mut self, call: &Call) -> Outcome {
        let Some(chosen) = self.chosen.take() else { return Outcome::NotSent };
        self.sea.note(format_args!("call {} {}", call.number, call.tool));
        sleep(self.sea.delay()).await;
        if self.sea.loses() {
            return lost("the request was lost");
        }
        let answered = self.deliver(&chosen, call);
        if self.sea.loses()
            && let Some(other) = self.any()
        {
            // Something on the way sends it again, as if it were a caller of its own; nobody hears that answer.
            let sent_ns = self.recorder.now_ns();
            drop(self.deliver(&other, call));
            let actor = self.who.actor.to_string();
            self.recorder.attempted_by(&actor, COPIES + self.number, call, sent_ns, lost("a copy"));
        }
        let outcome = match timeout(PATIENCE, answered).await {
            Err(_) => lost("no answer in time"),
            Ok(Err(_)) => lost("the server died"),
            Ok(Ok(reply)) => match reply.and_then(text) {
                Some(text) => Outcome::Answered { text },
                None => lost("a call that is none"),
            },
        };
        sleep(self.sea.delay()).await;
        if self.sea.loses() { lost("the answer was lost") } else { outcome }
    }

    fn over(&mut self) {}
}
