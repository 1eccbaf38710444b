//! What is asked of the server: operations as they are generated, and calls as they are sent.
//!
//! An operation names workflows and blocks by number, so that it still means something when operations before it were
//! taken away. [`Call`] is what became of one at its place in a case: it can be sent again exactly.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One operation of a case. Written down as JSON in `regressions.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Op {
    /// A call of a tool.
    Call(Request),
    /// A call whose server is killed while it is at work, so many microseconds after the call was sent; then the same
    /// call again.
    Crash(Request, u32),
    /// An earlier call again, so many calls back; perhaps in other bytes that mean the same.
    Again { back: u8, style: Style, via: u8 },
    /// An earlier call with another payload under its key.
    Mutated { back: u8, change: Change, via: u8 },
    /// The newest call that was answered with a read-back, confirmed.
    Confirm { style: Style, via: u8 },
    /// Problems are reported until no more blocks may be open.
    Flood { workflow: u8 },
    /// Each thing that has no effect but must be right: reads of everything.
    Look { via: u8 },
    /// The server is killed and started again.
    Kill { via: u8 },
    /// The server is asked to end, and started again.
    Stop { via: u8 },
    /// A second server on the same database starts, or ends when there is one.
    Second,
    /// The clock of all processes moves.
    Clock { minutes: i32 },
    /// An operator frees an asset from the command line.
    Release { asset: String },
}

/// A call before its place in a case is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) tool: String,
    pub(super) args: BTreeMap<String, Pick>,
    pub(super) key: KeyPick,
    pub(super) token: TokenPick,
    pub(super) expects: Expects,
    pub(super) broken: bool,
    pub(super) style: Style,
    pub(super) via: u8,
}

/// An argument before its place in a case is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pick {
    Json(Value),
    /// The nth workflow that was started; one that nobody started when there are not so many.
    Workflow(u8),
    /// The nth block that is open in the call's workflow; the newest closed one when none is, else one of nobody.
    Block(u8),
}

/// Which idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KeyPick {
    None,
    Named(u16),
    /// The `next_idempotency_key` of the call's workflow.
    Next,
    /// One character too long.
    TooLong,
}

/// Which confirm token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TokenPick {
    None,
    /// The nth that was given out, counted back from the newest, whatever it was for.
    Earlier(u8),
    Junk,
}

/// `expected_revision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Expects {
    Nothing,
    Current,
    Stale,
}

/// How the JSON is written; every style means the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Style {
    /// Members in reverse order.
    pub(super) reversed: bool,
    /// Every character of a text as `\uXXXX`.
    pub(super) escaped: bool,
    /// Spaces, tabs and line ends wherever they may be.
    pub(super) spaced: bool,
    /// Whole numbers as `7.0` (1) or `70e-1` (2).
    pub(super) numbers: u8,
}

/// What another payload differs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Change {
    /// Another note, summary or comment; another order for a start.
    Words,
    /// Another value, decision or result.
    Value,
    /// Another tool.
    Tool,
    /// The same call without its key.
    Keyless,
    /// The same payload under another key.
    Key(u16),
}

/// A call as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) args: BTreeMap<String, Arg>,
    pub(super) key: Option<Key>,
    pub(super) token: Option<Token>,
    pub(super) expects: Option<u64>,
    pub(super) broken: bool,
    pub(super) style: Style,
    pub(super) via: u8,
}

/// An argument as it is sent. Ids that only the server knows are numbers here.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Arg {
    Json(Value),
    Workflow(usize),
    /// The nth block that was ever opened in a workflow.
    Block(usize, usize),
}

/// An idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Named(u16),
    Next { workflow: usize, revision: u64 },
    TooLong,
}

/// A confirm token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Given(usize),
    Junk,
}

/// What a key stands for: tool and arguments without key and token.
pub(super) type Payload = (String, BTreeMap<String, Arg>);

impl Call {
    /// A look at a workflow, by the first server.
    pub(super) fn status(number: usize) -> Self {
        Self {
            tool: "get_status".to_owned(),
            args: BTreeMap::from([("workflow_id".to_owned(), Arg::Workflow(number))]),
            key: None,
            token: None,
            expects: None,
            broken: false,
            style: Style::default(),
            via: 0,
        }
    }

    pub(super) fn payload(&self) -> Payload {
        (self.tool.clone(), self.args.clone())
    }

    /// What a call without a key is recognised by: without free texts besides.
    pub(super) fn natural(&self) -> Payload {
        let mut args = self.args.clone();
        args.retain(|name, _| {
            !["note", "summary", "comment", "observed_at"].contains(&name.as_str())
        });
        (self.tool.clone(), args)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.args.get(name) {
            Some(Arg::Json(Value::String(text))) => Some(text),
            Some(Arg::Json(_) | Arg::Workflow(_) | Arg::Block(..)) | None => None,
        }
    }

    /// The workflow that the call names, if somebody started it.
    pub(super) fn workflow(&self) -> Option<usize> {
        match self.args.get("workflow_id") {
            Some(Arg::Workflow(number)) => Some(*number),
            Some(Arg::Json(_) | Arg::Block(..)) | None => None,
        }
    }
}
