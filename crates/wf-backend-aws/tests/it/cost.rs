//! What each call consumes, measured on the emulator for a procedure of twelve steps, and held against docs/cost.md.
//!
//! `units` says what the published rules make of the requests. The emulator's own `ConsumedCapacity` must say the same of
//! writes. It counts reads as if no item, and no page, were larger than 4 KB, and batches of reads not at all.

mod executions;
mod least;
mod page;
mod units;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use wf_core::engine::{CallMeta, FindWork, GetStatus, Reply, Request};
use wf_core::models::{Principal, Scopes};
use wf_core::policy::DomainPolicyPort as _;
use wf_core::ports::StorageBackendPort as _;
use wf_core::state_machine::Transfer;
use wf_core::state_machine::command::SubmittedValue;
use wf_testkit::build::user;

use crate::bench::{Bench, ann};
use crate::fixture::{Attributes, claim, rows};
use crate::plain_policy::id;
use page::{calls, is_on_the_page, kilobytes, months, shown};
use units::{Image, Item, Units, consumed, entry, size};

/// The procedure of the benches: twelve readings.
const PROCEDURE: &str = include_str!("../../../wf-proof/procedures/bench-round.yaml");
const STEPS: u64 = 12;
const REPLAY: &str = "the same call again";
/// Who is told: one message at the start and one at the end.
const TOLD: &str = "notify: [workflow_started, workflow_completed]\n";
/// What DynamoDB adds to the size of an item, and of an entry of an index, for storage (Developer Guide, item sizes).
const OVERHEAD: u64 = 100;

/// What one kind of call takes.
#[derive(Debug, Clone, Default)]
struct Measured {
    requests: Vec<String>,
    units: Units,
}

struct Meter {
    bench: Bench,
    keys: u32,
    lines: Vec<(String, Measured)>,
}

fn policy() -> Arc<wf_procedure::Procedure> {
    let parsed = wf_procedure::parse(&format!("{PROCEDURE}{TOLD}"), "bench-round.yaml");
    Arc::new(parsed.expect("a procedure"))
}

/// Who decides, and to whom work is handed.
fn bob() -> Principal {
    let scopes = Scopes { read: true, write: true, supervise: true };
    Principal { actor: user("bob"), name: Some("Bob".to_owned()), scopes, ..ann() }
}

fn image(rows: BTreeMap<(String, String), Attributes>) -> Image {
    let item = |attributes: Attributes| -> Item {
        let value =
            |value: &aws_sdk_dynamodb::types::AttributeValue| match (value.as_s(), value.as_n()) {
                (Ok(text), _) => json!({ "S": text }),
                (_, Ok(digits)) => json!({ "N": digits }),
                (Err(_), Err(_)) => unreachable!("we write texts and numbers"),
            };
        attributes.iter().map(|(name, one)| (name.clone(), value(one))).collect()
    };
    rows.into_iter().map(|(key, attributes)| (key, item(attributes))).collect()
}

impl Meter {
    async fn new() -> Self {
        let bench = Bench::of(policy(), |config| config.measure = true).await;
        Self { bench, keys: 0, lines: Vec::new() }
    }

    async fn image(&self) -> Image {
        image(rows(&self.bench.config).await)
    }

    /// Measures what `work` sends.
    async fn measure<T>(&mut self, name: &str, work: impl AsyncFnOnce(&Bench) -> T) -> T {
        self.bench.wire.take_log();
        let (before, told_before) = (self.image().await, self.bench.store.usage());
        let result = work(&self.bench).await;
        let (after, told) = (self.image().await, self.bench.store.usage());
        let mut measured = Measured::default();
        let mut read_halves = 0;
        for sent in self.bench.wire.take_log() {
            let units = consumed(&sent, &before, &after);
            read_halves += match (sent.operation.as_str(), &sent.body["ConsistentRead"]) {
                ("Query" | "GetItem", Value::Bool(true)) => 2,
                ("Query" | "GetItem", _) => 1,
                ("TransactGetItems", _) => 4 * items_of(&sent.body),
                _ => 0,
            };
            measured.units += units;
            measured.requests.push(sent.operation);
        }
        let close = |told: f64, ours: u64, by: f64| {
            let ours = f64::from(u32::try_from(ours).expect("few")) / by;
            assert!(
                (told - ours).abs() < 0.01,
                "{name}: the emulator says {told}, the rules {ours}"
            );
        };
        close(told.write_units - told_before.write_units, measured.units.write, 1.0);
        close(told.read_units - told_before.read_units, read_halves, 2.0);
        self.lines.push((name.to_owned(), measured));
        result
    }

