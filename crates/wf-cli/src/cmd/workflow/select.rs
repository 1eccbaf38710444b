//! Which workflows `export` and `purge` mean. Page by page: nothing but one page is in memory.

use std::time::Duration;

use clap::Args;
use wf_core::models::{Phase, ProcedureId, TenantId, Timestamp, Workflow, WorkflowId};
use wf_core::ports::{ClockPort as _, Cursor, ListQuery, LoadQuery, StorageBackendPort};

use crate::ambient::SystemClock;
use crate::config::value::duration;
use crate::exit::Failure;

use super::State;

/// Workflows asked of the store at once.
const PAGE: u32 = 100;

/// A point in time, as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    At(Timestamp),
    Ago(Duration),
}

impl When {
    /// Reads `2026-11-30` (its beginning in UTC), an RFC 3339 instant, or an age such as `90d`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let day = format!("{text}T00:00:00Z");
        let at = Timestamp::parse(text).or_else(|_| Timestamp::parse(&day));
        at.map(Self::At).ok().or_else(|| duration(text).map(Self::Ago)).ok_or_else(|| {
            "a day such as 2026-11-30, a time such as 2026-11-30T08:00:00Z, or an age such as 90d"
                .to_owned()
        })
    }

    /// The instant that it means at `now`.
    pub(super) fn instant(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(age) => {
                let ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
                Timestamp::from_ms(now.as_ms().saturating_sub(ms))
            }
        }
    }
}

/// Which workflows; all of the store when nothing is said.
#[derive(Debug, Clone, Args)]
pub(super) struct Selection {
    /// Only this workflow; may be given more than once
    #[arg(long = "id", value_name = "ID")]
    ids: Vec<WorkflowId>,
    /// Only of this tenant; with --id the tenant of the workflows [default: all, with --id `default`]
    #[arg(long)]
    tenant: Option<TenantId>,
    /// Only of this procedure
    #[arg(long, value_name = "ID")]
    procedure: Option<ProcedureId>,
}

/// What a selection is narrowed by besides.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Narrowed {
    pub(super) state: Option<State>,
    pub(super) completed_before: Option<When>,
    pub(super) completed_after: Option<When>,
}

/// A selection on its way through a store.
#[derive(Debug)]
pub(super) struct Selected<'a> {
    selection: &'a Selection,
    phase: Option<Phase>,
    before: Option<Timestamp>,
    after: Option<Timestamp>,
    next: Place,
}

#[derive(Debug)]
enum Place {
    Id(usize),
    Page(Option<Cursor>),
    End,
}

impl Selection {
    /// Begins to go through a store.
    pub(super) fn begin(&self, narrowed: Narrowed) -> Selected<'_> {
        let now = SystemClock.now();
        let instant = |when: Option<When>| when.map(|when| when.instant(now));
        let (before, after) =
            (instant(narrowed.completed_before), instant(narrowed.completed_after));
        let ended = before.or(after).map(|_| Phase::Completed);
        Selected {
            selection: self,
            phase: narrowed.state.map(Phase::from).or(ended),
            before,
            after,
            next: if self.ids.is_empty() { Place::Page(None) } else { Place::Id(0) },
        }
    }
}

impl Selected<'_> {
    /// Some more workflows; `None` at the end.
    pub(super) async fn more(
        &mut self,
        store: &dyn StorageBackendPort,
    ) -> Result<Option<Vec<Workflow>>, Failure> {
        let mut found = match std::mem::replace(&mut self.next, Place::End) {
            Place::End => return Ok(None),
            Place::Id(index) => {
                let Some(id) = self.selection.ids.get(index) else { return Ok(None) };
                self.next = Place::Id(index.saturating_add(1));
                let tenant = self.selection.tenant.clone();
                vec![named(id, tenant.unwrap_or_else(TenantId::default_tenant), store).await?]
            }
            Place::Page(after) => {
                let query = ListQuery {
                    tenant: self.selection.tenant.clone(),
                    phase: self.phase,
                    after,
                    limit: PAGE,
                };
                let page = store.list(&query).await?;
                if let Some(next) = page.next {
                    self.next = Place::Page(Some(next));
                }
                page.items
            }
        };
        found.retain(|workflow| self.is_meant(workflow));
        Ok(Some(found))
    }

    fn is_meant(&self, workflow: &Workflow) -> bool {
        let ended = workflow.completed_at;
        self.phase.is_none_or(|phase| workflow.phase == phase)
            && self.before.is_none_or(|before| ended.is_some_and(|at| at < before))
            && self.after.is_none_or(|after| ended.is_some_and(|at| at >= after))
            && self.selection.procedure.as_ref().is_none_or(|id| id == &workflow.procedure.id)
    }
}

/// The workflow with this id.
pub(super) async fn named(
    id: &WorkflowId,
    tenant: TenantId,
    store: &dyn StorageBackendPort,
) -> Result<Workflow, Failure> {
    let query = LoadQuery {
        tenant,
        workflow: Some(id.clone()),
        ledger: None,
        assets: Vec::new(),
        answered_as: None,
        count_open_of: None,
    };
    if let Some(workflow) = store.load(&query).await?.workflow {
        return Ok(workflow);
    }
    let said = format!("there is no workflow {id} of tenant {}", query.tenant);
    Err(match store.tombstone(&query.tenant, id).await? {
        None => Failure::failed(said)
            .help("`wf-cli workflow list` shows them; --tenant names another tenant"),
        Some(left) => Failure::failed(said).details(vec![format!(
            "it was purged at {} by {}, {}; its last event was {} with the hash {}",
            left.purged_at,
            left.purged_by,
            left.reason.as_deref().unwrap_or("no reason was given"),
            left.revision,
            left.last_hash
        )]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_instants_and_ages_are_read() {
        let now = Timestamp::parse("2026-12-01T12:00:00Z").unwrap();
        for (text, instant) in [
            ("2026-11-30", "2026-11-30T00:00:00Z"),
            ("2026-11-30T08:00:00+01:00", "2026-11-30T07:00:00Z"),
            ("36h", "2026-11-30T00:00:00Z"),
        ] {
            let read = When::parse(text).unwrap().instant(now);
            assert_eq!(read, Timestamp::parse(instant).unwrap(), "{text}");
        }
        for wrong in ["", "yesterday", "2026-13-01", "90", "-1d"] {
            assert!(When::parse(wrong).is_err(), "{wrong}");
        }
    }
}
