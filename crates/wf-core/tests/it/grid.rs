//! The grid of domain.md: every state × every command, as one reviewed table, and the page's own table asserted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use wf_core::errors::ErrorCode;
use wf_core::locks::LockChange;
use wf_core::models::{Phase, Principal, Severity};
use wf_core::state_machine::command::SubmittedValue;
use wf_core::state_machine::event::ConfirmedBy;
use wf_core::state_machine::{CommandKind, Rejection, Transfer, Unrecorded, Verdict};

use crate::drive::{
    Desk, acknowledge, clock, correct, finish, offer, operator, owner, reached, release, report,
    resolve, skip, start, start_with, stranger, submit, supervisor, take_over, told, value,
};
use crate::plain_policy::{PlainPolicy, id};

/// A row of the grid.
struct Row {
    name: &'static str,
    by: Principal,
    kind: CommandKind,
    /// Answers a read-back with its token.
    confirm: bool,
}

fn row(name: &'static str, kind: CommandKind) -> Row {
    Row { name, by: owner(), kind, confirm: false }
}

fn by(by: Principal, row: Row) -> Row {
    Row { by, ..row }
}

fn confirmed(row: Row) -> Row {
    Row { confirm: true, ..row }
}

/// Every command, good and bad.
fn rows() -> Vec<Row> {
    let mut rows = starts();
    rows.extend(submits());
    rows.extend(corrections());
    rows.extend(skips_and_reports());
    rows.extend(transfers());
    rows.extend(decisions_and_ends());
    rows
}

fn starts() -> Vec<Row> {
    let order = || json!({"order": "A-1"});
    vec![
        row("start", start(" u-007", order())),
        row("start, two assets", start_with(&[("unit", "U-7"), ("spare", "U-8")], order())),
        row("start, one asset twice", start_with(&[("unit", "U-7"), ("spare", "u 7")], order())),
        row("start, no asset", start_with(&[], order())),
        row("start, no input", start("U-7", json!({}))),
        row("start, not an asset", start("nothing", order())),
        row("start, no such role", start_with(&[("unit", "U-7"), ("third", "U-9")], order())),
        row("start, wrong input", start("U-7", json!({"order": 1}))),
        row("start, inputs too large", start("U-7", json!({"order": "x".repeat(16 * 1024)}))),
        row("acknowledge", CommandKind::AcknowledgeOrchestration { fence: 1 }),
        row("acknowledge, older fence", CommandKind::AcknowledgeOrchestration { fence: 0 }),
    ]
}

fn submits() -> Vec<Row> {
    let unit = |unit: &str| CommandKind::SubmitStep {
        step_id: id("amount"),
        value: SubmittedValue { unit: Some(unit.to_owned()), ..value("250") },
    };
    let forged = CommandKind::SubmitStep {
        step_id: id("amount"),
        value: SubmittedValue {
            confirm_token: Some("ct1.1.AAAA".to_owned()),
            confirmed_by: Some(ConfirmedBy::Elicitation),
            ..value("70")
        },
    };
    vec![
        row("submit ready yes", submit("ready", "yes")),
        row("submit ready no", submit("ready", "no")),
        row("submit ready maybe", submit("ready", "maybe")),
        row("submit amount 25", submit("amount", "25")),
        row("submit amount 250 dash", unit("dash")),
        row("submit amount 55 (warned)", submit("amount", "55")),
        row("submit amount 70 (outside)", submit("amount", "70")),
        row("submit amount 70, forged token", forged),
        confirmed(row("submit amount 70, confirmed", submit("amount", "70"))),
        row("submit amount 700 (impossible)", submit("amount", "700")),
        row("submit amount 250 miles", unit("miles")),
        row("submit amount abc", submit("amount", "abc")),
        row("submit amount 33 (breaks share)", submit("amount", "33")),
        row("submit share 5", submit("share", "5")),
        row("submit share 99 (outside)", submit("share", "99")),
        row("submit shape flat", submit("shape", "flat")),
        row("submit shape torn (blocks)", submit("shape", "torn")),
        row("submit remark", submit("remark", "fine")),
        row("submit whisper", submit("whisper", "CANARY")),
        row("submit nowhere", submit("nowhere", "1")),
        by(stranger(), row("stranger submits ready yes", submit("ready", "yes"))),
        by(supervisor(), row("supervisor submits ready yes", submit("ready", "yes"))),
    ]
}

