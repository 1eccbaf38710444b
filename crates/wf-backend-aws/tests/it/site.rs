//! A table and a state machine somewhere: at an emulator, or at the double over the emulator's table.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType,
    ScalarAttributeType,
};
use aws_sdk_sfn::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sfn::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_sfn::operation::start_execution::{StartExecutionError, StartExecutionOutput};
use aws_sdk_sfn::types::ExecutionStatus;
use serde_json::json;
use tokio::time::Instant;
use wf_backend_aws::definition;
use wf_testkit::step_functions::StepFunctions;

use crate::fixture::fresh_name;
use crate::law::{PATIENCE, Verdict};
use crate::wire::Wire;

const TENANT: &str = "plant";

/// Where rules are judged.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) sfn: aws_sdk_sfn::Client,
    dynamo: aws_sdk_dynamodb::Client,
    table: String,
    pub(crate) machine: String,
    /// The double: time passes when it is told so.
    plane: Option<StepFunctions>,
}

/// Two values, or how they differ.
pub(crate) fn same<T: PartialEq + Debug>(what: &str, found: &T, wanted: &T) -> Verdict {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found:?}, not {wanted:?}")) }
}

fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

impl Site {
    /// A new table and a new state machine at an endpoint; Step Functions at the double instead, if there is one.
    pub(crate) async fn new(endpoint: &str, double: Option<(&StepFunctions, Wire)>) -> Self {
        let credentials = Credentials::new("somebody", "else", None, None, "test");
        let dynamo = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(credentials.clone())
            .endpoint_url(endpoint)
            .build();
        let mut sfn = aws_sdk_sfn::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(credentials)
            .retry_config(aws_sdk_sfn::config::retry::RetryConfig::disabled())
            .endpoint_url(endpoint);
        let plane = double.map(|(plane, wire)| {
            sfn.set_http_client(Some(aws_sdk_sfn::config::SharedHttpClient::new(wire)));
            plane.clone()
        });
        let (dynamo, sfn) = (
            aws_sdk_dynamodb::Client::from_conf(dynamo),
            aws_sdk_sfn::Client::from_conf(sfn.build()),
        );
        let table = fresh_name();
        create(&dynamo, &table).await;
        let machine = sfn
            .create_state_machine()
            .name(&table)
            .definition(definition("aws").to_string())
            .role_arn("arn:aws:iam::000000000000:role/checkpoint");
        let machine = machine.send().await.expect("a state machine").state_machine_arn;
        Self { sfn, dynamo, table, machine, plane }
    }

    fn key(id: &str) -> [AttributeValue; 2] {
        [s(format!("T#{TENANT}#WF#{id}")), s("ORCH")]
    }

    /// A binding with this fence.
    pub(crate) async fn bind(&self, id: &str, fence: u64) {
        let [pk, sk] = Self::key(id);
        let put = self.dynamo.put_item().table_name(&self.table).item("PK", pk).item("SK", sk);
        put.item("fence", AttributeValue::N(fence.to_string())).send().await.expect("a put");
    }

    pub(crate) async fn close(&self, id: &str) {
        let [pk, sk] = Self::key(id);
        let update = self.dynamo.update_item().table_name(&self.table).key("PK", pk).key("SK", sk);
        let update = update.update_expression("SET closed = :at");
        let at = AttributeValue::N("1".to_owned());
        update.expression_attribute_values(":at", at).send().await.expect("an update");
    }

    /// The binding.
    pub(crate) async fn item(&self, id: &str) -> BTreeMap<String, AttributeValue> {
        let [pk, sk] = Self::key(id);
        let get = self.dynamo.get_item().table_name(&self.table).key("PK", pk).key("SK", sk);
        let got = get.consistent_read(true).send().await.expect("a read");
        got.item.unwrap_or_default().into_iter().collect()
    }

    pub(crate) async fn number(&self, id: &str, name: &str) -> Option<u64> {
        self.item(id).await.get(name)?.as_n().ok()?.parse().ok()
    }

    pub(crate) async fn text(&self, id: &str, name: &str) -> Option<String> {
        self.item(id).await.get(name)?.as_s().ok().cloned()
    }

