//! Puts a built commit together: sequence numbers, chain, causes, ledger row, messages, deadlines.

use std::collections::BTreeMap;

use serde_json::Value;
use wf_core::models::{Cause, DeadlineAbout, OpenDeadline, Touch, Workflow};
use wf_core::ports::{Commit, Deadline, DeadlineChange, LedgerKey, LedgerRow, Message};
use wf_core::state_machine::Event;
use wf_idempotency::{LedgerEntry, canonical_string, sha256_hex};

use super::commit::CommitBuilder;
use super::{chain, fingerprint, key, person};

impl CommitBuilder {
    /// The commit.
    ///
    /// # Panics
    /// When no event was added.
    #[must_use]
    pub fn build(mut self) -> Commit {
        assert!(!self.bodies.is_empty(), "a commit has at least one event");
        let cause = Cause {
            key: key(&self.key),
            fingerprint: fingerprint("test", &self.key),
            natural: fingerprint("test", "natural"),
        };
        let mut events = self.events(&cause);
        self.next.last_hash = chain(&self.before, &mut events);
        self.next.revision = events.last().map_or(self.expected, |e| e.seq);
        for touch in touches(&mut self.next) {
            if touch.seq > self.expected {
                touch.cause = cause.clone();
            }
        }
        let outbox = self.messages(&events);
        let deadlines = self.deadline_changes(&events);
        Commit {
            ledger: self.ledger_row(&cause),
            expected: self.expected,
            events,
            replaces: self.replaces,
            locks: self.locks,
            seen: self.seen,
            outbox,
            deadlines,
            next: self.next,
        }
    }

    fn events(&mut self, cause: &Cause) -> Vec<Event> {
        let bodies = std::mem::take(&mut self.bodies);
        let seqs = self.expected + 1..;
        seqs.zip(bodies)
            .map(|(seq, (body, sensitive))| Event {
                v: 1,
                workflow_id: self.next.id.clone(),
                seq,
                at: self.at,
                actor: self.actor.clone(),
                actor_name: person(&self.actor).name,
                body,
                cause: cause.clone(),
                prev_hash: self.before.clone(),
                hash: self.before.clone(),
                sensitive,
            })
            .collect()
    }

    fn ledger_row(&self, cause: &Cause) -> LedgerRow {
        LedgerRow {
            key: LedgerKey {
                tenant: self.next.tenant.clone(),
                actor: self.actor.clone(),
                key: cause.key.clone(),
            },
            entry: LedgerEntry {
                operation: "test".to_owned(),
                fingerprint: cause.fingerprint,
                result_version: 1,
                result: canonical_string(&self.result).expect("a result of a test is canonical"),
                created_at_ms: self.at.as_ms(),
                expires_at_ms: self.expires_at_ms,
            },
            workflow_id: self.next.id.clone(),
            seq: self.next.revision,
            mark: self.mark(),
            fields: BTreeMap::from([("about".to_owned(), "00c0ffee".to_owned())]),
        }
    }

    /// The same for the same commit, and for no other of a test.
    fn mark(&self) -> String {
        let commit = [self.next.tenant.as_str(), self.next.id.as_str(), &self.key];
        let mut mark = sha256_hex(format!("{commit:?} {}", self.expected).as_bytes());
        mark.truncate(32);
        mark
    }

    fn messages(&self, events: &[Event]) -> Vec<Message> {
        let message = |(about, recipient, data): &(usize, String, Value)| {
            let event = events.get(*about).expect("the event it is about");
            Message {
                id: format!("{}/{}/{recipient}", event.workflow_id, event.seq),
                kind: event.body.kind().to_owned(),
                time: event.at,
                tenant: self.next.tenant.clone(),
                workflow_id: event.workflow_id.clone(),
                seq: event.seq,
                recipient: recipient.clone(),
                data: data.clone(),
            }
        };
        self.recipients.iter().map(message).collect()
    }

    fn deadline_changes(&mut self, events: &[Event]) -> Vec<DeadlineChange> {
        let mut changes: Vec<_> = self.cleared.drain(..).map(DeadlineChange::Clear).collect();
        for (n, (about, fire_at)) in self.due.iter().enumerate() {
            let event = events.get(*about).expect("the event that sets it");
            let id = format!("{}/{}/{n}", event.workflow_id, event.seq);
            let about =
                DeadlineAbout::Workflow { name: "due".to_owned(), notify: "duty".to_owned() };
            self.next.deadlines.insert(id.clone(), OpenDeadline { fire_at: *fire_at, about });
            changes.push(DeadlineChange::Set(Deadline { id, fire_at: *fire_at }));
        }
        changes
    }
}

fn touches(workflow: &mut Workflow) -> impl Iterator<Item = &mut Touch> {
    let steps = workflow.steps.values_mut().map(|s| &mut s.touch);
    let blocks = workflow.blocks.iter_mut().map(|b| &mut b.touch);
    let single = [
        Some(&mut workflow.start_touch),
        workflow.ownership_touch.as_mut(),
        workflow.outcome_touch.as_mut(),
    ];
    single.into_iter().flatten().chain(steps).chain(blocks)
}
