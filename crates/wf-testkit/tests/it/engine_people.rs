//! Several people on one work, through the engine: hand-over and the locks that go with it, repeats and lost answers,
//! names, signatures, and "where was I" from another device and after days.

use std::sync::Arc;

use serde_json::{Value, json};
use wf_core::engine::Reply;
use wf_core::engine::verify::verify;
use wf_core::locks::LockRow;
use wf_core::models::Principal;
use wf_core::policy::DomainPolicyPort;
use wf_core::ports::StorageBackendPort as _;
use wf_core::state_machine::{EventBody, Signature};
use wf_testkit::fault::{Call as Method, Fault};

use crate::engine_bench::{
    Bench, PlainCompiler, abroad, ann, bob, code, finish, keyed, operator, person, resolve, start,
    sue, with,
};
use crate::plain_policy::{PlainPolicy, REST_MS, STALE_MS};

async fn bench() -> Bench {
    let policies: Vec<Arc<dyn DomainPolicyPort>> =
        vec![Arc::new(PlainPolicy::new()), Arc::new(PlainPolicy::paired())];
    Bench::with(policies, Some(Arc::new(PlainCompiler)), true).await
}

const HOUR_MS: i64 = 60 * 60 * 1_000;

fn pass(bench: &Bench, ms: i64) {
    bench.clock.advance(u64::try_from(ms).unwrap());
}

/// Ann starts work for two on an asset.
async fn paired(bench: &Bench, asset: &str) -> String {
    let args = with(start(asset), "procedure_id", &json!("paired"));
    let reply = bench.call(&ann(), "start_workflow", args).await;
    assert_eq!(reply.outcome.as_str(), "started", "{}", reply.body);
    reply.body["workflow"]["id"].as_str().unwrap().to_owned()
}

/// Everybody has done something once, so that their names are known.
async fn known(bench: &Bench, people: &[Principal]) {
    for (n, by) in people.iter().enumerate() {
        bench.started(by, &format!("U-9{n}")).await;
    }
}

fn transfer(work: &str, action: &str) -> Value {
    json!({"workflow_id": work, "action": action})
}

fn offer(work: &str, to: &str) -> Value {
    with(transfer(work, "offer"), "to", &json!(to))
}

fn take_over(work: &str) -> Value {
    with(transfer(work, "take_over"), "reason_code", &json!("NOT_THERE"))
}

async fn hand(bench: &Bench, by: &Principal, args: Value) -> Reply {
    let reply = bench.call(by, "transfer_workflow", args).await;
    assert_eq!(reply.outcome.as_str(), "transferred", "{}", reply.body);
    reply
}

async fn lock(bench: &Bench, asset: &str) -> LockRow {
    let page = bench.model.list_locks(None, None, 100).await.unwrap();
    page.items.into_iter().find(|row| row.asset_id.as_str() == asset).unwrap()
}

async fn clean(bench: &Bench) {
    let report = verify(&bench.model, None, &mut |_| {}).await.unwrap();
    assert_eq!(report.findings, []);
}

