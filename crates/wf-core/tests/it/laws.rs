//! Laws of decide, evolve and the chain under random commands and random events.
//!
//! Each case drives one workflow with commands of four people while the clock jumps, the asset is taken away and the
//! policy varies. After each command every law below is checked; see `limits` for the bounds.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use wf_core::limits::{BLOCKS_MAX, EVENTS_MAX, OUTBOX_ROWS_MAX};
use wf_core::locks::LockChange;
use wf_core::models::{Locale, Phase, Severity, StepStatus, Workflow};
use wf_core::policy::DomainPolicyPort;
use wf_core::state_machine::chain::{event_hash, origin_hash};
use wf_core::state_machine::{CommandKind, Decision, EventBody, Transfer, Verdict, evolve};
use wf_core::view::{Frame, Outlook, Words, shape};

use crate::drive::{
    Desk, correct, finish, offer, operator, owner, release, report, resolve, skip, start_with,
    stranger, submit, supervisor, take_over,
};
use crate::plain_policy::PlainPolicy;

/// Stands in every sensitive value, and nowhere else.
const CANARY: &str = "CANARY";

/// One thing that happens in a case.
#[derive(Debug, Clone)]
enum Happening {
    Asked {
        who: usize,
        kind: Asked,
        confirm: bool,
        clock_ms: i64,
    },
    /// The asset goes to another workflow.
    Stolen,
}

/// A command, before it is known which blocks there are.
#[derive(Debug, Clone)]
enum Asked {
    Given(CommandKind),
    /// The block with this number among the open ones, or a block that is not there.
    Resolve {
        block: usize,
        decision: &'static str,
    },
    /// A right value for the step that is asked next.
    Next {
        amount: &'static str,
    },
}

fn steps() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        2 => Just("ready"), 4 => Just("amount"), 3 => Just("share"), 3 => Just("shape"),
        1 => Just("remark"), 2 => Just("whisper"), 1 => Just("more-0"), 1 => Just("nowhere"),
    ]
}

/// A value that is often right for the step.
fn values(step: &'static str) -> BoxedStrategy<String> {
    let any = prop::sample::select(vec!["", "yes", "no", "25", "abc", "-1", "flat", "4.205"]);
    let right: &[&'static str] = match step {
        "ready" => &["yes", "yes", "no"],
        "amount" | "share" => &["12", "25", "25.50", "33", "40", "45", "70", "700"],
        "shape" => &["round", "flat", "torn"],
        _ => &["fine"],
    };
    if step == "whisper" {
        return (0_u32..100).prop_map(|n| format!("{CANARY}-{n}")).boxed();
    }
    prop_oneof![
        5 => prop::sample::select(right.to_vec()),
        1 => any,
    ]
    .prop_map(ToOwned::to_owned)
    .boxed()
}

fn reasons() -> impl Strategy<Value = Option<&'static str>> {
    prop::sample::select(vec![Some("NOT_THERE"), Some("HEARD_WRONG"), Some("WHIM"), None])
}

fn asked() -> impl Strategy<Value = Asked> {
    let submits = steps().prop_flat_map(|s| values(s).prop_map(move |v| submit(s, &v)));
    let corrects = steps().prop_flat_map(|s| values(s).prop_map(move |v| correct(s, &v)));
    let skips = (steps(), reasons()).prop_map(|(s, r)| skip(s, r));
    let severity = prop::sample::select(vec![Severity::Note, Severity::Low, Severity::High]);
    let reports = (severity, prop::option::of(steps())).prop_map(|(s, step)| report(s, step));
    let ends =
        prop::sample::select(vec!["good", "good", "bad", "abandoned", "whim"]).prop_map(finish);
    let decisions =
        prop::sample::select(vec!["go_on", "go_on", "go_on", "again", "again", "stop", "whim"]);
    let resolves =
        (0_usize..3, decisions).prop_map(|(block, decision)| Asked::Resolve { block, decision });
    let amounts = prop::sample::select(vec!["25", "40", "45", "70"]);
    prop_oneof![
        20 => amounts.prop_map(|amount| Asked::Next { amount }),
        10 => submits.prop_map(Asked::Given),
        8 => corrects.prop_map(Asked::Given),
        4 => skips.prop_map(Asked::Given),
        3 => reports.prop_map(Asked::Given),
        8 => resolves,
        2 => ends.prop_map(Asked::Given),
        4 => transfers().prop_map(Asked::Given),
        1 => Just(Asked::Given(release("U-7"))),
        1 => (0_u64..3)
            .prop_map(|fence| Asked::Given(CommandKind::AcknowledgeOrchestration { fence })),
        1 => Just(Asked::Given(begin())),
    ]
}

