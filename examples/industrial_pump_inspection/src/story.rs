//! The story: who calls what, and what is printed of the answers.

use std::error::Error;
use std::io::Write;

use serde_json::{Map, Value};
use wf_core::engine::verify::verify;
use wf_core::engine::{Call, CallMeta, FindWork, GetStatus, Reply};
use wf_core::models::{Actor, Principal, Scopes, WorkflowId};
use wf_core::ports::ClockPort as _;
use wf_core::state_machine::Event;

use crate::calls::{confirmed, finish, resolve, start, submit};
use crate::site::Site;

type Told<T> = Result<T, Box<dyn Error>>;

/// A story on one life of the process.
pub(crate) struct Story<'s, W> {
    site: &'s Site,
    out: W,
}

impl<'s, W: Write> Story<'s, W> {
    pub(crate) const fn new(site: &'s Site, out: W) -> Self {
        Self { site, out }
    }

    /// Start, two steps, and a call whose answer was lost.
    pub(crate) async fn until_the_crash(&mut self) -> Told<WorkflowId> {
        let technician = technician();
        self.chapter("A technician starts an inspection")?;
        let reply = self.call(&technician, start("pump 0204", "WO-7", "visit-1")?).await?;
        let workflow = WorkflowId::parse(text(&reply.body, "/workflow/id"))?;
        self.call(&technician, submit(&workflow, "isolate", "yes", "visit-2")?).await?;

        self.chapter("Nobody else can take the pump meanwhile")?;
        self.call(&colleague(), start("PUMP-204", "WO-8", "other-1")?).await?;

        self.chapter("An answer is lost, so the assistant sends the call again")?;
        let pressure = submit(&workflow, "suction_pressure", "4.2", "visit-3")?;
        self.call(&technician, pressure.clone()).await?;
        self.call(&technician, pressure).await?;

        self.chapter("The key of that call cannot be used for another value")?;
        let other = submit(&workflow, "suction_pressure", "2.4", "visit-3")?;
        self.call(&technician, other).await?;

        self.chapter("The process dies")?;
        Ok(workflow)
    }

    /// Resume, a value out of range, a supervisor's decision, and the end.
    pub(crate) async fn after_the_crash(&mut self, workflow: &WorkflowId) -> Told<()> {
        self.site.clock.pass(10);
        let technician = technician();
        self.chapter("Ten minutes later another assistant picks the work up")?;
        self.find_work(&technician).await?;
        self.get_status(&technician).await?;

        self.chapter("The old call comes once more: still the first answer")?;
        let again = submit(workflow, "suction_pressure", "4.2", "visit-3")?;
        self.call(&technician, again).await?;

        self.chapter("A value out of range is read back, then recorded, then it stops the work")?;
        let vibration = submit(workflow, "vibration", "9.3", "visit-4")?;
        let asked = self.call(&technician, vibration.clone()).await?;
        let token = text(&asked.body, "/confirm/token");
        let blocked = self.call(&technician, confirmed(vibration, token)).await?;
        self.dispatch().await?;

        self.chapter("Only a supervisor goes on from here")?;
        let block = text(&blocked.body, "/blocks/0/id");
        self.call(&technician, submit(workflow, "seal", "dry", "visit-5")?).await?;
        let redo = resolve(workflow, block, "require_redo", "sensor was loose", "decision-1")?;
        self.call(&technician, redo.clone()).await?;
        self.call(&supervisor(), redo).await?;

        self.chapter("Measured again, and done")?;
        for (step, value, key) in [
            ("vibration", "3.1", "visit-6"),
            ("bearing_temperature", "61", "visit-7"),
            ("seal", "dry", "visit-8"),
        ] {
            self.call(&technician, submit(workflow, step, value, key)?).await?;
        }
        self.call(&technician, finish(workflow, "passed", "visit-9")?).await?;
        self.dispatch().await?;
        self.history(workflow).await?;
        self.verified().await
    }

    async fn call(&mut self, who: &Principal, call: Call) -> Told<Reply> {
        self.site.clock.pass(1);
        self.line(who, call.operation, &said(&call.arguments))?;
        let reply = self.site.engine.execute(who, &call).await;
        self.answer(&reply)?;
        Ok(reply)
    }

    async fn find_work(&mut self, who: &Principal) -> Told<()> {
        self.line(who, "find_work", "")?;
        let query = FindWork::default();
        let reply = self.site.engine.find_work(who, &query, &CallMeta::default()).await;
        self.answer(&reply)
    }