fn corrections() -> Vec<Row> {
    let reason = |reason: Option<&str>| CommandKind::CorrectStep {
        step_id: id("amount"),
        value: value("26"),
        reason_code: reason.map(id),
    };
    vec![
        row("correct amount 26", correct("amount", "26")),
        row("correct amount 45", correct("amount", "45")),
        row("correct amount 70 (outside)", correct("amount", "70")),
        confirmed(row("correct amount 70, confirmed", correct("amount", "70"))),
        row("correct amount 700 (impossible)", correct("amount", "700")),
        row("correct amount, no reason", reason(None)),
        row("correct amount, unknown reason", reason(Some("WHIM"))),
        row("correct ready no", correct("ready", "no")),
        row("correct shape torn (blocks)", correct("shape", "torn")),
        row("correct whisper", correct("whisper", "CANARY")),
        row("correct nowhere", correct("nowhere", "1")),
        by(stranger(), row("stranger corrects amount 26", correct("amount", "26"))),
    ]
}

fn skips_and_reports() -> Vec<Row> {
    vec![
        row("skip ready (never)", skip("ready", Some("NOT_THERE"))),
        row("skip amount", skip("amount", Some("NOT_THERE"))),
        row("skip amount, no reason", skip("amount", None)),
        row("skip amount, unknown reason", skip("amount", Some("WHIM"))),
        row("skip share", skip("share", Some("NOT_THERE"))),
        row("skip shape (supervisor's)", skip("shape", Some("NOT_THERE"))),
        by(supervisor(), row("supervisor skips shape", skip("shape", Some("NOT_THERE")))),
        row("skip remark", skip("remark", None)),
        row("skip whisper", skip("whisper", None)),
        row("skip nowhere", skip("nowhere", None)),
        by(stranger(), row("stranger skips amount", skip("amount", Some("NOT_THERE")))),
        row("report note", report(Severity::Note, None)),
        row("report low", report(Severity::Low, None)),
        row("report high on amount", report(Severity::High, Some("amount"))),
        row("report on nowhere", report(Severity::High, Some("nowhere"))),
        by(stranger(), row("stranger reports low", report(Severity::Low, None))),
    ]
}

fn transfers() -> Vec<Row> {
    let transfer = CommandKind::Transfer;
    vec![
        row("offer to anybody", offer(None)),
        row("offer to bob", offer(Some("bob"))),
        row("offer to cy (two are called so)", offer(Some("cy"))),
        row("offer to nobody known", offer(Some("zoe"))),
        row("offer to oneself", offer(Some("ann"))),
        by(stranger(), row("stranger offers", offer(None))),
        by(supervisor(), row("supervisor offers to bob", offer(Some("bob")))),
        row("withdraw", transfer(Transfer::Withdraw)),
        by(stranger(), row("stranger withdraws", transfer(Transfer::Withdraw))),
        row("owner declines", transfer(Transfer::Decline)),
        by(stranger(), row("bob declines", transfer(Transfer::Decline))),
        row("owner accepts", transfer(Transfer::Accept)),
        by(stranger(), row("bob accepts", transfer(Transfer::Accept))),
        by(supervisor(), row("supervisor accepts", transfer(Transfer::Accept))),
        row("owner takes over", take_over(Some("NOT_THERE"))),
        row("owner takes over, no reason", take_over(None)),
        by(stranger(), row("stranger takes over", take_over(Some("NOT_THERE")))),
        by(supervisor(), row("supervisor takes over", take_over(Some("NOT_THERE")))),
        by(supervisor(), row("supervisor takes over, no reason", take_over(None))),
        by(supervisor(), row("supervisor takes over, unknown reason", take_over(Some("WHIM")))),
    ]
}

