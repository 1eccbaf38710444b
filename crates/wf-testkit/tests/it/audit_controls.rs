//! The audit is red on everything that it claims to look at: the true story with one thing changed, for each message
//! that it has.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wf_core::models::{Digest, Workflow};
use wf_core::state_machine::EventBody;
use wf_testkit::audit::history::Outcome;
use wf_testkit::audit::{Invariant, audit};
use wf_testkit::build::{CommitBuilder, at, fingerprint, key, user};

use crate::audit_story::Story;
use crate::engine_bench::bob;

/// One thing that is changed, and what must be said of it.
struct Control {
    invariant: Invariant,
    says: &'static str,
    damage: fn(&mut Story),
}

const fn control(invariant: Invariant, says: &'static str, damage: fn(&mut Story)) -> Control {
    Control { invariant, says, damage }
}

/// Bob's work as it was left.
fn bobs(story: &Story) -> Workflow {
    let is_his = |w: &&Workflow| w.owner.id == bob().actor;
    story.commits.iter().rev().map(|commit| &commit.next).find(is_his).unwrap().clone()
}

fn bobs_start(story: &mut Story) -> &mut wf_core::ports::Commit {
    let is = |c: &&mut wf_core::ports::Commit| c.expected == 0 && c.ledger.key.actor == bob().actor;
    story.commits.iter_mut().find(is).unwrap()
}

fn word(value: &mut Value, pointer: &str, word: &str) {
    *value.pointer_mut(pointer).unwrap() = json!(word);
}

const LOST: &[Control] = &[
    control(Invariant::I1, "has no commit that ends with event", |s| {
        // The work of the other tenant, done last.
        drop(s.commits.pop());
    }),
    control(Invariant::I1, "somebody else caused", |s| {
        s.attempt("bob submits").actor = "user:zoe".to_owned();
    }),
    control(Invariant::I1, "another key caused", |s| s.answer_like("ready", "correct")),
    control(Invariant::I1, "another payload caused", |s| {
        s.attempt("correct").arguments.insert("value".to_owned(), json!("27"));
    }),
    control(Invariant::I1, "does not do what was asked for", |s| {
        if let EventBody::StepRecorded(recording) = &mut s.commit("a-anew").events[0].body {
            recording.reading.given = "52".to_owned();
        }
    }),
    control(Invariant::I1, "its ledger row is gone", |s| {
        s.commit("a-note").ledger.key.key = key("a-other");
    }),
    control(Invariant::I1, "without saying what changed", |s| {
        s.answer("note", |a| drop(a.as_object_mut().unwrap().remove("workflow")));
    }),
];

const TWICE: &[Control] = &[
    control(Invariant::I2, "committed with it 2 times", |s| {
        let (work, row) = (bobs(s), s.commit("b-report").ledger.clone());
        let again = CommitBuilder::next(&work, at(0)).by(&bob().actor).key("b-report");
        s.commits.push(again.note("it leaks").replaces(&row).build());
    }),
    // The same twice in a row would pass for one commit with two events.
    control(Invariant::I2, "committed with it 2 times", |s| {
        let commit = s.commit("a-note");
        let again = CommitBuilder::next(&commit.next, at(0)).note("it hums").build().events;
        let cause = commit.events[0].cause.clone();
        commit.events.extend(again.into_iter().map(|mut event| {
            event.cause = cause.clone();
            event
        }));
    }),
    control(Invariant::I2, "attempts were answered as the first", |s| {
        s.answer_like("ready again", "ready");
    }),
    control(Invariant::I2, "a repeat of something that nobody did before", |s| {
        s.answer("note", |a| a["duplicate"] = json!(true));
    }),
    control(Invariant::I2, "another payload than was sent", |s| {
        s.attempt("correct").arguments.insert("value".to_owned(), json!("27"));
    }),
    control(Invariant::I2, "which nobody sent", |s| {
        s.attempts.retain(|a| a.arguments.get("idempotency_key") != Some(&json!("a-note")));
    }),
    control(Invariant::I2, "which nobody sent", |s| {
        let keyless = |a: &wf_testkit::audit::history::Attempt| {
            a.tool == "submit_step" && !a.arguments.contains_key("idempotency_key")
        };
        s.attempts.retain(|a| !keyless(a));
    }),
];

