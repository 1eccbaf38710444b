//! What an execution does, as the state machine of the product has it: registers a token, sleeps until it is answered or its
//! time is over, says so, and begins again. What it writes arrives late, twice or not at all, too.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};
use wf_core::models::{Timestamp, WorkflowId};
use wf_core::reconcile::Run;

use super::outside::{Answer, Execution, Outside, Row, State};
use super::sea::{Fate, Sea};

/// For how long it sleeps that was told nothing yet, and after its time was over, in seconds.
const FIRST_WAKE_S: u32 = 60;
const REST_S: u32 = 3_600;
/// How often a write that did not arrive is tried again, and the longest wait before that.
const TRIES: u32 = 20;
const RETRY_MAX: Duration = Duration::from_secs(600);

/// A binding that is to be looked at now.
const MARKED: Timestamp = Timestamp::from_ms(0);
/// Registrations after which an execution is worn, all at once.
const WORN: u32 = 10_000;

impl Execution {
    /// How it is.
    pub(super) fn run(&self) -> Run {
        match (self.ended, self.foreign) {
            (Some(_), _) => Run::Closed,
            (None, true) => Run::Foreign,
            (None, false) => Run::Running,
        }
    }

    /// It has this name, and is known.
    fn is(&self, workflow: &WorkflowId, fence: u64) -> bool {
        self.fence == fence && self.workflow == *workflow && !self.vanished
    }

    fn ends(&mut self) {
        if self.ended.is_none() {
            self.ended = Some(Instant::now());
        }
        (self.token, self.answer) = (None, None);
        self.moved.notify_one();
    }
}

impl State {
    /// The execution of this name that is known.
    pub(super) fn named(&self, workflow: &WorkflowId, fence: u64) -> Option<&Execution> {
        self.executions.iter().find(|one| one.is(workflow, fence))
    }

    /// How the execution of this name was at a time, as far as one knows it from then.
    pub(super) fn seen(&mut self, workflow: &WorkflowId, fence: u64, at: Option<Instant>) -> Run {
        let known = self.executions.iter_mut().find(|one| one.is(workflow, fence));
        let Some(one) = known else { return Run::Absent };
        let before = |then: Instant| at.is_some_and(|at| at < then);
        one.missed |= before(one.began);
        match one.ended {
            _ if before(one.began) => Run::Absent,
            Some(ended) if before(ended) && !one.foreign => Run::Running,
            Some(_) | None => one.run(),
        }
    }

    /// A new execution.
    pub(super) fn begin(&mut self, workflow: &WorkflowId, fence: u64, foreign: bool) {
        self.executions.push(Execution {
            workflow: workflow.clone(),
            fence,
            foreign,
            missed: false,
            began: Instant::now(),
            ended: None,
            vanished: false,
            token: None,
            answer: None,
            told: 0,
            moved: Arc::default(),
        });
    }

    pub(super) fn stop(&mut self, workflow: &WorkflowId, fence: u64) {
        for one in &mut self.executions {
            if one.is(workflow, fence) {
                one.ends();
            }
        }
    }

    /// It ends, by hand or by an error.
    pub(super) fn end(&mut self, number: usize) {
        if let Some(one) = self.executions.get_mut(number) {
            one.ends();
        }
    }

    /// Its machine is deleted: it ends, and nobody knows of it any more.
    pub(super) fn vanish(&mut self, number: usize) {
        if let Some(one) = self.executions.get_mut(number) {
            one.vanished = true;
            one.ends();
        }
    }

    /// Answers a token; false when nobody waits with it.
    pub(super) fn tell(&mut self, token: &str, answer: Answer) -> bool {
        let waits = |one: &&mut Execution| one.token.as_deref() == Some(token);
        let Some(one) = self.executions.iter_mut().find(waits) else { return false };
        (one.token, one.answer) = (None, Some(answer));
        one.moved.notify_one();
        true
    }

    /// The condition of what an execution writes: its fence, and not closed.
    fn of_execution(&mut self, workflow: &WorkflowId, fence: u64) -> Option<&mut Row> {
        let row = self.rows.get_mut(workflow)?;
        (row.binding.fence == fence && !row.binding.closed).then_some(row)
    }

    /// `Await`: an execution registers its token. False when it is superseded.
    pub(super) fn register(
        &mut self,
        (workflow, fence): (&WorkflowId, u64),
        token: &str,
        told: u64,
        now: Timestamp,
    ) -> bool {
        let Some(row) = self.of_execution(workflow, fence) else { return false };
        row.token = Some(token.to_owned());
        let binding = &mut row.binding;
        (binding.waits, binding.waits_since, binding.told_revision) = (true, now, told);
        binding.registrations += 1;
        true
    }

    /// `SignalDue`: an execution has slept its time. False when it is superseded.
    pub(super) fn mark(&mut self, workflow: &WorkflowId, fence: u64) -> bool {
        let Some(row) = self.of_execution(workflow, fence) else { return false };
        row.look = Some(MARKED);
        true
    }

