//! Erasures: what goes, what stays whole, and what a repeat of an erased call is answered.

use serde_json::json;
use wf_core::engine::Reply;
use wf_core::engine::erase::{EraseError, EraseReport, Wanted, erase, erasure_of};
use wf_core::engine::evidence::collect;
use wf_core::engine::verify::verify;
use wf_core::idempotency::Fingerprint;
use wf_core::models::{Actor, StepId, Timestamp, Workflow};
use wf_core::ports::StorageBackendPort as _;
use wf_core::state_machine::{Erased, Event};

use crate::engine_bench::{Bench, ann, code, correct, finish, keyed, start, submit, with};

/// A workflow with a sensitive input and two values of the sensitive step, each with `CANARY` in it.
async fn whispered(bench: &Bench) -> String {
    let args = with(start("U-7"), "inputs", &json!({"order": "A-1", "hush": "CANARY input"}));
    let begun = bench.call(&ann(), "start_workflow", keyed(args, "k-start")).await;
    let work = begun.body["workflow"]["id"].as_str().unwrap().to_owned();
    for (step, value) in [("ready", "yes"), ("amount", "25"), ("shape", "flat")] {
        bench.submit(&ann(), &work, step, value).await;
    }
    assert!(whisper(bench, &work, "CANARY one", "k-whisper").await.error.is_none());
    let args = keyed(correct(&work, "whisper", "CANARY two"), "k-correct");
    let corrected = bench.call(&ann(), "correct_step", args).await;
    assert!(corrected.error.is_none(), "{}", corrected.body);
    work
}

async fn whisper(bench: &Bench, work: &str, value: &str, key: &str) -> Reply {
    bench.call(&ann(), "submit_step", keyed(submit(work, "whisper", value), key)).await
}

async fn events(bench: &Bench, workflow: &Workflow) -> Vec<Event> {
    bench.model.events(&workflow.tenant, &workflow.id, 0, 200).await.unwrap()
}

fn wanted<'a>(workflow: &'a Workflow, step: Option<&'a StepId>) -> Wanted<'a> {
    let by = Actor::Cli("root".to_owned());
    let erased = Erased { at: Timestamp::from_ms(1), by, reason: "asked for".to_owned() };
    Wanted { workflow, step, erased, check_only: false }
}

fn seqs(report: &EraseReport) -> (Vec<u64>, Vec<u64>) {
    let of = |places: &[wf_core::engine::erase::Place]| places.iter().map(|p| p.seq).collect();
    (of(&report.erased), of(&report.already))
}

async fn is_whole(bench: &Bench) {
    let found = verify(&bench.model, None, &mut |_| {}).await.unwrap();
    assert_eq!(found.findings, []);
}

#[tokio::test]
async fn an_erasure_leaves_a_whole_history_without_the_values() {
    let bench = Bench::new().await;
    let work = whispered(&bench).await;
    let open = bench.stored(&ann(), &work).await;
    let before = collect(&bench.model, open.clone(), "00ff", Timestamp::from_ms(2)).await.unwrap();
    let exported = before.to_text().unwrap();
    assert!(exported.contains("CANARY input") && exported.contains("CANARY two"));

    let looked = Wanted { check_only: true, ..wanted(&open, None) };
    let (would, _) = seqs(&erase(&bench.model, &looked).await.unwrap());
    assert_eq!(would.len(), 3);
    assert_eq!(events(&bench, &open).await, before.events, "only looked");

    let whisper = StepId::parse("whisper").unwrap();
    let one = erase(&bench.model, &wanted(&open, Some(&whisper))).await.unwrap();
    assert_eq!(seqs(&one), (would[1..].to_vec(), Vec::new()), "the step's");
    // The end makes no difference, and what is erased is not erased again.
    bench.call(&ann(), "finish_workflow", finish(&work, "abandoned")).await;
    let ended = bench.stored(&ann(), &work).await;
    let all = erase(&bench.model, &wanted(&ended, None)).await.unwrap();
    assert_eq!(seqs(&all), (would[..1].to_vec(), would[1..].to_vec()), "the rest");

    let history = events(&bench, &ended).await;
    let said = history.iter().filter_map(erasure_of).map(|erased| erased.reason.as_str());
    assert_eq!(said.collect::<Vec<_>>(), ["asked for"; 3]);
    is_whole(&bench).await;
    let after = collect(&bench.model, ended, "00ff", Timestamp::from_ms(3)).await.unwrap();
    let text = after.to_text().unwrap();
    assert!(!text.contains("CANARY"), "{text}");
    for document in [&exported, &text] {
        wf_core::evidence::verify(document.as_bytes()).unwrap();
    }
}

