//! What each command does to a workflow, by domain.md. Where that page leaves the order of two guards open, it is:
//! state, target, allowed, reason, asset, value. The events are in `event`, whose work it is in
//! `ownership`.

use serde_json::Value;

use super::call::{Arg, Call, Token};
use super::predict::{probe, unit};
use super::rules::{self, Effect, Judged, REASONS, Reading, Skip};
use super::world::{Bound, Minted, Phase, Status, Step, Touch, Work, World};

/// A confirm token counts so long.
const TOKEN_MS: i64 = 5 * 60 * 1_000;
/// So many blocks may be open in a workflow.
const BLOCKS_MAX: usize = 16;

/// An outcome, or the code of a refusal.
pub(super) type Done = Result<&'static str, &'static str>;

impl World {
    pub(super) fn command(&mut self, number: usize, call: &Call) -> Done {
        if call.tool == "start_workflow" {
            return self.start(call);
        }
        let Some(work) = call.workflow() else { return Err("WORKFLOW_NOT_FOUND") };
        match call.tool.as_str() {
            "submit_step" => self.submit(number, work, call),
            "correct_step" => self.correct(number, work, call),
            "skip_step" => self.skip(number, work, call),
            "report_problem" => self.report(number, work, call),
            "resolve_block" => self.resolve_block(number, work, call),
            "finish_workflow" => self.finish(number, work, call),
            "transfer_workflow" => self.transfer(number, work, call),
            _ => Err("VALIDATION_ERROR"),
        }
    }

    fn start(&mut self, call: &Call) -> Done {
        if call.text("procedure_id") != Some("bench-round") {
            return Err("PROCEDURE_NOT_FOUND");
        }
        let (unit, probe, inputs) = wanted(call)?;
        let Some((unit, probe, inputs)) = unit.zip(probe).zip(inputs).map(|((u, p), i)| (u, p, i))
        else {
            return Ok("needs_input");
        };
        let held =
            [&unit, &probe].into_iter().find_map(|id| self.holders.get(id).copied().flatten());
        if held.is_some() {
            return if self.twin(call).is_some() { Ok("joined") } else { Err("ASSET_LOCKED") };
        }
        let work = self.works.len();
        self.holders.insert(unit.clone(), Some(work));
        self.holders.insert(probe.clone(), Some(work));
        self.works.push(Work {
            phase: Phase::Running,
            result: None,
            // The start, and its acknowledgement.
            revision: 2,
            at: self.clock,
            unit,
            probe,
            inputs,
            steps: std::collections::BTreeMap::new(),
            blocks: Vec::new(),
            opened: 0,
            closed: Vec::new(),
            noted: None,
            ended: None,
            offer: None,
            handed: None,
            recorded: None,
        });
        Ok("started")
    }

    /// The open workflow of the same assets and inputs that holds an asset of this start.
    pub(super) fn twin(&self, call: &Call) -> Option<usize> {
        let (Some(unit), Some(probe), Some(inputs)) = wanted(call).ok()? else { return None };
        let held =
            [&unit, &probe].into_iter().find_map(|id| self.holders.get(id).copied().flatten());
        let number = held?;
        let work = self.works.get(number)?;
        (work.unit == unit && work.probe == probe && work.inputs == inputs).then_some(number)
    }

    fn submit(&mut self, number: usize, work: usize, call: &Call) -> Done {
        let w = self.at(work)?;
        if w.phase != Phase::Running {
            return Err("INVALID_TRANSITION");
        }
        let step = open_step(w, call)?;
        if !self.holds(work) {
            return Err("LOCK_LOST");
        }
        let reading = match self.judged(work, step, call)? {
            Ok(reading) => reading,
            Err(outcome) => return Ok(outcome),
        };
        let outcome = outcome_of(step, &reading, "recorded");
        self.record(work, step, &reading, &self.touch(number, call));
        self.blocked_by(work, step, &reading, &self.touch(number, call));
        Ok(outcome)
    }

    fn correct(&mut self, number: usize, work: usize, call: &Call) -> Done {
        let w = self.at(work)?;
        let named = call.text("step_id").unwrap_or_default();
        let may = match w.phase {
            Phase::Running => true,
            Phase::Blocked => w.caused(named).is_some(),
            Phase::Completed => false,
        };
        if !may {
            return Err("INVALID_TRANSITION");
        }
        let step = rules::step(named).ok_or("VALIDATION_ERROR")?;
        if w.reading(step).is_none() {
            return Err("STEP_NOT_OPEN");
        }
        reason(call, true)?;
        if !self.holds(work) {
            return Err("LOCK_LOST");
        }
        let reading = match self.judged(work, step, call)? {
            Ok(reading) => reading,
            Err(outcome) => return Ok(outcome),
        };
        let outcome = outcome_of(step, &reading, "corrected");
        let touch = self.touch(number, call);
        self.record(work, step, &reading, &touch);
        let standing = self.at(work)?.caused(step).map(|b| b.nth);
        match standing {
            // It goes on standing for the new value.
            Some(_) if reading.blocks.is_some() => {}
            Some(nth) => self.close(work, nth, &touch),
            None => self.blocked_by(work, step, &reading, &touch),
        }
        Ok(outcome)
    }

