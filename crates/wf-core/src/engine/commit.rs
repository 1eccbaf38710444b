//! The commit with its three ways not to succeed, and what an answer says about it.

use serde_json::{Map, Value};

use crate::errors::ErrorCode;
use crate::limits::RESEND_ATTEMPTS_MAX;
use crate::models::{Actor, Block, Phase, ResultId, Text, Workflow};
use crate::policy::DomainPolicyPort;
use crate::ports::{Commit, CommitError, Conflict, LedgerRow, LoadQuery};
use crate::state_machine::{
    Event, EventBody, Outcome, Recording, Rejection, Unrecorded, deadlines,
};
use crate::view::{
    Acknowledger, Ask, Done, Fault, Frame, Offeree, Outlook, Saying, Stand, Words, next, shape,
};

use super::Engine;

/// What became of a commit.
pub(super) enum Committed {
    /// It is in the store.
    Done,
    /// A condition failed, nothing was written: read and decide again.
    Again,
}

/// What one sending of a commit tells.
enum Sent {
    Done,
    Again,
    Unknown,
}

impl Engine {
    /// Sends a commit. After an unknown outcome the ledger row tells; where it is absent the same commit is sent
    /// again, under the same ledger condition, a bounded number of times (idempotency.md, Ambiguous outcome).
    pub(super) async fn commit(&self, commit: &Commit) -> Result<Committed, Rejection> {
        for sending in 0..=RESEND_ATTEMPTS_MAX {
            match self.send(commit, sending > 0).await? {
                Sent::Done => return Ok(Committed::Done),
                Sent::Again => return Ok(Committed::Again),
                Sent::Unknown => {}
            }
            match self.marker(commit).await {
                Marker::Ours => return Ok(Committed::Done),
                Marker::Theirs => return Ok(Committed::Again),
                Marker::Absent => {}
            }
        }
        Err(unknown())
    }

    /// `resent`: an earlier sending had an unknown outcome, so that no refusal may be computed any more.
    async fn send(&self, commit: &Commit, resent: bool) -> Result<Sent, Rejection> {
        match self.parts.store.commit(commit.clone()).await {
            Ok(()) => Ok(Sent::Done),
            Err(CommitError::Ambiguous { .. }) => Ok(Sent::Unknown),
            // Met on the first sending, an equal row is somebody else's: this one was surely not applied.
            Err(CommitError::Conflict(Conflict::Ledger(row))) if resent && same(&row, commit) => {
                Ok(Sent::Done)
            }
            Err(CommitError::Conflict(Conflict::Ledger(_))) => Ok(Sent::Again),
            Err(CommitError::Conflict(Conflict::Asset { .. } | Conflict::Revision { .. })) => {
                if resent {
                    Err(unknown())
                } else {
                    Ok(Sent::Again)
                }
            }
            Err(CommitError::Unavailable { after_ms, .. }) => Err(if resent {
                unknown()
            } else {
                let message = "the store did not take the call; send the same call again";
                Rejection::unavailable(message, after_ms)
            }),
            Err(CommitError::Corrupt { what }) => Err(Rejection::unavailable(
                &format!("the store is damaged ({what}); an operator must run `workflow verify`"),
                None,
            )),
            Err(CommitError::TooLarge { .. }) if resent => Err(unknown()),
            Err(CommitError::TooLarge { what }) => Err(Rejection::new(
                ErrorCode::LimitExceeded,
                format!("{what} is too large to store"),
                Fault::LimitExceeded,
            )
            .with("limit", what)),
        }
    }

    /// Looks for the commit's marker: its ledger row.
    async fn marker(&self, commit: &Commit) -> Marker {
        let query = LoadQuery {
            tenant: commit.next.tenant.clone(),
            workflow: None,
            ledger: Some(commit.ledger.key.clone()),
            assets: Vec::new(),
            answered_as: None,
            count_open_of: None,
        };
        match self.parts.store.load(&query).await.map(|snapshot| snapshot.ledger) {
            Ok(Some(row)) if same(&row, commit) => Marker::Ours,
            Ok(Some(row)) if commit.replaces.as_ref() != Some(&row) => Marker::Theirs,
            // Absent is not proof: a transaction that timed out may still land.
            Ok(_) | Err(_) => Marker::Absent,
        }
    }
}