    fn key(&mut self) -> String {
        self.keys += 1;
        format!("key-{:04}", self.keys)
    }

    async fn call(
        &mut self,
        name: &str,
        who: &Principal,
        tool: &'static str,
        mut arguments: Value,
        request: Request,
    ) -> Reply {
        arguments["idempotency_key"] = Value::from(self.key());
        self.repeat(name, who, tool, &arguments, request).await
    }

    async fn repeat(
        &mut self,
        name: &str,
        who: &Principal,
        tool: &'static str,
        arguments: &Value,
        request: Request,
    ) -> Reply {
        let work = async |bench: &Bench| bench.call_of(who, tool, arguments, request).await;
        let reply = self.measure(name, work).await;
        assert_eq!(reply.error, None, "{name}: {}", reply.body);
        reply
    }

    async fn start(&mut self, asset: &str) -> String {
        let assets = BTreeMap::from([("unit".to_owned(), asset.to_owned())]);
        let arguments = json!({ "procedure_id": "bench-round", "assets": assets, "inputs": {} });
        let procedure_id = "bench-round".to_owned();
        let request = Request::Start { procedure_id, assets, inputs: Map::new() };
        let reply =
            self.call("`start_workflow`", &ann(), "start_workflow", arguments, request).await;
        assert_eq!(reply.outcome.as_str(), "started", "{}", reply.body);
        reply.body["workflow"]["id"].as_str().expect("an id").to_owned()
    }

    /// Submits a reading; with `again`, repeats the call.
    async fn submit(&mut self, work: &str, step: u64, again: bool) {
        let (step, key) = (format!("reading_{step:02}"), self.key());
        let arguments = json!({
            "workflow_id": work, "step_id": step, "value": "4.2", "idempotency_key": key
        });
        let request = Request::SubmitStep {
            workflow_id: id(work),
            step_id: id(&step),
            value: reading("4.2"),
        };
        for name in ["`submit_step`", REPLAY].into_iter().take(1 + usize::from(again)) {
            let request = request.clone();
            let reply = self.repeat(name, &ann(), "submit_step", &arguments, request).await;
            assert_eq!(reply.outcome.as_str(), "recorded", "{}", reply.body);
            assert_eq!(reply.duplicate, name != "`submit_step`");
        }
    }

    async fn look(&mut self, work: &str) {
        let query = GetStatus { workflow_id: Some(id(work)), ..GetStatus::default() };
        let meta = CallMeta::default();
        let status = async |bench: &Bench| bench.engine().get_status(&ann(), &query, &meta).await;
        assert_eq!(self.measure("`get_status`", status).await.error, None);
        let query = FindWork::default();
        let find = async |bench: &Bench| bench.engine().find_work(&ann(), &query, &meta).await;
        assert_eq!(self.measure("`find_work`", find).await.error, None);
    }

    async fn finish(&mut self, work: &str) {
        let arguments = json!({ "workflow_id": work, "result": "passed" });
        let request = Request::Finish {
            workflow_id: id(work),
            result: id("passed"),
            note: None,
            confirm_token: None,
            confirmed_by: None,
        };
        let name = "`finish_workflow`";
        let reply = self.call(name, &ann(), "finish_workflow", arguments, request).await;
        assert_eq!(reply.outcome.as_str(), "finished", "{}", reply.body);
    }

    /// What only some workflows meet.
    async fn trouble(&mut self, work: &str) {
        let arguments = json!({ "workflow_id": work, "step_id": "reading_01", "value": "4.3" });
        let request = Request::CorrectStep {
            workflow_id: id(work),
            step_id: id("reading_01"),
            value: reading("4.3"),
            reason_code: Some(id(&policy().reasons()[0].id)),
        };
        self.call("`correct_step`", &ann(), "correct_step", arguments, request).await;
        let summary = "The cover is loose and one screw is missing.".to_owned();
        let arguments = json!({ "workflow_id": work, "summary": summary });
        let request = Request::ReportProblem {
            workflow_id: id(work),
            summary,
            severity: None,
            step_id: None,
        };
        let blocked =
            self.call("`report_problem`", &ann(), "report_problem", arguments, request).await;
        assert_eq!(blocked.outcome.as_str(), "blocked", "{}", blocked.body);
        let block = &blocked.body["blocks"][0];
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let (block_id, decision) = (text(&block["id"]), text(&block["decisions"][0]["id"]));
        let comment = "The screw was replaced.".to_owned();
        let arguments = json!({
            "workflow_id": work, "block_id": block_id, "decision": decision, "comment": comment
        });
        let (block_id, decision) = (id(&block_id), id(&decision));
        let request = Request::ResolveBlock { workflow_id: id(work), block_id, decision, comment };
        self.call("`resolve_block`", &bob(), "resolve_block", arguments, request).await;
        for (name, who, transfer) in [
            ("`transfer_workflow`: an offer", ann(), Transfer::Offer { to: None }),
            ("`transfer_workflow`: taken", bob(), Transfer::Accept),
        ] {
            let arguments = json!({ "workflow_id": work, "how": name });
            let request = Request::Transfer { workflow_id: id(work), transfer };
            self.call(name, &who, "transfer_workflow", arguments, request).await;
        }
    }