const STORED: &[Control] = &[
    control(Invariant::I3, "has no lock row", |s| s.commits.last_mut().unwrap().locks.clear()),
    control(Invariant::I4, "was changed", |s| {
        s.commit("a-note").events[0].actor_name = Some("Eve".to_owned());
    }),
    control(Invariant::I4, "follows event", |s| drop(s.commit("a-note").events.pop())),
    control(Invariant::I4, "is earlier than the event before it", |s| {
        s.commit("a-note").events[0].at = at(-1_000_000);
    }),
    control(Invariant::I5, "has no ledger row", |s| {
        s.commit("a-note").ledger.key.key = key("a-other");
    }),
    control(Invariant::I5, "a ledger row that is of another commit", |s| {
        s.commit("a-note").ledger.seq -= 1;
    }),
    control(Invariant::I5, "a ledger row with another fingerprint", |s| {
        s.commit("a-note").ledger.entry.fingerprint = fingerprint("another", "call");
    }),
    control(Invariant::I5, "which is no commit of it", |s| {
        s.commit("a-note").ledger.key.key = key("a-none");
    }),
    control(Invariant::I5, "its message is not in the outbox", |s| {
        s.commit("b-report").outbox.clear();
    }),
    control(Invariant::I5, "events after the stored revision", |s| {
        let before = s.commit("b-ready").next.clone();
        s.commits.retain(|c| c.events[0].body.kind() != "lock_released");
        s.commit("b-report").next = before;
    }),
    control(Invariant::I6, "comes after the completion", |s| {
        let over = s.commit("a-finish").next.clone();
        s.commits.push(CommitBuilder::next(&over, at(0)).note("late").build());
    }),
    control(Invariant::I8, "COMPLETED with result None", |s| {
        s.commit("a-finish").next.result = None;
    }),
    // Bob's work is blocked: no value is taken, and it does not end as if all were well.
    control(Invariant::I8, "(step_recorded) in BLOCKED", |s| {
        let late = CommitBuilder::next(&bobs(s), at(0)).record("amount", "25").build();
        s.commits.push(late);
    }),
    control(Invariant::I8, "(workflow_completed) in BLOCKED", |s| {
        let end = CommitBuilder::next(&bobs(s), at(0)).complete().build();
        s.commits.push(end);
    }),
    control(Invariant::I8, "(block_resolved) in RUNNING", |s| {
        let resolved = s.commit("s-resolve").events[0].body.clone();
        s.commit("a-note").events[0].body = resolved;
    }),
    control(Invariant::I8, "(workflow_started) in RUNNING", |s| {
        let begun = bobs_start(s).events[0].body.clone();
        s.commit("a-note").events[0].body = begun;
    }),
    control(Invariant::I8, "its events lead to BLOCKED with 1", |s| {
        let last = s.commits.iter_mut().rfind(|c| c.next.owner.id == bob().actor);
        last.unwrap().next.blocks.clear();
    }),
    control(Invariant::I10, "of no committed event", |s| {
        let mut message = s.commit("b-report").outbox[0].clone();
        message.seq = 99;
        message.id = format!("{}/99/{}", message.workflow_id, message.recipient);
        s.commit("b-report").outbox.push(message);
    }),
    control(Invariant::I10, "does not say what its event says", |s| {
        s.commit("b-report").outbox[0].kind = "workflow_completed".to_owned();
    }),
    control(Invariant::I12, "is not stored", |s| s.definitions.clear()),
    control(Invariant::I12, "stored under its digest is another one", |s| {
        s.definitions[0].document["wide"] = json!(7);
    }),
    control(Invariant::I12, "it started with", |s| {
        let last = s.commits.last_mut().unwrap();
        last.next.procedure.digest = Digest::of(b"another");
    }),
    control(Invariant::I13, "not the fold", |s| {
        s.commits.last_mut().unwrap().next.label = "other work".into();
    }),
];

