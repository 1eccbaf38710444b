//! Whose workflow it is that holds an asset which a start asked for.

use serde_json::{Map, Value};
use wf_idempotency::Fingerprint;

use crate::errors::ErrorCode;
use crate::locks::LockRow;
use crate::models::{AssetId, Cause, Principal, Text, Workflow, WorkflowId};
use crate::policy::DomainPolicyPort;
use crate::state_machine::{Outcome, Rejection};
use crate::view::{Done, Frame, Outlook, Rule, Saying, next, shape};

use super::Engine;
use super::attempt::Attempt;
use super::call::{Call, Reply, Request};
use super::execute::Refused;

/// An asset that a start asked for and another workflow holds.
pub(super) struct Held<'a> {
    pub(super) workflow_id: &'a WorkflowId,
    pub(super) asset_id: &'a AssetId,
    pub(super) asset: &'a Text,
    pub(super) locks: &'a [LockRow],
}

impl Engine {
    /// Whose workflow holds the asset: the caller's own twin is joined, anything else is `ASSET_LOCKED`.
    pub(super) async fn held(
        &self,
        principal: &Principal,
        call: &Call,
        cause: &Cause,
        held: &Held<'_>,
        policy: &dyn DomainPolicyPort,
    ) -> Result<Attempt, Refused> {
        // Gone in the meantime: decide again.
        let Some(other) = self.workflow(principal, held.workflow_id).await? else {
            return Ok(Attempt::Again);
        };
        let frame = self.frame(Some(policy), &call.meta);
        let started = self.as_started(&principal.tenant, &other.id, cause).await?;
        let natural = [Some(cause.natural), started];
        if is_twin(&other, principal, call, &natural, policy) {
            return Ok(Attempt::Answered(Box::new(self.joined(&other, call).await?)));
        }
        let sees = self.sees(principal, &other);
        Err(locked(&other, principal, sees, held, &frame).into())
    }

    /// The twin as it stands, by the definition that it pinned: not by the newer one that the start asked for.
    async fn joined(&self, other: &Workflow, call: &Call) -> Result<Reply, Rejection> {
        let pinned = self.pinned(other).await?;
        let pinned = pinned.as_deref();
        let frame = self.frame(pinned, &call.meta);
        let mut sayings: Vec<Saying> = vec![Done::Joined { label: other.label.clone() }.into()];
        let outlook = pinned.map(|policy| Outlook::of(other, policy));
        sayings.extend(outlook.as_ref().and_then(|outlook| next::next(outlook, &frame.words)));
        let parts = shape::workflow(&frame, other, outlook.as_ref());
        Ok(frame.reply(Outcome::Joined, &sayings, parts))
    }
}

/// The same actor, procedure, assets and inputs. Sensitive inputs are not in the state, so that they compare by the
/// fingerprint of the whole start: as it is, and under the salt of the other's.
fn is_twin(
    other: &Workflow,
    principal: &Principal,
    call: &Call,
    natural: &[Option<Fingerprint>],
    policy: &dyn DomainPolicyPort,
) -> bool {
    let Request::Start { assets, inputs, .. } = &call.request else { return false };
    let Ok(plan) = policy.plan_start(assets, inputs) else { return false };
    let same_assets = plan.assets.len() == other.assets.len()
        && plan.assets.iter().zip(&other.assets).all(|(a, b)| a.role == b.role && a.id == b.id);
    let withheld = !other.withheld_inputs.is_empty() || !plan.sensitive_inputs.is_empty();
    other.phase.is_open()
        && other.owner.id == principal.actor
        && other.procedure.id == policy.definition().id
        && same_assets
        && same(&plan.inputs, &other.inputs)
        && (!withheld || natural.contains(&Some(other.start_touch.cause.natural)))
}

/// Equal as the ledger sees it: 7.0 and 7 are one number.
fn same(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let written = |inputs: &Map<String, Value>| {
        wf_idempotency::canonical_string(&Value::Object(inputs.clone())).ok()
    };
    one == other || written(one).is_some_and(|text| Some(text) == written(other))
}

fn locked(
    other: &Workflow,
    principal: &Principal,
    sees: bool,
    held: &Held<'_>,
    frame: &Frame<'_>,
) -> Rejection {
    let row = held.locks.iter().find(|row| &row.asset_id == held.asset_id);
    let since = row.and_then(|row| row.holder.as_ref()).map(|holder| holder.acquired_at);
    let message = "another workflow holds the asset";
    let own = other.owner.id == principal.actor;
    // Who may not see the other workflow learns only that the asset is in use.
    if !sees {
        let saying = Rule::AssetInUse { asset: held.asset.clone(), holder: None, since: None };
        return Rejection::new(ErrorCode::AssetLocked, message, saying);
    }
    let saying = if own {
        Rule::AssetInOwnUse { asset: held.asset.clone(), label: other.label.clone() }
    } else {
        let holder = other.owner.name.clone();
        Rule::AssetInUse { asset: held.asset.clone(), holder, since }
    };
    Rejection::new(ErrorCode::AssetLocked, message, saying)
        .with("asset_id", held.asset_id.as_str())
        .with("workflow_id", other.id.as_str())
        .with("label", frame.words.text(&other.label))
        .with("holder", shape::person(&other.owner))
        .with("since", since.map(|at| at.to_string()))
}
