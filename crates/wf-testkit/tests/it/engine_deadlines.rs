//! Deadlines through the engine: fired once, in order, whoever fires them and whatever fails; acknowledged by a link.

use std::sync::Arc;

use serde_json::{Value, json};
use wf_core::engine::{AckRefusal, AckStand, Call, CallMeta, Fired, Request};
use wf_core::limits::{ACK_TOKEN_MS, LEASE_MS};
use wf_core::models::WorkflowId;
use wf_core::policy::DomainPolicyPort;
use wf_core::ports::{
    Claim, ClockPort as _, LeaseToken, OutboxQuery, OutboxRow, StorageBackendPort as _,
};
use wf_core::state_machine::ack_token::AckClaims;
use wf_core::state_machine::{Event, EventBody};
use wf_testkit::fault::{Call as Method, Fault};

use crate::engine_bench::{Bench, ann, reader, start, submit, sue, with};
use crate::plain_policy::{MINUTE_MS, PlainPolicy};

const MINUTE: u64 = MINUTE_MS.unsigned_abs();
const LEASE: u64 = LEASE_MS.unsigned_abs();

fn timed() -> Vec<Arc<dyn DomainPolicyPort>> {
    vec![Arc::new(PlainPolicy::timed())]
}

async fn bench() -> Bench {
    Bench::with(timed(), None, true).await
}

async fn started(bench: &Bench, asset: &str) -> String {
    let args = with(start(asset), "procedure_id", &json!("timed"));
    let reply = bench.call(&ann(), "start_workflow", args).await;
    assert_eq!(reply.outcome.as_str(), "started", "{}", reply.body);
    reply.body["workflow"]["id"].as_str().unwrap().to_owned()
}

async fn blocked(bench: &Bench, asset: &str) -> (String, String) {
    let work = started(bench, asset).await;
    bench.submit(&ann(), &work, "ready", "yes").await;
    let reply = bench.confirmed(&ann(), "submit_step", submit(&work, "amount", "70")).await;
    (work, reply.body["blocks"][0]["id"].as_str().unwrap().to_owned())
}

async fn events(bench: &Bench, work: &str) -> Vec<Event> {
    let id = work.parse().unwrap();
    bench.model.events(&ann().tenant, &id, 0, 100).await.unwrap()
}

/// Ids of the deadlines that passed, in order.
async fn passed(bench: &Bench, work: &str) -> Vec<String> {
    let of = |event: Event| {
        if let EventBody::DeadlinePassed { deadline_id, .. } = event.body {
            Some(deadline_id)
        } else {
            None
        }
    };
    events(bench, work).await.into_iter().filter_map(of).collect()
}

fn settled(fired: Fired) -> (usize, usize) {
    (fired.settled, fired.kept)
}

/// The link in the newest message to `recipient`.
async fn link(bench: &Bench, recipient: &str) -> String {
    let all = OutboxQuery { limit: 100, ..OutboxQuery::default() };
    let rows = bench.model.list_outbox(&all).await.unwrap().items;
    let to = |row: &&OutboxRow| row.message.recipient == recipient;
    let newest = rows.iter().filter(to).max_by_key(|row| row.message.seq).unwrap();
    newest.message.data["ack_url"].as_str().unwrap().to_owned()
}

fn token(link: &str) -> &str {
    link.strip_prefix("https://wf.example.com/ack/").unwrap()
}