const ANSWERED: &[Control] = &[
    control(Invariant::I7, "not in canonical form", |s| {
        let attempt = s.attempt("ready");
        if let Outcome::Answered { text } = &mut attempt.outcome {
            text.insert(1, ' ');
        }
    }),
    control(Invariant::I7, "another result than the first", |s| {
        s.answer("ready again", |a| a["speech"] = json!("Yes."));
    }),
    control(Invariant::I7, "its ledger row holds another result", |s| {
        s.commit("a-note").ledger.entry.result.push(' ');
    }),
    control(Invariant::I7, "after its acknowledgement is not answered with it", |s| {
        s.answer_like("ready again", "no step");
    }),
    control(Invariant::I7, "another payload after the acknowledgement", |s| {
        s.answer_like("conflict", "look");
    }),
    control(Invariant::I7, "no other payload is committed", |s| {
        s.answer_like("no step", "conflict");
    }),
    control(Invariant::I8, "it tells of the state FAILED", |s| {
        s.answer("look", |a| word(a, "/workflow/state", "FAILED"));
    }),
    control(Invariant::I8, "it tells of COMPLETED with result None", |s| {
        s.answer("look", |a| word(a, "/workflow/state", "COMPLETED"));
    }),
    control(Invariant::I8, "the outcome is none that there is", |s| {
        s.answer("look", |a| word(a, "/outcome", "lost"));
    }),
    control(Invariant::I8, "no result object", |s| {
        s.attempt("look").outcome = Outcome::Answered { text: "oops".to_owned() };
    }),
    control(Invariant::Codes, "which is no code", |s| {
        s.answer("locked", |a| word(a, "/error/code", "BUSY"));
    }),
    control(Invariant::Codes, "says retry", |s| {
        s.answer("locked", |a| word(a, "/error/retry", "same_call"));
    }),
    control(Invariant::Codes, "without a code", |s| {
        s.answer("locked", |a| drop(a.as_object_mut().unwrap().remove("error")));
    }),
    control(Invariant::Codes, "and ok", |s| s.answer("locked", |a| a["ok"] = json!(true))),
    control(Invariant::I11, "it tells abroad of", |s| {
        let work = bobs(s).id;
        s.answer("abroad finds", |a| a["speech"] = json!(format!("There is {work}.")));
    }),
    control(Invariant::I11, "another tenant's work", |s| s.answer_like("abroad looks", "look")),
    control(Invariant::I12, "is shown with the definition", |s| {
        let other = Digest::of(b"another").to_string();
        s.answer("look", |a| word(a, "/workflow/procedure/digest", &other));
    }),
    control(Invariant::Refused, "and it is committed", |s| s.answer_like("note", "no step")),
    control(Invariant::Refused, "and it is committed", |s| {
        s.attempt("note").outcome = Outcome::NotSent;
    }),
    control(Invariant::Refused, "and it is committed", |s| {
        s.attempt("note").outcome = Outcome::Shed { status: 503 };
    }),
    control(Invariant::Monotonic, "after it was seen at", |s| {
        s.answer("look back", |a| a["workflow"]["revision"] = json!(4));
    }),
    control(Invariant::Monotonic, "after it was seen at", |s| {
        s.answer("ready", |a| a["workflow"]["revision"] = json!(2));
    }),
];

