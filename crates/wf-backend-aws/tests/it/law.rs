//! What we rely on in Step Functions, asked by the real client of the double and of emulators, with the state machine of
//! the product. What an emulator does otherwise is listed in [`crate::differences`].

use std::time::Duration;

use aws_sdk_sfn::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sfn::types::ExecutionStatus;
use serde_json::json;
use wf_testkit::clock::ManualClock;
use wf_testkit::step_functions::StepFunctions;

use crate::differences::{MINISTACK, MINISTACK_BY_CHANCE, MOTO};
use crate::dynamo::Dynamo;
use crate::fixture::endpoint;
use crate::site::{Site, same};
use crate::wire::Wire;

pub(crate) type Verdict = Result<(), String>;

/// The rules, by name.
const LAW: [&str; 14] = [
    "an_execution_registers_a_token",
    "an_execution_that_is_told_registers_another",
    "an_execution_that_is_told_the_end_succeeds",
    "an_execution_of_another_fence_ends_and_writes_nothing",
    "an_execution_of_a_closed_binding_ends_and_writes_nothing",
    "a_start_that_comes_again_is_the_same",
    "a_name_that_was_used_stays_taken",
    "of_those_who_answer_a_token_one_succeeds",
    "a_settled_token_has_timed_out",
    "a_text_that_is_no_token_is_invalid",
    "a_stopped_execution_is_aborted_and_says_why",
    "the_token_of_a_stopped_execution_is_dead",
    "a_time_out_marks_what_is_due",
    "names_are_checked",
];
/// More rules, which take state machines of their own or large inputs.
const MORE: [&str; 2] = ["inputs_are_checked", "a_deleted_state_machine_starts_nothing"];

async fn judge(rule: &str, site: &Site) -> Verdict {
    match rule {
        "an_execution_registers_a_token" => registers(site).await,
        "an_execution_that_is_told_registers_another" => told(site).await,
        "an_execution_that_is_told_the_end_succeeds" => ends(site).await,
        "an_execution_of_another_fence_ends_and_writes_nothing" => superseded(site).await,
        "an_execution_of_a_closed_binding_ends_and_writes_nothing" => closed(site).await,
        "a_start_that_comes_again_is_the_same" => again(site).await,
        "a_name_that_was_used_stays_taken" => taken(site).await,
        "of_those_who_answer_a_token_one_succeeds" => race(site).await,
        "a_settled_token_has_timed_out" => settled(site).await,
        "a_text_that_is_no_token_is_invalid" => garbage(site).await,
        "a_stopped_execution_is_aborted_and_says_why" => stopped(site).await,
        "the_token_of_a_stopped_execution_is_dead" => dead(site).await,
        "a_time_out_marks_what_is_due" => due(site).await,
        "names_are_checked" => names(site).await,
        "inputs_are_checked" => inputs(site).await,
        "a_deleted_state_machine_starts_nothing" => deleted(site).await,
        other => unreachable!("no rule {other}"),
    }
}

/// An error of the service by its name; `nothing` of a success.
fn code<T, E: ProvideErrorMetadata, R>(answer: &Result<T, SdkError<E, R>>) -> String {
    let Err(error) = answer else { return "nothing".to_owned() };
    let service = error.as_service_error();
    service.and_then(ProvideErrorMetadata::code).unwrap_or("no answer").to_owned()
}

async fn registers(site: &Site) -> Verdict {
    site.bind("w", 7).await;
    site.start("w", 7).await?;
    site.token("w", 1).await?;
    same("told", &site.number("w", "told_revision").await, &Some(0))?;
    let at = site.text("w", "registered_at").await.unwrap_or_default();
    let at = wf_core::models::Timestamp::parse(&at);
    at.map(|_| ()).map_err(|error| format!("registered_at: {error}"))
}

async fn told(site: &Site) -> Verdict {
    site.bind("w", 1).await;
    let arn = site.start("w", 1).await?;
    let first = site.token("w", 1).await?;
    site.tell(&first, "RUNNING", 5, 3_600).await?;
    let second = site.token("w", 2).await?;
    same("told", &site.number("w", "told_revision").await, &Some(5))?;
    same("status", &site.status(&arn).await, &ExecutionStatus::Running)?;
    if first == second { Err("the same token".to_owned()) } else { Ok(()) }
}

async fn ends(site: &Site) -> Verdict {
    site.bind("w", 1).await;
    let arn = site.start("w", 1).await?;
    let token = site.token("w", 1).await?;
    site.tell(&token, "COMPLETED", 5, 86_400).await?;
    site.becomes(&arn, ExecutionStatus::Succeeded).await
}

async fn superseded(site: &Site) -> Verdict {
    site.bind("w", 2).await;
    let before = site.item("w").await;
    let arn = site.start("w", 1).await?;
    site.becomes(&arn, ExecutionStatus::Succeeded).await?;
    same("the item", &site.item("w").await, &before)
}

async fn closed(site: &Site) -> Verdict {
    site.bind("w", 1).await;
    site.close("w").await;
    let before = site.item("w").await;
    let arn = site.start("w", 1).await?;
    site.becomes(&arn, ExecutionStatus::Succeeded).await?;
    same("the item", &site.item("w").await, &before)
}

async fn again(site: &Site) -> Verdict {
    site.bind("w", 1).await;
    let arn = site.start("w", 1).await?;
    site.token("w", 1).await?;
    same("the ARN", &site.start("w", 1).await?, &arn)?;
    same("registrations", &site.number("w", "registrations").await, &Some(1))
}