    fn skip(&mut self, number: usize, work: usize, call: &Call) -> Done {
        let w = self.at(work)?;
        if w.phase != Phase::Running {
            return Err("INVALID_TRANSITION");
        }
        let step = open_step(w, call)?;
        match rules::skip(step) {
            Skip::Never => return Err("NOT_ALLOWED"),
            Skip::Reason => reason(call, true)?,
            Skip::Free => reason(call, false)?,
        }
        if !self.holds(work) {
            return Err("LOCK_LOST");
        }
        let touch = self.touch(number, call);
        self.event(work, |w, revision| {
            let attempt = w.attempt(step);
            let touch = Touch { revision, ..touch };
            w.steps.insert(step, Step { status: Status::Skipped, reading: None, attempt, touch });
            w.recorded = w.recorded.filter(|recorded| *recorded != step);
        });
        Ok("skipped")
    }

    fn report(&mut self, number: usize, work: usize, call: &Call) -> Done {
        let w = self.at(work)?;
        if w.phase == Phase::Completed {
            return Err("INVALID_TRANSITION");
        }
        let step = match call.text("step_id") {
            Some(name) => Some(rules::step(name).ok_or("VALIDATION_ERROR")?),
            None => None,
        };
        let touch = self.touch(number, call);
        if call.text("severity") == Some("note") {
            self.event(work, |w, revision| w.noted = Some(Touch { revision, ..touch }));
            return Ok("noted");
        }
        if self.at(work)?.blocks.len() >= BLOCKS_MAX {
            return Err("LIMIT_EXCEEDED");
        }
        self.open_block(work, "PROBLEM_REPORTED", step, true, &touch);
        Ok("blocked")
    }

    fn resolve_block(&mut self, number: usize, work: usize, call: &Call) -> Done {
        let w = self.at(work)?;
        if w.phase != Phase::Blocked {
            return Err("INVALID_TRANSITION");
        }
        let block = self.block(w, call).ok_or("VALIDATION_ERROR")?.clone();
        let decision = call.text("decision").unwrap_or_default();
        let effect = rules::decision(block.code, decision).ok_or("DECISION_NOT_ALLOWED")?;
        let touch = self.touch(number, call);
        if effect == Effect::Abort {
            self.close(work, block.nth, &touch);
            self.complete(work, "abandoned", &touch);
            return Ok("resolved");
        }
        if !self.holds(work) {
            return Err("LOCK_LOST");
        }
        self.close(work, block.nth, &touch);
        let w = self.works.get_mut(work).ok_or("WORKFLOW_NOT_FOUND")?;
        if let (Effect::Redo, Some(name)) = (effect, block.step)
            && let Some(step) = w.steps.get_mut(name)
        {
            step.status = Status::Reopened;
            step.reading = None;
            step.touch = Touch { revision: w.revision, ..touch };
            w.recorded = w.recorded.filter(|recorded| *recorded != name);
        }
        Ok("resolved")
    }

    fn finish(&mut self, number: usize, work: usize, call: &Call) -> Done {
        let w = self.at(work)?;
        let result = call.text("result").unwrap_or_default();
        let touch = self.touch(number, call);
        if result == "abandoned" {
            if w.phase == Phase::Completed {
                return Err("INVALID_TRANSITION");
            }
            let bound = Bound {
                workflow: work,
                target: "finish",
                attempt: 0,
                value: result.to_owned(),
                unit: "",
            };
            if !self.confirmed(number, call, bound) {
                return Ok("needs_confirmation");
            }
            self.complete(work, "abandoned", &touch);
            return Ok("finished");
        }
        if w.phase != Phase::Running {
            return Err("INVALID_TRANSITION");
        }
        let out = w.steps.values().any(|s| s.reading.as_ref().is_some_and(|r| r.out));
        let available = match result {
            "passed" => !out,
            "failed" => true,
            _ => return Err("VALIDATION_ERROR"),
        };
        let settled = |step: &&str| w.steps.get(*step).is_some_and(Step::is_settled);
        if !rules::REQUIRED.iter().all(settled) || !w.steps.values().all(Step::is_settled) {
            return Err("INVALID_TRANSITION");
        }
        if !available {
            return Err("VALIDATION_ERROR");
        }
        if !self.holds(work) {
            return Err("LOCK_LOST");
        }
        let result = result.to_owned();
        self.complete(work, &result, &touch);
        Ok("finished")
    }

