//! The table itself: its keys, indexes and TTL attribute, creating it, and whether one that is there has that shape.
//!
//! `wf-cli aws template` says the same as CloudFormation (`template`); both are made of [`SHAPE`].

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableOutput;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, IndexStatus, KeySchemaElement, KeyType,
    Projection, ProjectionType, ScalarAttributeType, TableDescription, TableStatus,
    TimeToLiveDescription, TimeToLiveSpecification, TimeToLiveStatus,
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

impl Shape {
    /// The attributes that are in keys, all texts, each once.
    pub(crate) fn attributes(&self) -> Vec<&'static str> {
        let of_indexes = self.indexes.iter().flat_map(|(_, pk, sk)| [*pk, *sk]);
        [self.key.0, self.key.1].into_iter().chain(of_indexes).collect()
    }
}

/// The shape that this build writes.
pub const SHAPE: Shape = Shape {
    key: (PK, SK),
    indexes: [(BY_STATE.name, BY_STATE.pk, BY_STATE.sk), (BY_ID.name, BY_ID.pk, BY_ID.sk)],
    ttl: "ttl_at",
};

/// How long a new table may take to become active.
const ACTIVE_TIMEOUT: Duration = Duration::from_secs(180);

/// How long between two looks at a table that is being made.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long DynamoDB may be silent before the reason is told: nobody waits for a table at a wrong address.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// How long one request about the table may take at least, in milliseconds: making one is slower than using it.
const REQUEST_MS: u64 = 10_000;

/// What creating a table did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Created {
    /// There was no table.
    pub table: bool,
    /// The collection of expired items was off.
    pub ttl: bool,
}

/// Creates the table with on-demand capacity where there is none, waits until it and its indexes are active, and switches
/// TTL on. Whatever it was interrupted at, it does the rest when it is run again. `progress` is told what is waited for.
///
/// For development: a table for production is made from the template, which also sets backups, encryption and protection
/// against deletion.
///
/// # Errors
/// [`OpenError`]: when a table of this name has another shape (it stays as it is), when it is not active in time, or when
/// DynamoDB refuses.
pub async fn create(
    config: &AwsConfig,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<Created, OpenError> {
    let mut config = config.clone();
    config.attempt_timeout_ms = config.attempt_timeout_ms.max(REQUEST_MS);
    let client = client::connect(&config).await;
    let begun = Instant::now();
    let (mut table, mut heard) = (false, begun);
    loop {
        let answer = client.describe_table().table_name(&config.table).send().await;
        let silent = answer.as_ref().err().is_some_and(|error| Kind::of(error).may_pass());
        if !silent {
            heard = Instant::now();
        }
        match answer {
            Ok(answer) => {
                if let Some(first) = differences(answer.table()).first() {
                    return Err(not_ours(&config, first));
                }
                if is_active(&answer) {
                    break;
                }
                progress("the table is not active yet");
            }
            // A table that was just made may not be seen yet; then making it again is refused, and harmless.
            Err(error) if Kind::of(&error) == Kind::NoTable => {
                progress("making the table");
                table |= make(&client, &config.table).await?;
            }
            Err(_) if silent && heard.elapsed() < SILENCE_MAX => {
                progress("DynamoDB does not answer");
            }
            Err(error) => return Err(failed(error)),
        }
        if begun.elapsed() >= ACTIVE_TIMEOUT {
            let message = format!("the table {} is not active after three minutes", config.table);
            return Err(OpenError::Refused { message });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    progress("switching TTL on");
    Ok(Created { table, ttl: switch_ttl_on(&client, &config).await? })
}

fn not_ours(config: &AwsConfig, why: &str) -> OpenError {
    let message = format!("the table {} is not ours: {why}", config.table);
    OpenError::Refused { message }
}

/// Asks for the table; whether that made it, or may have.
async fn make(client: &Client, table: &str) -> Result<bool, OpenError> {
    let request = client
        .create_table()
        .table_name(table)
        .billing_mode(BillingMode::PayPerRequest)
        .set_attribute_definitions(Some(attributes().map_err(|error| refused(&error))?))
        .set_key_schema(Some(keys(SHAPE.key.0, SHAPE.key.1).map_err(|error| refused(&error))?))
        .set_global_secondary_indexes(Some(indexes().map_err(|error| refused(&error))?));
    match request.send().await {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Some("ResourceInUseException") => Ok(false),
        Err(error) if Kind::of(&error).may_pass() => Ok(Kind::of(&error) == Kind::Unknown),
        Err(error) => Err(failed(error)),
    }
}

/// Switches TTL on unless it is; whether it was off.
async fn switch_ttl_on(client: &Client, config: &AwsConfig) -> Result<bool, OpenError> {
    let answer = client.describe_time_to_live().table_name(&config.table).send().await;
    let answer = answer.map_err(failed)?;
    let is_on = |ttl: &&TimeToLiveDescription| match ttl.time_to_live_status() {
        Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling) => true,
        Some(_) | None => false,
    };
    let found = answer.time_to_live_description().filter(is_on);
    match found.map(|ttl| ttl.attribute_name().unwrap_or_default()) {
        Some(name) if name == SHAPE.ttl => return Ok(false),
        Some(other) => {
            return Err(not_ours(config, &format!("its TTL is on the attribute {other}")));
        }
        None => {}
    }
    let ttl = TimeToLiveSpecification::builder().attribute_name(SHAPE.ttl).enabled(true);
    let ttl = ttl.build().map_err(|error| refused(&error))?;
    let request = client.update_time_to_live().table_name(&config.table);
    request.time_to_live_specification(ttl).send().await.map_err(failed)?;
    Ok(true)
}

/// What differs in keys, indexes and status.
pub(crate) async fn shape_of(client: &Client, table: &str) -> Result<Vec<String>, OpenError> {
    let answer = client.describe_table().table_name(table).send().await.map_err(failed)?;
    Ok(wrong_with(&answer))
}

/// What differs in keys, indexes and status of a table that was described.
pub(crate) fn wrong_with(answer: &DescribeTableOutput) -> Vec<String> {
    let mut wrong = differences(answer.table());
    if !is_active(answer) {
        wrong.push("the table or one of its indexes is not active".to_owned());
    }
    wrong
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
    let text = |name: &&'static str| {
        let attribute = AttributeDefinition::builder().attribute_name(*name);
        attribute.attribute_type(ScalarAttributeType::S).build()
    };
    SHAPE.attributes().iter().map(text).collect()
}

fn indexes() -> Built<Vec<GlobalSecondaryIndex>> {
    let index = |(name, pk, sk): (&str, &str, &str)| {
        GlobalSecondaryIndex::builder()
            .index_name(name)
            .set_key_schema(Some(keys(pk, sk)?))
            .projection(Projection::builder().projection_type(ProjectionType::KeysOnly).build())
            .build()
    };
    SHAPE.indexes.into_iter().map(index).collect()
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