fn transfers() -> impl Strategy<Value = CommandKind> {
    let to = prop::sample::select(vec![None, Some("ann"), Some("bob"), Some("cy"), Some("zoe")]);
    prop_oneof![
        3 => to.prop_map(offer),
        1 => Just(CommandKind::Transfer(Transfer::Withdraw)),
        1 => Just(CommandKind::Transfer(Transfer::Decline)),
        3 => Just(CommandKind::Transfer(Transfer::Accept)),
        2 => reasons().prop_map(take_over),
    ]
}

fn begin() -> CommandKind {
    let inputs = json!({"order": "A-1", "hush": format!("{CANARY}-input")});
    start_with(&[("unit", "U-7"), ("spare", "U-8")], inputs)
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    // Mostly the owner and the supervisor, so that cases get somewhere.
    let who = prop_oneof![12 => Just(0_usize), 6 => Just(1), 1 => Just(2), 1 => Just(3)];
    // Backwards, not at all, forwards, far.
    let clock = prop_oneof![-5_000_i64..0, Just(0), 1_i64..60_000, Just(7 * 24 * 3_600_000_i64)];
    let asked = (who, asked(), prop::bool::weighted(0.8), clock).prop_map(
        |(who, kind, confirm, clock_ms)| Happening::Asked { who, kind, confirm, clock_ms },
    );
    prop::collection::vec(prop_oneof![60 => asked, 1 => Just(Happening::Stolen)], 1..60)
}

fn policies() -> impl Strategy<Value = PlainPolicy> {
    prop_oneof![
        4 => Just(PlainPolicy::new()),
        4 => Just(PlainPolicy::loose()),
        1 => Just(PlainPolicy::wide(4)),
        1 => Just(PlainPolicy::wide(60)),
    ]
}

fn kind(asked: Asked, desk: &Desk) -> CommandKind {
    let workflow = desk.workflow();
    match asked {
        Asked::Given(kind) => kind,
        Asked::Resolve { block, decision } => {
            let open = workflow.blocks.get(block).map(|b| b.id.to_string());
            resolve(open.as_deref().unwrap_or("block-999"), decision)
        }
        Asked::Next { amount } => {
            let plan = desk.policy.plan(workflow);
            let required = plan.unsettled().find(|s| s.open).or(plan.next());
            let step = required.map_or("remark", |s| s.id.as_str()).to_owned();
            let value = match step.as_str() {
                "ready" => "yes",
                "amount" => amount,
                "share" => "5",
                "shape" => "round",
                "whisper" => CANARY,
                _ => "fine",
            };
            submit(&step, value)
        }
    }
}

/// Drives a case to its end and checks the laws after each command.
fn drive(policy: PlainPolicy, at_start: bool, happenings: Vec<Happening>) -> Desk {
    let mut desk = Desk { policy, acknowledge_at_start: at_start, ..Desk::crowded() };
    desk.must(&owner(), begin());
    for happening in happenings {
        match happening {
            Happening::Stolen => desk.steal("U-7"),
            Happening::Asked { who, kind: asked, confirm, clock_ms } => {
                desk.now = desk.now.plus_ms(clock_ms);
                let by = [owner(), supervisor(), stranger(), operator()][who].clone();
                let kind = kind(asked, &desk);
                let before = desk.clone();
                match desk.act(&by, kind.clone(), confirm) {
                    Ok(Verdict::Commit(decision)) => {
                        committed(&before, &kind, &decision, &desk);
                        consistent(desk.workflow());
                        silent(&desk, &before);
                    }
                    Ok(Verdict::Unrecorded(unrecorded)) => {
                        unchanged(&before, &desk);
                        assert!(!format!("{unrecorded:?}").contains(CANARY));
                    }
                    Err(rejection) => {
                        unchanged(&before, &desk);
                        assert!(!format!("{rejection:?}").contains(CANARY), "{rejection:?}");
                    }
                }
            }
        }
    }
    chain(&desk);
    let folded = desk.events.iter().fold(None, evolve);
    assert_eq!(folded, desk.state, "the state is the fold of its events");
    desk
}

fn unchanged(before: &Desk, after: &Desk) {
    assert_eq!(before.state, after.state, "what was not committed changed the state");
    assert_eq!(before.locks, after.locks);
    assert_eq!(before.events.len(), after.events.len());
}