#[tokio::test]
async fn work_is_handed_over_by_name_with_its_assets() {
    let bench = bench().await;
    known(&bench, &[bob()]).await;
    let work = paired(&bench, "U-7").await;
    bench.submit(&ann(), &work, "ready", "yes").await;
    let offered = hand(&bench, &ann(), offer(&work, "bob")).await;
    let said = "Paired work on unit 7 is offered to Bob; until it is taken, nothing changes.";
    assert!(offered.speech.starts_with(said), "{}", offered.speech);
    assert_eq!(offered.body["workflow"]["offer"]["to"], json!({"id": "sub|Bob", "name": "Bob"}));

    // Whoever it is for finds it; nobody else is told of it as theirs.
    let found = bench.find(&bob(), json!({"scope": "available"})).await;
    assert_eq!(found.body["candidates"][0]["workflow_id"], json!(work));
    assert_eq!(found.body["candidates"][0]["offered"], true);
    assert_eq!(found.body["candidates"][0]["owner"]["name"], "Ann");
    let said = "You can take over paired work on unit 7.";
    assert!(found.speech.starts_with(said), "{}", found.speech);
    let cleo = bench.find(&person("Dee", ann().scopes), json!({"scope": "available"})).await;
    assert!(!cleo.body.to_string().contains(&work));

    let taken = hand(&bench, &bob(), transfer(&work, "accept")).await;
    assert_eq!(taken.speech, "Paired work on unit 7 is yours now. Next: Please tell the amount.");
    let row = lock(&bench, "U-7").await;
    let holder = row.holder.unwrap();
    assert_eq!((row.fence, holder.owner.id, holder.workflow_id.as_str()), (2, bob().actor, &*work));
    // The old holder is told who has it, in words and in details; the new one goes on.
    let late = bench.submit(&ann(), &work, "amount", "25").await;
    assert_eq!(code(&late), "NOT_ALLOWED");
    assert_eq!(late.speech, "Bob is doing this work. Ask them to hand it over.");
    assert_eq!(late.body["error"]["details"]["owner"]["name"], "Bob");
    assert!(bench.submit(&bob(), &work, "amount", "25").await.error.is_none());
    let history = bench.status(&bob(), json!({"workflow_id": work, "detail": "full"})).await;
    let kinds: Vec<_> = history.body["history"].as_array().unwrap().iter().collect();
    let moved = kinds.iter().find(|e| e["kind"] == "ownership_transferred").unwrap();
    assert_eq!((&moved["by"]["name"], &moved["to"]["name"]), (&json!("Bob"), &json!("Bob")));
    clean(&bench).await;
}

#[tokio::test]
async fn a_name_of_several_is_asked_about_and_one_of_another_tenant_is_unknown() {
    let bench = bench().await;
    let (coe, dee) = (person("Cy Coe", ann().scopes), person("Cy Dee", ann().scopes));
    known(&bench, &[coe.clone(), dee, abroad(&person("Zoe", ann().scopes))]).await;
    let work = paired(&bench, "U-7").await;
    let which = bench.call(&ann(), "transfer_workflow", offer(&work, "cy")).await;
    assert_eq!(which.outcome.as_str(), "disambiguation");
    assert_eq!(which.speech, "2 people match. Which one: Cy Dee or Cy Coe?");
    assert_eq!(which.body["candidates_total"], 2);
    let to = which.body["candidates"][1]["to"].as_str().unwrap().to_owned();
    assert_eq!(to, "user:sub|Cy Coe");
    let offered = hand(&bench, &ann(), offer(&work, &to)).await;
    assert_eq!(offered.body["workflow"]["offer"]["to"]["name"], "Cy Coe");

    let unknown = bench.call(&ann(), "transfer_workflow", offer(&work, "Zoe")).await;
    assert_eq!(code(&unknown), "VALIDATION_ERROR");
    assert_eq!(unknown.body["error"]["details"]["field"], "to");
    // Who knows a new name is found by it, and no longer by the old one.
    let renamed = Principal { name: Some("Cyrus Coe".to_owned()), ..coe };
    bench.started(&renamed, "U-80").await;
    let offered = hand(&bench, &ann(), offer(&work, "cyrus")).await;
    assert_eq!(offered.body["workflow"]["offer"]["to"]["name"], "Cyrus Coe");
    let gone = hand(&bench, &ann(), offer(&work, "cy coe")).await;
    assert_eq!(gone.body["workflow"]["offer"]["to"]["name"], "Cyrus Coe", "it still begins so");
}