enum Marker {
    Ours,
    Theirs,
    Absent,
}

/// The row is this very commit's. The mark alone tells: another copy of the same call may have written the same row but
/// for it, and a sweep may have set the expiry of this one in the meantime.
fn same(row: &LedgerRow, commit: &Commit) -> bool {
    row.mark == commit.ledger.mark
}

fn unknown() -> Rejection {
    Rejection::unavailable("the outcome is unknown; send the same call again", None)
}

/// What an answer says: what was done, then what is next.
pub(super) fn sayings(
    outcome: Outcome,
    events: &[Event],
    outlook: &Outlook<'_>,
    words: &Words<'_>,
) -> Vec<Saying> {
    let (workflow, policy) = (outlook.workflow, outlook.policy);
    let mut said = vec![done(outcome, events, workflow, policy, words)];
    let blocked = events.iter().find_map(|event| told(&event.body));
    if let Some(told) = blocked {
        let stopped: Saying = Done::Blocked { told }.into();
        if said.first() != Some(&stopped) {
            said.push(stopped);
        }
    }
    said.extend(not_needed(events, outlook));
    if workflow.phase == Phase::Completed && outcome == Outcome::Resolved {
        said.push(finished(workflow, policy).into());
    }
    // Whoever declined does not go on with it.
    if !events.iter().any(|event| is_decline(&event.body)) {
        said.extend(next::next(outlook, words));
    }
    said
}

/// Steps whose values no longer count.
fn not_needed(events: &[Event], outlook: &Outlook<'_>) -> Option<Saying> {
    let gone = events.iter().filter_map(|event| {
        if let EventBody::StepNotNeeded { step_id, .. } = &event.body {
            Some(step_id)
        } else {
            None
        }
    });
    let steps: Vec<Text> = gone
        .filter_map(|id| outlook.policy.describe(outlook.workflow, id))
        .map(|step| step.say)
        .collect();
    (!steps.is_empty()).then(|| Done::NotNeeded { steps }.into())
}

fn done(
    outcome: Outcome,
    events: &[Event],
    workflow: &Workflow,
    policy: &dyn DomainPolicyPort,
    words: &Words<'_>,
) -> Saying {
    let value = || events.iter().find_map(|event| value(&event.body, policy, words));
    let label = || workflow.label.clone();
    match outcome {
        Outcome::Started => Done::Started { label: label() }.into(),
        Outcome::Joined => Done::Joined { label: label() }.into(),
        Outcome::Recorded => Done::Recorded { value: value() }.into(),
        Outcome::OutOfRange => Done::RecordedOutside { value: value() }.into(),
        Outcome::Corrected => Done::Corrected { value: value() }.into(),
        Outcome::Skipped => Done::Skipped.into(),
        Outcome::Noted => Done::Noted.into(),
        Outcome::Blocked => match value() {
            Some(value) => Done::Recorded { value: Some(value) }.into(),
            None => {
                Done::Blocked { told: events.iter().find_map(|e| told(&e.body)).flatten() }.into()
            }
        },
        Outcome::Resolved => Done::Resolved.into(),
        Outcome::Finished => finished(workflow, policy).into(),
        Outcome::Transferred => events
            .iter()
            .find_map(|event| transferred(&event.body, workflow))
            .map_or_else(|| stands(workflow, policy).into(), Saying::from),
        Outcome::View => {
            let released = events.iter().any(|event| is_release(&event.body));
            if released { Done::Released.into() } else { stands(workflow, policy).into() }
        }
        Outcome::List
        | Outcome::None
        | Outcome::Disambiguation
        | Outcome::NeedsInput
        | Outcome::NeedsConfirmation
        | Outcome::NotRecorded
        | Outcome::Verdict
        | Outcome::Error => stands(workflow, policy).into(),
    }
}

/// Where a workflow stands.
pub(super) fn stands(workflow: &Workflow, policy: &dyn DomainPolicyPort) -> Stand {
    if let Some(stopped) = workflow.blocks.first().and_then(|block| stopped(workflow, block)) {
        return stopped;
    }
    Stand::Stands {
        label: workflow.label.clone(),
        phase: workflow.phase,
        result: result_words(workflow, policy),
    }
}

