//! What the callers of a run saw, call by call: written while a bench runs, one JSON object a line, read by the audit.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One attempt of one call of a tool. Retries of a call are attempts with the same `call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Number of the logical call within the run: one key, one payload, one decision of a caller.
    pub call: u64,
    /// Number of the caller; a caller has one attempt in flight at most.
    pub caller: u32,
    /// Tenant of the caller.
    pub tenant: String,
    /// Actor of the caller as the store writes it, for example `user:local`.
    pub actor: String,
    /// Name of the tool.
    pub tool: String,
    /// The arguments as they were sent, `idempotency_key` included.
    pub arguments: Map<String, Value>,
    /// When the request was about to be sent, in nanoseconds of a monotonic clock that all callers of the run share.
    pub sent_ns: u64,
    /// When the attempt was over: the whole answer was read, or the connection broke.
    pub over_ns: u64,
    /// What came of it.
    pub outcome: Outcome,
}

/// What a caller knows after an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nobody listened, so nothing was sent and nothing can have happened.
    NotSent,
    /// It was sent and no answer came, or one that is none of the product (a proxy's 502): anything may have happened.
    Unknown {
        /// Why, for a person.
        why: String,
    },
    /// The server refused it before the tool saw it (HTTP 429 or 503 with nothing done).
    Shed {
        /// Status of the answer.
        status: u16,
    },
    /// A result of the tool, good or not.
    Answered {
        /// The canonical text of the result object, byte for byte as it was received.
        text: String,
    },
}

impl Outcome {
    /// The result object of an answer.
    #[must_use]
    pub fn result(&self) -> Option<Value> {
        match self {
            Self::Answered { text } => serde_json::from_str(text).ok(),
            Self::NotSent | Self::Unknown { .. } | Self::Shed { .. } => None,
        }
    }
}

/// What the same callers would know if everything had stopped at one instant: later attempts were never made, and those
/// in flight have no answer.
#[must_use]
pub fn cut_at(attempts: &[Attempt], at_ns: u64) -> Vec<Attempt> {
    let sent = attempts.iter().filter(|attempt| attempt.sent_ns < at_ns);
    sent.map(|attempt| {
        let mut attempt = attempt.clone();
        if attempt.over_ns >= at_ns && attempt.outcome != Outcome::NotSent {
            attempt.outcome = Outcome::Unknown { why: "everything stopped".to_owned() };
        }
        attempt
    })
    .collect()
}
