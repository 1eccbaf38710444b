//! One operation: what it becomes at its place in a case, and how the world moves on.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::call::{
    Arg, Call, Change, Expects, Key, KeyPick, Op, Pick, Request, Style, Token, TokenPick,
};
use super::world::{Predicted, World};

/// Furthest that the clock is moved in either direction.
const CLOCK_MS_MAX: i64 = 5 * 24 * 60 * 60 * 1_000;

impl World {
    /// The world after an operation. What its calls must be answered is in `last`.
    pub(super) fn apply(mut self, op: &Op) -> Self {
        self.last.clear();
        self.released = None;
        match op {
            Op::Call(request) => {
                let call = self.resolve(request);
                self.ask(&call, None);
            }
            Op::Crash(request, after) => {
                let call = self.resolve(request);
                // Without a key the same call may lawfully be answered otherwise.
                let crash = matches!(call.key, Some(Key::Named(_) | Key::Next { .. }));
                self.ask(&call, crash.then_some(*after));
            }
            Op::Again { back, style, via } => {
                if let Some(call) = self.earlier(*back) {
                    self.ask(&Call { style: *style, via: *via, ..call }, None);
                }
            }
            Op::Mutated { back, change, via } => {
                if let Some(call) = self.earlier(*back) {
                    self.ask(&changed(Call { via: *via, ..call }, *change), None);
                }
            }
            Op::Confirm { style, via } => self.confirm(*style, *via),
            Op::Flood { workflow } => self.flood(*workflow),
            Op::Look { via } => {
                for call in looks(*via) {
                    self.ask(&call, None);
                }
            }
            Op::Kill { .. } | Op::Stop { .. } => {}
            Op::Second => self.second = !self.second,
            Op::Clock { minutes } => {
                let moved = self.clock + i64::from(*minutes) * 60_000;
                self.clock = moved.clamp(-CLOCK_MS_MAX, CLOCK_MS_MAX);
            }
            Op::Release { asset } => self.released = Some(self.release(asset)),
        }
        self
    }

    fn ask(&mut self, call: &Call, crash: Option<u32>) {
        let number = self.calls.len();
        self.calls.push(call.clone());
        let (answer, shows, total) = self.predict(number, call);
        let shows = shows.and_then(|work| Some(self.works.get(work)?.shown(work)));
        self.last.push(Predicted { number, answer, shows, total, crash });
    }

    fn earlier(&self, back: u8) -> Option<Call> {
        let count = self.calls.len();
        let back = usize::from(back).checked_rem(count)?;
        self.calls.get(count - 1 - back).cloned()
    }

    fn confirm(&mut self, style: Style, via: u8) {
        let Some((number, token)) = self.asked.last().copied() else { return };
        let Some(call) = self.calls.get(number).cloned() else { return };
        self.ask(&Call { token: Some(Token::Given(token)), style, via, ..call }, None);
    }

    fn flood(&mut self, workflow: u8) {
        let open = self.works.get(usize::from(workflow)).map_or(0, |work| work.blocks.len());
        for n in open..17 {
            let request = Request::new("report_problem")
                .workflow(workflow)
                .text("summary", &format!("trouble {n}"))
                .key(KeyPick::Named(1_000 + u16::try_from(self.calls.len()).unwrap_or(0)));
            let call = self.resolve(&request);
            self.ask(&call, None);
        }
    }

    fn resolve(&self, request: &Request) -> Call {
        let picked = match request.args.get("workflow_id") {
            Some(Pick::Workflow(n)) => Some(usize::from(*n)),
            Some(Pick::Json(_) | Pick::Block(_)) | None => None,
        };
        let work = picked.and_then(|n| Some((n, self.works.get(n)?)));
        let mut args = BTreeMap::new();
        for (name, pick) in &request.args {
            let arg = match pick {
                Pick::Json(value) => Arg::Json(value.clone()),
                Pick::Workflow(n) if work.is_some() => Arg::Workflow(usize::from(*n)),
                Pick::Workflow(n) => Arg::Json(json!(format!("nobody-started-{n}"))),
                Pick::Block(n) => self.picked_block(picked, *n),
            };
            args.insert(name.clone(), arg);
        }
        let revision = work.map(|(_, work)| work.revision);
        Call {
            tool: request.tool.clone(),
            args,
            key: match request.key {
                KeyPick::None => None,
                KeyPick::Named(n) => Some(Key::Named(n)),
                KeyPick::Next => {
                    work.map(|(workflow, work)| Key::Next { workflow, revision: work.revision })
                }
                KeyPick::TooLong => Some(Key::TooLong),
            },
            token: match request.token {
                TokenPick::None => None,
                TokenPick::Earlier(back) => {
                    self.tokens.len().checked_sub(1 + usize::from(back)).map(Token::Given)
                }
                TokenPick::Junk => Some(Token::Junk),
            },
            expects: match request.expects {
                Expects::Nothing => None,
                Expects::Current => revision,
                Expects::Stale => revision.map(|revision| revision - 1),
            },
            broken: request.broken,
            style: request.style,
            via: request.via,
        }
    }

