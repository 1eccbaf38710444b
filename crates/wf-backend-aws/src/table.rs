//! The table itself: its keys, indexes and TTL attribute, creating it, and whether one that is there has that shape.
//!
//! `wf-cli aws template` says the same as CloudFormation; [`Shape`] is what both are made of.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableOutput;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, IndexStatus, KeySchemaElement, KeyType,
    Projection, ProjectionType, ScalarAttributeType, TableDescription, TableStatus,
    TimeToLiveSpecification,
};
use tokio::time::Instant;
use wf_core::ports::OpenError;

use crate::client;
use crate::config::AwsConfig;
use crate::fault::{self, Cause, Fail, Kind, Trouble};
use crate::keys::{BY_ID, BY_STATE, PK, SK};

/// What a table of ours looks like.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Partition and sort key, both texts.
    pub key: (&'static str, &'static str),
    /// Global secondary indexes that project keys only: name, partition key, sort key, all texts.
    pub indexes: [(&'static str, &'static str, &'static str); 2],
    /// The attribute that says when an item may be collected, in seconds since the epoch.
    pub ttl: &'static str,
}

/// The shape that this build writes.
pub const SHAPE: Shape = Shape {
    key: (PK, SK),
    indexes: [(BY_STATE.name, BY_STATE.pk, BY_STATE.sk), (BY_ID.name, BY_ID.pk, BY_ID.sk)],
    ttl: "ttl_at",
};

/// How long a new table may take to become active.
const ACTIVE_TIMEOUT: Duration = Duration::from_secs(180);

/// What creating a table did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// There was none.
    New,
    /// It was there, in the right shape.
    Existing,
}

