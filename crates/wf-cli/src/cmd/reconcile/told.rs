//! What reconciling once came to, for people and for programs, and the exit code of it.

use serde_json::{Value, json};
use wf_core::reconcile::Rule;

use crate::compose::aws::{End, Looked, Outcome, Report, Taken, action, rule};
use crate::exit::{Exit, Failure};
use crate::output::{Output, Tone, counted};

/// Prints the report.
pub(super) fn tell(report: &Report, dry_run: bool, output: Output) -> Result<(), Failure> {
    if output.is_json() {
        output.document(&document(report, dry_run))?;
    } else {
        for line in lines(report, dry_run, output) {
            output.line(&line)?;
        }
    }
    match exit(report) {
        Exit::Ok => Ok(()),
        other @ (Exit::Failed | Exit::Usage | Exit::Unavailable | Exit::Damage) => {
            Err(Failure::quiet(other))
        }
    }
}

/// Why a rule asks for something, in a few words; docs/reconciler.md has the rules.
const fn why(rule: Rule) -> &'static str {
    match rule {
        Rule::R1 => "what is started or due is for the workflow to decide",
        Rule::R2 => "open, and has no execution",
        Rule::R3 => "its execution runs, and was not recorded",
        Rule::R4 => "its execution knows less than it must, or its token is dead",
        Rule::R5 => "its execution ended, is gone, or nears its limits",
        Rule::R6 => "the workflow has ended",
        Rule::R7 => "an execution of another time, or of no workflow",
        Rule::R8 => "too early to tell",
    }
}

fn lines(report: &Report, dry_run: bool, output: Output) -> Vec<String> {
    let mut lines = Vec::new();
    for looked in &report.workflows {
        let name = format!("{} {}", looked.tenant.as_str(), looked.workflow_id.as_str());
        lines.push(output.paint(Tone::Strong, &name));
        let steps = looked.steps.iter();
        lines.extend(steps.map(|taken| format!("  {taken} ({})", why(taken.rule))));
        lines.push(format!("  {}", looked.end));
    }
    lines.extend(report.problems.iter().map(|problem| output.paint(Tone::Bad, problem)));
    if !report.elsewhere.is_empty() {
        let shards = counted(report.elsewhere.len(), "shard");
        lines.push(format!("{shards} left to the servers that are at work on them"));
    }
    let looked = counted(report.workflows.len(), "workflow");
    let would = if dry_run { "; a dry run, nothing was changed" } else { "" };
    let listed = match report.listed {
        Some(listed) => format!("{listed} executions run"),
        None => "executions were not listed".to_owned(),
    };
    lines.push(format!("{looked} looked at, {listed}{would}"));
    lines
}

fn document(report: &Report, dry_run: bool) -> Value {
    json!({
        "dry_run": dry_run,
        "workflows": report.workflows.iter().map(workflow).collect::<Vec<_>>(),
        "shards_left_to_servers": report.elsewhere,
        "executions_listed": report.listed,
        "problems": report.problems,
    })
}

fn workflow(looked: &Looked) -> Value {
    let step = |taken: &Taken| {
        json!({
            "rule": rule(taken.rule),
            "why": why(taken.rule),
            "action": action(&taken.action),
            "outcome": taken.outcome.kind(),
            "says": taken.to_string(),
        })
    };
    json!({
        "tenant": looked.tenant.as_str(),
        "workflow_id": looked.workflow_id.as_str(),
        "steps": looked.steps.iter().map(step).collect::<Vec<_>>(),
        "end": match looked.end {
            End::Settled => "settled",
            End::Again(_) => "again",
            End::Overtaken => "overtaken",
            End::Proposed => "dry",
            End::Failed { .. } => "failed",
        },
        "says": looked.end.to_string(),
    })
}

/// The worst of all.
fn exit(report: &Report) -> Exit {
    let failed = |looked: &Looked| match looked.end {
        End::Failed { may_pass, .. } => !may_pass,
        End::Settled | End::Again(_) | End::Overtaken | End::Proposed => false,
    };
    let unclear = |looked: &Looked| {
        let silent = |taken: &Taken| matches!(taken.outcome, Outcome::Unclear(..));
        matches!(looked.end, End::Failed { .. }) || looked.steps.iter().any(silent)
    };
    if !report.problems.is_empty() || report.workflows.iter().any(failed) {
        Exit::Failed
    } else if report.workflows.iter().any(unclear) {
        Exit::Unavailable
    } else {
        Exit::Ok
    }
}

#[cfg(test)]
mod tests {
    use wf_core::models::{TenantId, WorkflowId};
    use wf_core::reconcile::Action;

    use super::*;

    fn looked(outcome: Outcome, end: End) -> Looked {
        let (tenant, workflow_id) =
            (TenantId::parse("acme").unwrap(), WorkflowId::parse("wf_1").unwrap());
        let taken = Taken { rule: Rule::R2, action: Action::Start { fence: 1 }, outcome };
        Looked { tenant, workflow_id, steps: vec![taken], end }
    }

    fn report(workflows: Vec<Looked>) -> Report {
        Report { workflows, ..Report::default() }
    }

    #[test]
    fn what_would_be_done_is_said_with_its_rule() {
        let report = report(vec![looked(Outcome::WouldBe, End::Proposed)]);
        let lines = lines(&report, true, Output::new(true));
        assert_eq!(
            lines,
            [
                "acme wf_1",
                "  R2 start fence 1: would be done (open, and has no execution)",
                "  nothing was done: only looked at",
                "1 workflow looked at, executions were not listed; a dry run, nothing was changed",
            ]
        );
        let step = &document(&report, true)["workflows"][0]["steps"][0];
        assert_eq!((&step["rule"], &step["action"]), (&json!("R2"), &json!("start")));
        assert_eq!(exit(&report), Exit::Ok);
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst() {
        let fine = || looked(Outcome::Done, End::Settled);
        let silent = || looked(Outcome::Unclear("throttled", "slow down".to_owned()), End::Settled);
        let failed =
            |may_pass| looked(Outcome::Done, End::Failed { may_pass, why: "so it is".to_owned() });
        for (workflows, expected) in [
            (vec![], Exit::Ok),
            (vec![fine()], Exit::Ok),
            (vec![fine(), silent()], Exit::Unavailable),
            (vec![failed(true)], Exit::Unavailable),
            (vec![silent(), failed(false), fine()], Exit::Failed),
        ] {
            assert_eq!(exit(&report(workflows)), expected);
        }
        let denied = Report { problems: vec!["denied".to_owned()], ..Report::default() };
        assert_eq!(exit(&denied), Exit::Failed);
    }
}
