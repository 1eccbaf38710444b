//! Work that changes hands, where the callers are several people: offers to somebody or to anybody, withdrawn, declined or
//! accepted, and work that is taken over.

use rand::RngExt as _;
use serde_json::{Map, Value, json};

use super::Someone;
use super::caller::{Caller, Known};
use super::values::{choose, text};
use super::work::{REASON, id, object};

impl Caller {
    /// Whether the work is somebody else's.
    pub(super) fn is_anothers(&self, view: &Value) -> bool {
        self.is_me(view, "/workflow/owner/id") == Some(false)
    }

    /// Whether the one of whom the view says this identity is this caller.
    fn is_me(&self, view: &Value, pointer: &str) -> Option<bool> {
        let id = view.pointer(pointer).and_then(Value::as_str)?;
        self.me().map(|me| id == me.subject)
    }

    /// What this caller does about whose work it is, now and then: the arguments of `transfer_workflow`.
    pub(super) fn transfer(&mut self, view: &Value) -> Option<Map<String, Value>> {
        self.me()?;
        let is_offered = view.pointer("/workflow/offer").is_some();
        // Only who is named may decline, and is so now and then; the others try it too, and are refused.
        let declines =
            if self.is_me(view, "/workflow/offer/to/id") == Some(true) { 0.4 } else { 0.1 };
        let (action, chance) = match (self.is_anothers(view), is_offered) {
            (false, false) => ("offer", 0.08),
            (false, true) => ("withdraw", 0.1),
            (true, false) => ("take_over", 0.3),
            (true, true) if self.chance(declines) => ("decline", 1.0),
            (true, true) => ("accept", 0.9),
        };
        if !self.chance(chance) {
            return None;
        }
        let mut arguments = object(json!({ "workflow_id": id(view), "action": action }));
        match action {
            "offer" if self.chance(0.7) => {
                let to = self.random.random_range(0..self.plan.people.len());
                let to = self.plan.people.get(to).map(|person| format!("user:{}", person.subject));
                arguments.insert("to".to_owned(), Value::from(to));
            }
            "take_over" => {
                arguments.insert("reason_code".to_owned(), Value::from(REASON));
            }
            _ => {}
        }
        Some(arguments)
    }

    /// Work that somebody offers, or that may be taken.
    pub(super) async fn offered(&mut self) -> Known {
        let found = self.read("find_work", object(json!({ "scope": "available" }))).await?;
        let all =
            found.as_ref().and_then(|found| found.get("candidates")).and_then(Value::as_array);
        let one = choose(all.map_or(&[], Vec::as_slice), &mut self.random);
        let Some(id) =
            one.map(|one| text(one, "workflow_id").to_owned()).filter(|id| !id.is_empty())
        else {
            return Ok(None);
        };
        self.read("get_status", object(json!({ "workflow_id": id }))).await
    }

    fn me(&self) -> Option<&Someone> {
        self.plan.person(self.number)
    }

    /// As whom the server knows this caller.
    pub(super) fn actor(&self) -> String {
        self.me().map_or_else(|| "user:local".to_owned(), |me| format!("user:{}", me.subject))
    }
}
