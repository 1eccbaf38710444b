//! `deadline_reached`: the clock says that a deadline has passed; whoever is next is told. Those of one workflow pass in the order in
//! which they are due, whoever claimed them when.

use crate::access;
use crate::errors::ErrorCode;
use crate::models::{DeadlineAbout, Phase, Workflow};
use crate::view::Fault;

use super::super::command::{Command, Facts};
use super::super::deadlines;
use super::super::decision::{Draft, Outcome, Rejection, Verdict};
use super::super::event::EventBody;
use super::{commit, guard};

pub(super) fn decide(
    workflow: &Workflow,
    command: &Command,
    deadline_id: &str,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    access::is_clock(&command.principal)?;
    match workflow.phase {
        Phase::Created | Phase::Running | Phase::Blocked => {}
        Phase::Completed => return Err(guard::wrong_state(workflow, command)),
    }
    let Some(deadline) = workflow.deadlines.get(deadline_id) else {
        let open: Vec<&str> = workflow.deadlines.keys().map(String::as_str).collect();
        return Err(
            Rejection::invalid("deadline_id", "there is no such open deadline").with("open", open)
        );
    };
    let left = deadline.fire_at.since_ms(facts.at);
    if left > 0 {
        let message = format!("the deadline is due in {left} ms");
        let not_due = Fault::NotDue { at: deadline.fire_at };
        let rejection = Rejection::new(ErrorCode::TooEarly, message, not_due)
            .with("due_at", deadline.fire_at.to_string());
        return Err(Rejection { after_ms: Some(left), ..rejection });
    }
    // One that was set after this one was claimed, by a server whose clock is behind: no lease can keep that order.
    if let Some((first, due)) = deadlines::next_of(workflow)
        && first != deadline_id
    {
        let message = format!("{first} was due before and has not passed yet");
        let not_next = Fault::NotNext { at: due.fire_at };
        return Err(Rejection::new(ErrorCode::TooEarly, message, not_next).with("first", first));
    }
    let passed = |name: Option<String>, block_id| {
        Draft::new(EventBody::DeadlinePassed {
            deadline_id: deadline_id.to_owned(),
            name,
            block_id,
        })
    };
    let drafts = match &deadline.about {
        DeadlineAbout::Workflow { name, notify } => {
            let told = Draft::new(EventBody::Escalated {
                block_id: None,
                to: notify.clone(),
                respond_within_ms: None,
                then: Vec::new(),
            });
            vec![passed(Some(name.clone()), None), told]
        }
        DeadlineAbout::Response { block_id, then } => {
            let mut drafts = vec![passed(None, Some(block_id.clone()))];
            drafts.extend(guard::escalated(block_id, then));
            drafts
        }
    };
    Ok(commit(Outcome::View, drafts, Vec::new()))
}
