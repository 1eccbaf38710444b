//! Who is told of a block, and what is known when nobody answers. Through the core's own decisions.

use wf_core::models::{Actor, Principal, TenantId, Timestamp};
use wf_core::policy::DomainPolicyPort as _;
use wf_core::state_machine::CommandKind;

use crate::desk::{Desk, report};
use crate::fixture::{procedure, with_steps};

const MINUTE: i64 = 60_000;

fn blocked(escalate: &str) -> Desk {
    let steps = format!(
        "  - {{ id: a, kind: confirm, prompt: x }}\nblocks: {{ default: {{ escalate: {escalate}, decisions: [abort] }} }}\n"
    );
    let mut desk = Desk::start(with_steps(&steps));
    desk.now = 10 * MINUTE;
    desk.must(report("a"));
    desk
}

/// The clock fires whatever is set, at `minute`.
fn due(desk: &mut Desk, minute: i64) -> String {
    desk.now = minute * MINUTE;
    desk.by = Principal::part(TenantId::default_tenant(), Actor::clock());
    let deadline_id = desk.workflow().deadlines.keys().next().unwrap().clone();
    desk.must(CommandKind::DeadlineReached { deadline_id })
}

fn unanswered(desk: &Desk) -> Option<Timestamp> {
    desk.workflow().blocks[0].unanswered_since
}

#[test]
fn that_nobody_answered_in_time_is_known_when_nobody_else_is_told() {
    let mut desk = blocked("{ to: duty, respond_within: 15m }");
    assert_eq!(unanswered(&desk), None, "there is time");
    // However late the clock comes to it: it is the time to answer that counts.
    assert_eq!(due(&mut desk, 26), "deadline_passed");
    assert_eq!(unanswered(&desk), Some(Timestamp::from_ms(25 * MINUTE)));
    assert_eq!(desk.workflow().blocks[0].escalated_to.as_deref(), Some("duty"));
    desk.by = Principal::operator(TenantId::default_tenant(), "root");
    let block_id = desk.workflow().blocks[0].id.clone();
    desk.must(CommandKind::AcknowledgeBlock { block_id });
    assert_eq!(unanswered(&desk), None, "late is an answer, too");
}

#[test]
fn who_is_told_next_has_all_of_their_time() {
    let mut desk =
        blocked("{ to: duty, respond_within: 15m, then: { to: chief, respond_within: 5m } }");
    assert_eq!(due(&mut desk, 25), "deadline_passed; escalated");
    assert_eq!(unanswered(&desk), None, "the chief has time");
    assert_eq!(due(&mut desk, 30), "deadline_passed");
    assert_eq!(unanswered(&desk), Some(Timestamp::from_ms(30 * MINUTE)));
}

#[test]
fn an_offer_and_a_time_that_passed_are_told_to_whoever_subscribed() {
    let notify = "notify: [ownership_offered, deadline_passed]\n";
    let policy = procedure(&format!(
        "schema: checkpoint/procedure/v1\nid: test\nversion: 1\ntitle: T\n{notify}steps:\n  - {{ id: a, kind: confirm, prompt: x }}\n"
    ));
    assert!(policy.notifies("ownership_offered") && policy.notifies("deadline_passed"));
    assert!(!policy.notifies("ownership_transferred"));
}