/// What one commit may do.
fn committed(before: &Desk, kind: &CommandKind, decision: &Decision, after: &Desk) {
    assert!(!decision.drafts.is_empty(), "a commit has an event");
    assert!(decision.drafts.len() <= EVENTS_MAX, "{} events", decision.drafts.len());
    let sent = after.messages.len() - before.messages.len();
    assert!(sent <= OUTBOX_ROWS_MAX, "{sent} messages");
    let was = before.workflow();
    assert_ne!(was.phase, Phase::Completed, "{kind:?} changed a completed workflow");
    // The phase moves along the edges of the diagram, event by event.
    let mut phase = was.phase;
    let mut state = Some(was.clone());
    for event in &after.events[before.events.len()..] {
        state = evolve(state, event);
        let next = state.as_ref().expect("a started workflow").phase;
        let edge = match (phase, next) {
            (from, to) if from == to => true,
            (Phase::Created, Phase::Running | Phase::Blocked | Phase::Completed)
            | (Phase::Running, Phase::Blocked | Phase::Completed)
            | (Phase::Blocked, Phase::Running | Phase::Completed) => true,
            _ => false,
        };
        assert!(edge, "{kind:?}: {phase:?} → {next:?}");
        phase = next;
    }
    locks(was, kind, decision, after.workflow());
}

/// Steps assert every asset with its fence; a change of hands takes all, each under a new fence; the end releases all;
/// nothing else touches a lock.
fn locks(was: &Workflow, kind: &CommandKind, decision: &Decision, now: &Workflow) {
    let assert = |asset: &wf_core::models::HeldAsset| LockChange::Assert {
        asset_id: asset.id.clone(),
        fence: asset.fence,
    };
    let free = |asset: &wf_core::models::HeldAsset| LockChange::Release {
        asset_id: asset.id.clone(),
        fence: asset.fence,
    };
    let take = |asset: &wf_core::models::HeldAsset| LockChange::Take {
        asset_id: asset.id.clone(),
        fence: asset.fence,
    };
    let all = |f: &dyn Fn(&wf_core::models::HeldAsset) -> LockChange| {
        was.assets.iter().map(f).collect::<Vec<_>>()
    };
    let expected = match kind {
        _ if now.phase == Phase::Completed => all(&free),
        CommandKind::SubmitStep { .. }
        | CommandKind::CorrectStep { .. }
        | CommandKind::SkipStep { .. }
        | CommandKind::ResolveBlock { .. } => all(&assert),
        CommandKind::ReleaseLock { asset_id, .. } => {
            was.assets.iter().filter(|a| &a.id == asset_id).map(free).collect()
        }
        CommandKind::Transfer(Transfer::Accept | Transfer::TakeOver { .. }) => {
            now.assets.iter().map(take).collect()
        }
        CommandKind::Transfer(_)
        | CommandKind::AcknowledgeBlock { .. }
        | CommandKind::DeadlineReached { .. }
        | CommandKind::Start { .. }
        | CommandKind::AcknowledgeOrchestration { .. }
        | CommandKind::ReportProblem { .. }
        | CommandKind::Finish { .. } => Vec::new(),
    };
    assert_eq!(decision.locks, expected, "{kind:?}");
    let acquires = decision.locks.iter().any(|l| matches!(l, LockChange::Acquire { .. }));
    let releases = decision.locks.iter().any(|l| matches!(l, LockChange::Release { .. }));
    for (old, new) in was.assets.iter().zip(&now.assets) {
        let moved = decision.locks.iter().any(|l| matches!(l, LockChange::Take { .. }));
        assert_eq!(
            new.fence > old.fence,
            moved,
            "a fence grows exactly when the asset changes hands"
        );
    }
    assert!(!(acquires && releases), "a commit never both takes and frees assets");
}

/// Gapless, linked, each hash its own, time never backwards; block ids unique.
fn chain(desk: &Desk) {
    let workflow = desk.workflow();
    let mut hash = origin_hash(&workflow.tenant, &workflow.id);
    let mut blocks = BTreeSet::new();
    for (n, pair) in desk.events.iter().enumerate() {
        assert_eq!(pair.seq, u64::try_from(n).expect("few") + 1, "gapless from 1");
        assert_eq!(pair.prev_hash, hash, "linked");
        assert_eq!(event_hash(pair).expect("canonical"), pair.hash, "its own hash");
        hash = pair.hash.clone();
        if let Some(before) = n.checked_sub(1).and_then(|n| desk.events.get(n)) {
            assert!(before.at <= pair.at, "time never runs backwards");
        }
        if let EventBody::WorkflowBlocked { block_id, .. } = &pair.body {
            assert!(blocks.insert(block_id.clone()), "{block_id} twice");
            assert_eq!(block_id.as_str(), format!("block-{}", pair.seq));
        }
    }
    assert_eq!(workflow.last_hash, hash);
    assert_eq!(workflow.revision, u64::try_from(desk.events.len()).expect("few"));
}

