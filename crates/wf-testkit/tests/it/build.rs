//! Built commits are well formed: the chain, the places, the causes.

use wf_core::state_machine::{EventBody, SensitiveValue};
use wf_testkit::build::{CommitBuilder, asset, at, chain, genesis, tenant, user, workflow_id};

#[test]
fn a_story_is_one_chain() {
    let (plant, id, ann) = (tenant("plant"), workflow_id("wf-1"), user("ann"));
    let first = CommitBuilder::start(&plant, &id, &ann, at(0))
        .acquire(&asset("PUMP-7"), 1)
        .record("pressure", "4.2")
        .block()
        .build();
    let second = CommitBuilder::next(&first.next, at(1_000)).by(&user("bob")).resolve().build();
    let third = CommitBuilder::next(&second.next, at(2_000)).complete().release_assets().build();

    let mut history = [first.events.clone(), second.events.clone(), third.events].concat();
    let seqs: Vec<u64> = history.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5]);
    assert_eq!((second.expected, third.expected, third.next.revision), (3, 4, 5));
    let stored = history.clone();
    let last = chain(&genesis(&plant, &id), &mut history);
    assert_eq!(history, stored, "the hashes are those of one chain");
    assert_eq!(last, third.next.last_hash);
    assert_eq!(second.ledger.key.actor, user("bob"));
    assert!(second.events.iter().all(|event| event.cause.key == second.ledger.key.key));
    let EventBody::WorkflowStarted { assets, .. } = &first.events.first().unwrap().body else {
        panic!("the first event is a start");
    };
    assert_eq!(*assets, first.next.assets);
}

#[test]
fn sensitive_values_stand_beside_the_chain() {
    let build = |value: &str| {
        let sensitive = SensitiveValue::new("value", "0".repeat(32), value.into());
        let note = EventBody::ProblemNoted { step_id: None, summary: "x".to_owned() };
        CommitBuilder::start(&tenant("plant"), &workflow_id("wf-1"), &user("ann"), at(0))
            .event_with(note, vec![sensitive])
            .build()
    };
    let (one, two) = (build("a"), build("b"));
    assert_ne!(one.events, two.events);
    assert_eq!(one.next.last_hash, two.next.last_hash);
}

#[test]
fn causes_of_touches_are_those_of_their_commit() {
    let builder = CommitBuilder::start(&tenant("plant"), &workflow_id("w"), &user("ann"), at(0));
    let commit = builder.record("pressure", "1").block().offer(None).key("k-9").build();
    let workflow = &commit.next;
    let touches = [
        Some(&workflow.start_touch),
        workflow.ownership_touch.as_ref(),
        workflow.steps.values().map(|step| &step.touch).next(),
        workflow.blocks.first().map(|block| &block.touch),
    ];
    for touch in touches {
        assert_eq!(touch.unwrap().cause.key.as_str(), "k-9");
    }
}
