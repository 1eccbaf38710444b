//! Asking back: a question of an answer, sealed with the call it belongs to, and the call going on with what was said.
//!
//! A transport that can ask puts [`Engine::question`] to the person, gets the state back with the answer, has it checked by
//! [`Engine::answered`] and executes the same call [with what was agreed](Call::with). One that cannot, shows the reply.
//!
//! A state is used once. What makes it so is the commit that it leads to: its ledger row is written under the key of the
//! call, which the state is bound to, or under the state's own nonce when the call has none. Whoever comes second finds
//! that row, on whichever replica, after whichever restart, and is told `duplicate`. What writes nothing (a read, a no)
//! has no row; this process remembers those ([`Engine::spend`]), and another one would only read again, or hear no again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};
use wf_idempotency::{Fingerprint, IdempotencyKey};

use crate::access;
use crate::limits::SPENT_STATES_MAX;
use crate::models::{Principal, Timestamp, WorkflowId};
use crate::state_machine::event::ConfirmedBy;
use crate::state_machine::request_state::{Claims, Origin, Question as Asked, Unfit};
use crate::state_machine::{Outcome, Transfer};
use crate::view::{Ask, Saying};

use super::Engine;
use super::call::{Call, CallMeta, Detail, GetStatus, Reply, Request};

/// The call that a question belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// Who calls.
    pub principal: &'a Principal,
    /// The transport's name of such calls.
    pub method: &'a str,
    /// The operation's name.
    pub operation: &'static str,
    /// Its arguments, as the client sent them.
    pub arguments: &'a Map<String, Value>,
}

/// A question for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What to ask.
    pub text: String,
    /// What to choose from; a yes or no when empty.
    pub options: Vec<Choice>,
    /// What must come back with the answer.
    pub state: String,
}

/// One of several that may be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its id.
    pub id: String,
    /// Its words; no two of a question are equal.
    pub label: String,
}

/// A question that was taken back with its state: what there is to say to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    claims: Claims,
}

/// What the person agreed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    agreed: Agreed,
    nonce: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Agreed {
    /// To the read-back that this confirm token is for.
    ReadBack(String),
    /// That this one is meant.
    Which(String),
}

/// Why a state is not taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StateRefusal {
    /// It was not made for this call of this caller, or was changed.
    #[error("the state does not belong to this call")]
    Foreign,
    /// It is too old.
    #[error("the state has expired")]
    Expired,
    /// It was used before.
    #[error("the state was used before")]
    Used,
}

impl From<Unfit> for StateRefusal {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Foreign => Self::Foreign,
            Unfit::Expired => Self::Expired,
        }
    }
}

impl Asking<'_> {
    /// Goes on with the origin of a state; `None` for arguments without a canonical form.
    fn origin<R>(&self, then: impl FnOnce(&Origin<'_>) -> R) -> Option<R> {
        let call = Fingerprint::of(self.operation, self.arguments, &[]).ok()?.to_string();
        let actor = self.principal.actor.to_string();
        Some(then(&Origin {
            tenant: self.principal.tenant.as_str(),
            actor: &actor,
            client: self.principal.client_id.as_deref().unwrap_or_default(),
            method: self.method,
            call: &call,
        }))
    }
}

impl Engine {
    /// The question in a reply that is one; `None` for any other, which is the answer itself.
    #[must_use]
    pub fn question(&self, asking: &Asking<'_>, reply: &Reply) -> Option<Question> {
        let (asked, options) = asked(reply)?;
        let claims = Claims::new(asked, self.parts.ids.random_hex(), self.parts.clock.now());
        let state = asking.origin(|origin| claims.sign(&self.signing.keys(), origin))??;
        Some(Question { text: reply.speech.clone(), options, state })
    }

    /// What a state asks, when it was made for this call and nobody has used it.
    ///
    /// # Errors
    /// [`StateRefusal`]; that a state led to a commit before is found by the commit: its reply is a duplicate.
    pub fn answered(&self, asking: &Asking<'_>, state: &str) -> Result<Answered, StateRefusal> {
        let now = self.parts.clock.now();
        let opened = asking.origin(|at| Claims::open(&self.signing.keys(), at, state, now));
        let claims = opened.ok_or(StateRefusal::Foreign)??;
        if self.spent.holds(&claims) {
            return Err(StateRefusal::Used);
        }
        Ok(Answered { claims })
    }

    /// Remembers that a question was answered where nothing was written about it.
    pub fn spend(&self, answered: &Answered) {
        self.spent.add(&answered.claims, self.parts.clock.now());
    }

    /// The answer to a no: nothing is recorded; where the workflow stands, for whoever may see it.
    pub async fn declined(
        &self,
        principal: &Principal,
        answered: &Answered,
        workflow: Option<&WorkflowId>,
        meta: &CallMeta,
    ) -> Reply {
        let saying: Saying = match answered.claims.question {
            Asked::ReadBack { .. } => Ask::NotConfirmed.into(),
            Asked::Which { .. } => Ask::NotChosen.into(),
        };
        let mut parts = Map::new();
        if let (Some(id), Ok(())) = (workflow, access::may_read(principal))
            && let Ok(view) = self.shown(principal, id, Detail::Brief, meta).await
            && let Value::Object(body) = view.body
        {
            parts = body;
        }
        self.frame(None, meta).reply(Outcome::NotRecorded, &[saying], parts)
    }
}

