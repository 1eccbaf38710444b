//! `release_lock`: the last resort of an operator or a supervisor, with a reason.

use crate::access;
use crate::locks::LockChange;
use crate::models::{AssetId, Phase, Workflow};

use super::super::command::{Command, Facts};
use super::super::decision::{Draft, Outcome, Rejection, Verdict};
use super::super::event::EventBody;
use super::{commit, guard};

pub(super) fn decide(
    workflow: &Workflow,
    command: &Command,
    asset_id: &AssetId,
    reason: &str,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    access::may_release(&command.principal)?;
    match workflow.phase {
        Phase::Created | Phase::Running | Phase::Blocked => {}
        Phase::Completed => return Err(guard::wrong_state(workflow, command)),
    }
    let Some(asset) = workflow.assets.iter().find(|a| &a.id == asset_id) else {
        let held: Vec<&str> = workflow.assets.iter().map(|a| a.id.as_str()).collect();
        return Err(Rejection::invalid("asset_id", "this workflow does not hold the asset")
            .with("held", held));
    };
    // An event that frees nothing would tell a history that never was.
    guard::held(workflow, asset, facts)?;
    let draft = Draft::new(EventBody::LockReleased {
        asset_id: asset_id.clone(),
        reason: reason.to_owned(),
    });
    let release = LockChange::Release { asset_id: asset_id.clone(), fence: asset.fence };
    Ok(commit(Outcome::View, vec![draft], vec![release]))
}
