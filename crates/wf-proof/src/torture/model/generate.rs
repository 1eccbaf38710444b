//! Which operations a case is made of. Most go on with the work that is open, so that cases get far; the rest is whatever
//! a confused assistant might send.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use proptest_state_machine::ReferenceStateMachine;
use serde_json::{Value, json};

use super::call::{Change, Expects, KeyPick, Op, Pick, Request, Style, TokenPick};
use super::world::{Answer, Phase, Work, World};

/// The model as `proptest-state-machine` drives it.
#[derive(Debug)]
pub(super) struct Model;

impl ReferenceStateMachine for Model {
    type State = World;
    type Transition = Op;

    fn init_state() -> BoxedStrategy<World> {
        Just(World::default()).boxed()
    }

    fn transitions(world: &World) -> BoxedStrategy<Op> {
        operation(world)
    }

    fn apply(world: World, op: &Op) -> World {
        world.apply(op)
    }
}

fn operation(world: &World) -> BoxedStrategy<Op> {
    let open: Vec<usize> = world.open().collect();
    let asked = world.last.iter().any(|p| p.answer == Answer::Fresh("needs_confirmation"));
    // What is seldom done is repeated at once more often, so that its repeats are not rare as well.
    let seldom = world.last.iter().any(|p| match &p.answer {
        Answer::Fresh(outcome) => {
            ["corrected", "skipped", "noted", "finished", "transferred"].contains(outcome)
        }
        Answer::Refused(_) | Answer::Again(_) => false,
    });
    let via = || 0..2_u8;
    let mut choices: Vec<(u32, BoxedStrategy<Op>)> = vec![
        (if open.len() < 2 { 24 } else { 8 }, decorated(start()).prop_map(Op::Call).boxed()),
        (30, any_call(world).prop_map(Op::Call).boxed()),
        (
            if seldom { 60 } else { 10 },
            (back(), style(), via())
                .prop_map(|(back, style, via)| Op::Again { back, style, via })
                .boxed(),
        ),
        (
            8,
            (back(), change(), via())
                .prop_map(|(back, change, via)| Op::Mutated { back, change, via })
                .boxed(),
        ),
        (
            if asked { 60 } else { 2 },
            (style(), via()).prop_map(|(style, via)| Op::Confirm { style, via }).boxed(),
        ),
        (2, via().prop_map(|via| Op::Look { via }).boxed()),
        (3, clock().boxed()),
        (2, via().prop_map(|via| Op::Kill { via }).boxed()),
        (1, via().prop_map(|via| Op::Stop { via }).boxed()),
        (1, Just(Op::Second).boxed()),
        (
            2,
            select(vec!["UNIT-1", "unit 02", "P1", "p2", "nothing", "UNIT-9"])
                .prop_map(|asset| Op::Release { asset: asset.to_owned() })
                .boxed(),
        ),
    ];
    if !open.is_empty() {
        let ahead = forward(world, &open);
        choices.push((60, ahead.clone().prop_map(Op::Call).boxed()));
        choices.push((3, (ahead, 0..6_000_u32).prop_map(|(r, after)| Op::Crash(r, after)).boxed()));
        let chosen = select(open).prop_map(number);
        choices.push((1, chosen.prop_map(|workflow| Op::Flood { workflow }).boxed()));
    }
    Union::new_weighted(choices).boxed()
}

fn number(n: usize) -> u8 {
    u8::try_from(n).unwrap_or(u8::MAX)
}

fn back() -> impl Strategy<Value = u8> {
    prop_oneof![5 => 0..3_u8, 2 => 0..60_u8]
}

fn style() -> impl Strategy<Value = Style> {
    (any::<bool>(), any::<bool>(), any::<bool>(), 0..3_u8).prop_map(
        |(reversed, escaped, spaced, numbers)| Style { reversed, escaped, spaced, numbers },
    )
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => Just(Change::Words),
        2 => Just(Change::Value),
        1 => Just(Change::Tool),
        1 => Just(Change::Keyless),
        1 => (0..6_u16).prop_map(Change::Key),
    ]
}

