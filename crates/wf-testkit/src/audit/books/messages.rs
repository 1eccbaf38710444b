//! The outbox beside the events: every message is of a committed event, every event that must be told has its message.

use std::collections::BTreeMap;
use std::sync::Arc;

use wf_core::models::{Digest, TenantId};
use wf_core::policy::{DomainPolicyPort, PolicyCompilerPort};
use wf_core::ports::{
    DamagedMessage, Message, OutboxQuery, OutboxRow, ReadError, StorageBackendPort,
};
use wf_core::state_machine::notices::notices;
use wf_core::state_machine::{Event, EventBody};

use super::super::Invariant;
use super::super::found::Found;
use super::PAGE;
use super::commits::Done;

/// The rows of an outbox that no commit has claimed yet.
#[derive(Debug)]
pub(super) struct Outbox<'a> {
    compiler: Option<&'a dyn PolicyCompilerPort>,
    policies: BTreeMap<Digest, Option<Arc<dyn DomainPolicyPort>>>,
    rows: BTreeMap<(TenantId, String), OutboxRow>,
    damaged: Vec<DamagedMessage>,
}

impl<'a> Outbox<'a> {
    pub(super) async fn read(
        store: &dyn StorageBackendPort,
        compiler: Option<&'a dyn PolicyCompilerPort>,
    ) -> Result<Self, ReadError> {
        let mut rows = BTreeMap::new();
        let mut damaged = Vec::new();
        let mut query = OutboxQuery { limit: PAGE, ..OutboxQuery::default() };
        loop {
            let page = store.list_outbox(&query).await?;
            for row in page.items {
                rows.insert((row.message.tenant.clone(), row.message.id.clone()), row);
            }
            damaged.extend(page.damaged);
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(Self { compiler, policies: BTreeMap::new(), rows, damaged }),
            }
        }
    }

    pub(super) fn len(&self) -> u64 {
        u64::try_from(self.rows.len()).unwrap_or(u64::MAX)
    }

    /// Compiles the policy of a definition, which says what is told to whom.
    pub(super) async fn policy_of(
        &mut self,
        store: &dyn StorageBackendPort,
        digest: &Digest,
    ) -> Result<(), ReadError> {
        let Some(compiler) = self.compiler.filter(|_| !self.policies.contains_key(digest)) else {
            return Ok(());
        };
        let definition = store.definition(digest).await?;
        let policy = definition.and_then(|definition| compiler.compile(&definition));
        self.policies.insert(digest.clone(), policy);
        Ok(())
    }

    /// Takes the rows of a commit, each as it must be.
    pub(super) fn commit(
        &mut self,
        tenant: &TenantId,
        digest: &Digest,
        done: &Done,
        found: &mut Found,
    ) {
        let policy = self.policies.get(digest).cloned().flatten();
        match (policy, &done.state) {
            (Some(policy), Some(state)) => {
                for message in notices(&done.events, state, policy.as_ref(), None) {
                    self.exactly(&message, found);
                }
            }
            _ => self.roughly(tenant, &done.events, found),
        }
    }

    fn exactly(&mut self, message: &Message, found: &mut Found) {
        let row = self.rows.remove(&(message.tenant.clone(), message.id.clone()));
        match row.map(|row| without_link(row.message)) {
            None => missing(&message.id, found),
            Some(said) if said == *message => {}
            Some(_) => mistold(&message.id, found),
        }
    }

    /// Without the policy nobody knows what the subscribers are told. Whoever must act is named in the event.
    fn roughly(&mut self, tenant: &TenantId, events: &[Event], found: &mut Found) {
        for event in events {
            let place = format!("{}/{}/", event.workflow_id, event.seq);
            if let Some(to) = escalated_to(&event.body) {
                let id = Message::id_of(event, to);
                if !self.rows.contains_key(&(tenant.clone(), id.clone())) {
                    missing(&id, found);
                }
            }
            let theirs: Vec<_> = self
                .rows
                .range((tenant.clone(), place.clone())..)
                .take_while(|((of, id), _)| of == tenant && id.starts_with(&place))
                .map(|(id, row)| (id.clone(), is_of(&row.message, event)))
                .collect();
            for (id, is_of) in theirs {
                self.rows.remove(&id);
                if !is_of {
                    mistold(&id.1, found);
                }
            }
        }
    }

    /// What is left is of no event.
    pub(super) fn close(self, found: &mut Found) {
        for (_, id) in self.rows.into_keys() {
            found.add(Invariant::I10, id, "the message is of no committed event");
        }
        for DamagedMessage { id, error, .. } in self.damaged {
            found.add(Invariant::Readable, id, format!("the message is damaged: {error}"));
        }
    }
}

/// The message without the link of an escalation, which only the server that wrote it can make.
fn without_link(mut message: Message) -> Message {
    let told = ["workflow_blocked", "escalated"].contains(&message.kind.as_str());
    if let Some(members) = message.data.as_object_mut().filter(|_| told) {
        members.remove("ack_url");
    }
    message
}

fn missing(id: &str, found: &mut Found) {
    found.add(Invariant::I5, id, "the event is committed and its message is not in the outbox");
}

fn mistold(id: &str, found: &mut Found) {
    found.add(Invariant::I10, id, "the message does not say what its event says");
}

fn is_of(message: &Message, event: &Event) -> bool {
    let named = message.workflow_id == event.workflow_id && message.seq == event.seq;
    named && message.kind == event.body.kind() && message.time == event.at
}

fn escalated_to(body: &EventBody) -> Option<&str> {
    if let EventBody::WorkflowBlocked { escalated_to, .. } = body {
        escalated_to.as_deref()
    } else if let EventBody::Escalated { to, .. } = body {
        Some(to)
    } else {
        None
    }
}