/// The parts of a state fit each other.
fn consistent(workflow: &Workflow) {
    let over = workflow.phase == Phase::Completed;
    assert_eq!(workflow.result.is_some(), over, "a result exactly when completed");
    assert_eq!(workflow.completed_at.is_some(), over);
    assert_eq!(workflow.outcome_touch.is_some(), over);
    assert_eq!(!workflow.blocks.is_empty(), workflow.phase == Phase::Blocked, "blocks ⇔ BLOCKED");
    assert!(workflow.blocks.len() <= BLOCKS_MAX);
    for (step, record) in &workflow.steps {
        let has = record.reading.is_some();
        match record.status {
            StepStatus::Recorded | StepStatus::Recheck => assert!(has, "{step}"),
            StepStatus::Skipped | StepStatus::Reopened => assert!(!has, "{step}"),
        }
        assert!(record.touch.seq <= workflow.revision);
    }
    if let Some(last) = &workflow.last_recorded {
        assert!(workflow.steps[last].reading.is_some(), "{last} was recorded last");
    }
}

/// No sensitive value in anything but beside its event: the state, and what the last commit added.
fn silent(desk: &Desk, before: &Desk) {
    let workflow = desk.workflow();
    let events = &desk.events[before.events.len()..];
    let said = |what: &str, text: String| assert!(!text.contains(CANARY), "{what}: {text}");
    said("state", serde_json::to_string(workflow).expect("json"));
    said("state, for a log", format!("{workflow:?}"));
    said("events, for a log", format!("{events:?}"));
    for event in events {
        said("event body", serde_json::to_string(&event.body).expect("json"));
    }
    let messages = &desk.messages[before.messages.len()..];
    said("messages", serde_json::to_string(messages).expect("json"));
    let locale = Locale::default();
    let frame = Frame { words: Words::new(&locale, "UTC"), store_id: "store" };
    let outlook = Outlook::of(workflow, &desk.policy);
    said("view", Value::Object(shape::workflow(&frame, workflow, Some(&outlook))).to_string());
    said("history", shape::history(events).to_string());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_laws_hold_under_random_commands(
        policy in policies(),
        at_start in any::<bool>(),
        happenings in happenings(),
    ) {
        drive(policy, at_start, happenings);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn evolve_is_total_over_histories_out_of_order(
        happenings in happenings(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let events = drive(PlainPolicy::loose(), true, happenings).events;
        let mut state = None;
        for index in order {
            state = evolve(state, index.get(&events));
            if let Some(workflow) = &state {
                let over = workflow.phase == Phase::Completed;
                prop_assert_eq!(workflow.result.is_some(), over);
            }
        }
    }
}

/// The generator reaches what the laws are about; else they would hold for want of cases.
#[test]
fn random_commands_reach_every_phase_and_kind_of_event() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut kinds = BTreeSet::new();
    let mut phases = BTreeSet::new();
    let mut sensitive = 0;
    for _ in 0..150 {
        let policy = policies().new_tree(&mut runner).expect("a policy").current();
        let happenings = happenings().new_tree(&mut runner).expect("a case").current();
        let desk = drive(policy, false, happenings);
        kinds.extend(desk.events.iter().map(|e| e.body.kind()));
        phases.insert(desk.workflow().phase);
        sensitive += desk.events.iter().skip(1).filter(|e| !e.sensitive.is_empty()).count();
    }
    assert_eq!(phases.len(), 4, "{phases:?}");
    assert!(sensitive > 10, "{sensitive} sensitive values were recorded");
    let reached = [
        "workflow_started",
        "orchestration_acknowledged",
        "step_recorded",
        "step_corrected",
        "step_not_needed",
        "recheck_required",
        "step_skipped",
        "workflow_blocked",
        "problem_noted",
        "block_resolved",
        "ownership_offered",
        "offer_withdrawn",
        "ownership_transferred",
        "lock_released",
        "workflow_completed",
    ];
    assert_eq!(kinds, BTreeSet::from(reached));
}