    async fn get_status(&mut self, who: &Principal) -> Told<()> {
        self.line(who, "get_status", "")?;
        let query = GetStatus::default();
        let reply = self.site.engine.get_status(who, &query, &CallMeta::default()).await;
        self.answer(&reply)
    }

    /// Delivers what the commits left in the outbox.
    async fn dispatch(&mut self) -> Told<()> {
        self.site.engine.dispatch_once().await?;
        for message in self.site.told.take() {
            writeln!(self.out, "        told {}: {}", message.recipient, message.kind)?;
        }
        Ok(())
    }

    async fn history(&mut self, workflow: &WorkflowId) -> Told<()> {
        self.chapter("What the record says")?;
        let store = self.site.engine.store();
        for event in store.events(&technician().tenant, workflow, 0, 50).await? {
            let (at, what) = (event.at.clock_time("UTC"), event.body.kind());
            let (seq, by) = (event.seq, event.actor.to_string());
            let line = format!("{seq:>4}  {at}  {what:<26} {by:<20} {}", recorded(&event));
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Recomputes the hash chain, the state and the locks from the events.
    async fn verified(&mut self) -> Told<()> {
        let store = self.site.engine.store();
        let report = verify(store.as_ref(), None, &mut |_| {}).await?;
        writeln!(
            self.out,
            "\nverified: {} workflow, {} events, {} lock, {} findings",
            report.workflows,
            report.events,
            report.locks,
            report.findings.len()
        )?;
        Ok(())
    }

    fn chapter(&mut self, title: &str) -> Told<()> {
        Ok(writeln!(self.out, "\n== {title}")?)
    }

    fn line(&mut self, who: &Principal, tool: &str, said: &str) -> Told<()> {
        let at = self.site.clock.now().clock_time("UTC");
        let line = format!("[{at}] {}: {tool} {said}", who.actor.subject());
        Ok(writeln!(self.out, "{}", line.trim_end())?)
    }

    fn answer(&mut self, reply: &Reply) -> Told<()> {
        let outcome = match reply.error {
            Some(code) => code.as_str(),
            None => reply.outcome.as_str(),
        };
        let again = if reply.duplicate { " (duplicate)" } else { "" };
        writeln!(self.out, "        {outcome}{again}: {}", reply.speech)?;
        let state = text(&reply.body, "/workflow/state");
        if !state.is_empty() {
            let number = |path: &str| reply.body.pointer(path).and_then(Value::as_u64).unwrap_or(0);
            writeln!(
                self.out,
                "        {state}, revision {}, {} of {} steps",
                number("/workflow/revision"),
                number("/workflow/progress/settled"),
                number("/workflow/progress/required")
            )?;
        }
        Ok(())
    }
}

/// Arguments as `wf-cli call` takes them, the key last. The workflow is always the same, and a token is nobody's business.
fn said(arguments: &Map<String, Value>) -> String {
    let mut all: Vec<(bool, String)> = Vec::new();
    for (name, value) in arguments {
        let is_key = name == "idempotency_key";
        match (name.as_str(), value) {
            ("workflow_id", _) => {}
            ("confirm_token", _) => all.push((is_key, "confirm_token=…".to_owned())),
            (_, Value::Object(parts)) => {
                all.extend(
                    parts.iter().map(|(part, v)| (is_key, pair(&format!("{name}.{part}"), v))),
                );
            }
            (_, _) => all.push((is_key, pair(name, value))),
        }
    }
    all.sort();
    all.into_iter().map(|(_, pair)| pair).collect::<Vec<_>>().join(" ")
}

fn pair(name: &str, value: &Value) -> String {
    match value.as_str() {
        Some(text) if !text.contains(' ') => format!("{name}={text}"),
        Some(_) | None => format!("{name}={value}"),
    }
}

/// The step and its value, for an event that recorded one.
fn recorded(event: &Event) -> String {
    let body = serde_json::to_value(&event.body).unwrap_or_default();
    match body.pointer("/data/step_id").and_then(Value::as_str) {
        Some(step) => format!("{step} {}", text(&body, "/data/reading/given")),
        None => String::new(),
    }
}

fn text<'v>(body: &'v Value, path: &str) -> &'v str {
    body.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn technician() -> Principal {
    let scopes = Scopes { read: true, write: true, supervise: false };
    Principal { actor: Actor::User("technician".to_owned()), scopes, ..Principal::local() }
}

fn colleague() -> Principal {
    Principal { actor: Actor::User("colleague".to_owned()), ..technician() }
}

fn supervisor() -> Principal {
    let actor = Actor::User("supervisor".to_owned());
    Principal { actor, scopes: Scopes::ALL, ..Principal::local() }
}