fn decisions_and_ends() -> Vec<Row> {
    let forged = CommandKind::Finish {
        result: id("abandoned"),
        note: None,
        confirm_token: Some("ct1.1.AAAA".to_owned()),
        confirmed_by: Some(ConfirmedBy::Elicitation),
    };
    vec![
        by(supervisor(), row("resolve: go on", resolve("block-5", "go_on"))),
        by(supervisor(), row("resolve: again", resolve("block-5", "again"))),
        by(supervisor(), row("resolve: stop", resolve("block-5", "stop"))),
        by(supervisor(), row("resolve, unknown decision", resolve("block-5", "whim"))),
        by(supervisor(), row("resolve, unknown block", resolve("block-99", "go_on"))),
        row("owner resolves: go on", resolve("block-5", "go_on")),
        by(operator(), row("operator acknowledges", acknowledge("block-5"))),
        by(told(), row("who was told acknowledges", acknowledge("block-5"))),
        by(told(), row("acknowledge, unknown block", acknowledge("block-99"))),
        row("owner acknowledges", acknowledge("block-5")),
        by(clock(), row("deadline, not set", reached("w-1/1/1"))),
        row("owner says the deadline", reached("w-1/1/1")),
        by(operator(), row("operator releases", release("U-7"))),
        by(supervisor(), row("supervisor releases", release("U-7"))),
        row("owner releases", release("U-7")),
        by(operator(), row("operator releases another's", release("U-9"))),
        row("finish good", finish("good")),
        row("finish bad", finish("bad")),
        row("finish whim", finish("whim")),
        row("abandon", finish("abandoned")),
        row("abandon, forged token", forged),
        confirmed(row("abandon, confirmed", finish("abandoned"))),
        by(stranger(), confirmed(row("stranger abandons", finish("abandoned")))),
        by(supervisor(), confirmed(row("supervisor abandons", finish("abandoned")))),
    ]
}

/// Every state, with the variants that matter.
fn states() -> Vec<(&'static str, Desk)> {
    let made = |make: &dyn Fn(&mut Desk)| {
        let mut desk = Desk::running();
        make(&mut desk);
        desk
    };
    vec![
        ("none", Desk::new()),
        ("none, the asset is held", {
            let mut desk = Desk::new();
            desk.steal("U-7");
            desk
        }),
        ("CREATED", created()),
        ("RUNNING, nothing recorded", Desk::running()),
        ("RUNNING, amount recorded", made(&|d| record(d, "25"))),
        ("RUNNING, the condition of share is unclear", made(&|d| record(d, "33"))),
        ("RUNNING, recheck of share pending", made(&recheck)),
        ("RUNNING, amount open again", made(&reopened)),
        ("RUNNING, all settled", made(&|d| settle(d, "25"))),
        ("RUNNING, all settled, one outside", made(&|d| settle(d, "70"))),
        (
            "RUNNING, lock lost",
            made(&|d| {
                settle(d, "25");
                d.steal("U-7");
            }),
        ),
        ("BLOCKED by value", made(&blocked)),
        ("BLOCKED by report", made(&reported)),
        (
            "BLOCKED by value and report",
            made(&|d| {
                blocked(d);
                d.must(&owner(), report(Severity::Low, None));
            }),
        ),
        (
            "BLOCKED by value, lock lost",
            made(&|d| {
                blocked(d);
                d.steal("U-7");
            }),
        ),
        ("RUNNING, offered to bob", made(&|d| d.must_offer(Some("bob")))),
        ("RUNNING, offered to anybody", made(&|d| d.must_offer(None))),
        (
            "RUNNING, offered to bob, asset free",
            made(&|d| {
                d.must_offer(Some("bob"));
                d.lose("U-7");
            }),
        ),
        ("COMPLETED", completed()),
    ]
}

fn created() -> Desk {
    let mut desk = Desk::new();
    desk.must(&owner(), start("U-7", json!({"order": "A-1"})));
    desk
}

fn completed() -> Desk {
    let mut desk = Desk::running();
    settle(&mut desk, "25");
    desk.must(&owner(), finish("good"));
    desk
}

/// Events 3 and 4.
fn record(desk: &mut Desk, amount: &str) {
    desk.must(&owner(), submit("ready", "yes"));
    desk.must(&owner(), submit("amount", amount));
}

