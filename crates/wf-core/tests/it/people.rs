//! Several people on one work: offers and names, take-overs and silence, lost assets, waits, and a second person's
//! signature. The grid has the same commands in every state; here are the rules that depend on who, when and what came
//! before.

use std::collections::BTreeSet;

use serde_json::json;
use wf_core::errors::ErrorCode;
use wf_core::limits::{OPEN_WORKFLOWS_MAX, PERFORMERS_MAX};
use wf_core::locks::LockChange;
use wf_core::models::{Actor, Person, Phase, Principal, Severity};
use wf_core::state_machine::signature::signature;
use wf_core::state_machine::{
    CommandKind, EventBody, Outcome, Rejection, Transfer, Unrecorded, Verdict, evolve,
};

use crate::drive::{
    Desk, correct, offer, owner, release, report, resolve, skip, start, stranger, submit,
    supervisor, take_over,
};
use crate::plain_policy::{PlainPolicy, REST_MS, STALE_MS};

const ACCEPT: CommandKind = CommandKind::Transfer(Transfer::Accept);

fn refused(desk: &Desk, by: &Principal, kind: CommandKind) -> Rejection {
    match desk.ask(by, kind.clone()) {
        Err(rejection) => rejection,
        Ok(verdict) => panic!("{kind:?} must be refused, but: {verdict:?}"),
    }
}

fn code(desk: &Desk, by: &Principal, kind: CommandKind) -> ErrorCode {
    refused(desk, by, kind).code
}

fn relief() -> CommandKind {
    take_over(Some("NOT_THERE"))
}

/// The desk so many milliseconds later.
fn after(desk: &Desk, ms: i64) -> Desk {
    Desk { now: desk.now.plus_ms(ms), ..desk.clone() }
}

/// Started; of a procedure for two.
fn paired() -> Desk {
    let mut desk =
        Desk { policy: PlainPolicy::paired(), acknowledge_at_start: true, ..Desk::crowded() };
    desk.must(&owner(), start("U-7", json!({"order": "A-1"})));
    desk
}

/// The same up to the wait, which has begun.
fn resting() -> Desk {
    let mut desk = paired();
    for (step, value) in
        [("ready", "yes"), ("amount", "25"), ("shape", "round"), ("whisper", "psst")]
    {
        desk.must(&owner(), submit(step, value));
    }
    desk
}

/// The same after the wait: the signature is next.
fn to_sign() -> Desk {
    let mut desk = after(&resting(), REST_MS);
    desk.must(&owner(), submit("rest", "done"));
    desk
}

fn checker(by: Principal) -> Principal {
    Principal { roles: ["checker".to_owned()].into(), ..by }
}

fn called(subject: &str) -> Principal {
    Principal { actor: Actor::User(subject.to_owned()), ..stranger() }
}

fn taken(fence: u64) -> [LockChange; 1] {
    [LockChange::Take { asset_id: "U-7".parse().expect("an id"), fence }]
}

#[test]
fn a_wait_is_over_when_its_recorded_time_is() {
    let mut desk = resting();
    let begun = desk.now;
    for (passed, left) in [(0, REST_MS), (REST_MS - 1_000, 1_000), (-5_000, REST_MS + 5_000)] {
        // Nothing but the history and the clock is asked: a state that was folded anew answers the same.
        let folded = desk.events.iter().fold(None, evolve);
        let later = Desk { state: folded, ..after(&desk, passed) };
        let rejection = refused(&later, &owner(), submit("rest", "done"));
        assert_eq!(rejection.code, ErrorCode::TooEarly);
        assert_eq!(rejection.after_ms, Some(left));
        assert_eq!(rejection.details["due_at"], begun.plus_ms(REST_MS).to_string());
    }
    desk.now = begun.plus_ms(REST_MS);
    assert_eq!(desk.must(&owner(), submit("rest", "done")).outcome, Outcome::Recorded);
}

