//! What a call must be answered: form, reads, and the order of checks of a write (idempotency.md): ledger, existence,
//! a repeat without a key, expected revision, then the rules of the command (`write`).

use serde_json::Value;

use super::call::{Arg, Call, Key};
use super::rules::{self, Judged};
use super::world::{Answer, Offer, Row, Touch, Work, World};

/// The answer, the workflow that it must show, and `candidates_total`.
type Prediction = (Answer, Option<usize>, Option<usize>);

/// Procedures that the server offers: the bench's own and the two built-in ones.
const PROCEDURES: usize = 3;
/// A finished workflow is spoken of so long.
const RECENT_MS: i64 = 24 * 60 * 60 * 1_000;

impl World {
    /// Predicts the answer of call `number`, and moves the world on.
    pub(super) fn predict(&mut self, number: usize, call: &Call) -> Prediction {
        if !well_formed(call) {
            return (Answer::Refused("VALIDATION_ERROR"), None, None);
        }
        match call.tool.as_str() {
            "get_status" => self.status(call),
            "find_work" => self.find(call),
            "check_value" => (self.check(call), None, None),
            _ => {
                let answer = self.write(number, call);
                let shows = match &answer {
                    Answer::Fresh("needs_input") | Answer::Refused(_) | Answer::Again(_) => None,
                    Answer::Fresh("started") => self.works.len().checked_sub(1),
                    Answer::Fresh("joined") => self.twin(call),
                    Answer::Fresh(_) => call.workflow(),
                };
                (answer, shows, None)
            }
        }
    }

    fn write(&mut self, number: usize, call: &Call) -> Answer {
        if let Some(row) = call.key.as_ref().and_then(|key| self.ledger.get(key)) {
            return if row.payload == call.payload() {
                Answer::Again(row.answer)
            } else {
                Answer::Refused("IDEMPOTENCY_CONFLICT")
            };
        }
        if call.tool != "start_workflow" {
            let Some((_, work)) = self.work(call) else {
                return Answer::Refused("WORKFLOW_NOT_FOUND");
            };
            if call.key.is_none()
                && let Some(touch) = repeated(work, call)
            {
                return Answer::Again(touch.answer);
            }
            if call.expects.is_some_and(|revision| revision != work.revision) {
                return Answer::Refused("VERSION_CONFLICT");
            }
        }
        match self.command(number, call) {
            Ok(outcome) => {
                // Only what was committed has a row: neither a question nor a no.
                let committed = !["needs_input", "needs_confirmation", "not_recorded", "joined"]
                    .contains(&outcome);
                if let (true, Some(key)) = (committed, &call.key) {
                    let row = Row { payload: call.payload(), answer: number };
                    self.ledger.insert(key.clone(), row);
                }
                Answer::Fresh(outcome)
            }
            Err(code) => Answer::Refused(code),
        }
    }

    fn status(&self, call: &Call) -> Prediction {
        if call.args.contains_key("workflow_id") {
            return match self.work(call) {
                Some((number, _)) => (Answer::Fresh("view"), Some(number), None),
                None => (Answer::Refused("WORKFLOW_NOT_FOUND"), None, None),
            };
        }
        if let Some(asset) = call.text("asset_id") {
            let holder = unit(asset).or_else(|| probe(asset));
            let holder = holder.and_then(|id| self.holders.get(&id).copied().flatten());
            return match holder {
                Some(number) => (Answer::Fresh("view"), Some(number), None),
                None => (Answer::Fresh("none"), None, None),
            };
        }
        let open: Vec<usize> = self.open().collect();
        match open.as_slice() {
            [] => (Answer::Fresh("none"), None, None),
            [one] => (Answer::Fresh("view"), Some(*one), None),
            several => (Answer::Fresh("disambiguation"), None, Some(several.len())),
        }
    }

    /// Whether `get_status` without anything open tells what was finished last.
    pub(super) fn recent(&self) -> bool {
        self.works.iter().any(|work| self.clock - work.at <= RECENT_MS)
    }

    fn find(&self, call: &Call) -> Prediction {
        let total = match (call.text("scope"), call.text("query")) {
            (Some("mine"), _) => self.open().count(),
            (Some("blocked"), _) => self.works.iter().filter(|w| !w.blocks.is_empty()).count(),
            (Some("available"), _) => {
                let offered = |n: &usize| {
                    self.works.get(*n).is_some_and(|w| w.offer == Some(Offer::ToAnybody))
                };
                self.open().filter(offered).count() + PROCEDURES
            }
            (_, None) => self.open().count() + PROCEDURES,
            // "bench 0002": the procedure itself has no number.
            (_, Some(_)) => {
                let numbered = |n: &usize| self.works.get(*n).is_some_and(Work::is_of_a_two);
                self.open().filter(numbered).count()
            }
        };
        match total {
            0 => (Answer::Fresh("none"), None, None),
            total => (Answer::Fresh("list"), None, Some(total)),
        }
    }

    fn check(&self, call: &Call) -> Answer {
        let Some((_, work)) = self.work(call) else {
            return Answer::Refused("WORKFLOW_NOT_FOUND");
        };
        let Some(step) = call.text("step_id").and_then(rules::step) else {
            return Answer::Refused("VALIDATION_ERROR");
        };
        let value = call.text("value").unwrap_or_default();
        match rules::judge(step, value, call.text("unit"), work.length()) {
            Judged::Accept(_) | Judged::Decline => Answer::Fresh("verdict"),
            Judged::Refuse(code) => Answer::Refused(code),
        }
    }
}

