//! `start`: the policy accepts the assets and inputs, and every asset is free.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::errors::ErrorCode;
use crate::limits::{ASSETS_MAX, INPUTS_BYTES_MAX, START_DEADLINES_MAX};
use crate::locks::LockChange;
use crate::models::{Actor, ProcedureRef};
use crate::policy::{PlannedAsset, StartPlan, StartRefusal};
use crate::view::{Ask, Fault, Saying};

use super::super::beside::SensitiveValue;
use super::super::command::{Command, Facts};
use super::super::decision::{Draft, Outcome, Rejection, Unrecorded, Verdict};
use super::super::event::EventBody;
use super::{commit, guard};

pub(super) struct Start<'a> {
    pub(super) assets: &'a BTreeMap<String, String>,
    pub(super) inputs: &'a Map<String, Value>,
}

pub(super) fn decide(
    command: &Command,
    request: &Start<'_>,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    bounded(request)?;
    let plan = match facts.policy.plan_start(request.assets, request.inputs) {
        Ok(plan) => plan,
        Err(StartRefusal::Missing { asset, input }) => {
            return Ok(Verdict::Unrecorded(Unrecorded::NeedsInput {
                saying: missing(asset, input),
            }));
        }
        Err(StartRefusal::Invalid { field, rule, say }) => {
            let mut rejection = Rejection::invalid(&field, &rule);
            rejection.saying = Saying::Policy(say);
            return Err(rejection);
        }
    };
    distinct(&plan.assets)?;
    let mut locks = Vec::with_capacity(plan.assets.len());
    let mut held = Vec::with_capacity(plan.assets.len());
    for asset in &plan.assets {
        let lock = facts.locks.get(&asset.id);
        if let Some(holder) = lock.and_then(|l| l.workflow_id.clone()) {
            return Ok(Verdict::Unrecorded(Unrecorded::HeldBy {
                workflow_id: holder,
                asset_id: asset.id.clone(),
                asset: asset.say.clone(),
            }));
        }
        let fence = lock.map_or(0, |l| l.fence) + 1;
        locks.push(LockChange::Acquire { asset_id: asset.id.clone(), fence });
        held.push(asset.held(fence));
    }
    guard::room_for_another(facts)?;
    if plan.deadlines.len() > START_DEADLINES_MAX {
        return Err(too_many("deadlines", START_DEADLINES_MAX));
    }
    let drafts = drafts(command, plan, held, facts)?;
    Ok(commit(Outcome::Started, drafts, locks))
}

fn too_many(limit: &str, max: usize) -> Rejection {
    let message = format!("{limit}: at most {max}");
    Rejection::new(ErrorCode::LimitExceeded, message, Fault::LimitExceeded)
        .with("limit", limit)
        .with("max", max)
}

fn bounded(request: &Start<'_>) -> Result<(), Rejection> {
    if request.assets.len() > ASSETS_MAX {
        return Err(too_many("assets", ASSETS_MAX));
    }
    let bytes = wf_idempotency::canonical_bytes(&Value::Object(request.inputs.clone()))
        .map_err(|_| Rejection::invalid("inputs", "cannot be written as canonical JSON"))?;
    if bytes.len() > INPUTS_BYTES_MAX {
        return Err(too_many("inputs_bytes", INPUTS_BYTES_MAX));
    }
    Ok(())
}

fn missing(
    asset: Option<crate::policy::NeededAsset>,
    input: Option<crate::policy::NeededInput>,
) -> Saying {
    if let Some(asset) = asset {
        return Ask::Asset { role: asset.say, example: asset.example }.into();
    }
    match input {
        Some(input) => Ask::Input { input: input.say }.into(),
        None => Fault::InvalidArgument { field: "inputs".to_owned() }.into(),
    }
}

fn distinct(assets: &[PlannedAsset]) -> Result<(), Rejection> {
    let mut seen = BTreeSet::new();
    for asset in assets {
        if !seen.insert(&asset.id) {
            let field = format!("assets.{}", asset.role);
            return Err(Rejection::invalid(&field, "one asset cannot play two parts"));
        }
    }
    Ok(())
}

fn drafts(
    command: &Command,
    plan: StartPlan,
    held: Vec<crate::models::HeldAsset>,
    facts: &Facts<'_>,
) -> Result<Vec<Draft>, Rejection> {
    let definition = facts.policy.definition();
    let mut sensitive = Vec::new();
    let mut sensitive_inputs = Map::new();
    for (name, value) in plan.sensitive_inputs {
        let beside = SensitiveValue::new(format!("inputs.{name}"), facts.salt, value);
        let digest = beside
            .digest()
            .map_err(|_| Rejection::invalid("inputs", "cannot be written as canonical JSON"))?;
        sensitive_inputs.insert(name, Value::from(digest.as_str()));
        sensitive.push(beside);
    }
    let started = EventBody::WorkflowStarted {
        tenant: command.principal.tenant.clone(),
        procedure: ProcedureRef {
            id: definition.id.clone(),
            version: definition.version,
            digest: definition.digest.clone(),
        },
        label: plan.label,
        assets: held,
        inputs: plan.inputs,
        sensitive_inputs,
        owner: command.principal.person(),
        deadlines: plan.deadlines,
    };
    let mut drafts = vec![Draft { sensitive, ..Draft::new(started) }];
    if facts.acknowledge_at_start {
        drafts.push(Draft {
            actor: Some(Actor::orchestrator()),
            ..Draft::new(EventBody::OrchestrationAcknowledged { fence: 1 })
        });
    }
    Ok(drafts)
}