#[test]
fn a_signature_is_for_the_role_and_for_a_second_person() {
    let desk = to_sign();
    let sign = || submit("approve", "done");
    let rejection = refused(&desk, &stranger(), sign());
    assert_eq!(rejection.code, ErrorCode::NotAllowed);
    assert_eq!(rejection.details["role"], "checker");
    let rejection = refused(&desk, &checker(owner()), sign());
    assert_eq!(rejection.code, ErrorCode::NotAllowed);
    assert_eq!(rejection.details["rule"], "not_performer");
    let rejection = refused(&desk, &supervisor(), sign());
    assert_eq!(rejection.details["role"], "checker", "a supervisor is no checker");
    let mut signed = desk.clone();
    signed.must(&checker(stranger()), sign());
    assert_eq!(signed.workflow().phase, Phase::Running);
    let performers = &signed.workflow().performers;
    assert!(!performers.contains(&stranger().actor), "who signs performs nothing");
}

#[test]
fn whoever_worked_on_it_does_not_sign_although_their_value_was_replaced() {
    // Sue records the amount, and Ann replaces it: no value that stands is Sue's any more.
    let mut desk = paired();
    desk.must(&owner(), submit("ready", "yes"));
    desk.must(&supervisor(), submit("amount", "25"));
    desk.must(&owner(), correct("amount", "26"));
    desk.must(&owner(), submit("shape", "round"));
    desk.must(&owner(), submit("whisper", "psst"));
    desk.now = desk.now.plus_ms(REST_MS);
    desk.must(&owner(), submit("rest", "done"));
    let rejection = refused(&desk, &checker(supervisor()), submit("approve", "done"));
    assert_eq!(rejection.details["rule"], "not_performer");
    // Who only reported has recorded nothing.
    desk.must(&stranger(), report(Severity::Note, None));
    desk.must(&checker(stranger()), submit("approve", "done"));
    // The same person may sign again what they signed.
    desk.must(&checker(stranger()), correct("approve", "done"));
}

#[test]
fn whoever_left_a_step_out_does_not_sign() {
    let mut desk = paired();
    desk.must(&owner(), submit("ready", "yes"));
    desk.must(&owner(), submit("amount", "25"));
    desk.must(&supervisor(), skip("shape", Some("NOT_THERE")));
    desk.must(&owner(), submit("whisper", "psst"));
    desk.now = desk.now.plus_ms(REST_MS);
    desk.must(&owner(), submit("rest", "done"));
    let rejection = refused(&desk, &checker(supervisor()), submit("approve", "done"));
    assert_eq!(rejection.details["rule"], "not_performer");
}

#[test]
fn a_signature_is_for_exactly_what_was_known() {
    let mut desk = to_sign();
    let known = signature(desk.workflow()).expect("canonical");
    desk.must(&checker(stranger()), submit("approve", "done"));
    let event = desk.events.last().expect("an event");
    let signed = event.body.recording().and_then(|r| r.signed.clone()).expect("a signature");
    assert_eq!(signed, known);
    assert_eq!(signed.seq, event.seq - 1);
    let recordings = desk.events.iter().filter_map(|e| e.body.recording());
    assert_eq!(recordings.filter(|r| r.signed.is_some()).count(), 1, "other steps sign nothing");

    // Another value, another way to say it, another history: another digest.
    let mut digests = BTreeSet::from([known.digest.to_string()]);
    for amount in ["25", "25.0", "26"] {
        let mut desk = paired();
        desk.must(&owner(), submit("ready", "yes"));
        desk.must(&owner(), submit("amount", amount));
        digests.insert(signature(desk.workflow()).expect("canonical").digest.to_string());
        desk.must(&stranger(), report(Severity::Note, None));
        digests.insert(signature(desk.workflow()).expect("canonical").digest.to_string());
    }
    assert_eq!(digests.len(), 7);
}

#[test]
fn so_many_people_work_on_one_workflow() {
    let mut desk = paired();
    desk.must(&owner(), submit("ready", "yes"));
    let another = |n: usize| Principal { actor: Actor::User(format!("sup-{n}")), ..supervisor() };
    desk.must(&another(1), submit("amount", "25"));
    for n in 2..PERFORMERS_MAX {
        desk.must(&another(n), correct("amount", if n % 2 == 0 { "26" } else { "25" }));
    }
    let late = another(PERFORMERS_MAX);
    let rejection = refused(&desk, &late, correct("amount", "27"));
    assert_eq!(rejection.code, ErrorCode::LimitExceeded);
    assert_eq!(rejection.details["limit"], "performers");
    assert_eq!(code(&desk, &late, skip("shape", Some("NOT_THERE"))), ErrorCode::LimitExceeded);
    desk.must(&owner(), correct("amount", "27"));
}

