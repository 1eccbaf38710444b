//! Builds one commit: the next state, its events, and all that goes with them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use wf_core::locks::LockChange;
use wf_core::models::{
    Actor, AssetId, Block, BlockId, Cause, Digest, HeldAsset, Person, Phase, Reading, ReasonCode,
    ResultId, Severity, StartDeadline, StepRecord, StepStatus, TenantId, Text, Timestamp, Touch,
    Workflow, WorkflowId,
};
use wf_core::policy::Effect;
use wf_core::ports::LedgerRow;
use wf_core::state_machine::{EventBody, Recording, SensitiveValue};

use super::{fingerprint, genesis, key, person, procedure, role, step};

/// Builds a [`Commit`](wf_core::ports::Commit) step by step. Sequence numbers, revision, hashes and causes are filled in by [`build`].
///
/// A commit is stale when it is built from a stale workflow: `CommitBuilder::next(&old, …)`.
///
/// [`build`]: CommitBuilder::build
#[derive(Debug, Clone)]
pub struct CommitBuilder {
    pub(super) next: Workflow,
    pub(super) expected: u64,
    pub(super) before: Digest,
    pub(super) at: Timestamp,
    pub(super) actor: Actor,
    pub(super) key: String,
    pub(super) bodies: Vec<(EventBody, Vec<SensitiveValue>)>,
    pub(super) result: Value,
    pub(super) expires_at_ms: Option<i64>,
    pub(super) replaces: Option<LedgerRow>,
    pub(super) locks: Vec<LockChange>,
    pub(super) seen: Option<Person>,
    pub(super) recipients: Vec<(usize, String, Value)>,
    pub(super) due: Vec<(usize, Timestamp)>,
    pub(super) cleared: Vec<String>,
}

impl CommitBuilder {
    /// A new workflow of `owner`, started at `at`, RUNNING as after a start that was acknowledged at once.
    #[must_use]
    pub fn start(tenant: &TenantId, id: &WorkflowId, owner: &Actor, at: Timestamp) -> Self {
        let before = genesis(tenant, id);
        let touch = touch_of(1, owner);
        let next = Workflow {
            tenant: tenant.clone(),
            id: id.clone(),
            procedure: procedure(),
            label: Text::Many(BTreeMap::from([
                ("en".to_owned(), format!("Check {id}")),
                ("de".to_owned(), format!("Prüfung {id}")),
            ])),
            phase: Phase::Running,
            result: None,
            revision: 0,
            last_hash: before.clone(),
            owner: person(owner),
            offer: None,
            assets: Vec::new(),
            inputs: Map::from_iter([("site".to_owned(), json!("Brno 2"))]),
            withheld_inputs: Vec::new(),
            steps: BTreeMap::new(),
            waits: BTreeMap::new(),
            performers: BTreeSet::new(),
            blocks: Vec::new(),
            closed_blocks: Vec::new(),
            last_note: None,
            start_touch: touch,
            ownership_touch: None,
            outcome_touch: None,
            last_recorded: None,
            started_at: at,
            updated_at: at,
            last_activity: at,
            completed_at: None,
            fence: 0,
            deadlines: BTreeMap::new(),
        };
        let started = EventBody::WorkflowStarted {
            tenant: tenant.clone(),
            procedure: next.procedure.clone(),
            label: next.label.clone(),
            assets: Vec::new(),
            inputs: next.inputs.clone(),
            sensitive_inputs: Map::new(),
            owner: next.owner.clone(),
            deadlines: Vec::new(),
        };
        let mut builder = Self::of(next, before, owner.clone(), at);
        builder.bodies.push((started, Vec::new()));
        builder
    }

    /// A further commit of `current` at `at`, by its owner, without an event yet.
    #[must_use]
    pub fn next(current: &Workflow, at: Timestamp) -> Self {
        let mut next = current.clone();
        next.updated_at = at;
        next.last_activity = at;
        let actor = current.owner.id.clone();
        Self::of(next, current.last_hash.clone(), actor, at)
    }

