//! Workflows built by hand, and short ways to ask a procedure about them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use wf_core::models::{
    Actor, Cause, Digest, HeldAsset, Person, Phase, ProcedureRef, Reading, StepId, StepRecord,
    StepStatus, TenantId, Text, Timestamp, Touch, Workflow, WorkflowId,
};
use wf_core::policy::{Accepted, DomainPolicyPort, Judgement, Offered, Plan, Refusal};
use wf_procedure::Procedure;

/// A procedure that must be good.
pub(crate) fn procedure(source: &str) -> Procedure {
    wf_procedure::parse(source, "test.yaml").unwrap_or_else(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", lines.join("\n"))
    })
}

/// A procedure with these steps and nothing else.
pub(crate) fn with_steps(steps: &str) -> Procedure {
    procedure(&format!(
        "schema: checkpoint/procedure/v1\nid: test\nversion: 1\ntitle: Test\nreasons: [{{ code: X }}]\nsteps:\n{steps}"
    ))
}

/// The built-in pump inspection.
pub(crate) fn pump() -> Procedure {
    wf_procedure::builtin().unwrap().remove(0)
}

pub(crate) fn id(text: &str) -> StepId {
    StepId::parse(text).unwrap()
}

fn touch() -> Touch {
    let fingerprint =
        wf_core::idempotency::Fingerprint::of("submit_step", &Map::new(), &[]).unwrap();
    Touch {
        seq: 1,
        actor: Actor::User("ann".to_owned()),
        cause: Cause {
            key: wf_core::idempotency::IdempotencyKey::parse("k").unwrap(),
            fingerprint,
            natural: fingerprint,
        },
    }
}

fn ann() -> Person {
    Person { id: Actor::User("ann".to_owned()), name: None }
}

/// A running workflow of `policy` in which nothing was recorded.
pub(crate) fn workflow(policy: &Procedure) -> Workflow {
    let definition = policy.definition();
    let at = Timestamp::from_ms(0);
    Workflow {
        tenant: TenantId::default_tenant(),
        id: WorkflowId::parse("wf-1").unwrap(),
        procedure: ProcedureRef {
            id: definition.id.clone(),
            version: definition.version,
            digest: definition.digest.clone(),
        },
        label: Text::from("test"),
        phase: Phase::Running,
        result: None,
        revision: 1,
        last_hash: Digest::of(b""),
        owner: ann(),
        performers: Default::default(),
        offer: None,
        assets: Vec::new(),
        inputs: Map::new(),
        withheld_inputs: Vec::new(),
        steps: BTreeMap::new(),
        waits: BTreeMap::new(),
        blocks: Vec::new(),
        closed_blocks: Vec::new(),
        last_note: None,
        start_touch: touch(),
        ownership_touch: None,
        outcome_touch: None,
        last_recorded: None,
        started_at: at,
        updated_at: at,
        last_activity: at,
        completed_at: None,
        fence: 1,
        deadlines: BTreeMap::new(),
    }
}

fn put(workflow: &mut Workflow, step: &str, status: StepStatus, reading: Option<(Reading, bool)>) {
    let (reading, out_of_range) = match reading {
        Some((reading, out)) => (Some(reading), out),
        None => (None, false),
    };
    workflow.steps.insert(
        id(step),
        StepRecord {
            status,
            attempt: 1,
            reading,
            out_of_range,
            at: Timestamp::from_ms(0),
            by: ann(),
            touch: touch(),
        },
    );
}

/// Judges a value and records it as the core would.
pub(crate) fn record(policy: &Procedure, workflow: &mut Workflow, step: &str, value: &str) {
    let accepted = accepted(judge(policy, workflow, step, value, None));
    let sensitive = policy.describe(workflow, &id(step)).unwrap().sensitive;
    let reading = if sensitive { accepted.reading.withhold() } else { accepted.reading };
    let state = (reading, accepted.out_of_range);
    put(workflow, step, StepStatus::Recorded, Some(state));
}

pub(crate) fn skip(workflow: &mut Workflow, step: &str) {
    put(workflow, step, StepStatus::Skipped, None);
}

pub(crate) fn reopen(workflow: &mut Workflow, step: &str) {
    put(workflow, step, StepStatus::Reopened, None);
}

pub(crate) fn recheck(workflow: &mut Workflow, step: &str) {
    workflow.steps.get_mut(&id(step)).unwrap().status = StepStatus::Recheck;
}

pub(crate) fn hold(workflow: &mut Workflow, role: &str, asset: &str) {
    workflow.assets.push(HeldAsset {
        role: wf_core::models::AssetRole::parse(role).unwrap(),
        id: wf_core::models::AssetId::parse(asset).unwrap(),
        say: Text::from(asset),
        fence: 1,
    });
}

pub(crate) fn inputs(workflow: &mut Workflow, inputs: Value) {
    workflow.inputs = inputs.as_object().unwrap().clone();
}

pub(crate) fn judge(
    policy: &Procedure,
    workflow: &Workflow,
    step: &str,
    value: &str,
    unit: Option<&str>,
) -> Judgement {
    policy.judge(workflow, &Offered { step_id: &id(step), value, unit, at: Timestamp::from_ms(0) })
}

pub(crate) fn accepted(judgement: Judgement) -> Accepted {
    match judgement {
        Judgement::Accept(accepted) | Judgement::Block(accepted, _) => accepted,
        other => panic!("not accepted: {other:?}"),
    }
}

pub(crate) fn refusal(judgement: Judgement) -> Refusal {
    match judgement {
        Judgement::Reject(refusal) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// A judgement in one line.
pub(crate) fn line(judgement: &Judgement) -> String {
    let of = |a: &Accepted| {
        let r = &a.reading;
        let unit = |u: &Option<String>| u.clone().map_or_else(String::new, |u| format!(" {u}"));
        let given = format!("{}{}", r.given, unit(&r.given_unit));
        let value = format!("{}{}", r.value, unit(&r.unit));
        let mut text = if given == value { value } else { format!("{given} = {value}") };
        if let Some(exact) = &r.exact {
            text += &format!(" ({exact})");
        }
        if a.out_of_range {
            text += " OUT";
        }
        if !a.warnings.is_empty() {
            text += " WARN";
        }
        if let Some(read_back) = &a.read_back {
            text += &format!(" ASK[{}]", read_back.get(&wf_core::models::Locale::default()));
        }
        text
    };
    match judgement {
        Judgement::Accept(a) => of(a),
        Judgement::Block(a, cause) => format!(
            "{} BLOCK {} {} {}",
            of(a),
            cause.code,
            cause.severity.as_str(),
            cause.escalation.first().map_or("-", |told| told.to.as_str())
        ),
        Judgement::Decline => "declined".to_owned(),
        Judgement::Reject(r) => r.code.as_str().to_owned(),
    }
}

/// A plan in one line: ids with marks; `>` open, `*` settled, `?` optional, `!` broken; absent when it does not apply.
pub(crate) fn plan_line(plan: &Plan) -> String {
    let marks = plan.steps.iter().filter_map(|s| {
        if !s.applies && !s.settled {
            return None;
        }
        let mut text = String::new();
        if s.open {
            text.push('>');
        }
        if s.settled {
            text.push('*');
        }
        if s.broken.is_some() {
            text.push('!');
        }
        text += s.id.as_str();
        if !s.required {
            text.push('?');
        }
        if !s.applies {
            text += "(gone)";
        }
        Some(text)
    });
    marks.collect::<Vec<_>>().join(" ")
}
