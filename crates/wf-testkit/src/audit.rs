//! Holds what callers saw against what a store holds.
//!
//! Reading order: [`history`] (what a bench writes down while it runs), `violation` (what is found).

pub mod history;
mod violation;

pub use violation::{Invariant, Violation};

use std::collections::BTreeSet;

use serde_json::Value;
use wf_core::engine::verify::verify;
use wf_core::models::{Actor, TenantId};
use wf_core::ports::{LedgerKey, LoadQuery, ReadError, StorageBackendPort};
use wf_idempotency::IdempotencyKey;

use history::{Attempt, Outcome};

/// What an audit looked at and found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audit {
    /// Attempts of callers.
    pub attempts: u64,
    /// Workflows in the store.
    pub workflows: u64,
    /// Events in the store.
    pub events: u64,
    /// What was not looked at, and why.
    pub left_out: Vec<String>,
    /// What must not be.
    pub violations: Vec<Violation>,
}

/// Holds the attempts of all callers of a store against the store.
///
/// # Errors
/// [`ReadError`] when the store does not answer.
pub async fn audit(
    store: &dyn StorageBackendPort,
    attempts: &[Attempt],
) -> Result<Audit, ReadError> {
    let report = verify(store, None, &mut |_| {}).await?;
    let mut audit = Audit {
        attempts: u64::try_from(attempts.len()).unwrap_or(u64::MAX),
        workflows: report.workflows,
        events: report.events,
        ..Audit::default()
    };
    for finding in report.findings {
        let named = Invariant::ALL.iter().find(|i| i.as_str() == finding.invariant);
        let invariant = named.copied().unwrap_or(Invariant::Readable);
        audit.violations.push(Violation::new(invariant, finding.workflow_id, finding.message));
    }
    let mut seen = BTreeSet::new();
    for attempt in attempts {
        let Outcome::Answered { text } = &attempt.outcome else { continue };
        let Some(key) = attempt.arguments.get("idempotency_key").and_then(Value::as_str) else {
            continue;
        };
        let scope = (attempt.tenant.as_str(), attempt.actor.as_str(), key);
        if !acknowledges(text) || !seen.insert(scope) {
            continue;
        }
        let row = row(store, attempt, key).await?;
        let stored = row.map(|row| row.replace(r#""duplicate":false"#, ""));
        let said = text.replace(r#""duplicate":false"#, "").replace(r#""duplicate":true"#, "");
        if stored.as_deref() != Some(said.as_str()) {
            let message = match stored {
                Some(_) => "its ledger row has another result",
                None => "it was acknowledged and has no ledger row",
            };
            audit.violations.push(Violation::new(Invariant::I1, key, message));
        }
    }
    Ok(audit)
}

/// The answer says that something was committed.
fn acknowledges(text: &str) -> bool {
    let outcome = serde_json::from_str::<Value>(text)
        .ok()
        .and_then(|answer| Some(answer.get("outcome")?.as_str()?.to_owned()));
    let committed = [
        "started",
        "recorded",
        "out_of_range",
        "corrected",
        "skipped",
        "noted",
        "blocked",
        "resolved",
        "finished",
        "transferred",
    ];
    outcome.is_some_and(|outcome| committed.contains(&outcome.as_str()))
}

async fn row(
    store: &dyn StorageBackendPort,
    attempt: &Attempt,
    key: &str,
) -> Result<Option<String>, ReadError> {
    let (Ok(tenant), Ok(actor), Ok(key)) = (
        TenantId::parse(&attempt.tenant),
        Actor::parse(&attempt.actor),
        IdempotencyKey::parse(key),
    ) else {
        return Ok(None);
    };
    let query = LoadQuery {
        tenant: tenant.clone(),
        workflow: None,
        ledger: Some(LedgerKey { tenant, actor, key }),
        assets: Vec::new(),
        count_open_of: None,
    };
    Ok(store.load(&query).await?.ledger.map(|row| row.entry.result))
}
