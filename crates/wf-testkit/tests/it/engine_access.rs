//! Who may do what (domain.md), through the engine: every tool, by everybody, with every combination of scopes, under both
//! visibilities. And what is not seen is not there: in answers, in locks, in keys.

use serde_json::{Value, json};
use wf_core::access::Visibility;
use wf_core::engine::Reply;
use wf_core::models::{Principal, Scopes};
use wf_core::ports::StorageBackendPort as _;
use wf_testkit::build::{CommitBuilder, at};
use wf_testkit::fault::Call as Method;

use crate::engine_bench::{
    Bench, abroad, ann, bob, cleo, code, correct, finish, keyed, operator, resolve, start, submit,
    sue, with,
};

const NOTHING: Scopes = Scopes { read: false, write: false, supervise: false };
/// The columns of the tables.
const SCOPES: [Scopes; 5] = [
    NOTHING,
    Scopes { read: true, ..NOTHING },
    Scopes { write: true, ..NOTHING },
    Scopes { read: true, write: true, supervise: false },
    Scopes { supervise: true, ..NOTHING },
];

/// Ann's own. What a caller without a scope lacks is named by its scope.
const OWNER: &str = "
    find_work        read       listed     read       listed     listed
    get_status       read       done       read       done       done
    by_asset         read       done       read       done       done
    check_value      read       done       read       done       done
    submit_step      write      write      done       done       done
    submit_signed    write      write      checker    checker    checker
    correct_step     write      write      done       done       done
    skip_step        write      write      done       done       done
    report_problem   write      write      done       done       done
    resolve_block    supervise  supervise  supervise  supervise  done
    release_lock     supervise  supervise  supervise  supervise  done
    finish_workflow  write      write      done       done       done
    start_workflow   write      write      joined     joined     joined
";

/// Bob, who has nothing to do with it, where everybody sees everything.
const STRANGER: &str = "
    find_work        read       listed     read       listed     listed
    get_status       read       done       read       done       done
    by_asset         read       done       read       done       done
    check_value      read       done       read       done       done
    submit_step      write      write      unknown    owner      done
    submit_signed    write      write      unknown    checker    checker
    correct_step     write      write      unknown    owner      done
    skip_step        write      write      unknown    owner      done
    report_problem   write      write      unknown    done       done
    resolve_block    supervise  supervise  supervise  supervise  done
    release_lock     supervise  supervise  supervise  supervise  done
    finish_workflow  write      write      unknown    owner      done
    start_workflow   write      write      in_use     held       held
";

/// The same where everybody sees their own.
const STRANGER_OF_OWN: &str = "
    find_work        read       absent     read       absent     listed
    get_status       read       unknown    read       unknown    done
    by_asset         read       in_use     read       in_use     done
    check_value      read       unknown    read       unknown    done
    submit_step      write      write      unknown    unknown    done
    submit_signed    write      write      unknown    unknown    checker
    correct_step     write      write      unknown    unknown    done
    skip_step        write      write      unknown    unknown    done
    report_problem   write      write      unknown    unknown    done
    resolve_block    supervise  supervise  supervise  supervise  done
    release_lock     supervise  supervise  supervise  supervise  done
    finish_workflow  write      write      unknown    unknown    done
    start_workflow   write      write      in_use     in_use     held
";

/// Cleo, to whom it is offered: it is seen under either visibility, and not hers yet.
const OFFEREE: &str = "
    find_work        read       listed     read       listed     listed
    get_status       read       done       read       done       done
    by_asset         read       done       read       done       done
    check_value      read       done       read       done       done
    submit_step      write      write      owner      owner      done
    submit_signed    write      write      checker    checker    checker
    correct_step     write      write      owner      owner      done
    skip_step        write      write      owner      owner      done
    report_problem   write      write      done       done       done
    resolve_block    supervise  supervise  supervise  supervise  done
    release_lock     supervise  supervise  supervise  supervise  done
    finish_workflow  write      write      owner      owner      done
    start_workflow   write      write      held       held       held
";

/// Bob with the role that a step asks for: that step is his to do, seen or not. Nothing else changes.
const CHECKER: &str = "
    get_status       read       unknown    read       unknown    done
    submit_step      write      write      unknown    unknown    done
    submit_signed    write      write      done       done       done
    skip_signed      write      write      done       done       done
    finish_workflow  write      write      unknown    unknown    done
