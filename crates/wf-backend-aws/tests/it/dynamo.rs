//! The table of the emulator, as the double of Step Functions writes to it.

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use wf_testkit::step_functions::{Table, TableError};

use crate::fixture::{Attributes, foreign};

/// Somebody else's client: what executions write is not what a process under test writes.
#[derive(Debug)]
pub(crate) struct Dynamo(Client);

impl Dynamo {
    pub(crate) fn new() -> Self {
        Self(foreign())
    }
}

#[async_trait]
impl Table for Dynamo {
    async fn call(&self, operation: &str, request: &Value) -> Result<Value, TableError> {
        assert_eq!(operation, "UpdateItem");
        let text = |name: &str| request[name].as_str().map(str::to_owned);
        let update = self
            .0
            .update_item()
            .set_table_name(text("TableName"))
            .set_key(Some(attributes(&request["Key"])))
            .set_update_expression(text("UpdateExpression"))
            .set_condition_expression(text("ConditionExpression"))
            .set_expression_attribute_values(Some(attributes(
                &request["ExpressionAttributeValues"],
            )));
        match update.send().await {
            Ok(_) => Ok(json!({})),
            Err(error) => Err(TableError {
                code: error.code().unwrap_or("SdkClientException").to_owned(),
                message: error.message().unwrap_or_default().to_owned(),
            }),
        }
    }
}

/// Attributes in DynamoDB's JSON.
fn attributes(values: &Value) -> Attributes {
    let one = |value: &Value| {
        let (kind, text) = value.as_object().and_then(|one| one.iter().next()).expect("a type");
        let text = text.as_str().expect("text").to_owned();
        match kind.as_str() {
            "S" => AttributeValue::S(text),
            "N" => AttributeValue::N(text),
            other => unreachable!("a type that no execution writes: {other}"),
        }
    };
    let values = values.as_object().expect("attributes");
    values.iter().map(|(name, value)| (name.clone(), one(value))).collect()
}