/// The block is made by event 5.
fn blocked(desk: &mut Desk) {
    record(desk, "70");
}

fn reported(desk: &mut Desk) {
    record(desk, "25");
    desk.must(&owner(), report(Severity::High, Some("shape")));
}

fn reopened(desk: &mut Desk) {
    blocked(desk);
    desk.must(&supervisor(), resolve("block-5", "again"));
}

fn recheck(desk: &mut Desk) {
    record(desk, "40");
    desk.must(&owner(), submit("share", "5"));
    desk.must(&owner(), correct("amount", "45"));
}

fn settle(desk: &mut Desk, amount: &str) {
    record(desk, amount);
    if desk.workflow().phase == Phase::Blocked {
        desk.must(&supervisor(), resolve("block-5", "go_on"));
        desk.must(&owner(), submit("share", "5"));
    }
    desk.must(&owner(), submit("shape", "round"));
    desk.must(&owner(), submit("whisper", "CANARY"));
}

/// What the answer was called, what happened, what it did to the locks.
fn cell(desk: &Desk, row: &Row) -> String {
    let mut after = desk.clone();
    match after.act(&row.by, row.kind.clone(), row.confirm) {
        Ok(Verdict::Commit(decision)) => {
            let kinds: Vec<&str> = decision.drafts.iter().map(|d| d.body.kind()).collect();
            let phase = after.workflow().phase.as_str();
            let (outcome, kinds) = (decision.outcome.as_str(), kinds.join(" "));
            format!("{outcome} → {phase} | {kinds} | {}", locks(&decision.locks))
        }
        Ok(Verdict::Unrecorded(unrecorded)) => {
            assert_eq!(after.state, desk.state, "nothing is recorded");
            unrecorded_cell(&unrecorded)
        }
        Err(rejection) => {
            assert_eq!(after.state, desk.state, "nothing is recorded");
            rejected_cell(&rejection)
        }
    }
}

fn locks(changes: &[LockChange]) -> String {
    let said: Vec<String> = changes
        .iter()
        .map(|change| match change {
            LockChange::Acquire { asset_id, fence } => format!("acquire {asset_id}#{fence}"),
            LockChange::Take { asset_id, fence } => format!("take {asset_id}#{fence}"),
            LockChange::Assert { asset_id, fence } => format!("assert {asset_id}#{fence}"),
            LockChange::Release { asset_id, fence } => format!("release {asset_id}#{fence}"),
        })
        .collect();
    if said.is_empty() { "–".to_owned() } else { said.join(", ") }
}

fn unrecorded_cell(unrecorded: &Unrecorded) -> String {
    match unrecorded {
        Unrecorded::NeedsConfirmation(_) => "needs_confirmation".to_owned(),
        Unrecorded::NotRecorded { .. } => "not_recorded".to_owned(),
        Unrecorded::NeedsInput { .. } => "needs_input".to_owned(),
        Unrecorded::Unchanged => "(unchanged)".to_owned(),
        Unrecorded::WhichPerson { people } => {
            let ids: Vec<String> = people.iter().map(|person| person.id.to_string()).collect();
            format!("(which of {})", ids.join(", "))
        }
        Unrecorded::HeldBy { workflow_id, .. } => format!("(held by {workflow_id})"),
    }
}

fn rejected_cell(rejection: &Rejection) -> String {
    let mut details = rejection.details.clone();
    // What does not differ from cell to cell.
    for noise in ["at", "by", "rule", "valid", "allowed", "reasons"] {
        if details.contains_key(noise) {
            details.insert(noise.to_owned(), Value::from("…"));
        }
    }
    let details = Value::Object(details).to_string().replace('"', "");
    format!("{} {details}", rejection.code.as_str())
}

/// From so many commands on, a cell is written once with the names of all of them.
const MANY: usize = 4;

