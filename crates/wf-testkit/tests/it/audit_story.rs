//! A true story for the audit: what callers did and saw, and the commits that the engine made of it. Tests tell it with
//! one thing changed.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wf_core::engine::Reply;
use wf_core::models::Principal;
use wf_core::policy::{Definition, DomainPolicyPort as _};
use wf_core::ports::{Commit, StorageBackendPort as _};
use wf_testkit::audit::history::{Attempt, Outcome};
use wf_testkit::audit::{Audit, audit};
use wf_testkit::model::ModelStore;

use crate::engine_bench::{
    Bench, PlainCompiler, abroad, ann, bob, code, finish, keyed, operator, resolve, start, submit,
    sue, with,
};
use crate::plain_policy::PlainPolicy;

/// What was done, seen and stored.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) commits: Vec<Commit>,
    pub(crate) definitions: Vec<Definition>,
    /// How many commits there were after each attempt.
    pub(crate) commits_after: Vec<usize>,
    by_name: BTreeMap<&'static str, usize>,
}

/// Tells a story: a bench, and what its callers see.
struct Teller {
    bench: Bench,
    attempts: Vec<Attempt>,
    commits_after: Vec<usize>,
    by_name: BTreeMap<&'static str, usize>,
    now: u64,
}

impl Teller {
    /// Makes a call that does something, and writes down what its caller saw.
    async fn tell(
        &mut self,
        name: &'static str,
        by: &Principal,
        tool: &'static str,
        args: Value,
    ) -> Reply {
        let reply = self.say(name, by, tool, args).await;
        assert!(reply.error.is_none(), "{name}: {}", reply.body);
        reply
    }

    /// Makes a call that is refused with this code.
    async fn refuse(
        &mut self,
        name: &'static str,
        by: &Principal,
        tool: &'static str,
        args: Value,
        expected: &str,
    ) {
        let reply = self.say(name, by, tool, args).await;
        assert_eq!(code(&reply), expected, "{name}: {}", reply.body);
    }

    async fn say(
        &mut self,
        name: &'static str,
        by: &Principal,
        tool: &'static str,
        args: Value,
    ) -> Reply {
        let reply = match tool {
            "get_status" => self.bench.status(by, args.clone()).await,
            "find_work" => self.bench.find(by, args.clone()).await,
            _ => self.bench.call(by, tool, args.clone()).await,
        };
        let text = wf_core::idempotency::canonical_string(&reply.body).unwrap();
        self.keep(name, by, tool, &args, Outcome::Answered { text });
        reply
    }

    /// The same, and the answer is lost.
    async fn lose(&mut self, name: &'static str, by: &Principal, tool: &'static str, args: Value) {
        self.tell(name, by, tool, args).await;
        let attempt = self.attempts.last_mut().unwrap();
        attempt.outcome = Outcome::Unknown { why: "the connection broke".to_owned() };
    }

    fn keep(
        &mut self,
        name: &'static str,
        by: &Principal,
        tool: &str,
        args: &Value,
        outcome: Outcome,
    ) {
        self.now += 100;
        let caller = ["sub|Ann", "sub|Bob", "sub|Sue", "root"]
            .iter()
            .position(|subject| *subject == by.actor.subject())
            .unwrap();
        assert!(self.by_name.insert(name, self.attempts.len()).is_none(), "{name} twice");
        self.commits_after.push(self.bench.store.commits().len());
        self.attempts.push(Attempt {
            call: u64::try_from(self.attempts.len()).unwrap(),
            caller: u32::try_from(caller).unwrap() + u32::from(by.tenant.as_str() != "main") * 10,
            tenant: by.tenant.to_string(),
            actor: by.actor.to_string(),
            tool: tool.to_owned(),
            arguments: args.as_object().cloned().unwrap(),
            sent_ns: self.now,
            over_ns: self.now + 50,
            outcome,
        });
    }
}

fn work_of(reply: &Reply) -> String {
    reply.body["workflow"]["id"].as_str().unwrap().to_owned()
}

impl Story {
    /// Ann works on U-7 with every kind of answer, Bob waits for it and gets it, an operator takes it away; somebody of
    /// another tenant has a U-7 of their own.
    pub(crate) async fn told() -> Self {
        let bench = Bench::new().await;
        let mut t = Teller {
            bench,
            attempts: Vec::new(),
            commits_after: Vec::new(),
            by_name: BTreeMap::new(),
            now: 0,
        };
        let first = ann_works(&mut t).await;
        bob_waits(&mut t, &first).await;
        elsewhere(&mut t, &first).await;
        Self {
            commits: t.bench.store.commits(),
            attempts: t.attempts,
            commits_after: t.commits_after,
            definitions: [PlainPolicy::new(), PlainPolicy::bare()]
                .map(|policy| policy.definition().clone())
                .to_vec(),
            by_name: t.by_name,
        }
    }

    /// What the store holds after all commits.
    pub(crate) async fn store(&self) -> ModelStore {
        let store = ModelStore::new();
        for definition in &self.definitions {
            store.put_definition(definition).await.unwrap();
        }
        for commit in &self.commits {
            store.commit(commit.clone()).await.unwrap();
        }
        store
    }

    /// What the audit says of it.
    pub(crate) async fn audited(&self) -> Audit {
        audit(&self.store().await, &self.attempts, Some(&PlainCompiler)).await.unwrap()
    }

    /// The attempt of this name.
    pub(crate) fn attempt(&mut self, name: &str) -> &mut Attempt {
        let index = self.by_name[name];
        &mut self.attempts[index]
    }

    /// Changes what an attempt was answered.
    pub(crate) fn answer(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        self.answer_at(self.by_name[name], change);
    }