";

/// One workflow of Ann, with everything on it that the tools of the tables need.
struct Scene {
    bench: Bench,
    work: String,
}

impl Scene {
    /// `blocked`: a problem is reported, `block-5`.
    async fn new(visibility: Visibility, blocked: bool) -> Self {
        let bench = Bench::seeing(visibility).await;
        let begin = with(start("U-7"), "procedure_id", &json!("checked"));
        let reply = bench.call(&ann(), "start_workflow", begin).await;
        let work = reply.body["workflow"]["id"].as_str().unwrap().to_owned();
        bench.submit(&ann(), &work, "amount", "25").await;
        let offer = CommitBuilder::next(&bench.stored(&ann(), &work).await, at(1));
        bench.model.commit(offer.offer(Some(&cleo().actor)).build()).await.unwrap();
        if blocked {
            let report = json!({"workflow_id": work, "summary": "it squeaks"});
            let told = bench.call(&ann(), "report_problem", report).await;
            assert_eq!(told.body["blocks"][0]["id"], "block-5", "{}", told.body);
        }
        Self { bench, work }
    }

    /// Asks for `work`, or for another id in its place.
    async fn ask(&self, by: &Principal, tool: &str, work: &str) -> Reply {
        let bench = &self.bench;
        let signed = submit(work, "remark", "fine");
        match tool {
            "find_work" => bench.find(by, json!({"scope": "blocked"})).await,
            "get_status" => bench.status(by, json!({"workflow_id": work, "detail": "full"})).await,
            "by_asset" => bench.status(by, json!({"asset_id": "U-7"})).await,
            "check_value" => bench.check(by, submit(work, "amount", "26")).await,
            "submit_step" => bench.call(by, "submit_step", submit(work, "ready", "yes")).await,
            "submit_signed" => bench.call(by, "submit_step", signed).await,
            "correct_step" => bench.call(by, "correct_step", correct(work, "amount", "26")).await,
            "skip_step" => bench.call(by, "skip_step", step(work, "whisper")).await,
            "skip_signed" => bench.call(by, "skip_step", step(work, "remark")).await,
            "report_problem" => {
                let report = json!({"workflow_id": work, "summary": "dusty", "severity": "note"});
                bench.call(by, "report_problem", report).await
            }
            "resolve_block" => {
                bench.call(by, "resolve_block", resolve(work, "block-5", "go_on")).await
            }
            "release_lock" => {
                let args = json!({"workflow_id": work, "asset_id": "U-7", "reason": "holder left"});
                bench.call(by, "release_lock", args).await
            }
            "finish_workflow" => {
                let asked = bench.call(by, "finish_workflow", finish(work, "abandoned")).await;
                let token = &asked.body["confirm"]["token"];
                if token.is_null() {
                    return asked;
                }
                let args = with(finish(work, "abandoned"), "confirm_token", token);
                bench.call(by, "finish_workflow", args).await
            }
            "start_workflow" => {
                let args = with(start("U-7"), "procedure_id", &json!("checked"));
                bench.call(by, "start_workflow", args).await
            }
            _ => unreachable!("no such tool: {tool}"),
        }
    }

    /// The word of the tables for an answer. What is refused without sight must tell nothing.
    async fn word(&self, by: &Principal, tool: &str) -> String {
        let reply = self.ask(by, tool, &self.work).await;
        let details = &reply.body["error"]["details"];
        let text = |name: &str| details[name].as_str().map(ToOwned::to_owned);
        let tells = |what: &str| reply.body.to_string().contains(what);
        match code(&reply) {
            "(no error)" => match reply.outcome.as_str() {
                "joined" => "joined",
                "none" if reply.speech == "It is in use." => "in_use",
                "none" => "absent",
                "list" if tells(&self.work) => "listed",
                "list" => "absent",
                _ if tool == "by_asset" => {
                    assert_eq!(reply.body["workflow"]["id"], self.work.as_str());
                    "done"
                }
                _ => "done",
            }
            .to_owned(),
            "NOT_ALLOWED" if details.get("owner").is_some() => {
                assert_eq!(details["owner"], json!({"id": "sub|Ann", "name": "Ann"}));
                assert!(reply.speech.starts_with("Ann is doing this work."), "{}", reply.speech);
                "owner".to_owned()
            }
            "NOT_ALLOWED" => match text("scope") {
                Some(scope) => {
                    assert!(!tells("Ann") && !tells(&self.work), "{}", reply.body);
                    scope.trim_start_matches("workflow:").to_owned()
                }
                None => text("role").unwrap(),
            },
            "WORKFLOW_NOT_FOUND" => {
                let unknown = self.ask(by, tool, "no-such-work").await;
                assert_eq!(reply, unknown, "unseen and unknown are one answer");
                "unknown".to_owned()
            }
            "ASSET_LOCKED" if details == &json!({}) => {
                assert!(!tells("Ann") && !tells(&self.work), "{}", reply.body);
                "in_use".to_owned()
            }
            "ASSET_LOCKED" => {
                assert_eq!(details["workflow_id"], self.work.as_str());
                assert_eq!(details["holder"]["name"], "Ann");
                "held".to_owned()
            }
            other => other.to_owned(),
        }
    }
}

