//! What a question is made of and what becomes of an answer; whole calls are in `wf-testkit` and `wf-mcp-http`.

use serde_json::json;

use super::*;
use crate::models::{ResultId, StepId};
use crate::state_machine::command::SubmittedValue;

fn reply(outcome: Outcome, body: Value) -> Reply {
    Reply { outcome, error: None, duplicate: false, speech: "Well?".to_owned(), body, text: None }
}

fn claims(question: Asked, ms: i64) -> Claims {
    Claims::new(question, format!("n{ms}"), Timestamp::from_ms(ms))
}

fn answered(question: Asked) -> Answered {
    Answered { claims: claims(question, 0) }
}

fn read_back() -> Answered {
    answered(Asked::ReadBack { token: "ct1.1.AA".to_owned() })
}

fn which(ids: &[&str]) -> Answered {
    answered(Asked::Which { ids: ids.iter().map(|id| (*id).to_owned()).collect() })
}

fn call(key: Option<&str>, request: Request) -> Call {
    Call {
        operation: "submit_step",
        arguments: Map::new(),
        key: key.map(|key| IdempotencyKey::parse(key).expect("a key")),
        request,
        meta: CallMeta::default(),
    }
}

fn submit() -> Request {
    Request::SubmitStep {
        workflow_id: WorkflowId::parse("w-1").expect("an id"),
        step_id: StepId::parse("s-1").expect("an id"),
        value: SubmittedValue { value: Some("7".to_owned()), ..SubmittedValue::default() },
    }
}

#[test]
fn only_questions_are_asked_and_only_with_all_there_is_to_choose_from() {
    let confirm = json!({"confirm": {"token": "ct1.1.AA", "read_back": "7, right?"}});
    let (question, options) = asked(&reply(Outcome::NeedsConfirmation, confirm)).expect("asks");
    assert_eq!((question, options), (read_back().claims.question, Vec::new()));

    let two = json!({"candidates": [
        {"workflow_id": "w-1", "label": "One"}, {"workflow_id": "w-2", "label": "Two"},
    ]});
    let (question, options) = asked(&reply(Outcome::Disambiguation, two)).expect("asks");
    assert_eq!(question, which(&["w-1", "w-2"]).claims.question);
    assert_eq!(options[1], Choice { id: "w-2".to_owned(), label: "Two".to_owned() });

    let people = json!({"candidates": [{"to": "user:a", "label": "Ann"}]});
    let (question, _) = asked(&reply(Outcome::Disambiguation, people)).expect("asks");
    assert_eq!(question, which(&["user:a"]).claims.question);

    let odd = json!({"candidates": [{"workflow_id": "w-1", "label": "One"}, {"label": "Two"}]});
    assert_eq!(asked(&reply(Outcome::Disambiguation, odd)), None);
    assert_eq!(asked(&reply(Outcome::Disambiguation, json!({"candidates": []}))), None);
    assert_eq!(asked(&reply(Outcome::NeedsConfirmation, json!({}))), None);
    let list = json!({"candidates": [{"workflow_id": "w-1", "label": "One"}]});
    assert_eq!(asked(&reply(Outcome::List, list)), None, "a list is an answer");
}

#[test]
fn equal_names_are_told_apart() {
    let option = |id: &str, label: &str| Choice { id: id.to_owned(), label: label.to_owned() };
    let apart = told_apart(vec![option("1", "Ann"), option("2", "Bo"), option("3", "Ann")]);
    let labels: Vec<&str> = apart.iter().map(|o| o.label.as_str()).collect();
    assert_eq!(labels, ["Ann (1)", "Bo", "Ann (3)"]);
}

#[test]
fn a_yes_brings_the_token_of_the_read_back_and_says_how() {
    let consent = read_back().yes().expect("a read-back");
    let Request::SubmitStep { value, .. } = call(None, submit()).with(&consent).request else {
        unreachable!("the same request")
    };
    assert_eq!(value.confirm_token.as_deref(), Some("ct1.1.AA"));
    assert_eq!(value.confirmed_by, Some(ConfirmedBy::Elicitation));
    assert_eq!(value.value.as_deref(), Some("7"));
    let finish = Request::Finish {
        workflow_id: WorkflowId::parse("w-1").expect("an id"),
        result: ResultId::abandoned(),
        note: None,
        confirm_token: None,
        confirmed_by: None,
    };
    let finish = call(None, finish).with(&consent).request;
    let confirmed = Some(ConfirmedBy::Elicitation);
    assert!(
        matches!(finish, Request::Finish { confirm_token: Some(_), confirmed_by, .. } if confirmed_by == confirmed)
    );
}

#[test]
fn a_call_without_a_key_is_done_under_the_nonce_and_one_with_a_key_under_its_own() {
    let consent = read_back().yes().expect("a read-back");
    let key = |sent| call(sent, submit()).with(&consent).key.expect("a key").as_str().to_owned();
    assert_eq!(key(None), "rs_n0");
    assert_eq!(key(Some("k-1")), "k-1");
}

#[test]
fn only_what_was_offered_can_be_chosen() {
    let which = which(&["w-1", "w-2"]);
    assert_eq!(which.chosen("w-3"), None);
    assert_eq!(which.yes(), None);
    assert_eq!(read_back().chosen("w-1"), None);
    let consent = which.chosen("w-2").expect("offered");
    let asked = GetStatus { asset_id: Some("a".to_owned()), ..GetStatus::default() };
    let asked = asked.with(&consent);
    assert_eq!(asked.workflow_id.as_ref().map(WorkflowId::as_str), Some("w-2"));
    assert_eq!(asked.asset_id, None);
    let offer = Request::Transfer {
        workflow_id: WorkflowId::parse("w-1").expect("an id"),
        transfer: Transfer::Offer { to: Some("ann".to_owned()) },
    };
    let Request::Transfer { transfer, .. } = call(None, offer).with(&consent).request else {
        unreachable!("the same request")
    };
    assert_eq!(transfer, Transfer::Offer { to: Some("w-2".to_owned()) });
}

#[test]
fn spent_states_are_remembered_until_they_expire_and_not_without_bound() {
    let spent = Spent::default();
    let of = |ms| claims(Asked::Which { ids: Vec::new() }, ms);
    spent.add(&of(0), Timestamp::from_ms(0));
    assert!(spent.holds(&of(0)) && !spent.holds(&of(1)));
    spent.add(&of(1), of(0).expires_at);
    assert!(!spent.holds(&of(0)), "expired, and forgotten");
    for ms in 2..i64::try_from(SPENT_STATES_MAX).expect("small") + 2 {
        spent.add(&of(ms), Timestamp::from_ms(0));
    }
    assert_eq!(spent.0.lock().expect("whole").len(), SPENT_STATES_MAX);
    assert!(!spent.holds(&of(1)) && spent.holds(&of(2)), "the oldest went");
}