#[tokio::test]
async fn a_transfer_without_a_key_is_repeated_until_somebody_does_another() {
    let bench = bench().await;
    known(&bench, &[bob()]).await;
    let work = paired(&bench, "U-7").await;
    let first = hand(&bench, &ann(), offer(&work, "bob")).await;
    let again = hand(&bench, &ann(), offer(&work, "bob")).await;
    assert!(again.duplicate && !first.duplicate);
    let declined = hand(&bench, &bob(), transfer(&work, "decline")).await;
    assert_eq!(declined.speech, "Declined. Paired work on unit 7 stays with Ann.");
    assert!(hand(&bench, &bob(), transfer(&work, "decline")).await.duplicate);
    let anew = hand(&bench, &ann(), offer(&work, "bob")).await;
    assert!(!anew.duplicate, "it was declined in between");
    let withdrawn = hand(&bench, &ann(), transfer(&work, "withdraw")).await;
    assert!(withdrawn.speech.starts_with("Paired work on unit 7 is no longer offered."));
    assert!(hand(&bench, &ann(), transfer(&work, "withdraw")).await.duplicate);
    let none = bench.call(&bob(), "transfer_workflow", transfer(&work, "accept")).await;
    assert_eq!(code(&none), "INVALID_TRANSITION");
    assert_eq!(none.speech, "This work is not on offer. Ask for the status.");
    hand(&bench, &ann(), offer(&work, "bob")).await;
    hand(&bench, &bob(), transfer(&work, "accept")).await;
    assert!(hand(&bench, &bob(), transfer(&work, "accept")).await.duplicate);
    assert_eq!(lock(&bench, "U-7").await.fence, 2, "it changed hands once");
    clean(&bench).await;
}

#[tokio::test]
async fn an_answer_that_was_lost_moves_the_locks_once() {
    let bench = bench().await;
    let work = paired(&bench, "U-7").await;
    hand(&bench, &ann(), transfer(&work, "offer")).await;
    bench.store.script(Method::Commit, [Some(Fault::After), Some(Fault::Instead)]);
    let taken = hand(&bench, &bob(), keyed(transfer(&work, "accept"), "k-1")).await;
    assert!(!taken.duplicate);
    assert!(hand(&bench, &bob(), keyed(transfer(&work, "accept"), "k-1")).await.duplicate);
    assert_eq!(lock(&bench, "U-7").await.fence, 2);
    clean(&bench).await;
}

#[tokio::test]
async fn of_many_who_take_what_is_offered_to_anybody_one_gets_it() {
    let bench = bench().await;
    let work = paired(&bench, "U-7").await;
    hand(&bench, &ann(), transfer(&work, "offer")).await;
    let people: Vec<Principal> = (0..6).map(|n| person(&format!("P{n}"), ann().scopes)).collect();
    let taking =
        people.iter().map(|by| bench.call(by, "transfer_workflow", transfer(&work, "accept")));
    let mut winners = Vec::new();
    for (by, answer) in people.iter().zip(at_once(taking).await) {
        if answer.error.is_none() {
            winners.push(by.actor.clone());
        } else {
            assert_eq!(code(&answer), "INVALID_TRANSITION", "{}", answer.body);
        }
    }
    assert_eq!(winners, [bench.stored(&ann(), &work).await.owner.id]);
    assert_eq!(lock(&bench, "U-7").await.holder.unwrap().owner.id, winners[0]);
    clean(&bench).await;
}