#[tokio::test]
async fn what_was_due_while_nobody_served_fires_once_and_in_order() {
    let bench = bench().await;
    let (one, _) = blocked(&bench, "U-7").await;
    let two = started(&bench, "U-8").await;
    assert_eq!(settled(bench.engine.fire_due(64).await.unwrap()), (0, 0), "nothing is due");
    let next = bench.engine.next_due().await.unwrap().at;
    assert_eq!(next, Some(bench.clock.now().plus_ms(15 * MINUTE_MS)), "the response to the block");

    bench.clock.advance(7 * 60 * MINUTE);
    let server = bench.restarted(timed(), None).await;
    assert_eq!(settled(server.engine.fire_due(64).await.unwrap()), (5, 0));
    let of = |work: &str, rest: &[&str]| -> Vec<String> {
        rest.iter().map(|rest| format!("{work}/{rest}")).collect()
    };
    assert_eq!(passed(&bench, &one).await, of(&one, &["5/1", "1/1", "1/2"]));
    assert_eq!(passed(&bench, &two).await, of(&two, &["1/1", "1/2"]));
    assert_eq!(settled(server.engine.fire_due(64).await.unwrap()), (0, 0), "once");
    // The next one who was told has the whole time from now on.
    let next = server.engine.next_due().await.unwrap().at;
    assert_eq!(next, Some(bench.clock.now().plus_ms(30 * MINUTE_MS)));
    let status = bench.status(&reader(), json!({"workflow_id": one})).await;
    assert_eq!(status.body["blocks"][0]["escalated_to"], "chief");
    assert_eq!(status.body["blocks"][0]["deadline"], json!(next));
    assert!(status.speech.contains("the chief was told at"), "{}", status.speech);
}

#[tokio::test]
async fn a_server_that_died_with_the_lease_delays_and_loses_nothing() {
    let bench = bench().await;
    let work = started(&bench, "U-7").await;
    bench.clock.advance(7 * 60 * MINUTE);
    let claim = Claim {
        now: bench.clock.now(),
        lease_ms: LEASE_MS,
        token: LeaseToken("died".to_owned()),
        limit: 1,
    };
    assert_eq!(bench.model.claim_deadlines(&claim).await.unwrap().len(), 1);
    let other = bench.restarted(timed(), None).await;
    assert_eq!(settled(other.engine.fire_due(64).await.unwrap()), (0, 0), "none overtakes");
    assert_eq!(other.engine.next_due().await.unwrap().at, Some(claim.now.plus_ms(LEASE_MS)));
    bench.clock.advance(LEASE);
    assert_eq!(settled(other.engine.fire_due(64).await.unwrap()), (2, 0));
    assert_eq!(passed(&bench, &work).await, [format!("{work}/1/1"), format!("{work}/1/2")]);
}

#[tokio::test]
async fn a_store_that_fails_keeps_the_deadline_and_one_that_lost_the_answer_fires_once() {
    let bench = bench().await;
    let work = started(&bench, "U-7").await;
    bench.clock.advance(5 * 60 * MINUTE);
    bench.store.fail_next(Method::Commit, Fault::Before);
    assert_eq!(settled(bench.engine.fire_due(64).await.unwrap()), (0, 1));
    assert_eq!(passed(&bench, &work).await.len(), 0);
    assert_eq!(settled(bench.engine.fire_due(64).await.unwrap()), (0, 0), "under its lease");

    bench.clock.advance(LEASE);
    bench.store.fail_next(Method::Commit, Fault::After);
    assert_eq!(settled(bench.engine.fire_due(64).await.unwrap()), (1, 0));
    bench.clock.advance(LEASE);
    assert_eq!(settled(bench.engine.fire_due(64).await.unwrap()), (0, 0));
    assert_eq!(passed(&bench, &work).await, [format!("{work}/1/1")]);
}

#[tokio::test]
async fn one_that_stays_holds_back_those_behind_it_and_no_other_workflow() {
    let bench = bench().await;
    let one = started(&bench, "U-7").await;
    bench.clock.advance(1);
    let two = started(&bench, "U-8").await;
    bench.clock.advance(7 * 60 * MINUTE);
    bench.store.fail_next(Method::Commit, Fault::Before);
    assert_eq!(settled(bench.engine.fire_due(64).await.unwrap()), (2, 2));
    let (first, second) = (passed(&bench, &one).await, passed(&bench, &two).await);
    assert_eq!(first.len() + second.len(), 2, "{first:?} {second:?}");
    assert!(first.is_empty() || second.is_empty(), "{first:?} {second:?}");
    bench.clock.advance(LEASE);
    assert_eq!(settled(bench.engine.fire_due(64).await.unwrap()), (2, 0));
    assert_eq!(passed(&bench, &one).await, [format!("{one}/1/1"), format!("{one}/1/2")]);
    assert_eq!(passed(&bench, &two).await, [format!("{two}/1/1"), format!("{two}/1/2")]);
}

