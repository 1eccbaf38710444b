//! The parts of the result object. Absent keys are omitted; sensitive values never appear.

mod step;
mod work;

use serde_json::{Map, Value, json};

use crate::engine::Reply;
use crate::errors::ErrorCode;
use crate::models::{Actor, Person};
use crate::state_machine::{Confirmation, Outcome, Rejection};

use super::{Rule, Saying, Words};

pub use work::{
    Candidate, candidates, completed, history, is_recent, needs, next_key, people, workflow,
};

/// What every result is built with.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Words and clock.
    pub words: Words<'a>,
    /// Id of the store.
    pub store_id: &'a str,
}

impl Frame<'_> {
    /// A whole result: the four keys that are always there, and `parts`.
    #[must_use]
    pub fn reply(&self, outcome: Outcome, sayings: &[Saying], parts: Map<String, Value>) -> Reply {
        let speech = self.words.speech(sayings);
        let mut body = parts;
        body.insert("ok".to_owned(), Value::from(outcome != Outcome::Error));
        body.insert("outcome".to_owned(), Value::from(outcome.as_str()));
        body.insert("duplicate".to_owned(), Value::from(false));
        body.insert("speech".to_owned(), Value::from(speech.as_str()));
        Reply {
            outcome,
            error: None,
            duplicate: false,
            speech,
            body: Value::Object(body),
            text: None,
        }
    }

    /// An error result; `parts` may hold the workflow as it stands, or candidates.
    #[must_use]
    pub fn refusal(&self, rejection: &Rejection, parts: Map<String, Value>) -> Reply {
        let saying = std::slice::from_ref(&rejection.saying);
        let mut error = json!({
            "code": rejection.code.as_str(),
            "message": rejection.message,
            "retry": rejection.code.retry().as_str(),
            "next": next_step(rejection, &self.words.speech(saying)),
            "details": localized(&Value::Object(rejection.details.clone()), &self.words),
        });
        if let (Some(after), Some(error)) = (rejection.after_ms, error.as_object_mut()) {
            error.insert("after_ms".to_owned(), Value::from(after));
        }
        let mut parts = parts;
        parts.insert("error".to_owned(), error);
        let mut reply = self.reply(Outcome::Error, saying, parts);
        reply.error = Some(rejection.code);
        reply
    }

    /// The `confirm` part.
    #[must_use]
    pub fn confirm(&self, confirmation: &Confirmation) -> Value {
        json!({
            "token": confirmation.token,
            "read_back": self.words.say(&confirmation.read_back),
            "expires_at": confirmation.expires_at,
        })
    }
}

/// Adds a part that may be absent.
pub(crate) fn put(map: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(name.to_owned(), value.into());
    }
}

/// A person as results show them: users by their subject, others by their whole actor.
#[must_use]
pub fn person(person: &Person) -> Value {
    let id = match &person.id {
        // A subject that reads like another kind of actor is not taken for one.
        Actor::User(subject) if Actor::parse(subject).is_err() => subject.clone(),
        Actor::User(_) | Actor::System(_) | Actor::Cli(_) => person.id.to_string(),
    };
    match &person.name {
        Some(name) => json!({"id": id, "name": name}),
        None => json!({"id": id, "name": person.spoken()}),
    }
}

/// `say` members in several languages become the words of the answer's language.
fn localized(value: &Value, words: &Words<'_>) -> Value {
    match value {
        Value::Object(members) => {
            let said = members.iter().map(|(name, value)| {
                let text = (name == "say" && value.is_object())
                    .then(|| serde_json::from_value(value.clone()).ok())
                    .flatten()
                    .map(|text| Value::from(words.text(&text)));
                (name.clone(), text.unwrap_or_else(|| localized(value, words)))
            });
            Value::Object(said.collect())
        }
        Value::Array(items) => items.iter().map(|item| localized(item, words)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The one next step of an error: what to ask the person, and the call that helps.
fn next_step(rejection: &Rejection, speech: &str) -> Value {
    let taken = matches!(rejection.saying, Saying::Rule(Rule::LockLost { taken: true, .. }));
    let tool = match rejection.code {
        ErrorCode::WorkflowNotFound
        | ErrorCode::ProcedureNotFound
        | ErrorCode::AssetLocked
        | ErrorCode::LimitExceeded => Some("find_work"),
        ErrorCode::VersionConflict
        | ErrorCode::InvalidTransition
        | ErrorCode::StepNotOpen
        | ErrorCode::IdempotencyConflict
        | ErrorCode::DecisionNotAllowed => Some("get_status"),
        ErrorCode::StepAlreadyRecorded => Some("correct_step"),
        ErrorCode::LockLost if taken => Some("finish_workflow"),
        ErrorCode::LockLost => Some("transfer_workflow"),
        ErrorCode::ValidationError
        | ErrorCode::BackendUnavailable
        | ErrorCode::ImplausibleValue
        | ErrorCode::UnitMismatch
        | ErrorCode::TooEarly
        | ErrorCode::ReasonRequired
        | ErrorCode::NotAllowed
        | ErrorCode::Internal => None,
    };
    let mut next = Map::new();
    next.insert("ask".to_owned(), Value::from(speech));
    put(&mut next, "tool", tool);
    Value::Object(next)
}