fn clock() -> impl Strategy<Value = Op> {
    // A day and an hour, so that no bound is met to the millisecond.
    select(vec![5, -5, 1_500]).prop_map(|minutes| Op::Clock { minutes })
}

/// Key, token, expectation and form around a request.
fn decorated(request: impl Strategy<Value = Request> + 'static) -> BoxedStrategy<Request> {
    let key = prop_oneof![
        4 => Just(KeyPick::None),
        4 => Just(KeyPick::Next),
        6 => (6..900_u16).prop_map(KeyPick::Named),
        2 => (0..6_u16).prop_map(KeyPick::Named),
    ];
    let expects = prop_oneof![
        20 => Just(Expects::Nothing),
        2 => Just(Expects::Current),
        1 => Just(Expects::Stale),
    ];
    let form = prop_oneof![3 => Just(Style::default()), 1 => style()];
    (request, key, expects, form, 0..2_u8)
        .prop_map(|(request, key, expects, style, via)| {
            // Reads have no key.
            let reads = ["get_status", "find_work", "check_value"].contains(&request.tool.as_str());
            let key = if reads { request.key } else { key };
            Request { key, expects, style, via, ..request }
        })
        .boxed()
}

fn start() -> BoxedStrategy<Request> {
    let unit = select(vec!["UNIT-1", "unit 02", "3", "UNIT-2", "unit 001"]);
    let probe = select(vec!["P1", "p2", "P3", "P4"]);
    let order = select(vec!["A-1", "A-2"]);
    let count = prop_oneof![2 => Just(None), 1 => Just(Some(0_u64)), 1 => Just(Some(7))];
    (unit, probe, order, count)
        .prop_map(|(unit, probe, order, count)| {
            let inputs = match count {
                None => json!({"order": order}),
                Some(count) => json!({"order": order, "count": count}),
            };
            started(json!({"unit": unit, "probe": probe}), inputs)
        })
        .boxed()
}

fn started(assets: Value, inputs: Value) -> Request {
    Request::new("start_workflow")
        .text("procedure_id", "bench-round")
        .with("assets", Pick::Json(assets))
        .with("inputs", Pick::Json(inputs))
}

/// What goes on with work that is open.
fn forward(world: &World, open: &[usize]) -> BoxedStrategy<Request> {
    let each = open.iter().filter_map(|n| {
        let work = world.works.get(*n)?;
        let ahead = next(number(*n), work);
        let hand = |actions| transfer(number(*n), actions);
        Some(decorated(match (world.holds(*n), work.offer) {
            (false, _) => prop_oneof![ahead, hand(&["take_over"])],
            (true, Some(_)) => {
                prop_oneof![2 => ahead, 1 => hand(&["withdraw", "accept", "decline"])]
            }
            (true, None) => prop_oneof![9 => ahead, 1 => hand(&["offer"])],
        }))
    });
    Union::new(each).boxed()
}

fn next(n: u8, work: &Work) -> BoxedStrategy<Request> {
    match (work.phase, work.open_step()) {
        (Phase::Blocked, _) => prop_oneof![3 => resolve(n), 1 => correct(n, Some(work))].boxed(),
        (Phase::Running, Some("remark")) => {
            prop_oneof![2 => finish(n), 1 => submit(n, "remark"), 1 => skip(n, "remark"), 2 => correct(n, Some(work))].boxed()
        }
        (Phase::Running, None) => prop_oneof![4 => finish(n), 1 => correct(n, Some(work))].boxed(),
        (Phase::Running, Some(step)) => prop_oneof![6 => submit(n, step), 1 => skip(n, step)].boxed(),
        (Phase::Completed, _) => finish(n),
    }
}

/// Good values first: cases shrink to them.
fn values(step: &str) -> Vec<&'static str> {
    match step {
        "ready" => vec!["yes", "Done", "confirmed", "true", "no", "maybe"],
        "length" => vec![
            "20", "30", "020", "12.5", "10", "50", "2 cm", "3", "1.5", "9.9", "50.1", "100", "150",
            "-1", "4,2", "1e5", "12.55", "20 kg", "much",
        ],
        "surface" => vec!["smooth", "rough", "ROUGH", "cracked", "badly cracked", "shiny"],
        "depth" => vec!["5", "0", "11", "25", "99.9", "101", "5 cm", "5.25", "x"],
        _ => vec!["fine", "a longer remark than that", "ok"],
    }
}