    fn of(next: Workflow, before: Digest, actor: Actor, at: Timestamp) -> Self {
        let expected = next.revision;
        Self {
            key: format!("{}:{}", next.id, expected + 1),
            next,
            expected,
            before,
            at,
            actor,
            bodies: Vec::new(),
            result: json!({ "duplicate": false, "outcome": "recorded" }),
            expires_at_ms: None,
            replaces: None,
            locks: Vec::new(),
            seen: None,
            recipients: Vec::new(),
            due: Vec::new(),
            cleared: Vec::new(),
        }
    }

    /// Caused by somebody else than the owner.
    #[must_use]
    pub fn by(mut self, actor: &Actor) -> Self {
        self.actor = actor.clone();
        self
    }

    /// The idempotency key; `<workflow id>:<seq of the first event>` unless said.
    #[must_use]
    pub fn key(mut self, text: &str) -> Self {
        text.clone_into(&mut self.key);
        self
    }

    /// The result that the ledger row keeps.
    #[must_use]
    pub fn result(mut self, result: Value) -> Self {
        self.result = result;
        self
    }

    /// The ledger row expires at `at`; never unless said.
    #[must_use]
    pub fn expires_at(mut self, at: Timestamp) -> Self {
        self.expires_at_ms = Some(at.as_ms());
        self
    }

    /// The ledger row that was judged expired.
    #[must_use]
    pub fn replaces(mut self, row: &LedgerRow) -> Self {
        self.replaces = Some(row.clone());
        self
    }

    /// Acquires an asset with `fence`; it becomes the workflow's own.
    #[must_use]
    pub fn acquire(mut self, asset_id: &AssetId, fence: u64) -> Self {
        let held = HeldAsset {
            role: role(self.next.assets.len()),
            id: asset_id.clone(),
            say: Text::One(format!("asset {asset_id}")),
            fence,
        };
        self.next.assets.push(held.clone());
        for (body, _) in &mut self.bodies {
            if let EventBody::WorkflowStarted { assets, .. } = body {
                assets.push(held.clone());
            }
        }
        self.lock(LockChange::Acquire { asset_id: asset_id.clone(), fence })
    }

    /// Any lock change.
    #[must_use]
    pub fn lock(mut self, change: LockChange) -> Self {
        self.locks.push(change);
        self
    }

    /// Asserts all assets of the workflow.
    #[must_use]
    pub fn assert_assets(mut self) -> Self {
        for held in &self.next.assets {
            self.locks.push(LockChange::Assert { asset_id: held.id.clone(), fence: held.fence });
        }
        self
    }

    /// Frees all assets of the workflow.
    #[must_use]
    pub fn release_assets(mut self) -> Self {
        for held in &self.next.assets {
            self.locks.push(LockChange::Release { asset_id: held.id.clone(), fence: held.fence });
        }
        self
    }

    /// Any event, without a change of state.
    #[must_use]
    pub fn event(self, body: EventBody) -> Self {
        self.event_with(body, Vec::new())
    }

    /// Any event with sensitive values beside it, without a change of state.
    #[must_use]
    pub fn event_with(mut self, body: EventBody, sensitive: Vec<SensitiveValue>) -> Self {
        self.bodies.push((body, sensitive));
        self
    }

    /// A note that changes nothing but the history.
    #[must_use]
    pub fn note(self, summary: &str) -> Self {
        self.event(EventBody::ProblemNoted { step_id: None, summary: summary.to_owned() })
    }

    /// Records a value for a step.
    #[must_use]
    pub fn record(mut self, step_name: &str, value: &str) -> Self {
        let step_id = step(step_name);
        let reading = Reading {
            given: value.to_owned(),
            value: value.to_owned(),
            unit: Some("bar".to_owned()),
            ..Reading::default()
        };
        let attempt = self.next.steps.get(&step_id).map_or(0, |s| s.attempt) + 1;
        let record = StepRecord {
            status: StepStatus::Recorded,
            attempt,
            reading: Some(reading.clone()),
            out_of_range: false,
            at: self.at,
            by: person(&self.actor),
            touch: self.touch(),
        };
        self.next.steps.insert(step_id.clone(), record);
        self.next.last_recorded = Some(step_id.clone());
        self.next.performers.insert(self.actor.clone());
        self.event(EventBody::StepRecorded(Recording {
            step_id,
            attempt,
            reading,
            sensitive_digest: None,
            out_of_range: false,
            deviation: None,
            warnings: Vec::new(),
            note: None,
            confirmed_by: None,
            signed: None,
        }))
    }