    pub(super) fn at(&self, work: usize) -> Result<&Work, &'static str> {
        self.works.get(work).ok_or("WORKFLOW_NOT_FOUND")
    }

    pub(super) fn touch(&self, number: usize, call: &Call) -> Touch {
        Touch { natural: call.natural(), payload: call.payload(), answer: number, revision: 0 }
    }

    /// The value to record; or the outcome of an answer that records nothing.
    fn judged(
        &mut self,
        work: usize,
        step: &'static str,
        call: &Call,
    ) -> Result<Result<Reading, &'static str>, &'static str> {
        let w = self.at(work)?;
        let value = call.text("value").unwrap_or_default();
        let reading = match rules::judge(step, value, call.text("unit"), w.length()) {
            Judged::Accept(reading) => reading,
            Judged::Decline => return Ok(Err("not_recorded")),
            Judged::Refuse(code) => return Err(code),
        };
        let bound = Bound {
            workflow: work,
            target: step,
            attempt: w.attempt(step),
            value: reading.value.clone(),
            unit: reading.unit,
        };
        let number = self.calls.len().saturating_sub(1);
        if reading.asks && !self.confirmed(number, call, bound) {
            return Ok(Err("needs_confirmation"));
        }
        Ok(Ok(reading))
    }

    /// The call brings a token for exactly this; else a new one is given out.
    fn confirmed(&mut self, number: usize, call: &Call, bound: Bound) -> bool {
        let token = match call.token {
            Some(Token::Given(token)) => self.tokens.get(token),
            Some(Token::Junk) | None => None,
        };
        if token.is_some_and(|t| t.bound == bound && self.clock - t.at < TOKEN_MS) {
            return true;
        }
        self.asked.push((number, self.tokens.len()));
        self.tokens.push(Minted { bound, at: self.clock });
        false
    }
}

/// What a start asks for: `None` for what is missing, an error for what is wrong.
type Wanted = (Option<String>, Option<String>, Option<Value>);

fn wanted(call: &Call) -> Result<Wanted, &'static str> {
    let none = serde_json::Map::new();
    let members = |name: &str| match call.args.get(name) {
        Some(Arg::Json(Value::Object(members))) => members.clone(),
        Some(Arg::Json(_) | Arg::Workflow(_) | Arg::Block(..)) | None => none.clone(),
    };
    let (assets, inputs) = (members("assets"), members("inputs"));
    if assets.keys().any(|role| role != "unit" && role != "probe") {
        return Err("VALIDATION_ERROR");
    }
    let said = |role: &str| assets.get(role).and_then(Value::as_str);
    // Asked for, and refused, one after the other: the unit, the probe, the inputs.
    let Some(said_unit) = said("unit") else { return Ok((None, None, None)) };
    let unit = unit(said_unit).ok_or("VALIDATION_ERROR")?;
    let Some(said_probe) = said("probe") else { return Ok((Some(unit), None, None)) };
    let probe = probe(said_probe).ok_or("VALIDATION_ERROR")?;
    if !inputs.contains_key("order") {
        return Ok((Some(unit), Some(probe), None));
    }
    let right = inputs.iter().all(|(name, value)| match name.as_str() {
        "order" => value.as_str().is_some_and(|text| (1..=20).contains(&text.chars().count())),
        "count" => value.as_u64().is_some(),
        _ => false,
    });
    if !right {
        return Err("VALIDATION_ERROR");
    }
    Ok((Some(unit), Some(probe), Some(Value::Object(inputs))))
}

/// The step that the call names, which must be the one that is open.
fn open_step(work: &Work, call: &Call) -> Result<&'static str, &'static str> {
    let step = call.text("step_id").and_then(rules::step).ok_or("VALIDATION_ERROR")?;
    if work.open_step() == Some(step) {
        return Ok(step);
    }
    match work.steps.get(step).map(|s| s.status) {
        Some(Status::Recorded) => Err("STEP_ALREADY_RECORDED"),
        Some(Status::Skipped | Status::Reopened | Status::Recheck) | None => Err("STEP_NOT_OPEN"),
    }
}

pub(super) fn reason(call: &Call, needed: bool) -> Result<(), &'static str> {
    match call.text("reason_code") {
        Some(code) if REASONS.contains(&code) => Ok(()),
        Some(_) => Err("VALIDATION_ERROR"),
        None if needed => Err("REASON_REQUIRED"),
        None => Ok(()),
    }
}

/// A number outside its limits is `out_of_range` whether or not it blocks; a choice that blocks is `blocked`.
fn outcome_of(step: &str, reading: &Reading, within: &'static str) -> &'static str {
    match step {
        "length" | "depth" if reading.out => "out_of_range",
        _ if reading.blocks.is_some() => "blocked",
        _ => within,
    }
}
