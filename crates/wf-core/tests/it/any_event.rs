//! `evolve` is total: any events in any order, those of commands that do not exist yet included, never panic and always
//! leave one of the four states with parts that fit each other.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::Map;
use wf_core::models::{
    Actor, HeldAsset, Person, Phase, Reading, Recipient, Severity, TenantId, Timestamp, Workflow,
};
use wf_core::policy::{DomainPolicyPort as _, Effect};
use wf_core::state_machine::{Event, EventBody, Recording, evolve};

use crate::drive::{BEGIN_MS, Desk};
use crate::plain_policy::{PlainPolicy, id};

fn person() -> Person {
    Person { id: Actor::User("ann".to_owned()), name: None }
}

fn held(fence: u64) -> HeldAsset {
    HeldAsset { role: id("unit"), id: id("U-7"), say: "unit 7".into(), fence }
}

fn started() -> EventBody {
    let definition = PlainPolicy::new().definition().clone();
    EventBody::WorkflowStarted {
        tenant: TenantId::default_tenant(),
        procedure: wf_core::models::ProcedureRef {
            id: definition.id,
            version: definition.version,
            digest: definition.digest,
        },
        label: "work".into(),
        assets: vec![held(1)],
        inputs: Map::new(),
        sensitive_inputs: Map::new(),
        owner: person(),
        deadlines: Vec::new(),
    }
}

/// The body of kind `n`, about step and block `m`.
pub(crate) fn body(n: usize, m: u32) -> EventBody {
    let (step, block) = (format!("step-{}", m % 3), format!("block-{}", m % 4));
    let effect = [Effect::Continue, Effect::Redo, Effect::Abort][(m % 3) as usize];
    let reading = Reading { given: m.to_string(), value: m.to_string(), ..Reading::default() };
    let recording = recording(&step, m, reading);
    match n {
        0 => started(),
        1 => EventBody::OrchestrationAcknowledged { fence: u64::from(m) },
        2 => EventBody::StepRecorded(recording),
        3 => EventBody::StepCorrected { recording, reason_code: id("WHY") },
        4 => EventBody::RecheckRequired { step_id: id(&step), because_of: id("step-9") },
        5 => EventBody::StepSkipped { step_id: id(&step), reason_code: None, note: None },
        6 => EventBody::WorkflowBlocked {
            block_id: id(&block),
            code: id("WHY"),
            step_id: m.is_multiple_of(2).then(|| id(&step)),
            reported: m % 2 == 1,
            summary: None,
            severity: Severity::Low,
            escalated_to: None,
            respond_within_ms: m.is_multiple_of(3).then_some(60_000),
            then: vec![Recipient::last("desk")],
        },
        7 => EventBody::ProblemNoted { step_id: None, summary: "dusty".to_owned() },
        8 => EventBody::BlockResolved {
            block_id: id(&block),
            decision: id("go_on"),
            effect,
            step_id: Some(id(&step)),
            comment: None,
        },
        9 => EventBody::BlockAcknowledged { block_id: id(&block), by: person() },
        10 => EventBody::OwnershipOffered { to: m.is_multiple_of(2).then(person) },
        11 => EventBody::OfferWithdrawn { declined: m.is_multiple_of(2) },
        12 => EventBody::OwnershipTransferred {
            to: person(),
            taken_over: m.is_multiple_of(2),
            reason_code: None,
            assets: vec![held(u64::from(m))],
        },
        13 => EventBody::LockReleased { asset_id: id("U-7"), reason: "left".to_owned() },
        14 => EventBody::WorkflowCompleted { result: id("good"), note: None, confirmed_by: None },
        15 => EventBody::DeadlinePassed {
            deadline_id: format!("w/{m}/0"),
            name: None,
            block_id: m.is_multiple_of(2).then(|| id(&block)),
        },
        16 => EventBody::Escalated {
            block_id: Some(id(&block)),
            to: "desk".to_owned(),
            respond_within_ms: m.is_multiple_of(3).then_some(60_000),
            then: Vec::new(),
        },
        17 => EventBody::StepNotNeeded { step_id: id(&step), because_of: id("step-9") },
        _ => EventBody::WaitStarted {
            step_id: id(&step),
            until: Timestamp::from_ms(BEGIN_MS + i64::from(m)),
        },
    }
}

/// A true history of two commits, to take the parts of events from.
static TEMPLATE: LazyLock<Desk> = LazyLock::new(|| {
    let mut desk = Desk::running();
    desk.must(&crate::drive::owner(), crate::drive::submit("ready", "yes"));
    desk
});

fn recording(step: &str, attempt: u32, reading: Reading) -> Recording {
    let last = TEMPLATE.events.last().expect("an event").body.clone();
    let EventBody::StepRecorded(recording) = last else { panic!("a recorded step") };
    Recording { step_id: id(step), attempt, reading, ..recording }
}

pub(crate) fn event(seq: u64, body: EventBody, system: bool) -> Event {
    let template = TEMPLATE.events[0].clone();
    let actor = if system { Actor::orchestrator() } else { Actor::User("ann".to_owned()) };
    let at = Timestamp::from_ms(BEGIN_MS + i64::try_from(seq).unwrap_or(0));
    Event { seq, at, actor, body, ..template }
}

fn fits(workflow: &Workflow) {
    let over = workflow.phase == Phase::Completed;
    assert_eq!(workflow.result.is_some(), over);
    assert_eq!(workflow.completed_at.is_some(), over);
    assert!(!over || (workflow.blocks.is_empty() && workflow.offer.is_none()));
    assert!(workflow.phase != Phase::Blocked || !workflow.blocks.is_empty());
}

/// What may still change when the work is over: where the history ends.
fn substance(workflow: &Workflow) -> Workflow {
    let ends = TEMPLATE.workflow();
    Workflow {
        revision: 0,
        last_hash: ends.last_hash.clone(),
        updated_at: ends.updated_at,
        last_activity: ends.last_activity,
        ..workflow.clone()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn evolve_is_total_over_any_events(
        start in any::<bool>(),
        bodies in prop::collection::vec((0_usize..19, 0_u32..12, any::<bool>()), 0..40),
    ) {
        let mut state = start.then(|| evolve(None, &event(1, started(), false))).flatten();
        for (n, (kind, about, system)) in bodies.into_iter().enumerate() {
            let seq = u64::try_from(n).expect("few") + 2;
            let event = event(seq, body(kind, about), system);
            let before = state.clone();
            state = evolve(state, &event);
            prop_assert_eq!(state.is_some(), before.is_some() || kind == 0);
            let Some(workflow) = &state else { continue };
            fits(workflow);
            prop_assert_eq!(workflow.revision, seq);
            if let Some(before) = before.filter(|w| w.phase == Phase::Completed) {
                prop_assert_eq!(substance(&before), substance(workflow), "COMPLETED never changes");
            }
        }
    }
}