/// Whom an offer to `said` is for.
fn meant(desk: &Desk, said: &str) -> String {
    match desk.ask(&owner(), offer(Some(said))) {
        Ok(Verdict::Commit(decision)) => match &decision.drafts[0].body {
            EventBody::OwnershipOffered { to: Some(to) } => to.id.to_string(),
            other => panic!("{other:?}"),
        },
        Ok(Verdict::Unrecorded(Unrecorded::WhichPerson { people })) => {
            let ids: Vec<String> = people.iter().map(|p| p.id.to_string()).collect();
            ids.join(" or ")
        }
        Err(rejection) => {
            assert_eq!(rejection.code, ErrorCode::ValidationError, "{said}");
            assert_eq!(rejection.details["field"], "to", "{said}");
            "nobody".to_owned()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_finds_one_person_or_asks_which() {
    let desk = paired();
    for (said, found) in [
        ("bob", "user:bob-subject"),
        (" Bob ", "user:bob-subject"),
        ("bob-subject", "user:bob-subject"),
        ("user:bob-subject", "user:bob-subject"),
        ("cy", "user:c-1 or user:c-2"),
        ("Coe", "user:c-1"),
        ("cy dee", "user:c-2"),
        ("c-2", "user:c-2"),
        ("su", "user:sue-subject"),
        ("user:never-seen", "user:never-seen"),
        ("never-seen", "nobody"),
        ("zoe", "nobody"),
        ("", "nobody"),
        ("-", "nobody"),
        ("cli:root", "nobody"),
        // Her own work is not offered to her.
        ("ann", "nobody"),
        ("ann-subject", "nobody"),
    ] {
        assert_eq!(meant(&desk, said), found, "{said:?}");
    }
    // Somebody whose whole name it is comes before one whose name begins so; another Ann before the owner.
    let more = |subject: &str, name: &str| Person {
        id: Actor::User(subject.to_owned()),
        name: Some(name.to_owned()),
    };
    let mut crowd = desk;
    crowd.people.extend([more("b-2", "Bobby"), more("a-2", "Anna")]);
    for (said, found) in
        [("bob", "user:bob-subject"), ("Bobb", "user:b-2"), ("an", "user:a-2"), ("ann", "nobody")]
    {
        assert_eq!(meant(&crowd, said), found, "{said:?}");
    }
}

#[test]
fn work_goes_to_whom_it_is_offered_with_its_assets() {
    let mut desk = paired();
    desk.must(&owner(), submit("ready", "yes"));
    desk.must(&owner(), offer(Some("bob")));
    // Until it is taken the owner goes on; a new offer replaces the old one.
    desk.must(&owner(), submit("amount", "25"));
    assert_eq!(code(&desk, &called("carl"), ACCEPT), ErrorCode::NotAllowed);
    desk.must(&owner(), offer(Some("c-1")));
    let rejection = refused(&desk, &stranger(), ACCEPT);
    assert_eq!(rejection.details["offered_to"]["id"], "c-1");
    desk.must(&owner(), offer(Some("bob")));

    let decision = desk.must(&stranger(), ACCEPT);
    assert_eq!(decision.outcome, Outcome::Transferred);
    assert_eq!(decision.locks, taken(2));
    let workflow = desk.workflow();
    assert_eq!(workflow.owner.id, stranger().actor);
    assert_eq!(workflow.assets[0].fence, 2);
    assert!(workflow.offer.is_none());
    // The old holder's next write says who has it; the new one goes on.
    let rejection = refused(&desk, &owner(), submit("shape", "round"));
    assert_eq!(rejection.code, ErrorCode::NotAllowed);
    assert_eq!(rejection.details["owner"], json!({"id": "bob-subject", "name": "bob"}));
    desk.must(&stranger(), submit("shape", "round"));
}

#[test]
fn nobody_takes_more_work_than_they_may_have() {
    let mut desk = paired();
    desk.must(&owner(), offer(None));
    desk.open_workflows = OPEN_WORKFLOWS_MAX;
    assert_eq!(code(&desk, &stranger(), ACCEPT), ErrorCode::LimitExceeded);
    assert_eq!(code(&desk, &supervisor(), relief()), ErrorCode::LimitExceeded);
    desk.open_workflows -= 1;
    desk.must(&stranger(), ACCEPT);
}

#[test]
fn without_a_rule_of_the_procedure_only_a_supervisor_relieves() {
    let mut desk = after(&Desk::running(), 1_000 * STALE_MS);
    let rejection = refused(&desk, &stranger(), relief());
    assert_eq!(rejection.code, ErrorCode::NotAllowed);
    assert!(!rejection.details.contains_key("free_at"));
    desk.must(&supervisor(), relief());
    assert_eq!(desk.workflow().owner.id, supervisor().actor);
}

#[test]
fn a_silent_holder_is_relieved_when_the_procedure_says() {
    let desk = paired();
    let rejection = refused(&after(&desk, STALE_MS - 1), &stranger(), relief());
    assert_eq!(rejection.code, ErrorCode::NotAllowed);
    assert_eq!(rejection.details["owner"]["name"], "ann");
    assert_eq!(rejection.details["free_at"], desk.now.plus_ms(STALE_MS).to_string());
    let mut late = after(&desk, STALE_MS);
    assert_eq!(code(&late, &stranger(), take_over(None)), ErrorCode::ReasonRequired);
    assert_eq!(late.must(&stranger(), relief()).locks, taken(2));
    // The new holder has just been active; so has one by whatever anybody commits on the work.
    assert_eq!(code(&late, &called("carl"), relief()), ErrorCode::NotAllowed);
    let mut active = after(&desk, STALE_MS - 1);
    active.must(&stranger(), report(Severity::Note, None));
    assert_eq!(code(&after(&active, STALE_MS - 1), &stranger(), relief()), ErrorCode::NotAllowed);
    after(&active, STALE_MS).must(&stranger(), relief());
}

#[test]
fn silence_does_not_count_while_others_or_time_are_waited_for() {
    // While the work is blocked, which only a person ends.
    let mut blocked = paired();
    blocked.must(&owner(), report(Severity::High, None));
    let mut blocked = after(&blocked, 100 * STALE_MS);
    assert_eq!(code(&blocked, &stranger(), relief()), ErrorCode::NotAllowed);
    let block = blocked.workflow().blocks[0].id.to_string();
    blocked.must(&supervisor(), resolve(&block, "go_on"));
    assert_eq!(code(&after(&blocked, STALE_MS - 1), &stranger(), relief()), ErrorCode::NotAllowed);
    after(&blocked, STALE_MS).must(&stranger(), relief());

    // And until a running wait is due.
    let resting = resting();
    let nearly = after(&resting, REST_MS + STALE_MS - 1);
    assert_eq!(code(&nearly, &stranger(), relief()), ErrorCode::NotAllowed);
    after(&resting, REST_MS + STALE_MS).must(&stranger(), relief());
    // A wait that is settled stops nothing.
    after(&to_sign(), STALE_MS).must(&stranger(), relief());
}

#[test]
fn a_lost_asset_is_taken_back_by_its_owner_while_it_is_free() {
    let mut desk = paired();
    desk.must(&supervisor(), release("U-7"));
    let rejection = refused(&desk, &owner(), submit("ready", "yes"));
    assert_eq!(rejection.code, ErrorCode::LockLost);
    assert!(!rejection.details.contains_key("holder"));
    // What was taken away is not handed on unsaid.
    desk.must(&owner(), offer(None));
    assert_eq!(code(&desk, &stranger(), ACCEPT), ErrorCode::LockLost);

    let mut back = desk.clone();
    assert_eq!(back.must(&owner(), relief()).locks, taken(2));
    back.must(&owner(), submit("ready", "yes"));
    assert_eq!(code(&back, &owner(), relief()), ErrorCode::InvalidTransition, "nothing is lost");

    desk.steal("U-7");
    let rejection = refused(&desk, &owner(), relief());
    assert_eq!(rejection.code, ErrorCode::AssetLocked);
    assert_eq!(rejection.details["holder"]["name"], "Oscar");
    let rejection = refused(&desk, &owner(), submit("ready", "yes"));
    assert_eq!(rejection.code, ErrorCode::LockLost);
    assert_eq!(rejection.details["holder"], json!({"id": "oscar", "name": "Oscar"}));
}