    fn picked_block(&self, workflow: Option<usize>, n: u8) -> Arg {
        let work = workflow.and_then(|number| Some((number, self.works.get(number)?)));
        let open = work.and_then(|(number, work)| {
            let n = usize::from(n).checked_rem(work.blocks.len())?;
            Some(Arg::Block(number, work.blocks.get(n)?.nth))
        });
        let closed = || work.and_then(|(number, w)| Some(Arg::Block(number, w.closed.last()?.0)));
        open.or_else(closed).unwrap_or_else(|| Arg::Json(json!("nobodys-block")))
    }
}

/// The same call with something else in it.
fn changed(mut call: Call, change: Change) -> Call {
    let mut put = |name: &str, value: Value| {
        call.args.insert(name.to_owned(), Arg::Json(value));
    };
    match (change, call.tool.as_str()) {
        (Change::Words, "start_workflow") => put("inputs", json!({"order": "another"})),
        (Change::Words, "report_problem") => put("summary", json!("something else")),
        (Change::Words, "resolve_block") => put("comment", json!("something else")),
        (Change::Words, "submit_step" | "correct_step" | "skip_step" | "finish_workflow") => {
            put("note", json!("something else"));
        }
        (Change::Value, "submit_step" | "correct_step") => put("value", json!("17.5")),
        (Change::Value, "transfer_workflow") => put("action", json!("withdraw")),
        (Change::Value, "resolve_block") => put("decision", json!("abort")),
        (Change::Value, "finish_workflow") => put("result", json!("failed")),
        (Change::Value, "report_problem") => put("severity", json!("note")),
        (Change::Tool, "submit_step") => {
            call.args.remove("unit");
            call.args.insert("reason_code".to_owned(), Arg::Json(json!("WORN")));
            call.tool = "correct_step".to_owned();
        }
        (Change::Keyless, _) => call.key = None,
        (Change::Key(n), _) => call.key = Some(Key::Named(n)),
        (Change::Words | Change::Value | Change::Tool, _) => {}
    }
    call
}

/// Reads that need no workflow.
fn looks(via: u8) -> Vec<Call> {
    let whole = [
        Request::new("get_status"),
        Request::new("get_status").text("asset_id", "unit 01"),
        Request::new("get_status").text("asset_id", "P2"),
        Request::new("get_status").text("asset_id", "the left one"),
        Request::new("find_work"),
        Request::new("find_work").text("scope", "mine"),
        Request::new("find_work").text("scope", "blocked"),
        Request::new("find_work").text("scope", "available"),
        Request::new("find_work").text("query", "bench 0002"),
        Request::new("find_work").text("scope", "everything"),
    ];
    let world = World::default();
    whole.into_iter().map(|request| Call { via, ..world.resolve(&request) }).collect()
}

impl Request {
    pub(super) fn new(tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            args: BTreeMap::new(),
            key: KeyPick::None,
            token: TokenPick::None,
            expects: Expects::Nothing,
            broken: false,
            style: Style::default(),
            via: 0,
        }
    }

    pub(super) fn with(mut self, name: &str, pick: Pick) -> Self {
        self.args.insert(name.to_owned(), pick);
        self
    }

    pub(super) fn workflow(self, n: u8) -> Self {
        self.with("workflow_id", Pick::Workflow(n))
    }

    pub(super) fn text(self, name: &str, text: &str) -> Self {
        self.with(name, Pick::Json(json!(text)))
    }

    /// With a text that may be absent.
    pub(super) fn maybe(self, name: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    pub(super) fn key(self, key: KeyPick) -> Self {
        Self { key, ..self }
    }
}