/// Who was told of a block and what they said; none when nobody was told and nobody said anything.
fn stopped(workflow: &Workflow, block: &Block) -> Option<Stand> {
    let acknowledged = block.acknowledged_by.as_ref().map(|by| {
        let by = match (&by.name, &by.id) {
            (Some(told), Actor::System(_)) => Acknowledger::Told(told.clone()),
            (Some(name), Actor::User(_) | Actor::Cli(_)) => Acknowledger::Named(name.clone()),
            (None, _) => Acknowledger::Operator,
        };
        (by, block.acknowledged_at.unwrap_or(workflow.updated_at))
    });
    if acknowledged.is_none() && block.escalated_to.is_none() {
        return None;
    }
    Some(Stand::Stopped {
        label: workflow.label.clone(),
        told: block.escalated_to.clone().unwrap_or_default(),
        at: block.escalated_at.unwrap_or(block.at),
        until: deadlines::response_due(workflow, &block.id),
        unanswered: block.unanswered_since,
        acknowledged,
    })
}

fn finished(workflow: &Workflow, policy: &dyn DomainPolicyPort) -> Done {
    Done::Finished { label: workflow.label.clone(), result: result_words(workflow, policy) }
}

/// The result in the policy's words; none for an abandoned workflow, which our own words name.
pub(super) fn result_words(workflow: &Workflow, policy: &dyn DomainPolicyPort) -> Option<Text> {
    let result = workflow.result.as_ref()?;
    if result == &ResultId::abandoned() {
        return None;
    }
    let say = policy.results(workflow).into_iter().find(|r| &r.id == result).map(|r| r.say);
    Some(say.unwrap_or_else(|| Text::from(result.as_str())))
}

/// What became of the ownership.
fn transferred(body: &EventBody, workflow: &Workflow) -> Option<Done> {
    let label = workflow.label.clone();
    if let EventBody::OwnershipOffered { to } = body {
        let to = to.as_ref().map_or(Offeree::Anybody, |to| Offeree::One(to.name.clone()));
        Some(Done::Offered { label, to })
    } else if let EventBody::OfferWithdrawn { declined } = body {
        let owner = workflow.owner.name.clone();
        Some(if *declined {
            Done::OfferDeclined { label, owner }
        } else {
            Done::Withdrawn { label }
        })
    } else if matches!(body, EventBody::OwnershipTransferred { .. }) {
        Some(Done::TakenOver { label })
    } else {
        None
    }
}

fn is_decline(body: &EventBody) -> bool {
    matches!(body, EventBody::OfferWithdrawn { declined: true })
}

fn is_release(body: &EventBody) -> bool {
    matches!(body, EventBody::LockReleased { .. })
}

fn value(body: &EventBody, policy: &dyn DomainPolicyPort, words: &Words<'_>) -> Option<String> {
    let Recording { step_id, reading, .. } = body.recording()?;
    (!reading.withheld).then(|| policy.spoken(step_id, reading, words.locale()))
}

fn told(body: &EventBody) -> Option<Option<String>> {
    if let EventBody::WorkflowBlocked { escalated_to, .. } = body {
        Some(escalated_to.clone())
    } else {
        None
    }
}

/// Outcome and words of an answer that records nothing; a read-back goes into `parts`.
pub(super) fn unrecorded(
    unrecorded: &Unrecorded,
    frame: &Frame<'_>,
    parts: &mut Map<String, Value>,
) -> (Outcome, Saying) {
    match unrecorded {
        Unrecorded::NeedsConfirmation(confirmation) => {
            parts.insert("confirm".to_owned(), frame.confirm(confirmation));
            (Outcome::NeedsConfirmation, confirmation.read_back.clone())
        }
        Unrecorded::NotRecorded { saying, .. } => (Outcome::NotRecorded, saying.clone()),
        Unrecorded::NeedsInput { saying } => (Outcome::NeedsInput, saying.clone()),
        Unrecorded::WhichPerson { people } => {
            parts.extend(shape::people(people));
            let names = people.iter().map(|person| person.spoken().to_owned()).collect();
            (Outcome::Disambiguation, Ask::WhichPerson { names }.into())
        }
        Unrecorded::Unchanged => (Outcome::View, Ask::Declined.into()),
        Unrecorded::HeldBy { .. } => (Outcome::View, Ask::Declined.into()),
    }
}