/// Polls all in turn until each is over.
async fn at_once<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.map(|f| (Box::pin(f), None)).collect();
    std::future::poll_fn(|context| {
        for (future, output) in &mut running {
            if output.is_none()
                && let std::task::Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        let over = running.iter().all(|(_, output)| output.is_some());
        if over { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}

#[tokio::test]
async fn a_silent_holder_and_a_lost_asset_are_taken_over() {
    let bench = bench().await;
    let work = paired(&bench, "U-7").await;
    pass(&bench, STALE_MS - 1);
    let early = bench.call(&bob(), "transfer_workflow", take_over(&work)).await;
    assert_eq!(code(&early), "NOT_ALLOWED");
    assert_eq!(early.speech, "Ann is doing this work. Ask them, or take it over after 08:00.");
    pass(&bench, 1);
    let asked = bench.call(&bob(), "transfer_workflow", transfer(&work, "take_over")).await;
    assert_eq!(code(&asked), "REASON_REQUIRED");
    hand(&bench, &bob(), take_over(&work)).await;
    // The asset is taken away; its owner gets it back, under another fence than the one that was lost.
    let args = json!({"workflow_id": work, "asset_id": "U-7", "reason": "holder left"});
    bench.call(&operator(), "release_lock", args).await;
    let lost = bench.submit(&bob(), &work, "ready", "yes").await;
    assert_eq!(code(&lost), "LOCK_LOST");
    assert_eq!(lost.body["error"]["next"]["tool"], "transfer_workflow");
    hand(&bench, &bob(), take_over(&work)).await;
    assert_eq!(lock(&bench, "U-7").await.fence, 3);
    assert!(bench.submit(&bob(), &work, "ready", "yes").await.error.is_none());
    clean(&bench).await;
    // The old holder finds that it is somebody else's, and a supervisor takes it from anybody.
    assert_eq!(
        code(&bench.call(&ann(), "finish_workflow", finish(&work, "abandoned")).await),
        "NOT_ALLOWED"
    );
    hand(&bench, &sue(), take_over(&work)).await;
    assert_eq!(bench.stored(&sue(), &work).await.owner.id, sue().actor);
}

/// Does everything up to the signature.
async fn to_sign(bench: &Bench) -> String {
    let work = paired(bench, "U-7").await;
    bench.settle(&ann(), &work).await;
    let remark = json!({"workflow_id": work, "step_id": "remark"});
    bench.call(&ann(), "skip_step", remark).await;
    let early = bench.submit(&ann(), &work, "rest", "done").await;
    assert_eq!(code(&early), "TOO_EARLY");
    assert_eq!(early.body["error"]["after_ms"], REST_MS);
    assert_eq!(early.body["error"]["retry"], "same_call");
    pass(bench, REST_MS);
    assert!(bench.submit(&ann(), &work, "rest", "done").await.error.is_none());
    work
}

fn checker(by: Principal) -> Principal {
    Principal { roles: ["checker".to_owned()].into(), ..by }
}

#[tokio::test]
async fn a_second_person_signs_exactly_what_is_known() {
    let bench = bench().await;
    let work = to_sign(&bench).await;
    let own = bench.submit(&checker(ann()), &work, "approve", "done").await;
    assert_eq!(code(&own), "NOT_ALLOWED");
    let said = "That needs a second person, who has not worked on this. Ask a colleague.";
    assert_eq!(own.speech, said);
    assert_eq!(own.body["step"]["role"], "checker");
    assert_eq!(own.body["step"]["second_person"], true);
    let signed = bench.submit(&checker(bob()), &work, "approve", "done").await;
    assert_eq!(signed.outcome.as_str(), "recorded", "{}", signed.body);
    clean(&bench).await;

    // A signature for something else than was known is found by whoever verifies.
    for (seq, digest) in [(0, None), (1, Some("something else"))] {
        let mut commits = bench.store.commits();
        let last = commits.last_mut().unwrap();
        let mut previous = last.events[0].prev_hash.clone();
        for event in &mut last.events {
            if let EventBody::StepRecorded(recording) = &mut event.body
                && let Some(Signature { seq: signed, digest: of }) = &mut recording.signed
            {
                *signed -= seq;
                *of =
                    digest.map_or(of.clone(), |text| wf_core::models::Digest::of(text.as_bytes()));
            }
            event.prev_hash = previous;
            event.hash = wf_core::state_machine::chain::event_hash(event).unwrap();
            previous = event.hash.clone();
        }
        last.next.last_hash = previous;
        let damaged = wf_testkit::model::ModelStore::new();
        for commit in commits {
            damaged.commit(commit).await.unwrap();
        }
        let found = verify(&damaged, None, &mut |_| {}).await.unwrap().findings;
        let told = found.iter().any(|f| f.invariant == "I4" && f.message.contains("it signs"));
        assert_eq!(told, digest.is_some(), "{found:?}");
    }
}

/// At most two sentences; those of the procedure's own texts count as well.
fn brief(speech: &str) -> &str {
    let ends = speech.matches(['.', '?', '!']).count();
    assert!(ends <= 2, "{speech}");
    speech
}

#[tokio::test]
async fn where_was_i_from_another_device_and_after_days() {
    let bench = bench().await;
    let here = async |by: &Principal| brief(&bench.status(by, json!({})).await.speech).to_owned();
    assert_eq!(here(&ann()).await, "Nothing is open.");
    let work = paired(&bench, "U-7").await;
    let nothing = "Paired work on unit 7 is under way; nothing is recorded yet.";
    assert_eq!(here(&ann()).await, format!("{nothing} Next: Please tell the ready."));
    bench.submit(&ann(), &work, "ready", "yes").await;
    bench.submit(&ann(), &work, "amount", "25").await;
    let last = "Paired work on unit 7: amount was recorded as 25 marks";
    let next = "Next: Please tell the shape.";
    assert_eq!(here(&ann()).await, format!("{last} at 00:00. {next}"));
    // Another device is another replica, and another client of the same person.
    let other = bench.restarted(vec![Arc::new(PlainPolicy::new())], Some(Arc::new(PlainCompiler)));
    let other = other.await;
    let laptop = Principal { client_id: Some("laptop".to_owned()), ..ann() };
    pass(&bench, 26 * HOUR_MS);
    let said = other.status(&laptop, json!({})).await;
    assert_eq!(brief(&said.speech), format!("{last} yesterday at 00:00. {next}"));
    pass(&bench, 3 * 24 * HOUR_MS);
    assert_eq!(here(&ann()).await, format!("{last} on 1 January at 00:00. {next}"));

    // What stops it: for whoever waits, and for whoever decides.
    bench.submit(&ann(), &work, "shape", "torn").await;
    let recorded = "Shape was recorded as torn at 02:00.";
    assert_eq!(here(&ann()).await, format!("{recorded} Paired work on unit 7 is stopped."));
    let decide = bench.status(&sue(), json!({"workflow_id": work})).await;
    let asked = "Paired work on unit 7 is stopped. How shall it go on: go on, again or stop?";
    assert_eq!(brief(&decide.speech), asked);
    let block = decide.body["blocks"][0]["id"].as_str().unwrap().to_owned();
    bench.call(&sue(), "resolve_block", resolve(&work, &block, "go_on")).await;
    let remark = json!({"workflow_id": work, "step_id": "remark"});
    bench.call(&ann(), "skip_step", remark).await;
    // A withheld value is not told.
    bench.submit(&ann(), &work, "whisper", "CANARY").await;
    let waiting = here(&ann()).await;
    let said = "Paired work on unit 7: whisper was recorded at 02:00. Next: Please tell the rest.";
    assert_eq!(waiting, said);
    pass(&bench, REST_MS);
    bench.submit(&ann(), &work, "rest", "done").await;
    bench.submit(&checker(bob()), &work, "approve", "done").await;
    let done = here(&ann()).await;
    assert!(done.ends_with("Everything is done; finish as good or bad?"), "{done}");
    // Without its asset, what is asked next would be refused.
    let args = json!({"workflow_id": work, "asset_id": "U-7", "reason": "needed"});
    bench.call(&operator(), "release_lock", args).await;
    let lost = here(&ann()).await;
    let said = "This work no longer holds unit 7; take it over again, or abandon it.";
    assert!(lost.ends_with(said), "{lost}");
    hand(&bench, &ann(), take_over(&work)).await;
    bench.call(&ann(), "finish_workflow", finish(&work, "good")).await;
    pass(&bench, 23 * HOUR_MS);
    let over = "Nothing is open. Paired work on unit 7 was finished as good yesterday at 02:10.";
    assert_eq!(here(&ann()).await, over);
}
