//! A store whose workflows are bound to executions, and what an execution writes into its table: as the state machine does,
//! under the same conditions.

use aws_sdk_dynamodb::types::AttributeValue;
use wf_backend_aws::execution::{Attention, Bindings, Bound, Epoch, SHARDS, ShardLease};
use wf_backend_aws::{AwsConfig, AwsStore};
use wf_core::models::{Timestamp, Workflow, WorkflowId};
use wf_core::ports::{BindingPort as _, LeaseToken};

use crate::fixture::{foreign, rows, store};
use crate::wire::Wire;

/// Where the state machine would be; nothing here calls it.
pub(crate) const ARN: &str = "arn:aws:states:us-east-1:000000000000:stateMachine:checkpoint";

/// A store in a table of its own, with a state machine.
pub(crate) async fn bound_store() -> (AwsStore, Wire, AwsConfig) {
    let (_, _, mut config) = store().await;
    config.state_machine_arn = Some(ARN.to_owned());
    let wire = Wire::new();
    let config = config.with_http_client(wire.clone());
    let store = AwsStore::open_existing(config.clone()).await.expect("a store");
    wire.take_log();
    (store, wire, config)
}

/// Everything that is to be looked at, of all shards.
pub(crate) async fn due(rows: &Bindings, now: Timestamp) -> Vec<Attention> {
    let mut found = Vec::new();
    for shard in 0..SHARDS {
        found.extend(rows.due(shard, now, 100).await.expect("a look"));
    }
    found
}

/// A workflow with its rows, whether or not it is to be looked at.
pub(crate) async fn look(rows: &Bindings, workflow: &Workflow, now: Timestamp) -> Bound {
    let attention = Attention {
        tenant: workflow.tenant.clone(),
        workflow_id: workflow.id.clone(),
        wanted_revision: None,
        not_before: now,
        looks: 0,
    };
    rows.bound(&attention, now).await.expect("a read")
}

/// A new epoch, above all before. The shard does not matter to the writes.
pub(crate) async fn epoch(rows: &Bindings, holder: &str, now: Timestamp) -> Epoch {
    let lease = ShardLease::new(0, LeaseToken(holder.to_owned()), now, 1);
    rows.hold(&lease).await.expect("an answer").expect("a lease")
}

/// The keys of the rows about executions, in order.
pub(crate) async fn row_keys(config: &AwsConfig) -> Vec<String> {
    let about = |(pk, sk): &(String, String)| pk.starts_with("ATTN#") || sk == "ORCH";
    let keys = rows(config).await.into_keys().filter(about);
    keys.map(|(pk, sk)| if sk == "ORCH" { format!("{pk} {sk}") } else { format!("ATTN {sk}") })
        .collect()
}

/// What an execution of `plant` does to its binding; false when it is superseded.
async fn update(
    config: &AwsConfig,
    id: &WorkflowId,
    fence: u64,
    text: &str,
    values: &[(&str, AttributeValue)],
) -> bool {
    let key = |text: String| AttributeValue::S(text);
    let mut request = foreign()
        .update_item()
        .table_name(&config.table)
        .key("PK", key(format!("T#plant#WF#{id}")))
        .key("SK", key("ORCH".to_owned()))
        .update_expression(text)
        .condition_expression("fence = :fence AND attribute_not_exists(closed)")
        .expression_attribute_values(":fence", AttributeValue::N(fence.to_string()));
    for (name, value) in values {
        request = request.expression_attribute_values(*name, value.clone());
    }
    match request.send().await {
        Ok(_) => true,
        Err(error) => {
            let error = error.into_service_error();
            assert!(error.is_conditional_check_failed_exception(), "{error:?}");
            false
        }
    }
}

/// `Await`: an execution that knows a revision registers its token.
pub(crate) async fn registers(
    config: &AwsConfig,
    id: &WorkflowId,
    fence: u64,
    token: &str,
    (revision, now): (u64, Timestamp),
) -> bool {
    let number = |n: u64| AttributeValue::N(n.to_string());
    let values = [
        (":token", AttributeValue::S(token.to_owned())),
        (":at", AttributeValue::S(now.to_string())),
        (":revision", number(revision)),
        (":one", number(1)),
    ];
    let text = "SET task_token = :token, registered_at = :at, told_revision = :revision \
                ADD registrations :one";
    update(config, id, fence, text, &values).await
}

/// `SignalDue`: the time of an execution is over.
pub(crate) async fn signals(
    config: &AwsConfig,
    id: &WorkflowId,
    fence: u64,
    revision: u64,
) -> bool {
    let values = [
        (":revision", AttributeValue::N(revision.to_string())),
        (":now", AttributeValue::S("0".repeat(15))),
    ];
    update(config, id, fence, "SET due_revision = :revision, state_sk = :now", &values).await
}