const ORDERED: &[Control] = &[
    control(Invariant::I9, "was given out twice", |s| {
        if let EventBody::WorkflowStarted { assets, .. } = &mut bobs_start(s).events[0].body {
            assets[0].fence = 1;
        }
    }),
    control(Invariant::I9, "and a later fence was given out", |s| {
        let summary = "not the end".to_owned();
        let finish = s.commit("a-finish");
        finish.events[0].body = EventBody::ProblemNoted { step_id: None, summary };
    }),
    control(Invariant::I9, "its row has fence 1, below 5", |s| {
        let last = s.commits.last_mut().unwrap();
        if let EventBody::WorkflowStarted { assets, .. } = &mut last.events[0].body {
            assets[0].fence = 5;
        }
    }),
    control(Invariant::I9, "was recorded after U-7 was freed", |s| {
        let late = CommitBuilder::next(&bobs(s), at(0)).record("amount", "25").build();
        s.commits.push(late);
    }),
    // Bob has not looked before, so that only the order of all calls tells that he sees an old state.
    control(Invariant::Linearizable, "the commit of revision", |s| {
        s.answer("bob looks", |a| a["workflow"]["revision"] = json!(4));
    }),
    control(Invariant::Linearizable, "no order explains Read", |s| {
        s.answer("bob looks", |a| a["workflow"]["revision"] = json!(4));
    }),
    control(Invariant::Linearizable, "taking it with fence", |s| {
        let start = s.attempt("bob starts");
        (start.sent_ns, start.over_ns) = (10, 20);
    }),
    // The lock was seen in hands in which it never was.
    control(Invariant::Linearizable, "no order explains HeldBy", |s| {
        s.answer("locked", |a| word(a, "/error/details/workflow_id", "nobodys"));
    }),
    // Two callers were told that they have the lock. The store knows one of them.
    control(Invariant::Linearizable, "no order explains Take", |s| {
        let mut second = s.attempt("start").clone();
        second.arguments.insert("idempotency_key".to_owned(), json!("a-second"));
        s.attempts.push(second);
        let index = s.attempts.len() - 1;
        s.answer_at(index, |a| word(a, "/workflow/id", "another"));
    }),
];

#[tokio::test]
async fn every_control_is_red() {
    let story = Story::told().await;
    for Control { invariant, says, damage } in all() {
        let mut damaged = story.clone();
        damage(&mut damaged);
        let found = damaged.audited().await.violations;
        assert!(
            found.iter().any(|v| v.invariant == *invariant && v.to_string().contains(says)),
            "{invariant} {says}: {found:#?}"
        );
    }
}

fn all() -> impl Iterator<Item = &'static Control> {
    [LOST, TWICE, STORED, ANSWERED, ORDERED].into_iter().flatten()
}

/// That records cannot be read is found where the audit is called.
#[test]
fn every_invariant_has_a_control() {
    let controlled: BTreeSet<_> = all().map(|control| control.invariant).collect();
    let claimed = Invariant::ALL.iter().copied().filter(|i| *i != Invariant::Readable);
    assert_eq!(controlled, claimed.collect());
}

/// Without a compiler nobody knows what the subscribers are told; whoever must act is still told.
#[tokio::test]
async fn messages_are_looked_at_without_a_compiler() {
    let story = Story::told().await;
    let found = async |story: &Story| {
        let store = story.store().await;
        let audit = audit(&store, &story.attempts, None).await.unwrap();
        audit.violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(found(&story).await, "");
    let mut silent = story.clone();
    silent.commit("b-report").outbox.clear();
    assert!(found(&silent).await.contains("its message is not in the outbox"));
    let mut wrong = story.clone();
    wrong.commit("b-report").outbox[0].kind = "workflow_completed".to_owned();
    assert!(found(&wrong).await.contains("does not say what its event says"));
    let mut stray = story.clone();
    stray.commit("b-report").outbox[0].seq = 99;
    assert!(found(&stray).await.contains("does not say what its event says"));
}

/// A person who is in no history did something; an operator at the command line may.
#[tokio::test]
async fn whoever_is_in_no_history_did_nothing() {
    let mut story = Story::told().await;
    let stranger = CommitBuilder::next(&bobs(&story), at(0)).by(&user("zoe")).key("z-1");
    story.commits.push(stranger.note("I was here").build());
    let found = story.audited().await.violations;
    assert!(found.iter().any(|v| v.invariant == Invariant::I2), "{found:#?}");
}