    pub(crate) fn input(&self, id: &str, fence: u64) -> String {
        let table = &self.table;
        json!({ "table": table, "tenant": TENANT, "workflow_id": id, "fence": fence }).to_string()
    }

    /// A start under any name, with any input.
    pub(crate) async fn starts(
        &self,
        name: &str,
        input: &str,
    ) -> Result<StartExecutionOutput, SdkError<StartExecutionError>> {
        let start = self.sfn.start_execution().state_machine_arn(&self.machine);
        start.name(name).input(input).send().await
    }

    /// Starts the execution of a fence; its ARN.
    pub(crate) async fn start(&self, id: &str, fence: u64) -> Result<String, String> {
        let started = self.starts(&format!("{id}-{fence}"), &self.input(id, fence)).await;
        started.map(|started| started.execution_arn).map_err(|error| format!("{error:?}"))
    }

    pub(crate) async fn stop(&self, arn: &str) -> Verdict {
        let stop = self.sfn.stop_execution().execution_arn(arn).cause("fence 2");
        stop.send().await.map(|_| ()).map_err(|error| format!("{error:?}"))
    }

    pub(crate) async fn status(&self, arn: &str) -> ExecutionStatus {
        let seen = self.sfn.describe_execution().execution_arn(arn).send().await;
        seen.expect("an execution").status
    }

    pub(crate) async fn becomes(&self, arn: &str, status: ExecutionStatus) -> Verdict {
        self.until(status.as_str(), async || self.status(arn).await == status).await
    }

    /// The token of the n-th registration.
    pub(crate) async fn token(&self, id: &str, n: u64) -> Result<String, String> {
        self.until("registrations", async || self.number(id, "registrations").await == Some(n))
            .await?;
        self.text(id, "task_token").await.ok_or_else(|| "no token".to_owned())
    }

    pub(crate) async fn tell(
        &self,
        token: &str,
        state: &str,
        revision: u64,
        timeout: u32,
    ) -> Verdict {
        let output = json!({ "timeout": timeout, "state": state, "revision": revision });
        let send = self.sfn.send_task_success().task_token(token).output(output.to_string());
        send.send().await.map(|_| ()).map_err(|error| format!("{error:?}"))
    }

    /// How many of those who answer a token at once succeed.
    pub(crate) async fn race(&self, token: &str, racers: u64) -> usize {
        let output = json!({ "timeout": 3_600, "state": "RUNNING", "revision": 5 }).to_string();
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..racers {
            let send = self.sfn.send_task_success().task_token(token).output(&output);
            running.spawn(async move { send.send().await.is_ok() });
        }
        running.join_all().await.into_iter().filter(|won| *won).count()
    }

    /// What is said of an answer to a token: the name of the error, or `nothing`.
    pub(crate) async fn answers(&self, token: &str) -> String {
        let send = self.sfn.send_task_success().task_token(token).output("{}").send().await;
        let Err(error) = send else { return "nothing".to_owned() };
        error.code().unwrap_or("no answer").to_owned()
    }

    /// Waits for something to become true.
    pub(crate) async fn until(&self, what: &str, is: impl AsyncFn() -> bool) -> Verdict {
        let until = Instant::now() + PATIENCE;
        while !is().await {
            if Instant::now() >= until {
                return Err(format!("{what}: not in time"));
            }
            match &self.plane {
                Some(plane) => plane.pass_time(100).await,
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        Ok(())
    }
}

async fn create(dynamo: &aws_sdk_dynamodb::Client, table: &str) {
    let mut create = dynamo.create_table().table_name(table);
    for (name, kind) in [("PK", KeyType::Hash), ("SK", KeyType::Range)] {
        let key = KeySchemaElement::builder().attribute_name(name).key_type(kind);
        let attribute = AttributeDefinition::builder().attribute_name(name);
        let attribute = attribute.attribute_type(ScalarAttributeType::S);
        create = create
            .key_schema(key.build().expect("a key"))
            .attribute_definitions(attribute.build().expect("an attribute"));
    }
    create.billing_mode(BillingMode::PayPerRequest).send().await.expect("a table");
}