fn step(work: &str, step: &str) -> Value {
    json!({"workflow_id": work, "step_id": step})
}

/// Every row of the table with every combination of scopes, each on a scene of its own.
async fn holds(table: &str, visibility: Visibility, by: Principal) {
    for row in table.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let (tool, expected) = row.split_once(' ').unwrap();
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(expected.len(), SCOPES.len(), "{row}");
        for (scopes, expected) in SCOPES.into_iter().zip(expected) {
            let blocked = ["find_work", "resolve_block"].contains(&tool);
            let scene = Scene::new(visibility, blocked).await;
            let (by, commits) = (Principal { scopes, ..by.clone() }, scene.bench.commits());
            let loads = scene.bench.store.count(Method::Load);
            let word = scene.word(&by, tool).await;
            assert_eq!(word, expected, "{tool} by {:?}, {visibility:?}, {scopes:?}", by.name);
            let wrote = scene.bench.commits() > commits;
            let reads = ["find_work", "get_status", "by_asset", "check_value"].contains(&tool);
            assert_eq!(wrote, expected == "done" && !reads, "{tool}: {expected}");
            if ["read", "write", "supervise"].contains(&expected) {
                assert_eq!(scene.bench.store.count(Method::Load), loads, "scope before any read");
            }
        }
    }
}

#[tokio::test]
async fn an_owner_does_what_the_scopes_allow() {
    holds(OWNER, Visibility::Tenant, ann()).await;
    holds(OWNER, Visibility::Own, ann()).await;
}

#[tokio::test]
async fn a_stranger_sees_the_tenant_and_changes_nothing_of_it() {
    holds(STRANGER, Visibility::Tenant, bob()).await;
}

#[tokio::test]
async fn a_stranger_sees_nothing_where_everybody_sees_their_own() {
    holds(STRANGER_OF_OWN, Visibility::Own, bob()).await;
}

#[tokio::test]
async fn an_offeree_sees_what_is_offered() {
    holds(OFFEREE, Visibility::Tenant, cleo()).await;
    holds(OFFEREE, Visibility::Own, cleo()).await;
}

#[tokio::test]
async fn a_step_with_a_role_is_for_those_who_have_it() {
    let checker = Principal { roles: ["checker".to_owned()].into(), ..bob() };
    holds(CHECKER, Visibility::Own, checker.clone()).await;
    let other = Principal { roles: ["cook".to_owned()].into(), ..bob() };
    let scene = Scene::new(Visibility::Own, false).await;
    // What is refused shows no more of the work than before; what is done does, it is theirs.
    let asks = async |value: &str| {
        scene.bench.call(&checker, "submit_step", submit(&scene.work, "remark", value)).await
    };
    let done = asks("fine").await;
    assert_eq!(done.body["workflow"]["owner"]["name"], "Ann");
    let refused = asks("another").await;
    assert_eq!(code(&refused), "STEP_ALREADY_RECORDED");
    assert!(refused.body.get("workflow").is_none(), "{}", refused.body);
    assert_eq!(scene.word(&other, "submit_signed").await, "unknown");
}

