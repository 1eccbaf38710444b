//! A look for tests: two servers of which one is away, three workflows, a message of each kind.

use serde_json::{Value, json};
use wf_core::models::{Timestamp, Workflow};
use wf_core::ports::{Backlog, DamagedMessage, OutboxRow, OutboxState, OutboxStatus};

use crate::cmd::top::figures::Figures;
use crate::cmd::top::look::{Look, Stored, callers};

const EXPOSITION: &str = r#"checkpoint_build_info{version="1.2.3"} 1
checkpoint_store_ready 1
checkpoint_requests_in_flight 2
checkpoint_connections 7
checkpoint_memory_bytes 21000000
checkpoint_tool_calls_total{tenant="default",tool="submit_step",outcome="recorded",code="",duplicate="false"} 120
checkpoint_tool_calls_total{tenant="default",tool="submit_step",outcome="recorded",code="",duplicate="true"} 3
checkpoint_tool_calls_total{tenant="default",tool="start_workflow",outcome="refused",code="ASSET_LOCKED",duplicate="false"} 1
checkpoint_tool_seconds_sum{tool="submit_step"} 0.246
checkpoint_tool_seconds_count{tool="submit_step"} 123
checkpoint_tool_seconds_sum{tool="start_workflow"} 0.004
checkpoint_tool_seconds_count{tool="start_workflow"} 1
checkpoint_commit_queue_depth 600
checkpoint_commit_seconds_sum 0.2
checkpoint_commit_seconds_count 100
checkpoint_commit_batch_size_sum 124
checkpoint_commit_batch_size_count 100
checkpoint_commit_failures{outcome="unknown"} 0
checkpoint_database_bytes 5300000
checkpoint_wal_bytes 410000
checkpoint_disk_free_bytes 40000000000
checkpoint_deadlines_fired_total 4
checkpoint_deadline_lateness_seconds_sum 0.02
checkpoint_deadline_lateness_seconds_count 4
checkpoint_deadlines_kept_total 0
checkpoint_notifications_delivered_total{sink="webhook"} 31
checkpoint_notification_failures_total{sink="webhook"} 9
checkpoint_notifications_given_up_total 1
checkpoint_background_panics_total{work="clock"} 0
checkpoint_reconciler_shards_held{shard="0"} 1
checkpoint_reconciler_shards_held{shard="1"} 1
checkpoint_reconciler_lag_seconds{shard="0"} 1.5
checkpoint_reconciler_lag_seconds{shard="1"} 400
checkpoint_reconciler_actions_total{rule="R1",action="start",outcome="done"} 12
"#;

/// A look at noon.
pub(super) fn look() -> Look {
    let open = [
        workflow(1, "pump 204", "ann", "Ann", "RUNNING", "11:59:30"),
        workflow(2, "balance 7", "ben", "Ben", "RUNNING", "11:40:00"),
        workflow(3, "pump 12", "ben", "Ben", "BLOCKED", "10:15:00"),
    ];
    let stored = Stored {
        callers: callers(&open),
        open: open.len(),
        blocked: open.into_iter().skip(2).collect(),
        locks: [("PUMP-204", "ann", "Ann", "11:50:00"), ("BAL-7", "ben", "Ben", "09:00:00")]
            .map(|(asset, subject, name, at)| {
                from(json!({
                    "tenant": "default", "asset_id": asset, "fence": 3,
                    "holder": {
                        "workflow_id": id(1), "owner": {"id": format!("user:{subject}"), "name": name},
                        "acquired_at": time(at),
                    },
                }))
            })
            .into(),
        backlog: Backlog { pending: 1, dead: 1, oldest_pending: Some(at("11:58:30")) },
        messages: vec![
            Ok(message(OutboxState::Dead, 12, Some("410 Gone"), "08:00:00")),
            Ok(message(OutboxState::Pending, 1, Some("connection refused"), "11:58:30")),
            Err(DamagedMessage { id: "m-9".to_owned(), state: None, error: "no JSON".to_owned() }),
        ],
        more: [false, false, true],
    };
    Look {
        at: at("12:00:00"),
        store: "/var/lib/checkpoint/checkpoint.db".to_owned(),
        stored,
        servers: vec![
            ("127.0.0.1:9090".to_owned(), Ok(Figures::read(EXPOSITION))),
            ("10.0.0.2:9090".to_owned(), Err("no server answers at 10.0.0.2:9090".to_owned())),
        ],
    }
}

/// The look 2 seconds before it, with 10 calls fewer.
pub(super) fn before() -> Look {
    let text = EXPOSITION.replace("\"false\"} 120", "\"false\"} 110");
    let mut look = look();
    look.at = at("11:59:58");
    look.servers[0].1 = Ok(Figures::read(&text));
    look
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn time(clock: &str) -> String {
    format!("2026-03-01T{clock}.000Z")
}

fn at(clock: &str) -> Timestamp {
    Timestamp::parse(&time(clock)).unwrap()
}

fn id(number: u8) -> String {
    format!("0197f3a0-1111-7222-8333-4444555566{number:02}")
}

fn workflow(
    number: u8,
    label: &str,
    subject: &str,
    name: &str,
    phase: &str,
    active: &str,
) -> Workflow {
    let hash = "2ec7da00394f2c2f636239faab1d8667672e0fa7a334b210622b181bc6f97255";
    let person = json!({"id": format!("user:{subject}"), "name": name});
    let fingerprint = format!("v1:{hash}");
    let cause = json!({"key": "k1", "fingerprint": fingerprint, "natural": fingerprint});
    let touch = json!({"seq": 1, "actor": person["id"], "cause": cause});
    let block = json!({
        "id": "block-3", "code": "PROBLEM_REPORTED", "reported": true, "severity": "high",
        "at": time(active), "by": person, "touch": touch,
    });
    from(json!({
        "tenant": "default", "id": id(number), "label": label, "phase": phase, "revision": 3, "last_hash": hash,
        "procedure": {"id": "round", "version": 1, "digest": hash}, "owner": person, "assets": [], "inputs": {},
        "steps": {}, "blocks": if phase == "BLOCKED" { vec![block] } else { Vec::new() }, "start_touch": touch,
        "started_at": time("08:00:00"), "updated_at": time(active), "last_activity": time(active), "fence": 1,
    }))
}

fn message(state: OutboxState, attempts: u32, error: Option<&str>, clock: &str) -> OutboxRow {
    let message = from(json!({
        "id": format!("{}/4/lead", id(3)), "type": "workflow_blocked", "time": time(clock), "tenant": "default",
        "workflow_id": id(3), "seq": 4, "recipient": "lead", "data": {},
    }));
    let next_attempt_at = at("12:01:00");
    let last_error = error.map(str::to_owned);
    OutboxRow { message, status: OutboxStatus { state, attempts, next_attempt_at, last_error } }
}