impl Answered {
    /// True when the answer is a yes or a no, and no choice.
    #[must_use]
    pub const fn is_read_back(&self) -> bool {
        match self.claims.question {
            Asked::ReadBack { .. } => true,
            Asked::Which { .. } => false,
        }
    }

    /// The person said yes to the read-back; `None` where something else was asked.
    #[must_use]
    pub fn yes(&self) -> Option<Consent> {
        match &self.claims.question {
            Asked::ReadBack { token } => Some(self.agree(Agreed::ReadBack(token.clone()))),
            Asked::Which { .. } => None,
        }
    }

    /// The person chose this one; `None` where it was not offered.
    #[must_use]
    pub fn chosen(&self, id: &str) -> Option<Consent> {
        match &self.claims.question {
            Asked::ReadBack { .. } => None,
            Asked::Which { ids } => ids
                .iter()
                .find(|known| *known == id)
                .map(|id| self.agree(Agreed::Which(id.clone()))),
        }
    }

    fn agree(&self, agreed: Agreed) -> Consent {
        Consent { agreed, nonce: self.claims.nonce.clone() }
    }
}

impl Call {
    /// The same call with what was agreed. Without a key of its own it gets the state's, so that it is done once.
    #[must_use]
    pub fn with(mut self, consent: &Consent) -> Self {
        if self.key.is_none() {
            self.key = IdempotencyKey::parse(&format!("rs_{}", consent.nonce)).ok();
        }
        match &consent.agreed {
            Agreed::ReadBack(token) => self.request.confirm(token),
            Agreed::Which(id) => self.request.choose(id),
        }
        self
    }
}

impl Request {
    fn confirm(&mut self, with: &str) {
        let (token, by) = match self {
            Self::SubmitStep { value, .. } | Self::CorrectStep { value, .. } => {
                (&mut value.confirm_token, &mut value.confirmed_by)
            }
            Self::Finish { confirm_token, confirmed_by, .. } => (confirm_token, confirmed_by),
            Self::Start { .. }
            | Self::SkipStep { .. }
            | Self::ReportProblem { .. }
            | Self::ResolveBlock { .. }
            | Self::AcknowledgeBlock { .. }
            | Self::DeadlineReached { .. }
            | Self::AcknowledgeOrchestration { .. }
            | Self::Transfer { .. }
            | Self::ReleaseLock { .. } => return,
        };
        (*token, *by) = (Some(with.to_owned()), Some(ConfirmedBy::Elicitation));
    }

    fn choose(&mut self, id: &str) {
        if let Self::Transfer { transfer: Transfer::Offer { to }, .. } = self {
            *to = Some(id.to_owned());
        }
    }
}

impl GetStatus {
    /// The same question about the one that was chosen.
    #[must_use]
    pub fn with(self, consent: &Consent) -> Self {
        match &consent.agreed {
            Agreed::ReadBack(_) => self,
            Agreed::Which(id) => match WorkflowId::parse(id) {
                Ok(id) => Self { workflow_id: Some(id), asset_id: None, ..self },
                Err(_) => self,
            },
        }
    }
}

/// What a reply asks, and what there is to choose from.
fn asked(reply: &Reply) -> Option<(Asked, Vec<Choice>)> {
    if reply.outcome == Outcome::NeedsConfirmation {
        let token = reply.body.pointer("/confirm/token")?.as_str()?.to_owned();
        return Some((Asked::ReadBack { token }, Vec::new()));
    }
    if reply.outcome != Outcome::Disambiguation {
        return None;
    }
    let candidates = reply.body.get("candidates")?.as_array()?;
    let options: Vec<Choice> = candidates.iter().filter_map(choice).collect();
    if options.is_empty() || options.len() != candidates.len() {
        return None;
    }
    let ids = options.iter().map(|option| option.id.clone()).collect();
    Some((Asked::Which { ids }, told_apart(options)))
}

/// A workflow, or a person that work may be offered to.
fn choice(candidate: &Value) -> Option<Choice> {
    let text = |name: &str| candidate.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Choice { id: text("workflow_id").or_else(|| text("to"))?, label: text("label")? })
}

/// Two of the same name are named with their ids.
fn told_apart(options: Vec<Choice>) -> Vec<Choice> {
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    for option in &options {
        *named.entry(option.label.clone()).or_default() += 1;
    }
    let apart = |option: Choice| match named.get(&option.label) {
        Some(2..) => Choice { label: format!("{} ({})", option.label, option.id), ..option },
        Some(_) | None => option,
    };
    options.into_iter().map(apart).collect()
}

/// Nonces of states that were answered and wrote nothing, until they expire. When there are more than it holds, the ones
/// that expire first are forgotten.
#[derive(Debug, Default)]
pub(super) struct Spent(Mutex<BTreeSet<(Timestamp, String)>>);

impl Spent {
    fn holds(&self, claims: &Claims) -> bool {
        let spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spent.contains(&(claims.expires_at, claims.nonce.clone()))
    }

    fn add(&self, claims: &Claims, now: Timestamp) {
        let mut spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while spent.first().is_some_and(|(until, _)| *until <= now)
            || spent.len() >= SPENT_STATES_MAX
        {
            spent.pop_first();
        }
        spent.insert((claims.expires_at, claims.nonce.clone()));
    }
}

#[cfg(test)]
mod tests;