/// Whoever has the whole store and knows what the values may be finds none by trying: not even the fingerprints tell.
#[tokio::test]
async fn no_fingerprint_of_a_sensitive_value_is_kept_without_its_salt() {
    let bench = Bench::new().await;
    let work = whispered(&bench).await;
    let workflow = bench.stored(&ann(), &work).await;
    let arguments = submit(&work, "whisper", "CANARY one");
    let guess = Fingerprint::of("submit_step", arguments.as_object().unwrap(), &[]).unwrap();
    let history = events(&bench, &workflow).await;
    let recorded = history.iter().find(|e| !e.sensitive.is_empty() && e.seq > 1).unwrap();
    let salt = recorded.sensitive[0].salt.clone();
    assert_eq!(recorded.cause.fingerprint, guess.blinded(&salt));
    let row = bench.row(&ann(), "k-whisper").await.unwrap();
    assert_eq!(row.entry.fingerprint, recorded.cause.fingerprint);

    erase(&bench.model, &wanted(&workflow, None)).await.unwrap();
    let written = format!(
        "{}{}{row:?}",
        json!(bench.stored(&ann(), &work).await),
        json!(events(&bench, &workflow).await)
    );
    assert!(!written.contains(&guess.to_string()) && !written.contains(&salt), "{written}");
}

#[tokio::test]
async fn a_repeat_is_known_by_the_salt_until_it_is_erased() {
    let bench = Bench::new().await;
    let work = whispered(&bench).await;
    let commits = bench.commits();
    let again = whisper(&bench, &work, "CANARY one", "k-whisper").await;
    assert!(again.duplicate, "{}", again.body);
    let other = whisper(&bench, &work, "CANARY three", "k-whisper").await;
    assert_eq!(code(&other), "IDEMPOTENCY_CONFLICT");
    assert_eq!(other.body["error"]["details"]["differs"], json!(["value"]));
    // Without a key: the newest value of the step, and no other.
    let keyless = |value: &str| correct(&work, "whisper", value);
    assert!(bench.call(&ann(), "correct_step", keyless("CANARY two")).await.duplicate);
    let args = with(start("U-7"), "inputs", &json!({"order": "A-1", "hush": "CANARY input"}));
    let twin = bench.call(&ann(), "start_workflow", args.clone()).await;
    assert_eq!(twin.outcome.as_str(), "joined", "{}", twin.body);
    // Another process knows as much.
    let replica = bench.replica().await;
    assert!(whisper(&replica, &work, "CANARY one", "k-whisper").await.duplicate);
    assert_eq!(bench.commits(), commits);

    let workflow = bench.stored(&ann(), &work).await;
    erase(&bench.model, &wanted(&workflow, None)).await.unwrap();
    let late = whisper(&bench, &work, "CANARY one", "k-whisper").await;
    assert_eq!(code(&late), "IDEMPOTENCY_CONFLICT", "nobody can tell any more what it was");
    let details = &late.body["error"]["details"];
    assert_eq!((&details["erased"], &details["differs"]), (&json!(true), &json!([])));
    assert_eq!(code(&bench.call(&ann(), "start_workflow", args).await), "ASSET_LOCKED");
    assert_eq!(bench.commits(), commits, "and nothing happened twice");
}

#[tokio::test]
async fn an_erasure_needs_a_reason() {
    let bench = Bench::new().await;
    let work = whispered(&bench).await;
    let workflow = bench.stored(&ann(), &work).await;
    for reason in [String::new(), "  ".to_owned(), "x".repeat(1_001)] {
        let mut wanted = wanted(&workflow, None);
        wanted.erased.reason = reason;
        let refused = erase(&bench.model, &wanted).await;
        assert!(matches!(refused, Err(EraseError::Reason)), "{refused:?}");
    }
    assert!(events(&bench, &workflow).await.iter().all(|event| erasure_of(event).is_none()));
}