/// Whatever a caller may or may not do, in another tenant there is nothing.
#[tokio::test]
async fn no_scope_reaches_another_tenant() {
    let checker = Principal { roles: ["checker".to_owned()].into(), ..ann() };
    for by in [ann(), bob(), cleo(), sue(), checker, operator()] {
        let far = abroad(&by);
        for (tool, expected) in [
            ("find_work", "absent"),
            ("get_status", "unknown"),
            ("by_asset", "absent"),
            ("check_value", "unknown"),
            ("submit_step", "unknown"),
            ("submit_signed", "unknown"),
            ("correct_step", "unknown"),
            ("skip_step", "unknown"),
            ("report_problem", "unknown"),
            ("finish_workflow", "unknown"),
            ("start_workflow", "done"),
        ] {
            let scene = Scene::new(Visibility::Tenant, true).await;
            assert_eq!(scene.word(&far, tool).await, expected, "{tool} by {:?}", far.actor);
        }
        let scene = Scene::new(Visibility::Tenant, true).await;
        if far.scopes.supervise {
            assert_eq!(scene.word(&far, "resolve_block").await, "unknown");
        }
    }
}

/// A used key tells of a conflict whatever workflow the call names, and gives away nothing about it.
#[tokio::test]
async fn a_conflict_of_keys_tells_nothing_of_unseen_work() {
    let scene = Scene::new(Visibility::Own, false).await;
    let bench = &scene.bench;
    let own = bench.started(&bob(), "U-8").await;
    let first = keyed(submit(&own, "ready", "yes"), "k-1");
    assert!(bench.call(&bob(), "submit_step", first).await.error.is_none());
    let about = async |work: &str| {
        let args = keyed(submit(work, "ready", "yes"), "k-1");
        bench.call(&bob(), "submit_step", args).await
    };
    let unseen = about(&scene.work).await;
    assert_eq!(code(&unseen), "IDEMPOTENCY_CONFLICT", "{}", unseen.body);
    assert_eq!(unseen, about("no-such-work").await);
    let next =
        &bench.status(&bob(), json!({"workflow_id": own})).await.body["next_idempotency_key"];
    assert_eq!(&unseen.body["error"]["details"]["next_idempotency_key"], next);
    // A stale revision of unseen work is not told either.
    let args = submit(&scene.work, "ready", "yes");
    let stale = bench.call_at(&bob(), "submit_step", args, Some(1)).await;
    assert_eq!(code(&stale), "WORKFLOW_NOT_FOUND");
}

/// A call that was answered is answered again for as long as the caller has the scope, seen or not: it tells them nothing
/// new. Without the scope it is not.
#[tokio::test]
async fn a_replay_is_for_who_still_has_the_scope() {
    let scene = Scene::new(Visibility::Own, false).await;
    let bench = &scene.bench;
    let args = keyed(submit(&scene.work, "ready", "yes"), "k-1");
    let first = bench.call(&ann(), "submit_step", args.clone()).await;
    let current = bench.stored(&ann(), &scene.work).await;
    let transfer = CommitBuilder::next(&current, at(2)).transfer(&cleo().actor).build();
    bench.model.commit(transfer).await.unwrap();
    let again = bench.call(&ann(), "submit_step", args.clone()).await;
    assert!(again.duplicate);
    assert_eq!(again.body["workflow"], first.body["workflow"], "as it was then");
    let fresh = bench.submit(&ann(), &scene.work, "amount", "25").await;
    assert_eq!(code(&fresh), "WORKFLOW_NOT_FOUND", "it is not hers any more");
    let looser = Principal { scopes: Scopes { read: true, ..NOTHING }, ..ann() };
    assert_eq!(code(&bench.call(&looser, "submit_step", args).await), "NOT_ALLOWED");
}

/// Two people with one key are two calls, also when everything else is the same.
#[tokio::test]
async fn a_key_of_somebody_else_is_fresh() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let note = json!({"workflow_id": work, "summary": "dusty", "severity": "note"});
    let note = keyed(note, "k-1");
    let first = bench.call(&ann(), "report_problem", note.clone()).await;
    for other in [bob(), sue()] {
        let theirs = bench.call(&other, "report_problem", note.clone()).await;
        assert!(!theirs.duplicate, "{}", theirs.body);
        assert!(
            theirs.body["workflow"]["revision"].as_u64()
                > first.body["workflow"]["revision"].as_u64()
        );
    }
    // The client that a person speaks through is not part of who they are.
    let elsewhere = Principal { client_id: Some("another app".to_owned()), ..ann() };
    assert!(bench.call(&elsewhere, "report_problem", note).await.duplicate);
}