    /// Blocks the workflow (further).
    #[must_use]
    pub fn block(mut self) -> Self {
        let id = BlockId::of_seq(self.seq());
        let code = ReasonCode::parse("test_block").expect("a reason of a test");
        self.next.phase = Phase::Blocked;
        self.next.blocks.push(Block {
            id: id.clone(),
            code: code.clone(),
            step_id: None,
            reported: true,
            summary: Some("it leaks — really".to_owned()),
            severity: Severity::High,
            escalated_to: None,
            escalated_at: None,
            acknowledged_by: None,
            acknowledged_at: None,
            unanswered_since: None,
            at: self.at,
            by: person(&self.actor),
            touch: self.touch(),
        });
        self.event(EventBody::WorkflowBlocked {
            block_id: id,
            code,
            step_id: None,
            reported: true,
            summary: Some("it leaks — really".to_owned()),
            severity: Severity::High,
            escalated_to: None,
            respond_within_ms: None,
            then: Vec::new(),
        })
    }

    /// Resolves the oldest block.
    #[must_use]
    pub fn resolve(mut self) -> Self {
        let block = self.next.blocks.remove(0);
        if self.next.blocks.is_empty() {
            self.next.phase = Phase::Running;
        }
        self.event(EventBody::BlockResolved {
            block_id: block.id,
            decision: "go_on".parse().expect("a decision of a test"),
            effect: Effect::Continue,
            step_id: None,
            comment: None,
        })
    }

    /// Completes the workflow. Does not release its assets by itself.
    #[must_use]
    pub fn complete(mut self) -> Self {
        let result: ResultId = "passed".parse().expect("a result of a test");
        self.next.phase = Phase::Completed;
        self.next.result = Some(result.clone());
        self.next.completed_at = Some(self.at);
        self.next.blocks.clear();
        self.next.outcome_touch = Some(self.touch());
        self.event(EventBody::WorkflowCompleted { result, note: None, confirmed_by: None })
    }

    /// A message about the newest event to `recipient`.
    #[must_use]
    pub fn message(self, recipient: &str) -> Self {
        self.message_with(recipient, json!({ "label": "pump — 4,2 bar" }))
    }

    /// A message about the newest event to `recipient` with this data.
    #[must_use]
    pub fn message_with(mut self, recipient: &str, data: Value) -> Self {
        let about = self.bodies.len().saturating_sub(1);
        self.recipients.push((about, recipient.to_owned(), data));
        self
    }

    /// A deadline, set by the newest event.
    #[must_use]
    pub fn deadline(mut self, fire_at: Timestamp) -> Self {
        self.due.push((self.bodies.len().saturating_sub(1), fire_at));
        self
    }

    /// A deadline that the start itself sets: its event tells it, so that folding it brings it into the state.
    #[must_use]
    pub fn start_deadline(mut self, deadline: &StartDeadline) -> Self {
        for (body, _) in &mut self.bodies {
            if let EventBody::WorkflowStarted { deadlines, .. } = body {
                deadlines.push(deadline.clone());
            }
        }
        self
    }

    /// Clears a deadline.
    #[must_use]
    pub fn clear_deadline(mut self, id: &str) -> Self {
        self.next.deadlines.remove(id);
        self.cleared.push(id.to_owned());
        self
    }

    /// `seq` of the event that is added next.
    fn seq(&self) -> u64 {
        self.expected + 1 + u64::try_from(self.bodies.len()).expect("a few events")
    }

    pub(super) fn touch(&self) -> Touch {
        touch_of(self.seq(), &self.actor)
    }
}

fn touch_of(seq: u64, actor: &Actor) -> Touch {
    Touch {
        seq,
        actor: actor.clone(),
        cause: Cause {
            key: key("to-be-replaced"),
            fingerprint: fingerprint("test", ""),
            natural: fingerprint("test", "natural"),
        },
    }
}