async fn taken(site: &Site) -> Verdict {
    site.bind("w", 1).await;
    let arn = site.start("w", 1).await?;
    let other = site.starts("w-1", &json!({ "other": 1 }).to_string()).await;
    same("another input", &code(&other), &"ExecutionAlreadyExists".to_owned())?;
    site.stop(&arn).await?;
    site.becomes(&arn, ExecutionStatus::Aborted).await?;
    let again = site.starts("w-1", &site.input("w", 1)).await;
    same("after the end", &code(&again), &"ExecutionAlreadyExists".to_owned())
}

async fn race(site: &Site) -> Verdict {
    site.bind("w", 1).await;
    site.start("w", 1).await?;
    let token = site.token("w", 1).await?;
    same("winners", &site.race(&token, 8).await, &1)?;
    site.token("w", 2).await.map(|_| ())
}

async fn settled(site: &Site) -> Verdict {
    site.bind("w", 1).await;
    site.start("w", 1).await?;
    let token = site.token("w", 1).await?;
    site.tell(&token, "RUNNING", 1, 3_600).await?;
    same("an error", &site.answers(&token).await, &"TaskTimedOut".to_owned())
}

async fn garbage(site: &Site) -> Verdict {
    same("an error", &site.answers("garbage").await, &"InvalidToken".to_owned())
}

async fn stopped(site: &Site) -> Verdict {
    site.bind("w", 1).await;
    let arn = site.start("w", 1).await?;
    site.token("w", 1).await?;
    site.stop(&arn).await?;
    site.becomes(&arn, ExecutionStatus::Aborted).await?;
    let seen = site.sfn.describe_execution().execution_arn(&arn).send().await;
    let seen = seen.map_err(|error| format!("{error:?}"))?;
    same("the cause", &seen.cause(), &Some("fence 2"))
}

async fn dead(site: &Site) -> Verdict {
    site.bind("w", 1).await;
    let arn = site.start("w", 1).await?;
    let token = site.token("w", 1).await?;
    site.stop(&arn).await?;
    site.becomes(&arn, ExecutionStatus::Aborted).await?;
    same("an error", &site.answers(&token).await, &"TaskTimedOut".to_owned())
}

async fn due(site: &Site) -> Verdict {
    site.bind("w", 1).await;
    let arn = site.start("w", 1).await?;
    let first = site.token("w", 1).await?;
    site.tell(&first, "RUNNING", 5, 1).await?;
    site.until("due", async || site.number("w", "due_revision").await == Some(5)).await?;
    let third = site.token("w", 3).await?;
    same("status", &site.status(&arn).await, &ExecutionStatus::Running)?;
    // It rests, and is told the end by the token that it registered afterwards.
    site.tell(&third, "COMPLETED", 6, 86_400).await?;
    site.becomes(&arn, ExecutionStatus::Succeeded).await
}

async fn names(site: &Site) -> Verdict {
    let long = site.starts(&"n".repeat(81), "{}").await;
    let wrong = site.starts("a:b", "{}").await;
    same("a long name", &code(&long), &"ValidationException".to_owned())?;
    same("a colon", &code(&wrong), &"InvalidName".to_owned())
}

async fn inputs(site: &Site) -> Verdict {
    let large = site.starts("large", &format!("\"{}\"", "x".repeat(300_000))).await;
    same("a large input", &code(&large), &"ValidationException".to_owned())
}

async fn deleted(site: &Site) -> Verdict {
    site.bind("w", 1).await;
    site.start("w", 1).await?;
    site.token("w", 1).await?;
    let gone = site.sfn.delete_state_machine().state_machine_arn(&site.machine).send().await;
    gone.map_err(|error| format!("{error:?}"))?;
    // The execution that waits keeps it from being gone.
    let next = site.starts("other-1", "{}").await;
    same("an error", &code(&next), &"StateMachineDeleting".to_owned())
}

/// Each rule at a site of its own: those that are broken, and how.
async fn broken(
    rules: &[&'static str],
    site: impl AsyncFn() -> Site,
) -> Vec<(&'static str, String)> {
    let mut broken = Vec::new();
    for rule in rules {
        if let Err(how) = judge(rule, &site().await).await {
            broken.push((*rule, how));
        }
    }
    broken
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn the_double_keeps_every_rule() {
    let site = async || {
        let plane = StepFunctions::new(ManualClock::default(), std::sync::Arc::new(Dynamo::new()));
        Site::new(&endpoint(), Some((&plane, Wire::with_states(&plane, true)))).await
    };
    let all = [&LAW[..], &MORE[..]].concat();
    assert_eq!(broken(&all, site).await, []);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn ministack_keeps_every_rule_but_those_that_are_listed() {
    let mut all = [&LAW[..], &MORE[..]].concat();
    all.retain(|rule| !MINISTACK_BY_CHANCE.iter().any(|(chance, _)| chance == rule));
    let broken = broken(&all, async || Site::new(&endpoint(), None).await).await;
    let found: Vec<_> = broken.iter().map(|(rule, _)| *rule).collect();
    let listed: Vec<_> =
        all.iter().copied().filter(|r| MINISTACK.iter().any(|(m, _)| m == r)).collect();
    assert_eq!(found, listed, "{broken:#?}");
    for (rule, instead) in MINISTACK {
        let how = broken.iter().find(|(broken, _)| *broken == rule).map(|(_, how)| how.as_str());
        assert!(how.is_some_and(|how| how.contains(instead)), "{rule}: {how:?}");
    }
}

#[tokio::test]
#[ignore = "needs WF_MOTO_ENDPOINT: cargo xtask aws"]
async fn moto_marks_what_is_due() {
    let endpoint = std::env::var("WF_MOTO_ENDPOINT");
    let endpoint = endpoint.expect("WF_MOTO_ENDPOINT: run the tests with `cargo xtask aws`");
    assert_eq!(broken(&MOTO, async || Site::new(&endpoint, None).await).await, []);
}

/// How long something may take at an emulator.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
