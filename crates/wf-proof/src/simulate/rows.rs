//! A server's way to the rows that bind executions: the port of the product's reconciler over [`super::outside`]. Calls are
//! late, fail, lose their answers, or arrive when nobody waits for them any more.

use async_trait::async_trait;
use wf_core::models::{Phase, Timestamp};
use wf_core::ports::{Attention, BindingPort, BoundRows, Epoch, Message, ReadError, Written};
use wf_core::reconcile::{Binding, Head, Replacement};

use super::outside::{Outside, Row, State};
use super::sea::Fate;
use super::wire::Wire;

/// How long a binding that is fine is not looked at.
const LOOK_MS: i64 = 24 * 60 * 60 * 1_000;

/// One server's way. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    pub(super) wire: Wire,
    pub(super) outside: Outside,
}

/// What was read of a workflow.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) attention: Attention,
    pub(super) head: Option<Head>,
    phase: Option<Phase>,
    revision: u64,
    pub(super) binding: Binding,
    pub(super) token: Option<String>,
    pub(super) wanted: Option<u64>,
    pub(super) look: Option<Timestamp>,
}

impl Bound {
    /// As a real table is read: what no row asks for, the execution knows; except a successor, which was told nothing yet.
    fn read(attention: &Attention, row: Option<&Row>, now: Timestamp) -> Self {
        let Some(row) = row else {
            return Self {
                attention: attention.clone(),
                head: None,
                phase: None,
                revision: 0,
                binding: Binding { closed: true, ..Binding::new(now) },
                token: None,
                wanted: None,
                look: None,
            };
        };
        let (work, wanted) = (&row.work, row.attention.map(|ask| ask.wanted));
        let silently = if row.binding.told_revision == 0 { work.revision } else { 0 };
        let looks = row.attention.map_or(0, |ask| ask.looks);
        Self {
            attention: Attention { wanted_revision: wanted, looks, ..attention.clone() },
            head: Some(Head {
                completed_at: work.completed_at,
                acknowledged: work.phase != Phase::Created,
                wanted_revision: wanted.unwrap_or(silently),
                next_deadline: work.next_due,
            }),
            phase: Some(work.phase),
            revision: work.revision,
            binding: row.binding,
            token: row.token.clone(),
            wanted,
            look: row.look,
        }
    }

    /// When it is looked at next if nothing happens.
    pub(super) fn next_look(&self, now: Timestamp) -> Timestamp {
        let by_itself = now.plus_ms(LOOK_MS);
        let deadline = self.head.as_ref().and_then(|head| head.next_deadline);
        deadline.map_or(by_itself, |at| at.max(now.plus_ms(1)).min(by_itself))
    }
}

impl BoundRows for Bound {
    fn attention(&self) -> &Attention {
        &self.attention
    }

    fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    fn phase(&self) -> Option<Phase> {
        self.phase
    }

    fn revision(&self) -> u64 {
        self.revision
    }

    fn binding(&self) -> &Binding {
        &self.binding
    }

    fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the rows of the simulation")]
struct Silent;

fn silent() -> ReadError {
    ReadError::Unavailable { source: Box::new(Silent) }
}

impl Rows {
    /// Something is read.
    pub(super) async fn read<T>(
        &self,
        what: &str,
        read: impl FnOnce(&State) -> T,
    ) -> Result<T, ReadError> {
        self.wire.pass().await;
        let fate = self.wire.fate(what);
        let read = if fate == Fate::Fine { Ok(read(&self.outside.lock())) } else { Err(silent()) };
        self.wire.pass().await;
        read
    }

    /// Something is written, in one moment.
    pub(super) async fn write<T>(
        &self,
        what: &str,
        write: impl FnOnce(&mut State) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        self.wire.pass().await;
        let answer = match self.wire.fate(what) {
            Fate::Fine => Ok(write(&mut self.outside.lock())),
            Fate::Before => Err(silent()),
            Fate::After => {
                write(&mut self.outside.lock());
                Err(silent())
            }
            Fate::Later => {
                let arrives = |state: &mut State| {
                    write(state);
                };
                self.outside.lock().late(arrives);
                Err(silent())
            }
        };
        self.wire.pass().await;
        answer
    }
}

#[async_trait]
impl BindingPort for Rows {
    type Bound = Bound;

    async fn bound(&self, attention: &Attention, now: Timestamp) -> Result<Bound, ReadError> {
        self.peek(attention, now).await
    }

    async fn peek(&self, attention: &Attention, now: Timestamp) -> Result<Bound, ReadError> {
        self.read("rows", |state| {
            Bound::read(attention, state.rows.get(&attention.workflow_id), now)
        })
        .await
    }

    async fn record(
        &self,
        bound: &Bound,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Written, ReadError> {
        let bound = bound.clone();
        self.write("record", move |state| {
            state.write(
                &bound,
                epoch,
                |row| row.binding.started_at.is_none(),
                |row| {
                    row.binding.started_at = Some(now);
                    if !row.binding.waits {
                        row.binding.waits_since = now;
                    }
                },
            )
        })
        .await
    }

    async fn drop_token(
        &self,
        bound: &Bound,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Written, ReadError> {
        let bound = bound.clone();
        self.write("drop", move |state| state.drop_token(&bound, epoch, now)).await
    }

    async fn replace(
        &self,
        bound: &Bound,
        epoch: Epoch,
        by: &Replacement,
        _: &[Message],
        now: Timestamp,
    ) -> Result<Written, ReadError> {
        let (bound, by) = (bound.clone(), *by);
        self.write("replace", move |state| state.replace(&bound, epoch, &by, now)).await
    }

    async fn evicted(&self, bound: &Bound, epoch: Epoch, fence: u64) -> Result<Written, ReadError> {
        if bound.binding.evicts != Some(fence) {
            return Ok(Written::Done);
        }
        let bound = bound.clone();
        self.write("evicted", move |state| {
            let same = |row: &Row| row.binding.evicts == Some(fence);
            state.write(&bound, epoch, same, |row| row.binding.evicts = None)
        })
        .await
    }

    async fn close(
        &self,
        bound: &Bound,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Written, ReadError> {
        let bound = bound.clone();
        self.write("close", move |state| {
            state.write(
                &bound,
                epoch,
                |row| !row.binding.closed,
                |row| {
                    (row.binding.closed, row.binding.waits) = (true, false);
                    (row.binding.waits_since, row.token, row.look) = (now, None, None);
                },
            )
        })
        .await
    }

    async fn settle(
        &self,
        bound: &Bound,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Written, ReadError> {
        if bound.wanted.is_none() && bound.look.is_none_or(|look| look > now) {
            return Ok(Written::Done);
        }
        let bound = bound.clone();
        self.write("settle", move |state| state.settle(&bound, epoch, now)).await
    }

    async fn postpone(
        &self,
        bound: &Bound,
        epoch: Epoch,
        not_before: Timestamp,
    ) -> Result<Written, ReadError> {
        let bound = bound.clone();
        self.write("postpone", move |state| state.postpone(&bound, epoch, not_before)).await
    }
}