#[tokio::test]
async fn a_deadline_waits_for_a_build_that_knows_its_definition() {
    let bench = bench().await;
    let work = started(&bench, "U-7").await;
    bench.clock.advance(5 * 60 * MINUTE);
    let older = bench.restarted(vec![Arc::new(PlainPolicy::bare())], None).await;
    assert_eq!(settled(older.engine.fire_due(64).await.unwrap()), (0, 1));
    bench.clock.advance(LEASE);
    assert_eq!(settled(bench.engine.fire_due(64).await.unwrap()), (1, 0));
    assert_eq!(passed(&bench, &work).await.len(), 1);
}

#[tokio::test]
async fn a_clock_that_went_back_fires_nothing_early() {
    let bench = bench().await;
    let work = started(&bench, "U-7").await;
    bench.clock.set(bench.clock.now().plus_ms(-60 * MINUTE_MS));
    bench.clock.advance(4 * 60 * MINUTE);
    assert_eq!(settled(bench.engine.fire_due(64).await.unwrap()), (0, 0), "an hour is left");
    bench.clock.advance(60 * MINUTE);
    assert_eq!(settled(bench.engine.fire_due(64).await.unwrap()), (1, 0));
    assert_eq!(passed(&bench, &work).await, [format!("{work}/1/1")]);
}

#[tokio::test]
async fn a_link_shows_and_only_acknowledging_acts() {
    let bench = bench().await;
    let (work, _) = blocked(&bench, "U-7").await;
    let link = link(&bench, "duty").await;
    let token = token(&link);
    let before = events(&bench, &work).await.len();
    for _ in 0..3 {
        let notice = bench.engine.ack_notice(token).await.unwrap();
        assert_eq!(notice.stand, AckStand::Waiting);
        assert_eq!(
            (notice.recipient.as_str(), notice.label.as_str()),
            ("duty", "timed work on unit 7")
        );
    }
    assert_eq!(events(&bench, &work).await.len(), before, "looking changes nothing");

    bench.clock.advance(2 * MINUTE);
    for _ in 0..3 {
        let notice = bench.engine.acknowledge(token).await.unwrap();
        assert!(matches!(notice.stand, AckStand::Acknowledged { by, .. } if by == "duty"));
    }
    let all = events(&bench, &work).await;
    assert_eq!(all.len(), before + 1, "once");
    assert_eq!(all[before].body.kind(), "block_acknowledged");
    let status = bench.status(&reader(), json!({"workflow_id": work})).await;
    let shown = &status.body["blocks"][0];
    assert_eq!(shown["acknowledged_by"]["name"], "duty");
    assert_eq!(shown["acknowledged_at"], json!(all[before].at));
    assert_eq!(shown["deadline"], Value::Null, "nobody is waited for");
    assert!(status.speech.contains("the duty acknowledged it at"), "{}", status.speech);

    bench.clock.advance(60 * MINUTE);
    assert_eq!(settled(bench.engine.fire_due(64).await.unwrap()), (0, 0), "nobody else is told");
}

