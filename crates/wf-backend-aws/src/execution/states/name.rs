//! What an execution is called, where it is and what it is given: told from the store, the workflow and the fence alone, so
//! that whoever starts it, now or after a crash, means the same one.

use serde_json::{Value, json};
use wf_core::models::{TenantId, WorkflowId};
use wf_core::ports::Execution;

/// Characters of the name of an execution (API reference, StartExecution).
const NAME_CHARS_MAX: usize = 80;
/// Characters of the store's id in a name.
const STORE_CHARS: usize = 8;
/// Characters of the digest that stands for an id which a name cannot have.
const DIGEST_CHARS: usize = 40;

/// The state machine, for one store in one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    arn: String,
    /// Without a version or an alias.
    unqualified: String,
    /// What the ARN of each execution begins with.
    executions: String,
    /// What the name of each execution of this store begins with.
    store: String,
    table: String,
}

impl Machine {
    /// Reads `arn:<partition>:states:<region>:<account>:stateMachine:<name>[:<version or alias>]`.
    pub(crate) fn parse(arn: &str, store_id: &str, table: &str) -> Option<Self> {
        let parts: Vec<&str> = arn.split(':').collect();
        let (&[scheme, partition, service, region, account, kind, name], rest) =
            parts.split_first_chunk()?;
        let named = [partition, region, account, name].iter().all(|part| !part.is_empty());
        let right = scheme == "arn" && service == "states" && kind == "stateMachine";
        if !named || !right || rest.len() > 1 || rest.iter().any(|part| part.is_empty()) {
            return None;
        }
        let place = format!("arn:{partition}:states:{region}:{account}");
        Some(Self {
            arn: arn.to_owned(),
            unqualified: format!("{place}:stateMachine:{name}"),
            executions: format!("{place}:execution:{name}:"),
            store: format!("{}-", store_id.get(..STORE_CHARS).unwrap_or(store_id)),
            table: table.to_owned(),
        })
    }

    /// The state machine, as it was configured.
    pub(crate) fn arn(&self) -> &str {
        &self.arn
    }

    /// The state machine, without a version or an alias.
    pub(crate) fn unqualified_arn(&self) -> &str {
        &self.unqualified
    }

    /// `<store id, 8>-<workflow id>-<fence>`. An id that a name cannot have, for its length or a colon, is told by its
    /// digest.
    pub(crate) fn name(&self, execution: &Execution<'_>) -> String {
        let id = execution.workflow_id.as_str();
        let plain = format!("{}{id}-{}", self.store, execution.fence);
        if plain.len() <= NAME_CHARS_MAX && !id.contains(':') {
            return plain;
        }
        let digest = wf_core::idempotency::sha256_hex(id.as_bytes());
        let digest = digest.get(..DIGEST_CHARS).unwrap_or(&digest);
        format!("{}{digest}-{}", self.store, execution.fence)
    }

    /// The execution of this name.
    pub(crate) fn execution_arn(&self, name: &str) -> String {
        format!("{}{name}", self.executions)
    }

    /// What an execution is given, and nothing else.
    pub(crate) fn input(&self, execution: &Execution<'_>) -> Value {
        json!({
            "table": self.table,
            "tenant": execution.tenant,
            "workflow_id": execution.workflow_id,
            "fence": execution.fence,
        })
    }

    /// An execution of this name may be of this store.
    pub(crate) fn is_ours(&self, name: &str) -> bool {
        name.starts_with(&self.store)
    }

    /// Whose an execution of ours is, by its name and its input; none when it is not of this store and table.
    pub(crate) fn whose(&self, name: &str, input: &Value) -> Option<(TenantId, WorkflowId, u64)> {
        let text = |field: &str| input.get(field).and_then(Value::as_str);
        let tenant = TenantId::parse(text("tenant")?).ok()?;
        let workflow_id = WorkflowId::parse(text("workflow_id")?).ok()?;
        let fence = input.get("fence").and_then(Value::as_u64)?;
        let meant = Execution { tenant: &tenant, workflow_id: &workflow_id, fence };
        let same = self.input(&meant) == *input && self.name(&meant) == name;
        same.then_some((tenant, workflow_id, fence))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wf_core::models::{TenantId, WorkflowId};
    use wf_core::ports::Execution;

    use super::Machine;

    const ARN: &str = "arn:aws:states:eu-west-1:123456789012:stateMachine:checkpoint";
    const STORE: &str = "0123456789abcdef0123456789abcdef";

    fn named(id: &str, fence: u64) -> String {
        let machine = Machine::parse(ARN, STORE, "t").expect("an ARN");
        let (tenant, workflow_id) =
            (TenantId::parse("acme").expect("an id"), WorkflowId::parse(id).expect("an id"));
        machine.name(&Execution { tenant: &tenant, workflow_id: &workflow_id, fence })
    }

    #[test]
    fn names_are_the_same_for_the_same_and_valid_for_all() {
        assert_eq!(named("wf_1", 3), "01234567-wf_1-3");
        let long = "x".repeat(128);
        for id in [long.as_str(), "a:b", "a.b-c_d", &"y".repeat(60)] {
            let name = named(id, u64::MAX);
            assert!((1..=80).contains(&name.len()), "{name}");
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            assert!(name.chars().all(plain), "{name}");
            assert_eq!(name, named(id, u64::MAX));
        }
        assert_ne!(named("a:b", 1), named("a:c", 1));
        assert_ne!(named("wf_1", 1), named("wf_1", 2));
    }

    #[test]
    fn executions_are_where_their_machine_is() {
        for (arn, unqualified) in [(ARN.to_owned(), ARN), (format!("{ARN}:prod"), ARN)] {
            let machine = Machine::parse(&arn, STORE, "t").expect("an ARN");
            assert_eq!((machine.arn(), machine.unqualified_arn()), (arn.as_str(), unqualified));
            let expected = "arn:aws:states:eu-west-1:123456789012:execution:checkpoint:n-1";
            assert_eq!(machine.execution_arn("n-1"), expected);
        }
        for wrong in [
            "",
            "checkpoint",
            "arn:aws:states:eu-west-1:123456789012:execution:checkpoint:x",
            "arn:aws:states:eu-west-1:123456789012:stateMachine:",
            "arn:aws:lambda:eu-west-1:123456789012:stateMachine:x",
            "arn:aws:states:eu-west-1:123456789012:stateMachine:x:1:2",
        ] {
            assert_eq!(Machine::parse(wrong, STORE, "t"), None, "{wrong}");
        }
    }

    #[test]
    fn whose_an_execution_is_is_told_by_all_of_it() {
        let machine = Machine::parse(ARN, STORE, "t").expect("an ARN");
        let input = json!({ "table": "t", "tenant": "acme", "workflow_id": "wf_1", "fence": 3 });
        let whose = machine.whose("01234567-wf_1-3", &input).expect("ours");
        assert_eq!((whose.0.as_str(), whose.1.as_str(), whose.2), ("acme", "wf_1", 3));
        for (field, other) in [("table", json!("u")), ("fence", json!(4)), ("more", json!(1))] {
            let mut input = input.clone();
            input[field] = other;
            assert_eq!(machine.whose("01234567-wf_1-3", &input), None, "{field}");
        }
        assert_eq!(machine.whose("76543210-wf_1-3", &input), None);
        assert!(!machine.is_ours("76543210-wf_1-3") && machine.is_ours("01234567-wf_9-1"));
    }
}