    /// The same for the attempt at this place.
    pub(crate) fn answer_at(&mut self, index: usize, change: impl FnOnce(&mut Value)) {
        let attempt = &mut self.attempts[index];
        let mut result = attempt.outcome.result().unwrap();
        change(&mut result);
        let text = wf_core::idempotency::canonical_string(&result).unwrap();
        attempt.outcome = Outcome::Answered { text };
    }

    /// The answer of one attempt given to another.
    pub(crate) fn answer_like(&mut self, name: &str, other: &str) {
        let outcome = self.attempt(other).outcome.clone();
        self.attempt(name).outcome = outcome;
    }

    /// The commit that has this key.
    pub(crate) fn commit(&mut self, key: &str) -> &mut Commit {
        let is = |commit: &&mut Commit| commit.ledger.key.key.as_str() == key;
        self.commits.iter_mut().find(is).unwrap()
    }
}

async fn ann_works(t: &mut Teller) -> String {
    let ann = ann();
    let begun = t.tell("start", &ann, "start_workflow", keyed(start("U-7"), "a-start")).await;
    let work = work_of(&begun);
    t.tell("start again", &ann, "start_workflow", keyed(start("U-7"), "a-start")).await;
    t.tell("look", &ann, "get_status", json!({"workflow_id": work})).await;
    t.tell("ready", &ann, "submit_step", keyed(submit(&work, "ready", "yes"), "a-ready")).await;
    let other = keyed(submit(&work, "ready", "no"), "a-ready");
    t.refuse("conflict", &ann, "submit_step", other, "IDEMPOTENCY_CONFLICT").await;
    t.tell("ready again", &ann, "submit_step", keyed(submit(&work, "ready", "yes"), "a-ready"))
        .await;
    let unknown = keyed(submit(&work, "steady", "yes"), "a-none");
    t.refuse("no step", &ann, "submit_step", unknown, "VALIDATION_ERROR").await;
    let amount = keyed(submit(&work, "amount", "70"), "a-amount");
    let asked = t.tell("asked", &ann, "submit_step", amount.clone()).await;
    let token = &asked.body["confirm"]["token"];
    let amount = with(amount, "confirm_token", token);
    t.lose("amount lost", &ann, "submit_step", amount.clone()).await;
    let told = t.tell("amount", &ann, "submit_step", amount).await;
    let block = told.body["blocks"][0]["id"].as_str().unwrap().to_owned();
    let decision = keyed(resolve(&work, &block, "again"), "s-resolve");
    t.tell("resolve", &sue(), "resolve_block", decision).await;
    t.tell("amount anew", &ann, "submit_step", keyed(submit(&work, "amount", "25"), "a-anew"))
        .await;
    t.tell("shape", &ann, "submit_step", submit(&work, "shape", "flat")).await;
    t.tell("shape again", &ann, "submit_step", submit(&work, "shape", "flat")).await;
    let mended = with(submit(&work, "amount", "26"), "reason_code", &json!("HEARD_WRONG"));
    t.tell("correct", &ann, "correct_step", keyed(mended, "a-correct")).await;
    let skip = json!({"workflow_id": work, "step_id": "remark"});
    t.tell("skip", &ann, "skip_step", keyed(skip, "a-skip")).await;
    t.tell("whisper", &ann, "submit_step", keyed(submit(&work, "whisper", "CANARY"), "a-whisper"))
        .await;
    let note = json!({"workflow_id": work, "summary": "it hums", "severity": "note"});
    t.tell("note", &ann, "report_problem", keyed(note.clone(), "a-note")).await;
    t.keep("note refused", &ann, "report_problem", &keyed(note, "a-late"), Outcome::NotSent);
    let waits = keyed(start("U-7"), "b-locked");
    t.refuse("locked", &bob(), "start_workflow", waits, "ASSET_LOCKED").await;
    t.tell("finish", &ann, "finish_workflow", keyed(finish(&work, "good"), "a-finish")).await;
    t.tell("look back", &ann, "get_status", json!({"workflow_id": work})).await;
    work
}

async fn bob_waits(t: &mut Teller, first: &str) {
    let bob = bob();
    t.tell("bob looks", &bob, "get_status", json!({"workflow_id": first})).await;
    let begun = t.tell("bob starts", &bob, "start_workflow", start("U-7")).await;
    let work = work_of(&begun);
    let joined = t.tell("bob joins", &bob, "start_workflow", start("U-7")).await;
    assert_eq!(joined.outcome.as_str(), "joined");
    t.tell("bob submits", &bob, "submit_step", keyed(submit(&work, "ready", "yes"), "b-ready"))
        .await;
    let report = json!({"workflow_id": work, "summary": "it leaks", "severity": "high"});
    t.tell("bob reports", &bob, "report_problem", keyed(report, "b-report")).await;
    let release = json!({"workflow_id": work, "asset_id": "U-7", "reason": "holder left"});
    // An operator's command is in nobody's history.
    t.bench.call(&operator(), "release_lock", release).await;
}

async fn elsewhere(t: &mut Teller, first: &str) {
    let other = abroad(&ann());
    t.tell("abroad", &other, "start_workflow", keyed(start("U-7"), "a-start")).await;
    let hers = json!({"workflow_id": first});
    t.refuse("abroad looks", &other, "get_status", hers, "WORKFLOW_NOT_FOUND").await;
    t.tell("abroad finds", &other, "find_work", json!({})).await;
    t.keep(
        "never arrived",
        &other,
        "start_workflow",
        &keyed(start("U-9"), "a-lost"),
        Outcome::Unknown { why: "the connection broke".to_owned() },
    );
}
