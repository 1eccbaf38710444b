//! The commit of a decision and the answer it stores: the result exists before the commit.

use serde_json::Value;
use wf_idempotency::LedgerEntry;

use crate::errors::ErrorCode;
use crate::locks::LockRow;
use crate::models::{Cause, Timestamp, Workflow};
use crate::policy::DomainPolicyPort;
use crate::ports::{Commit, LedgerRow};
use crate::state_machine::chain::{self, Tip};
use crate::state_machine::notices::{Links, notices};
use crate::state_machine::{Decision, Draft, Rejection, deadlines, room};
use crate::view::{Fault, Frame, Outlook, shape};

use super::super::call::Reply;
use super::super::commit::{Committed, sayings};
use super::super::execute::Refused;
use super::super::ledger;
use super::{Attempt, Attempting, answered};

/// Version of the stored result's shape; it only grows by optional keys.
const RESULT_VERSION: u16 = 1;

/// A commit and the answer it stores.
pub(super) struct Made {
    commit: Commit,
    reply: Reply,
}

impl Attempting<'_> {
    /// Everything of the commit, the result included.
    pub(super) fn build(
        &self,
        decision: Decision,
        state: Option<&Workflow>,
        policy: &dyn DomainPolicyPort,
        frame: &Frame<'_>,
        now: Timestamp,
    ) -> Result<Made, Refused> {
        let unwritable = |error: &dyn std::fmt::Display| {
            Rejection::new(ErrorCode::Internal, error.to_string(), Fault::Internal)
        };
        let tenant = &self.principal.tenant;
        let tip = state.map_or_else(|| Tip::origin(tenant, self.workflow_id.clone()), Tip::of);
        let expected = tip.seq;
        let Decision { outcome, drafts, locks, warnings } = decision;
        let (cause, salt) = self.written(&drafts);
        let (events, next) =
            chain::append(state.cloned(), tip, drafts, self.principal, &cause, now)
                .map_err(|error| unwritable(&error))?;
        let next = next.ok_or_else(|| unwritable(&"a history must begin with a start"))?;
        room(&next)?;
        let seq = next.revision;
        let outlook = Outlook::of(&next, policy);
        let mut parts = shape::workflow(frame, &next, Some(&outlook));
        if !warnings.is_empty() {
            let said: Vec<&str> = warnings.iter().map(|w| frame.words.text(w)).collect();
            parts.insert("warnings".to_owned(), Value::from(said));
        }
        let sayings = sayings(outcome, &events, &outlook, &frame.words);
        let mut reply = frame.reply(outcome, &sayings, parts);
        let result =
            wf_idempotency::canonical_string(&reply.body).map_err(|error| unwritable(&error))?;
        reply.text = Some(result.clone());
        let row = LedgerRow {
            key: self.ledger_key(cause.key),
            entry: LedgerEntry {
                operation: self.call.operation.to_owned(),
                fingerprint: cause.fingerprint,
                result_version: RESULT_VERSION,
                result,
                created_at_ms: now.as_ms(),
                expires_at_ms: None,
            },
            workflow_id: next.id.clone(),
            seq,
            mark: self.engine.parts.ids.random_hex(),
            fields: ledger::fields(self.call, frame.store_id, salt),
        };
        let engine = &self.engine;
        let public_url = engine.parts.settings.public_url.as_deref();
        let secrets = &self.keys;
        let links = public_url.map(|public_url| Links { public_url, secrets });
        let outbox = notices(&events, &next, policy, links);
        let deadlines = deadlines::changes(state, &next);
        Ok(Made {
            commit: Commit {
                next,
                expected,
                events,
                ledger: row,
                replaces: None,
                locks,
                seen: self.engine.known.news(self.principal),
                outbox,
                deadlines,
            },
            reply,
        })
    }

    /// The cause as it is written: under the salt, which is answered too, when a sensitive value is recorded.
    fn written(&self, drafts: &[Draft]) -> (Cause, Option<&str>) {
        if drafts.iter().all(|draft| draft.sensitive.is_empty()) {
            return (self.cause.clone(), None);
        }
        (self.cause.blinded(&self.salt), Some(&self.salt))
    }

    /// Commits it; `locks` are those that it was decided on.
    pub(super) async fn write(
        &self,
        made: Made,
        replaces: Option<LedgerRow>,
        locks: Vec<LockRow>,
    ) -> Result<Attempt, Refused> {
        let Made { mut commit, reply } = made;
        commit.replaces = replaces;
        match self.engine.commit(&commit).await? {
            Committed::Done => {
                if let Some(person) = &commit.seen {
                    self.engine.known.add(&commit.next.tenant, person);
                }
                self.engine.watchers.tell(&commit.next.tenant, &commit.next.id);
                self.engine.parts.orchestrator.committed(&commit.next).await;
                self.engine.recent.keep(commit, locks);
                Ok(answered(reply))
            }
            Committed::Again => Ok(Attempt::Again),
        }
    }
}
