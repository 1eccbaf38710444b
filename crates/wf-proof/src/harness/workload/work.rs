//! What a caller does next: orders of the shipped pump inspection, from nothing but the last view of the workflow.

use rand::RngExt as _;
use serde_json::{Map, Value, json};

use super::caller::{Caller, Gone, Known};
use super::values::{choose, good, text, too_high};
use super::{Unknown, is_recorded};

const PROCEDURE: &str = "pump-inspection";
pub(super) const REASON: &str = "MISHEARD";
/// Refusals in a row after which a caller gives the workflow up; somebody else works on it.
const REFUSALS_MAX: u32 = 4;
/// Revision after which a caller abandons: decisions to redo could go on for ever.
const REVISION_MAX: u64 = 40;

impl Caller {
    /// One order, from the start to the end or until it is told to stop.
    pub(super) async fn one_order(&mut self) -> Result<(), Gone> {
        self.worked += 1;
        if self.chance(0.05) {
            let scope = ["mine", "available", "blocked"][self.random.random_range(0..3)];
            self.read("find_work", object(json!({ "scope": scope }))).await?;
        }
        if !self.plan.people.is_empty() && self.chance(0.15) {
            return match self.offered().await? {
                Some(view) if is_view(&view) => self.drive(view, false).await,
                _ => Ok(()),
            };
        }
        let asset = self.asset();
        let order = format!("WO {}", self.unique());
        let start = json!({
            "procedure_id": PROCEDURE, "assets": { "pump": asset }, "inputs": { "work_order": order },
        });
        match self.write("start_workflow", object(start), None).await? {
            Some(view) if is_view(&view) => self.drive(view, true).await,
            refused => match self.somebody_elses(&asset, refused).await? {
                Some(view) if is_view(&view) => self.drive(view, false).await,
                _ => Ok(()),
            },
        }
    }

    fn asset(&mut self) -> String {
        if self.plan.contended > 0 && self.chance(0.5) {
            return format!("PUMP-{}", self.random.random_range(1..=self.plan.contended));
        }
        format!("PUMP-{}", 10_000 * (u64::from(self.number) + 1) + self.worked % 10_000)
    }

    /// After a start that was refused or is unknown: whoever has the asset, or something else that is open.
    async fn somebody_elses(&mut self, asset: &str, refused: Option<Value>) -> Known {
        let code = refused.as_ref().and_then(|r| r.pointer("/error/code")).and_then(Value::as_str);
        if code == Some("LIMIT_EXCEEDED") {
            let found = self.read("find_work", object(json!({ "scope": "mine" }))).await?;
            let all = found.as_ref().and_then(|f| f.get("candidates")).and_then(Value::as_array);
            let one = choose(all.map_or(&[], Vec::as_slice), &mut self.random);
            let Some(id) = one.map(|one| text(one, "workflow_id").to_owned()) else {
                return Ok(None);
            };
            return self.read("get_status", object(json!({ "workflow_id": id }))).await;
        }
        if self.chance(0.5) {
            return self.read("get_status", object(json!({ "asset_id": asset }))).await;
        }
        Ok(None)
    }

