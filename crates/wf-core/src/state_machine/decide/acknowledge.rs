//! `acknowledge_block`: somebody who was told of a block says that they know. Nobody else is told after that.

use crate::access;
use crate::models::{BlockId, Phase, Workflow};

use super::super::command::Command;
use super::super::decision::{Draft, Outcome, Rejection, Unrecorded, Verdict};
use super::super::event::EventBody;
use super::{commit, guard};

pub(super) fn decide(
    workflow: &Workflow,
    command: &Command,
    block_id: &BlockId,
) -> Result<Verdict, Rejection> {
    access::may_acknowledge(&command.principal)?;
    match workflow.phase {
        Phase::Blocked => {}
        Phase::Created | Phase::Running | Phase::Completed => {
            return Err(guard::wrong_state(workflow, command));
        }
    }
    let block = guard::block(workflow, block_id)?;
    // Who came first is who the technician was told of; nothing is left for the second to stop.
    if block.acknowledged_by.is_some() {
        return Ok(Verdict::Unrecorded(Unrecorded::Unchanged));
    }
    let acknowledged =
        EventBody::BlockAcknowledged { block_id: block_id.clone(), by: command.principal.person() };
    Ok(commit(Outcome::View, vec![Draft::new(acknowledged)], Vec::new()))
}