/// The newest event on the target of a call without a key, if the very same call caused it.
fn repeated<'w>(work: &'w Work, call: &Call) -> Option<&'w Touch> {
    let natural = call.natural();
    let same = |touch: &&Touch| touch.natural == natural;
    match call.tool.as_str() {
        "submit_step" | "correct_step" | "skip_step" => {
            let step = call.text("step_id")?;
            let recorded = work.steps.get(step).map(|s| &s.touch);
            let block = work.caused(step).map(|b| &b.touch);
            let newest = recorded.into_iter().chain(block).max_by_key(|touch| touch.revision);
            newest.filter(same)
        }
        "resolve_block" => {
            let Some(Arg::Block(_, nth)) = call.args.get("block_id") else { return None };
            let open = work.blocks.iter().find(|b| b.nth == *nth).map(|b| &b.touch);
            let closed = || work.closed.iter().find(|(n, _)| n == nth).map(|(_, touch)| touch);
            open.or_else(closed).filter(same)
        }
        "finish_workflow" => work.ended.as_ref().filter(same),
        "transfer_workflow" => work.handed.as_ref().filter(same),
        "report_problem" if call.text("severity") == Some("note") => {
            work.noted.as_ref().filter(|touch| touch.payload == call.payload())
        }
        // An open block of the same actor and step answers a repeated report, whatever its words.
        "report_problem" => {
            let step = call.text("step_id");
            work.blocks.iter().find(|b| b.reported && b.step == step).map(|b| &b.touch)
        }
        _ => None,
    }
}

/// The arguments of each tool: name, required.
fn arguments(tool: &str) -> &'static [(&'static str, bool)] {
    match tool {
        "find_work" => &[("query", false), ("asset_id", false), ("scope", false)],
        "get_status" => &[("workflow_id", false), ("asset_id", false), ("detail", false)],
        "start_workflow" => &[("procedure_id", true), ("assets", false), ("inputs", false)],
        "submit_step" => &[
            ("workflow_id", true),
            ("step_id", true),
            ("value", false),
            ("unit", false),
            ("note", false),
        ],
        "check_value" => {
            &[("workflow_id", true), ("step_id", true), ("value", true), ("unit", false)]
        }
        "correct_step" => &[
            ("workflow_id", true),
            ("step_id", true),
            ("value", true),
            ("reason_code", false),
            ("unit", false),
            ("note", false),
        ],
        "skip_step" => {
            &[("workflow_id", true), ("step_id", true), ("reason_code", false), ("note", false)]
        }
        "report_problem" => {
            &[("workflow_id", true), ("summary", true), ("severity", false), ("step_id", false)]
        }
        "finish_workflow" => &[("workflow_id", true), ("result", true), ("note", false)],
        "transfer_workflow" => {
            &[("workflow_id", true), ("action", true), ("to", false), ("reason_code", false)]
        }
        "resolve_block" => {
            &[("workflow_id", true), ("block_id", true), ("decision", true), ("comment", true)]
        }
        _ => &[],
    }
}

/// The call has the arguments that its tool has, each of its kind.
fn well_formed(call: &Call) -> bool {
    let known = arguments(&call.tool);
    let fits = |(name, arg): (&String, &Arg)| {
        known.iter().any(|(known, _)| known == name) && of_its_kind(name, arg)
    };
    let confirms = ["submit_step", "correct_step", "finish_workflow"].contains(&call.tool.as_str());
    let reads = ["get_status", "find_work", "check_value"].contains(&call.tool.as_str());
    !call.broken
        && call.key != Some(Key::TooLong)
        && !(reads && call.key.is_some())
        && (confirms || call.token.is_none())
        && call.args.iter().all(fits)
        && known.iter().all(|(name, required)| !required || call.args.contains_key(*name))
}

fn of_its_kind(name: &str, arg: &Arg) -> bool {
    let value = match arg {
        Arg::Workflow(_) | Arg::Block(..) => return true,
        Arg::Json(value) => value,
    };
    match (name, value) {
        ("inputs", Value::Object(members)) => members.values().all(|value| !is_huge(value)),
        ("assets", Value::Object(members)) => {
            members.values().all(|value| value.as_str().is_some_and(|text| !text.is_empty()))
        }
        ("scope", Value::String(word)) => ["mine", "available", "blocked"].contains(&word.as_str()),
        ("severity", Value::String(word)) => ["note", "low", "high"].contains(&word.as_str()),
        ("detail", Value::String(word)) => ["brief", "full"].contains(&word.as_str()),
        ("summary" | "comment", Value::String(text)) => !text.trim().is_empty(),
        (_, Value::String(_)) => !["inputs", "assets"].contains(&name),
        (
            _,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_),
        ) => false,
    }
}

/// A number that not every JSON reader keeps.
fn is_huge(value: &Value) -> bool {
    value.as_u64().is_some_and(|n| n > (1 << 53) - 1)
}

/// `UNIT-2` as it is written in any of the ways that mean it: "unit 02", "2".
pub(super) fn unit(said: &str) -> Option<String> {
    let said: String = said.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    let said = said.to_uppercase();
    let digits = said.strip_prefix("UNIT").unwrap_or(&said);
    let digits = match digits.trim_start_matches('0') {
        "" if digits.is_empty() => return None,
        "" => "0",
        digits => digits,
    };
    let number = digits.len() <= 4 && digits.bytes().all(|b| b.is_ascii_digit());
    number.then(|| format!("UNIT-{digits}"))
}

/// A probe: `P` and one digit; a small letter counts, too.
pub(super) fn probe(said: &str) -> Option<String> {
    let said = said.trim().to_ascii_uppercase();
    let mut chars = said.chars();
    let right = chars.next() == Some('P')
        && chars.next().is_some_and(|c| c.is_ascii_digit())
        && chars.next().is_none();
    right.then_some(said)
}