/// Creates the table with on-demand capacity and waits until it and its indexes are active. For development: a table for
/// production is made from the template, which also sets backups, encryption and protection against deletion.
///
/// # Errors
/// [`OpenError`]: when a table of this name has another shape, or when it is not active in time.
pub async fn create(config: &AwsConfig) -> Result<Created, OpenError> {
    let client = client::connect(config).await;
    let request = client
        .create_table()
        .table_name(&config.table)
        .billing_mode(BillingMode::PayPerRequest)
        .set_attribute_definitions(Some(attributes().map_err(|error| refused(&error))?))
        .set_key_schema(Some(keys(PK, SK).map_err(|error| refused(&error))?))
        .set_global_secondary_indexes(Some(vec![
            index(BY_STATE).map_err(|error| refused(&error))?,
            index(BY_ID).map_err(|error| refused(&error))?,
        ]));
    let created = match request.send().await {
        Ok(_) => Created::New,
        Err(error) if error.code() == Some("ResourceInUseException") => Created::Existing,
        Err(error) => return Err(failed(error)),
    };
    let deadline = Instant::now() + ACTIVE_TIMEOUT;
    loop {
        let answer = client.describe_table().table_name(&config.table).send().await;
        match answer {
            Ok(answer) if is_active(&answer) => {
                let wrong = differences(answer.table());
                if let Some(first) = wrong.first() {
                    let message = format!("the table {} is not ours: {first}", config.table);
                    return Err(OpenError::Refused { message });
                }
                break;
            }
            Ok(_) => {}
            // A new table may not be seen yet.
            Err(error) if Kind::of(&error) == Kind::NoTable => {}
            Err(error) => return Err(failed(error)),
        }
        if Instant::now() >= deadline {
            let message = format!("the table {} is not active after three minutes", config.table);
            return Err(OpenError::Refused { message });
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    if created == Created::New {
        let ttl = TimeToLiveSpecification::builder().attribute_name(SHAPE.ttl).enabled(true);
        let ttl = ttl.build().map_err(|error| refused(&error))?;
        let request = client.update_time_to_live().table_name(&config.table);
        request.time_to_live_specification(ttl).send().await.map_err(failed)?;
    }
    Ok(created)
}

/// What differs between the table and [`SHAPE`]; nothing when it can be used. For `doctor`.
///
/// # Errors
/// [`OpenError`] when the table cannot be looked at.
pub async fn examine(config: &AwsConfig) -> Result<Vec<String>, OpenError> {
    let client = client::connect(config).await;
    let mut wrong = shape_of(&client, &config.table).await?;
    let ttl = client.describe_time_to_live().table_name(&config.table).send().await;
    let ttl = ttl.map_err(failed)?;
    let ttl = ttl.time_to_live_description().and_then(|ttl| ttl.attribute_name());
    if ttl != Some(SHAPE.ttl) {
        wrong.push(format!("TTL is not on the attribute {}", SHAPE.ttl));
    }
    Ok(wrong)
}

/// What differs in keys, indexes and status.
pub(crate) async fn shape_of(client: &Client, table: &str) -> Result<Vec<String>, OpenError> {
    let answer = client.describe_table().table_name(table).send().await.map_err(failed)?;
    let mut wrong = differences(answer.table());
    if !is_active(&answer) {
        wrong.push("the table or one of its indexes is not active".to_owned());
    }
    Ok(wrong)
}

fn failed<E>(error: aws_sdk_dynamodb::error::SdkError<E>) -> OpenError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let kind = Kind::of(&error);
    Fail::from(kind.trouble(fault::cause(error))).into()
}

fn refused(error: &aws_sdk_dynamodb::error::BuildError) -> OpenError {
    Fail::from(Trouble::Refused(Cause::said(error.to_string()))).into()
}

type Built<T> = Result<T, aws_sdk_dynamodb::error::BuildError>;

fn keys(pk: &str, sk: &str) -> Built<Vec<KeySchemaElement>> {
    let key =
        |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    Ok(vec![key(pk, KeyType::Hash)?, key(sk, KeyType::Range)?])
}

fn attributes() -> Built<Vec<AttributeDefinition>> {
    let names = [PK, SK, BY_STATE.pk, BY_STATE.sk, BY_ID.pk, BY_ID.sk];
    let text = |name: &&str| {
        let attribute = AttributeDefinition::builder().attribute_name(*name);
        attribute.attribute_type(ScalarAttributeType::S).build()
    };
    names.iter().map(text).collect()
}

fn index(index: crate::keys::Index) -> Built<GlobalSecondaryIndex> {
    GlobalSecondaryIndex::builder()
        .index_name(index.name)
        .set_key_schema(Some(keys(index.pk, index.sk)?))
        .projection(Projection::builder().projection_type(ProjectionType::KeysOnly).build())
        .build()
}

fn is_active(answer: &DescribeTableOutput) -> bool {
    let Some(table) = answer.table() else { return false };
    let active = |status: Option<&IndexStatus>| status.is_none_or(|s| *s == IndexStatus::Active);
    table.table_status() == Some(&TableStatus::Active)
        && table.global_secondary_indexes().iter().all(|index| active(index.index_status()))
}

/// What differs from [`SHAPE`].
fn differences(table: Option<&TableDescription>) -> Vec<String> {
    let Some(table) = table else { return vec!["it is not described".to_owned()] };
    let mut wrong = Vec::new();
    let names = |schema: &[KeySchemaElement]| {
        schema.iter().map(|key| key.attribute_name().to_owned()).collect::<Vec<_>>()
    };
    if names(table.key_schema()) != [SHAPE.key.0, SHAPE.key.1] {
        wrong.push(format!("its key is not {} and {}", SHAPE.key.0, SHAPE.key.1));
    }
    for (name, pk, sk) in SHAPE.indexes {
        let indexes = table.global_secondary_indexes();
        let found = indexes.iter().find(|index| index.index_name() == Some(name));
        match found {
            None => wrong.push(format!("the index {name} is missing")),
            Some(index) if names(index.key_schema()) != [pk, sk] => {
                wrong.push(format!("the key of the index {name} is not {pk} and {sk}"));
            }
            Some(_) => {}
        }
    }
    let texts = table.attribute_definitions().iter();
    let other = texts.filter(|attribute| *attribute.attribute_type() != ScalarAttributeType::S);
    wrong.extend(other.map(|a| format!("the key attribute {} is no text", a.attribute_name())));
    wrong
}