#[tokio::test]
async fn a_link_acts_for_its_own_block_only_and_not_for_ever() {
    let bench = bench().await;
    let (work, block) = blocked(&bench, "U-7").await;
    let first = link(&bench, "duty").await;
    bench.clock.advance(15 * MINUTE);
    assert_eq!(settled(bench.engine.fire_due(64).await.unwrap()), (1, 0));
    let second = link(&bench, "chief").await;
    assert_ne!(first, second);
    assert!(matches!(
        bench.engine.acknowledge(token(&second)).await.unwrap().stand,
        AckStand::Acknowledged { by, .. } if by == "chief"
    ));
    // Late, by the first: the answer tells who did.
    assert!(matches!(
        bench.engine.acknowledge(token(&first)).await.unwrap().stand,
        AckStand::Acknowledged { by, .. } if by == "chief"
    ));
    let decision = json!({
        "workflow_id": work, "block_id": block, "decision": "go_on", "comment": "seen",
    });
    let resolved = bench.call(&sue(), "resolve_block", decision).await;
    assert!(resolved.error.is_none(), "{}", resolved.body);
    assert_eq!(bench.engine.acknowledge(token(&first)).await.unwrap().stand, AckStand::Over);

    bench.clock.advance(ACK_TOKEN_MS.unsigned_abs());
    assert_eq!(bench.engine.ack_notice(token(&first)).await, Err(AckRefusal::Unknown), "expired");
    let forged = token(&first).replace("at1.", "at1.A");
    assert_eq!(bench.engine.acknowledge(&forged).await, Err(AckRefusal::Unknown));
}

/// The id of a block is a place in a history. After a restore another block may have it: the link to the one that is gone
/// is older than that block.
#[tokio::test]
async fn a_link_of_a_time_that_a_restore_took_away_acknowledges_no_other_block() {
    let bench = bench().await;
    let (work, block) = blocked(&bench, "U-7").await;
    let told = link(&bench, "duty").await;
    let since = events(&bench, &work).await.last().unwrap().at;
    let keys = bench.model.identity().await.unwrap().secrets;
    let (tenant, work) = (ann().tenant, work.parse::<WorkflowId>().unwrap());
    let signed = |at| {
        let claims = AckClaims::new((&tenant, &work), &block.parse().unwrap(), "duty", (6, at));
        claims.sign(&keys).unwrap()
    };
    let lost = signed(since.plus_ms(-1));
    assert_eq!(bench.engine.ack_notice(&lost).await, Err(AckRefusal::Unknown));
    assert_eq!(bench.engine.acknowledge(&lost).await, Err(AckRefusal::Unknown));
    assert_eq!(bench.engine.ack_notice(&signed(since)).await.unwrap().stand, AckStand::Waiting);
    let notice = bench.engine.acknowledge(token(&told)).await.unwrap();
    assert!(matches!(notice.stand, AckStand::Acknowledged { .. }));
}

#[tokio::test]
async fn an_acknowledgement_that_the_store_did_not_take_can_be_sent_again() {
    let bench = bench().await;
    let (work, _) = blocked(&bench, "U-7").await;
    let link = link(&bench, "duty").await;
    bench.store.fail_next(Method::Commit, Fault::Before);
    assert_eq!(bench.engine.acknowledge(token(&link)).await, Err(AckRefusal::Unavailable));
    bench.store.fail_next(Method::Commit, Fault::After);
    assert!(bench.engine.acknowledge(token(&link)).await.is_ok());
    let kinds: Vec<_> = events(&bench, &work).await.iter().map(|e| e.body.kind()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "block_acknowledged").count(), 1);
}

#[tokio::test]
async fn a_person_says_neither_that_a_deadline_is_due_nor_that_they_were_told() {
    let bench = bench().await;
    let (work, block) = blocked(&bench, "U-7").await;
    let (workflow_id, block_id) = (work.parse::<WorkflowId>().unwrap(), block.parse().unwrap());
    let deadline_id = format!("{work}/5/1");
    for request in [
        Request::AcknowledgeBlock { workflow_id: workflow_id.clone(), block_id },
        Request::DeadlineReached { workflow_id, deadline_id },
    ] {
        let call = Call {
            operation: "test",
            arguments: serde_json::Map::new(),
            key: None,
            request,
            meta: CallMeta::default(),
        };
        let reply = bench.engine.execute(&ann(), &call).await;
        assert_eq!(
            reply.error.map(wf_core::errors::ErrorCode::as_str),
            Some("NOT_ALLOWED"),
            "{call:?}"
        );
    }
}