    /// Delivers what is due, stream by stream.
    async fn deliver(&mut self) {
        let claim = async |bench: &Bench| bench.engine().claim_streams(10).await.expect("a claim");
        for stream in self.measure("delivery: lease", claim).await {
            let deliver = async |bench: &Bench| bench.engine().deliver_stream(stream).await;
            self.measure("delivery: settle", deliver).await.expect("a delivery");
        }
    }

    async fn sweep(&mut self, name: &str) {
        let retention_ms = 30 * 24 * 3_600_000;
        let sweep = async |bench: &Bench| {
            let now = wf_core::ports::ClockPort::now(&bench.clock);
            bench.store.sweep(now, retention_ms, 1_000).await.expect("a sweep")
        };
        self.measure(name, sweep).await;
    }

    /// All lines with this name: how many, and their sum.
    fn sum(&self, name: &str) -> (u64, Measured) {
        let mut sum = (0, Measured::default());
        for (_, measured) in self.lines.iter().filter(|(other, _)| other == name) {
            sum.0 += 1;
            sum.1.units += measured.units;
            sum.1.requests.clone_from(&measured.requests);
        }
        sum
    }
}

fn reading(value: &str) -> SubmittedValue {
    SubmittedValue { value: Some(value.to_owned()), ..SubmittedValue::default() }
}

/// The items of a transaction.
fn items_of(body: &Value) -> u64 {
    let items = body["TransactItems"].as_array().map_or(0, Vec::len);
    u64::try_from(items).expect("few")
}

/// What a table takes on disk, as it is billed: items and entries of indexes, each with its overhead.
fn stored(image: &Image) -> u64 {
    let indexes = wf_backend_aws::table::SHAPE.indexes;
    let of = |item: &Item| {
        let entries = indexes.iter().filter_map(|(_, pk, sk)| entry([*pk, *sk], item));
        entries.map(|entry| size(&entry) + OVERHEAD).sum::<u64>() + size(item) + OVERHEAD
    };
    image.values().map(of).sum()
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn the_page_says_what_calls_consume() {
    let mut meter = Meter::new().await;
    let empty = stored(&meter.image().await);
    let work = meter.start("UNIT-204").await;
    meter.deliver().await;
    for step in 1..=STEPS {
        meter.submit(&work, step, step == STEPS / 2).await;
        if step == STEPS / 2 {
            meter.look(&work).await;
        }
    }
    meter.finish(&work).await;
    meter.deliver().await;
    meter.sweep("sweep of a finished workflow, to set when its keys expire").await;
    let at_end = kilobytes(stored(&meter.image().await) - empty);
    meter.bench.clock.advance(31 * 24 * 3_600_000);
    meter.sweep("sweep of its keys and messages, after the retention").await;
    let kept = kilobytes(stored(&meter.image().await) - empty);
    let items = meter.image().await.len();

    // A conversation looks for work once and asks where it stands twice.
    let mut whole = Units::default();
    meter.lines.iter().filter(|(name, _)| name != REPLAY).for_each(|(_, m)| whole += m.units);
    whole += meter.sum("`get_status`").1.units;

    let second = async |bench: &Bench| {
        bench.engine().next_due().await.expect("a look at deadlines");
        let now = wf_core::ports::ClockPort::now(&bench.clock);
        bench.store.claim_outbox(&claim(now, "idle")).await.expect("a look at messages");
    };
    meter.measure("a second of a server to which nobody talks", second).await;
    let (_, idle) = meter.sum("a second of a server to which nobody talks");

    let other = meter.start("UNIT-205").await;
    for step in 1..=STEPS / 2 {
        meter.submit(&other, step, false).await;
    }
    meter.trouble(&other).await;

    let mut text = calls(&meter);
    let _ = write!(
        text,
        "\nA workflow of {STEPS} steps takes {} read and {} write units in all. It holds {} KB when it ends, and {} KB \
         in {} items once its keys have expired.\n\n",
        shown(whole.read_halves),
        whole.write,
        at_end,
        kept,
        items - 3,
    );
    text.push_str(&months(whole, [kept, at_end - kept], idle.units));
    is_on_the_page("measured", &text);
}
