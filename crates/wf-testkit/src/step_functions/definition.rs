//! A state machine as it is written: the states that can be executed here, and what is refused. A field that is not named
//! in this file is refused, so that nothing is accepted and then not done.
//! <https://states-language.net/spec.html>

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::path::{self, Expression};

/// A state machine.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Definition {
    #[serde(default, rename = "Comment")]
    _comment: Option<IgnoredAny>,
    #[serde(default)]
    query_language: Option<String>,
    pub(super) start_at: String,
    pub(super) states: BTreeMap<String, State>,
}

/// A state.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "Type")]
pub(super) enum State {
    Pass(Pass),
    Task(Box<Task>),
    Choice(Choice),
    Succeed(Succeed),
    Fail(Fail),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Pass {
    #[serde(default, rename = "Comment")]
    _comment: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) result: Option<Value>,
    #[serde(default)]
    pub(super) parameters: Option<Value>,
    #[serde(default = "whole")]
    pub(super) result_path: Option<String>,
    #[serde(default)]
    pub(super) next: Option<String>,
    #[serde(default)]
    end: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Task {
    #[serde(default, rename = "Comment")]
    _comment: Option<IgnoredAny>,
    pub(super) resource: String,
    pub(super) parameters: Value,
    #[serde(default = "whole")]
    pub(super) result_path: Option<String>,
    #[serde(default)]
    pub(super) timeout_seconds: Option<u64>,
    #[serde(default)]
    pub(super) timeout_seconds_path: Option<String>,
    #[serde(default)]
    pub(super) retry: Vec<Retrier>,
    #[serde(default)]
    pub(super) catch: Vec<Catcher>,
    #[serde(default)]
    pub(super) next: Option<String>,
    #[serde(default)]
    end: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Choice {
    #[serde(default, rename = "Comment")]
    _comment: Option<IgnoredAny>,
    pub(super) choices: Vec<Rule>,
    #[serde(default)]
    pub(super) default: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) variable: String,
    pub(super) string_equals: String,
    pub(super) next: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Succeed {
    #[serde(default, rename = "Comment")]
    _comment: Option<IgnoredAny>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Fail {
    #[serde(default, rename = "Comment")]
    _comment: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) cause: Option<String>,
    #[serde(default)]
    pub(super) error_path: Option<String>,
    #[serde(default)]
    pub(super) cause_path: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Retrier {
    pub(super) error_equals: Vec<String>,
    #[serde(default = "one")]
    pub(super) interval_seconds: u32,
    #[serde(default = "three")]
    pub(super) max_attempts: u32,
    #[serde(default = "two")]
    pub(super) backoff_rate: f64,
    #[serde(default)]
    pub(super) max_delay_seconds: Option<u32>,
    #[serde(default)]
    jitter_strategy: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Catcher {
    pub(super) error_equals: Vec<String>,
    #[serde(default = "whole")]
    pub(super) result_path: Option<String>,
    pub(super) next: String,
}

#[expect(clippy::unnecessary_wraps, reason = "the default of a field that may be null")]
fn whole() -> Option<String> {
    Some("$".to_owned())
}

fn one() -> u32 {
    1
}

fn three() -> u32 {
    3
}

fn two() -> f64 {
    2.0
}

/// What a task calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Resource {
    /// What names of errors begin with: the two forms of integration write the service differently.
    pub(super) errors: &'static str,
    /// It waits for its token to be answered.
    pub(super) waits: bool,
}

/// The operation of every resource that is known here.
pub(super) const OPERATION: &str = "UpdateItem";

impl Resource {
    pub(super) fn of(arn: &str) -> Option<Self> {
        match arn {
            "arn:aws:states:::aws-sdk:dynamodb:updateItem.waitForTaskToken" => {
                Some(Self { errors: "DynamoDb", waits: true })
            }
            "arn:aws:states:::aws-sdk:dynamodb:updateItem" => {
                Some(Self { errors: "DynamoDb", waits: false })
            }
            "arn:aws:states:::dynamodb:updateItem" => {
                Some(Self { errors: "DynamoDB", waits: false })
            }
            _ => None,
        }
    }
}

impl Definition {
    /// Reads a definition; says what is wrong with it otherwise.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let definition: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        definition.check()?;
        Ok(definition)
    }

    fn check(&self) -> Result<(), String> {
        if self.query_language.as_deref().is_some_and(|language| language != "JSONPath") {
            return Err("the query language is JSONPath".to_owned());
        }
        let mut terminal = false;
        for (name, state) in &self.states {
            if name.chars().count() > 80 {
                return Err(format!("{name}: 80 characters at most"));
            }
            state.check().map_err(|why| format!("{name}: {why}"))?;
            let targets = state.targets();
            if let Some(missing) = targets.iter().find(|to| !self.states.contains_key(**to)) {
                return Err(format!("{name}: there is no state {missing}"));
            }
            terminal |= state.ends();
        }
        let mut reached = BTreeSet::new();
        let mut open = vec![self.start_at.as_str()];
        while let Some(name) = open.pop() {
            let state = self.states.get(name).ok_or_else(|| format!("there is no state {name}"))?;
            if reached.insert(name) {
                open.extend(state.targets());
            }
        }
        if let Some(name) = self.states.keys().find(|name| !reached.contains(name.as_str())) {
            return Err(format!("{name} is not reached"));
        }
        if terminal { Ok(()) } else { Err("it never ends".to_owned()) }
    }
}

impl State {
    /// The states that can follow.
    fn targets(&self) -> Vec<&str> {
        match self {
            Self::Pass(pass) => pass.next.iter().map(String::as_str).collect(),
            Self::Task(task) => {
                let caught = task.catch.iter().map(|catcher| &catcher.next);
                task.next.iter().chain(caught).map(String::as_str).collect()
            }
            Self::Choice(choice) => {
                let rules = choice.choices.iter().map(|rule| &rule.next);
                rules.chain(&choice.default).map(String::as_str).collect()
            }
            Self::Succeed(_) | Self::Fail(_) => Vec::new(),
        }
    }

    /// An execution can end with it.
    fn ends(&self) -> bool {
        match self {
            Self::Pass(pass) => pass.end,
            Self::Task(task) => task.end,
            Self::Choice(_) => false,
            Self::Succeed(_) | Self::Fail(_) => true,
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Pass(pass) => {
                one_way(pass.next.is_some(), pass.end)?;
                place(pass.result_path.as_ref())?;
                path::check(pass.parameters.as_ref().unwrap_or(&Value::Null)).map(|_| ())
            }
            Self::Task(task) => task.check(),
            Self::Choice(choice) => {
                if choice.choices.is_empty() {
                    return Err("no choices".to_owned());
                }
                let rules = &choice.choices;
                rules.iter().try_for_each(|rule| Expression::parse(&rule.variable).map(|_| ()))
            }
            Self::Fail(fail) => {
                let paths = fail.error_path.iter().chain(&fail.cause_path);
                paths.into_iter().try_for_each(|path| Expression::parse(path).map(|_| ()))
            }
            Self::Succeed(Succeed { _comment: _ }) => Ok(()),
        }
    }
}

impl Task {
    pub(super) fn target(&self) -> Option<Resource> {
        Resource::of(&self.resource)
    }

    fn check(&self) -> Result<(), String> {
        one_way(self.next.is_some(), self.end)?;
        place(self.result_path.as_ref())?;
        let resource =
            self.target().ok_or_else(|| format!("{} is not known here", self.resource))?;
        let token = path::check(&self.parameters)?;
        if token != resource.waits {
            return Err("a task that waits hands its token on, and no other does".to_owned());
        }
        if self.timeout_seconds == Some(0) {
            return Err("TimeoutSeconds is positive".to_owned());
        }
        if let Some(path) = &self.timeout_seconds_path {
            Expression::parse(path)?;
            if self.timeout_seconds.is_some() {
                return Err("one of TimeoutSeconds and TimeoutSecondsPath".to_owned());
            }
        }
        for retrier in &self.retry {
            let jitter = retrier.jitter_strategy.as_deref().unwrap_or("NONE");
            if retrier.interval_seconds == 0
                || retrier.backoff_rate < 1.0
                || !["NONE", "FULL"].contains(&jitter)
            {
                return Err("Retry: IntervalSeconds ≥ 1, BackoffRate ≥ 1.0, JitterStrategy".into());
            }
        }
        self.catch.iter().try_for_each(|catcher| place(catcher.result_path.as_ref()))?;
        all_is_last(self.retry.iter().map(|retrier| &retrier.error_equals))?;
        all_is_last(self.catch.iter().map(|catcher| &catcher.error_equals))
    }
}

fn one_way(next: bool, end: bool) -> Result<(), String> {
    if next == end { Err("one of Next and End".to_owned()) } else { Ok(()) }
}

fn place(at: Option<&String>) -> Result<(), String> {
    match at.filter(|at| !path::is_place(at)) {
        Some(at) => Err(format!("{at} is no place")),
        None => Ok(()),
    }
}

/// `States.ALL` stands alone, and in the last entry.
fn all_is_last<'a>(lists: impl Iterator<Item = &'a Vec<String>>) -> Result<(), String> {
    let lists: Vec<_> = lists.collect();
    for (n, names) in lists.iter().enumerate() {
        let all = names.iter().any(|name| name == "States.ALL");
        if names.is_empty() || (all && (names.len() > 1 || n + 1 < lists.len())) {
            return Err("ErrorEquals: not empty; States.ALL alone and last".to_owned());
        }
    }
    Ok(())
}