#[test]
fn every_state_and_every_command() {
    let mut table = String::new();
    for (name, desk) in states() {
        let _ = writeln!(table, "== {name}");
        let cells: Vec<(&str, String)> =
            rows().iter().map(|row| (row.name, cell(&desk, row))).collect();
        let mut same: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, cell) in &cells {
            same.entry(cell).or_default().push(name);
        }
        for (name, cell) in cells.iter().filter(|(_, cell)| same[cell.as_str()].len() < MANY) {
            let _ = writeln!(table, "{name:34} {cell}");
        }
        for (cell, names) in same.iter().filter(|(_, names)| names.len() >= MANY) {
            let _ = writeln!(table, "{cell}");
            for line in names.chunks(5) {
                let _ = writeln!(table, "    {}", line.join(" · "));
            }
        }
        table.push('\n');
    }
    insta::assert_snapshot!("grid", table);
}

/// What a cell of domain.md's table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Yes,
    /// `–` or `INVALID_TRANSITION`.
    No,
    /// Only for the step that caused the block.
    Causer,
}

/// The table of domain.md, State machine.
fn the_table() -> BTreeMap<&'static str, [Says; 4]> {
    use Says::{Causer, No, Yes};
    BTreeMap::from([
        ("submit", [Yes, Yes, No, No]),
        ("skip", [Yes, Yes, No, No]),
        ("correct", [No, Yes, Causer, No]),
        ("report", [Yes, Yes, Yes, No]),
        ("transfer", [Yes, Yes, Yes, No]),
        ("resolve", [No, No, Yes, No]),
        ("abandon", [Yes, Yes, Yes, No]),
        ("finish", [No, Yes, No, No]),
    ])
}

/// A lawful form of each command of the table, on a workflow of each phase.
fn lawful(command: &'static str, phase: Phase) -> (Desk, Vec<Row>) {
    let mut desk = match phase {
        Phase::Created => created(),
        Phase::Running => Desk::running(),
        Phase::Blocked => {
            let mut desk = Desk::running();
            blocked(&mut desk);
            desk
        }
        Phase::Completed => completed(),
    };
    if phase == Phase::Running && command != "submit" {
        match command {
            "finish" => settle(&mut desk, "25"),
            "skip" => {}
            _ => record(&mut desk, "25"),
        }
    }
    // In order, nothing but the first step is open before it is recorded, and that one is never skipped.
    if command == "skip" {
        desk.policy = PlainPolicy::loose();
    }
    let rows = match command {
        "submit" => vec![row(command, submit("ready", "yes"))],
        "skip" => vec![row(command, skip("amount", Some("NOT_THERE")))],
        "correct" => {
            vec![row("causer", correct("amount", "26")), row("other", correct("ready", "yes"))]
        }
        "report" => vec![
            row(command, report(Severity::High, None)),
            row(command, report(Severity::Note, None)),
        ],
        "transfer" => vec![
            row(command, offer(None)),
            by(supervisor(), row(command, take_over(Some("NOT_THERE")))),
        ],
        "resolve" => ["go_on", "again", "stop"]
            .map(|decision| by(supervisor(), row(command, resolve("block-5", decision))))
            .into(),
        "abandon" => vec![confirmed(row(command, finish("abandoned")))],
        _ => vec![row(command, finish("good")), row(command, finish("bad"))],
    };
    (desk, rows)
}

#[test]
fn the_table_of_the_design_holds() {
    for (command, says) in the_table() {
        for (phase, says) in Phase::ALL.into_iter().zip(says) {
            let (desk, rows) = lawful(command, phase);
            assert_eq!(desk.workflow().phase, phase, "{command}");
            for row in rows {
                let answer = desk.clone().act(&row.by, row.kind.clone(), row.confirm);
                let lawful = match says {
                    Says::Yes => true,
                    Says::No => false,
                    Says::Causer => row.name == "causer",
                };
                let place = format!("{command} ({}) in {}", row.name, phase.as_str());
                match answer {
                    Ok(Verdict::Commit(_)) => assert!(lawful, "{place} must be refused"),
                    Ok(other) => panic!("{place}: {other:?}"),
                    Err(rejection) => {
                        assert!(!lawful, "{place} must be lawful, but: {rejection:?}");
                        assert_eq!(rejection.code, ErrorCode::InvalidTransition, "{place}");
                        let details = &rejection.details;
                        assert_eq!(details["state"], phase.as_str(), "{place}");
                        assert!(details["allowed"].is_array(), "{place}");
                    }
                }
            }
        }
    }
}
