//! The control plane: state machines, executions by name, tokens, and what is seen of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use wf_core::models::Timestamp;

use super::TableError;
use super::buckets::Buckets;
use super::definition::Definition;
use super::execution::Execution;
use super::run::Call;

#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) arn: String,
    pub(super) role: String,
    pub(super) text: String,
    pub(super) definition: Arc<Definition>,
    pub(super) made_at: Timestamp,
    pub(super) deleting: bool,
    /// Members of its request that this double keeps and does not look into (logging, tracing, tags).
    pub(super) other: BTreeMap<String, Value>,
}

/// What Describe and List answer from while they lag.
#[derive(Debug)]
struct Lag {
    calls: u32,
    executions: BTreeMap<String, Execution>,
}

#[derive(Debug, Default)]
pub(super) struct Plane {
    /// By their ARN.
    pub(super) machines: BTreeMap<String, Machine>,
    pub(super) executions: BTreeMap<String, Execution>,
    /// Every token that was ever handed out, and of which execution.
    pub(super) tokens: HashMap<String, String>,
    pub(super) buckets: Buckets,
    /// Calls of each API.
    pub(super) took: BTreeMap<String, u64>,
    lag: Option<Lag>,
    /// Counts attempts, and executions without a name.
    numbers: u64,
    /// Executions that wait for the answer of the table.
    called: HashMap<u64, String>,
}

impl Plane {
    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// All executions go on until they wait; the first call to the table that one of them makes.
    pub(super) fn next_call(&mut self, now: Timestamp) -> Option<Call> {
        for (arn, execution) in &mut self.executions {
            if !execution.is_running() {
                continue;
            }
            let dying = self.machines.get(&execution.machine).is_none_or(|m| m.deleting);
            let number = self.numbers + 1;
            if let Some(call) = execution.goes_on(now, dying, number) {
                self.numbers = number;
                self.called.insert(number, arn.clone());
                if let Some(token) = &call.token {
                    self.tokens.insert(token.clone(), arn.clone());
                }
                return Some(call);
            }
        }
        self.bury();
        None
    }

    /// A state machine that is deleted is gone when its last execution has ended, and they with it.
    fn bury(&mut self) {
        let executions = &self.executions;
        let runs = |arn: &str| executions.values().any(|e| e.machine == arn && e.is_running());
        let gone: Vec<String> = self
            .machines
            .values()
            .filter(|machine| machine.deleting && !runs(&machine.arn))
            .map(|machine| machine.arn.clone())
            .collect();
        for arn in gone {
            self.machines.remove(&arn);
            self.executions.retain(|_, execution| execution.machine != arn);
        }
    }

    pub(super) fn answered(
        &mut self,
        number: u64,
        answer: Result<Value, TableError>,
        now: Timestamp,
    ) {
        let arn = self.called.remove(&number);
        if let Some(execution) = arn.and_then(|arn| self.executions.get_mut(&arn)) {
            execution.answered(number, answer, now);
        }
    }

    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        self.executions.values().filter_map(Execution::next_timer).min()
    }

    /// The next `calls` looks see executions as they are now.
    pub(super) fn lags(&mut self, calls: u32) {
        self.lag = Some(Lag { calls, executions: self.executions.clone() });
    }

    /// What a look sees.
    pub(super) fn looks(&mut self) -> &BTreeMap<String, Execution> {
        match &mut self.lag {
            Some(lag) if lag.calls > 0 => {
                lag.calls -= 1;
                &lag.executions
            }
            Some(_) | None => &self.executions,
        }
    }
}