fn value(step: &str) -> impl Strategy<Value = (&'static str, Option<&'static str>)> + use<> {
    let unit = prop_oneof![
        12 => Just(None),
        1 => Just(Some("mm")),
        1 => Just(Some("cm")),
        1 => Just(Some("kg")),
    ];
    let all = values(step);
    let good = all.iter().copied().take(2).collect::<Vec<_>>();
    (prop_oneof![2 => select(good), 3 => select(all)], unit)
}

fn note() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![3 => Just(None), 1 => Just(Some("seen twice")), 1 => Just(Some("nach dem Gerät"))]
}

fn token() -> impl Strategy<Value = TokenPick> {
    prop_oneof![
        10 => Just(TokenPick::None),
        2 => (0..3_u8).prop_map(TokenPick::Earlier),
        1 => Just(TokenPick::Junk),
    ]
}

fn submit(n: u8, step: &'static str) -> BoxedStrategy<Request> {
    (value(step), note(), token())
        .prop_map(move |((value, unit), note, token)| {
            let request = Request::new("submit_step").workflow(n).text("step_id", step);
            let request = request.text("value", value).maybe("unit", unit).maybe("note", note);
            Request { token, ..request }
        })
        .boxed()
}

fn correct(n: u8, work: Option<&Work>) -> BoxedStrategy<Request> {
    let mut steps = vec!["length", "ready", "surface", "depth", "remark", "nothing"];
    // What has a value is meant more often.
    for step in work.iter().flat_map(|work| work.steps.iter()).filter(|(_, s)| s.reading.is_some())
    {
        steps.splice(0..0, [*step.0; 4]);
    }
    let step = select(steps);
    let reason = prop_oneof![6 => Just(Some("MISHEARD")), 1 => Just(None), 1 => Just(Some("LAZY"))];
    (step.prop_flat_map(|step| (Just(step), value(step))), reason, token())
        .prop_map(move |((step, (value, unit)), reason, token)| {
            let request = Request::new("correct_step").workflow(n).text("step_id", step);
            let request = request.text("value", value).maybe("unit", unit);
            Request { token, ..request.maybe("reason_code", reason) }
        })
        .boxed()
}

fn skip(n: u8, step: &'static str) -> BoxedStrategy<Request> {
    let reason = prop_oneof![4 => Just(Some("WORN")), 2 => Just(None), 1 => Just(Some("LAZY"))];
    (reason, note())
        .prop_map(move |(reason, note)| {
            let request = Request::new("skip_step").workflow(n).text("step_id", step);
            request.maybe("reason_code", reason).maybe("note", note)
        })
        .boxed()
}

fn report(n: u8) -> BoxedStrategy<Request> {
    let severity =
        select(vec![None, Some("low"), Some("note"), Some("note"), Some("high"), Some("huge")]);
    let summary = select(vec!["it hums", "it leaks", "it hums", "it leaks", " "]);
    let step = select(vec![None, Some("length"), Some("ready"), Some("depth"), Some("nothing")]);
    (severity, summary, step)
        .prop_map(move |(severity, summary, step)| {
            let request = Request::new("report_problem").workflow(n).text("summary", summary);
            request.maybe("severity", severity).maybe("step_id", step)
        })
        .boxed()
}

fn resolve(n: u8) -> BoxedStrategy<Request> {
    let decisions = vec!["carry_on", "accept_deviation", "redo", "require_redo", "abort", "shrug"];
    let comment = select(vec!["as agreed", "looked at it"]);
    (select(decisions), comment, 0..4_u8)
        .prop_map(move |(decision, comment, block)| {
            Request::new("resolve_block")
                .workflow(n)
                .with("block_id", Pick::Block(block))
                .text("decision", decision)
                .text("comment", comment)
        })
        .boxed()
}