    /// Brings a workflow to its end, or gives up on one that others change.
    async fn drive(&mut self, mut view: Value, own: bool) -> Result<(), Gone> {
        let quits = self.chance(0.12);
        let leaves = self.chance(self.plan.walks_away);
        let mut refusals = 0;
        while !self.is_over() && refusals < REFUSALS_MAX && state(&view) != "COMPLETED" {
            if self.chance(0.03) {
                let detail = if self.chance(0.5) { "full" } else { "brief" };
                let status = json!({ "workflow_id": id(&view), "detail": detail });
                self.read("get_status", object(status)).await?;
            }
            match self.next(&view, own, quits).await? {
                Some(next) if is_view(&next) => {
                    view = next;
                    refusals = 0;
                }
                _ => {
                    refusals += 1;
                    let status = object(json!({ "workflow_id": id(&view) }));
                    match self.read("get_status", status).await? {
                        Some(now) if is_view(&now) => view = now,
                        _ => return Ok(()),
                    }
                }
            }
            if (!own && self.chance(0.1)) || (leaves && self.chance(0.3)) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The next call on a workflow.
    async fn next(&mut self, view: &Value, own: bool, quits: bool) -> Known {
        let workflow = id(view);
        let key = self.key(view, own);
        if self.chance(0.03) {
            let severity = ["note", "low", "high"][self.random.random_range(0..3)];
            let problem =
                json!({ "workflow_id": workflow, "summary": "it rattles", "severity": severity });
            return self.write("report_problem", object(problem), key).await;
        }
        if let Some(transfer) = self.transfer(view) {
            return self.write("transfer_workflow", transfer, key).await;
        }
        if state(view) == "BLOCKED" {
            let block = view.pointer("/blocks/0").cloned().unwrap_or_default();
            let all = block.get("decisions").and_then(Value::as_array);
            let decision = choose(all.map_or(&[], Vec::as_slice), &mut self.random);
            let decision = decision.map(|d| text(d, "id").to_owned()).unwrap_or_default();
            let decide = json!({
                "workflow_id": workflow, "block_id": text(&block, "id"), "decision": decision,
                "comment": "seen",
            });
            return self.write("resolve_block", object(decide), key).await;
        }
        let revision = view.pointer("/workflow/revision").and_then(Value::as_u64).unwrap_or(0);
        if revision > REVISION_MAX || (quits && self.chance(0.2)) {
            let finish = json!({ "workflow_id": workflow, "result": "abandoned" });
            return self.write("finish_workflow", object(finish), key).await;
        }
        match view.get("step") {
            Some(step) => self.step(view, step, key).await,
            None => {
                let all = view.pointer("/workflow/results").and_then(Value::as_array);
                let result = choose(all.map_or(&[], Vec::as_slice), &mut self.random);
                let result = result.map(|r| text(r, "id").to_owned()).unwrap_or_default();
                let finish = json!({ "workflow_id": workflow, "result": result });
                self.write("finish_workflow", object(finish), key).await
            }
        }
    }

    async fn step(&mut self, view: &Value, step: &Value, key: Option<String>) -> Known {
        let is_number = text(step, "kind") == "number";
        let attempt = step.get("attempt").and_then(Value::as_u64).unwrap_or(1);
        if is_number && attempt < 3 && self.chance(0.12) {
            return self.write("submit_step", answer(view, step, &too_high(step)), key).await;
        }
        let is_optional = step.get("required") == Some(&Value::Bool(false));
        let may_skip = text(step, "skip") != "never";
        if may_skip && self.chance(if is_optional { 0.5 } else { 0.1 }) {
            let skip = json!({
                "workflow_id": id(view), "step_id": text(step, "id"), "reason_code": REASON,
            });
            return self.write("skip_step", object(skip), key).await;
        }
        let value = good(step, &mut self.random);
        if self.chance(0.03) {
            self.read("check_value", answer(view, step, &value)).await?;
        }
        let after = self.write("submit_step", answer(view, step, &value), key).await?;
        let goes_on = after.as_ref().is_some_and(|v| is_recorded(v) && state(v) == "RUNNING");
        if is_number && goes_on && self.chance(0.15) {
            let mut correct = answer(view, step, &good(step, &mut self.random));
            correct.insert("reason_code".to_owned(), Value::from(REASON));
            return self.write("correct_step", correct, None).await;
        }
        Ok(after)
    }

    /// Sometimes the key that the view offers, as assistants do. Not where somebody else may be offered the same one, and
    /// not where an earlier call under it may still be on its way: then two decisions would share a key.
    fn key(&mut self, view: &Value, own: bool) -> Option<String> {
        let may = own && self.plan.unknown == Unknown::Settle && self.chance(0.3);
        may.then(|| text(view, "next_idempotency_key").to_owned()).filter(|key| !key.is_empty())
    }
}

/// The arguments that answer a step.
fn answer(view: &Value, step: &Value, value: &str) -> Map<String, Value> {
    let mut arguments =
        object(json!({ "workflow_id": id(view), "step_id": text(step, "id"), "value": value }));
    if let Some(unit) = step.get("unit") {
        arguments.insert("unit".to_owned(), unit.clone());
    }
    arguments
}

/// A good answer that shows a workflow.
fn is_view(result: &Value) -> bool {
    result.get("ok") == Some(&Value::Bool(true)) && !id(result).is_empty()
}

pub(super) fn id(view: &Value) -> &str {
    view.pointer("/workflow/id").and_then(Value::as_str).unwrap_or_default()
}

fn state(view: &Value) -> &str {
    view.pointer("/workflow/state").and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}