    /// A token that there was never before.
    pub(super) fn new_token(&mut self) -> String {
        self.tokens += 1;
        format!("token-{}", self.tokens)
    }

    /// The current execution of a workflow looks as if it had registered very often.
    pub(super) fn wear(&mut self, workflow: &WorkflowId) {
        if let Some(row) = self.rows.get_mut(workflow) {
            row.binding.registrations = WORN;
        }
    }

    /// The execution, while it runs.
    fn running(&mut self, number: usize) -> Option<&mut Execution> {
        self.executions.get_mut(number).filter(|one| one.ended.is_none())
    }
}

/// An execution begins to run.
pub(super) fn begins(sea: Sea, outside: Outside, number: usize, one: &Execution) {
    let (workflow, fence) = (one.workflow.clone(), one.fence);
    let moved = Arc::clone(&one.moved);
    tokio::spawn(Life { sea, outside, number, workflow, fence, moved }.lives());
}

struct Life {
    sea: Sea,
    outside: Outside,
    number: usize,
    workflow: WorkflowId,
    fence: u64,
    moved: Arc<Notify>,
}

/// It ends here: it was stopped, it is superseded, or it was told the end.
struct Ends;

impl Life {
    async fn lives(self) {
        let Err(Ends) = self.goes_round().await;
        self.outside.lock().end(self.number);
    }

    async fn goes_round(&self) -> Result<Infallible, Ends> {
        let mut wakes = FIRST_WAKE_S;
        loop {
            let until = Instant::now() + Duration::from_secs(u64::from(wakes));
            self.registers().await?;
            match self.answered(until).await? {
                Some(answer) if answer.ends => return Err(Ends),
                Some(answer) => wakes = answer.timeout_s,
                None => {
                    self.says_that_it_is_due().await?;
                    wakes = REST_S;
                }
            }
        }
    }

    /// `Await`: each try has a token of its own, by which it can be answered at once.
    async fn registers(&self) -> Result<(), Ends> {
        for tried in 0..TRIES {
            let (workflow, fence, now) = (self.workflow.clone(), self.fence, self.outside.now());
            let (token, told) = {
                let mut state = self.outside.lock();
                let token = state.new_token();
                let one = state.running(self.number).ok_or(Ends)?;
                one.token = Some(token.clone());
                (token, one.told)
            };
            let write =
                move |state: &mut State| state.register((&workflow, fence), &token, told, now);
            let written = self.write("registers", write).await;
            {
                let mut state = self.outside.lock();
                let one = state.running(self.number).ok_or(Ends)?;
                match written {
                    // Answered while it was on its way.
                    _ if one.answer.is_some() => return Ok(()),
                    Some(true) => return Ok(()),
                    Some(false) => return Err(Ends),
                    None => one.token = None,
                }
            }
            pause(tried).await;
        }
        Err(Ends)
    }

    /// `SignalDue`.
    async fn says_that_it_is_due(&self) -> Result<(), Ends> {
        for tried in 0..TRIES {
            let (workflow, fence) = (self.workflow.clone(), self.fence);
            let write = move |state: &mut State| state.mark(&workflow, fence);
            match self.write("is due", write).await {
                Some(true) => return Ok(()),
                Some(false) => return Err(Ends),
                None => pause(tried).await,
            }
        }
        Err(Ends)
    }

    /// One conditional write: whether it was superseded; none when nobody knows.
    async fn write(
        &self,
        what: &str,
        write: impl FnOnce(&mut State) -> bool + Send + 'static,
    ) -> Option<bool> {
        sleep(self.sea.delay()).await;
        let fate = self.sea.fate();
        self.sea.note(format_args!("execution {} {what} {fate:?}", self.number));
        match fate {
            Fate::Fine => return Some(write(&mut self.outside.lock())),
            Fate::Before => {}
            Fate::After => {
                write(&mut self.outside.lock());
            }
            Fate::Later => {
                let arrives = |state: &mut State| {
                    write(state);
                };
                self.outside.lock().late(arrives);
            }
        }
        None
    }

    /// The answer to its token; none when its time is over.
    async fn answered(&self, until: Instant) -> Result<Option<Answer>, Ends> {
        loop {
            {
                let mut state = self.outside.lock();
                let one = state.running(self.number).ok_or(Ends)?;
                if let Some(answer) = one.answer.take() {
                    one.told = answer.revision;
                    return Ok(Some(answer));
                }
            }
            if timeout_at(until, self.moved.notified()).await.is_err() {
                let mut state = self.outside.lock();
                let one = state.running(self.number).ok_or(Ends)?;
                one.token = None;
                return Ok(None);
            }
        }
    }
}

/// Before the next try, later and later.
async fn pause(tried: u32) {
    sleep(Duration::from_secs(1 << tried.min(10)).min(RETRY_MAX)).await;
}