fn transfer(n: u8, actions: &[&'static str]) -> BoxedStrategy<Request> {
    let to = select(vec![None, None, Some("user:colleague"), Some("user:local"), Some("Zoe")]);
    let reason = prop_oneof![5 => Just(Some("WORN")), 1 => Just(None), 1 => Just(Some("LAZY"))];
    (select(actions.to_vec()), to, reason)
        .prop_map(move |(action, to, reason)| {
            let request = Request::new("transfer_workflow").workflow(n).text("action", action);
            match action {
                "offer" => request.maybe("to", to),
                "take_over" => request.maybe("reason_code", reason),
                _ => request,
            }
        })
        .boxed()
}

fn finish(n: u8) -> BoxedStrategy<Request> {
    let result = prop_oneof![5 => Just("passed"), 3 => Just("failed"), 3 => Just("abandoned"), 1 => Just("lost")];
    (result, note(), token())
        .prop_map(move |(result, note, token)| {
            let request = Request::new("finish_workflow").workflow(n).text("result", result);
            Request { token, ..request.maybe("note", note) }
        })
        .boxed()
}

/// Any tool on any workflow, started or not, and what is wrong in itself.
fn any_call(world: &World) -> BoxedStrategy<Request> {
    let works = world.works.clone();
    let some = 0..number(world.works.len() + 1);
    let step = || select(vec!["ready", "length", "surface", "depth", "remark", "nothing"]);
    let on = move |n: u8| {
        prop_oneof![
            3 => step().prop_flat_map(move |step| submit(n, step)),
            3 => correct(n, works.get(usize::from(n))),
            2 => step().prop_flat_map(move |step| skip(n, step)),
            4 => report(n),
            2 => resolve(n),
            2 => finish(n),
            3 => transfer(n, &["offer", "withdraw", "decline", "accept", "take_over"]),
            2 => step().prop_flat_map(move |step| check(n, step)),
            1 => Just(Request::new("get_status").workflow(n).text("detail", "brief")),
        ]
    };
    let call = decorated(some.prop_flat_map(on).boxed());
    prop_oneof![8 => call.clone(), 2 => decorated(odd_start()), 1 => malformed(call)].boxed()
}

fn check(n: u8, step: &'static str) -> BoxedStrategy<Request> {
    value(step)
        .prop_map(move |(value, unit)| {
            let request = Request::new("check_value").workflow(n).text("step_id", step);
            request.text("value", value).maybe("unit", unit)
        })
        .boxed()
}

fn odd_start() -> BoxedStrategy<Request> {
    let assets = json!({"unit": "UNIT-1", "probe": "P1"});
    let order = json!({"order": "A-1"});
    select(vec![
        started(json!({"unit": "UNIT-4"}), order.clone()),
        started(json!({}), json!({})),
        started(assets.clone(), json!({})),
        started(assets.clone(), json!({"order": ""})),
        started(assets.clone(), json!({"order": "A-1", "colour": "red"})),
        started(assets.clone(), json!({"order": "A-1", "count": 9_007_199_254_740_993_u64})),
        started(json!({"unit": "UNIT-12345", "probe": "P1"}), order.clone()),
        started(json!({"unit": "UNIT-1", "probe": "P1", "pump": "PUMP-1"}), order.clone()),
        started(assets, order).text("procedure_id", "no-such-round"),
    ])
    .boxed()
}

/// A call with one thing wrong in its form.
fn malformed(call: BoxedStrategy<Request>) -> BoxedStrategy<Request> {
    (call, 0..6_u8)
        .prop_map(|(request, wrong)| match wrong {
            0 => Request { broken: true, ..request },
            1 => request.text("colour", "red"),
            2 => request.key(KeyPick::TooLong),
            3 => request.with("workflow_id", Pick::Json(json!(7))),
            4 => request.with("value", Pick::Json(json!(7))),
            _ => {
                let mut request = request;
                request.args.remove("workflow_id");
                request
            }
        })
        .boxed()
}