/// Under visibility own a list is complete even where the tenant's own list is full of others.
#[tokio::test]
async fn ones_own_blocked_work_is_found_behind_a_hundred_others() {
    let bench = Bench::seeing(Visibility::Own).await;
    for n in 0..101 {
        let by = if n % 2 == 0 { bob() } else { sue() };
        let work = bench.started(&by, &format!("U-{n}")).await;
        let report = json!({"workflow_id": work, "summary": "it squeaks"});
        bench.call(&by, "report_problem", report).await;
        bench.clock.advance(1_000);
    }
    let (work, _) = bench.blocked("U-500").await;
    let found = bench.find(&ann(), json!({"scope": "blocked"})).await;
    assert_eq!(found.body["candidates_total"], 1, "{}", found.body);
    assert_eq!(found.body["candidates"][0]["workflow_id"], work.as_str());
    let all = bench.find(&sue(), json!({"scope": "blocked"})).await;
    assert_eq!(all.body["candidates_total"], 100, "a supervisor sees as many as a list may have");
}

/// What was finished last on an asset is told to those who saw it.
#[tokio::test]
async fn the_last_work_on_an_asset_is_told_to_who_may_see_it() {
    let bench = Bench::seeing(Visibility::Own).await;
    let work = bench.finished(&ann(), "U-7").await;
    for (by, told) in [(ann(), true), (bob(), false), (sue(), true)] {
        let status = bench.status(&by, json!({"asset_id": "U-7"})).await;
        let found = bench.find(&by, json!({"asset_id": "U-7"})).await;
        for reply in [status, found] {
            let last = reply.body.get("last_completed");
            assert_eq!(last.is_some(), told, "{:?}: {}", by.name, reply.body);
            assert_eq!(reply.body.to_string().contains(&work), told);
        }
    }
}

/// Work that lost its asset says so before a step is tried.
#[tokio::test]
async fn a_lost_asset_is_told_by_the_status() {
    let bench = Bench::new().await;
    let work = bench.started(&ann(), "U-7").await;
    let kept = bench.status(&ann(), json!({})).await;
    assert!(kept.body.get("warnings").is_none());
    let args = json!({"workflow_id": work, "asset_id": "U-7", "reason": "holder left"});
    bench.call(&operator(), "release_lock", args).await;
    let lost = "This work no longer holds unit 7; take it over again, or abandon it.";
    let gone = "This work no longer holds unit 7, Bob has it; you can only abandon it.";
    for (taken, said) in [(false, lost), (true, gone)] {
        if taken {
            bench.started(&bob(), "U-7").await;
        }
        for args in [json!({}), json!({"workflow_id": work})] {
            let lost = bench.status(&ann(), args).await;
            assert_eq!(lost.body["warnings"], json!([said]), "taken: {taken}");
            assert_eq!(
                lost.speech,
                format!("Plain work on unit 7 is under way; nothing is recorded yet. {said}")
            );
        }
    }
    bench.confirmed(&ann(), "finish_workflow", finish(&work, "abandoned")).await;
    let over = bench.status(&ann(), json!({"workflow_id": work})).await;
    assert!(over.body.get("warnings").is_none(), "what is over holds nothing");
}

/// Whoever has the asset of lost work now is named to those who see that other work, and to nobody else.
#[tokio::test]
async fn the_new_holder_of_a_lost_asset_is_named_to_who_sees_them() {
    for (visibility, named) in [(Visibility::Tenant, true), (Visibility::Own, false)] {
        let bench = Bench::seeing(visibility).await;
        let work = bench.started(&ann(), "U-7").await;
        let args = json!({"workflow_id": work, "asset_id": "U-7", "reason": "holder left"});
        bench.call(&operator(), "release_lock", args).await;
        bench.started(&bob(), "U-7").await;
        let take = json!({"workflow_id": work, "action": "take_over", "reason_code": "NOT_THERE"});
        for (by, named) in [(ann(), named), (sue(), true)] {
            let told = [
                bench.submit(&by, &work, "ready", "yes").await,
                bench.call(&by, "transfer_workflow", take.clone()).await,
                bench.status(&by, json!({"workflow_id": work})).await,
            ];
            assert_eq!(code(&told[0]), "LOCK_LOST");
            for reply in told {
                let body = reply.body.to_string();
                assert_eq!(body.contains("Bob"), named, "{visibility:?} {:?}: {body}", by.name);
            }
        }
    }
}
