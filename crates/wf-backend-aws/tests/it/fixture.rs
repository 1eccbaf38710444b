//! Stores in tables of their own, on an emulator, over a wire that can fail.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::types::{AttributeValue, TimeToLiveSpecification};
use wf_backend_aws::{AwsConfig, AwsStore, table};
use wf_core::models::Timestamp;
use wf_core::ports::{
    Claim, ClaimedStream, LeaseToken, OpenError, OutboxRow, Settled, Settlement, Source,
    StorageBackendPort,
};
use wf_testkit::contract::ContractFixture;

use crate::wire::{self, Fault, WRITE, Wire};

/// The attributes of an item.
pub(crate) type Attributes = HashMap<String, AttributeValue>;

/// Where the emulator is.
pub(crate) fn endpoint() -> String {
    std::env::var("WF_AWS_ENDPOINT").expect("WF_AWS_ENDPOINT: run the tests with `cargo xtask aws`")
}

/// A table name of this process.
pub(crate) fn fresh_name() -> String {
    static TABLES: AtomicU32 = AtomicU32::new(0);
    format!("wf-{}-{}", std::process::id(), TABLES.fetch_add(1, Ordering::Relaxed))
}

/// Somebody else's client.
pub(crate) fn foreign() -> Client {
    let credentials = Credentials::new("somebody", "else", None, None, "test");
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(credentials)
        .endpoint_url(endpoint())
        .build();
    Client::from_conf(config)
}

/// A configuration that does not let a test wait long.
pub(crate) fn config(table: &str, wire: &Wire) -> AwsConfig {
    let mut config = AwsConfig::new(table).with_http_client(wire.clone());
    config.endpoint_url = Some(endpoint());
    config.attempt_timeout_ms = 10_000;
    config.patience_ms = 20_000;
    // Requests are counted: none comes in between because a test takes long.
    config.trust_ms = 3_600_000;
    config
}

/// A new table whose rows stay: by the clock of most tests they expired long ago, and the emulator collects them at any
/// moment, as DynamoDB may.
async fn create(config: &AwsConfig) -> Result<(), OpenError> {
    table::create(config, &mut |_| {}).await?;
    let off = TimeToLiveSpecification::builder().attribute_name(table::SHAPE.ttl).enabled(false);
    let request = foreign().update_time_to_live().table_name(&config.table);
    let request = request.time_to_live_specification(off.build().expect("a setting"));
    request.send().await.map_err(|error| OpenError::Unavailable { source: error.into() })?;
    Ok(())
}

/// A new table, and a store in it over a wire of its own.
pub(crate) async fn store() -> (AwsStore, Wire, AwsConfig) {
    let wire = Wire::new();
    let config = config(&fresh_name(), &wire);
    create(&config).await.expect("a table");
    let opened = AwsStore::open(config.clone()).await.expect("a store");
    assert!(opened.created);
    wire.take_log();
    (opened.store, wire, config)
}

/// A new table with nothing in it.
pub(crate) async fn table() -> AwsConfig {
    let config = config(&fresh_name(), &Wire::new());
    create(&config).await.expect("a table");
    config
}

/// The store of another process in the same table.
pub(crate) async fn replica(config: &AwsConfig) -> AwsStore {
    AwsStore::open_existing(config.clone()).await.expect("a store")
}

/// Makes stores for the contract.
#[derive(Debug, Clone)]
pub(crate) struct AwsFixture {
    table: Arc<Mutex<String>>,
    wire: Wire,
}

impl Default for AwsFixture {
    fn default() -> Self {
        Self { table: Arc::default(), wire: Wire::new() }
    }
}

impl AwsFixture {
    fn config(&self) -> AwsConfig {
        config(&self.table.lock().unwrap(), &self.wire)
    }
}

#[async_trait]
impl ContractFixture for AwsFixture {
    async fn open(&self) -> Result<Arc<dyn StorageBackendPort>, OpenError> {
        *self.table.lock().unwrap() = fresh_name();
        create(&self.config()).await?;
        let opened = AwsStore::open(self.config()).await?;
        assert!(opened.created);
        Ok(Arc::new(opened.store))
    }

    async fn reopen(&self) -> Result<Arc<dyn StorageBackendPort>, OpenError> {
        let mut config = self.config();
        // Handles that are disturbed give up soon.
        config.attempts_max = 3;
        let opened = AwsStore::open(config).await?;
        assert!(!opened.created);
        Ok(Arc::new(opened.store))
    }

    async fn disturb(&self, on: bool) -> Result<(), Source> {
        use Fault::{Lost, Pass, Reset};
        let faults = [
            wire::THROTTLED,
            Lost,
            wire::CONFLICT,
            wire::INTERNAL,
            Reset,
            wire::IN_PROGRESS,
            Lost,
            wire::OVER_CAPACITY,
            wire::UNAVAILABLE,
            wire::MISMATCH,
            wire::THROTTLED,
            Lost,
            Reset,
        ];
        let faults = if on { faults.to_vec() } else { vec![Pass] };
        self.wire.always(WRITE, faults);
        Ok(())
    }

    async fn make_schema_newer(&self) -> Result<(), Source> {
        meddle_number(&self.config(), "STORE", "SECRET", "schema", "1000").await;
        Ok(())
    }
}

/// Sets an attribute of an item to a text, as nobody of ours would.
pub(crate) async fn meddle(config: &AwsConfig, pk: &str, sk: &str, name: &str, text: &str) {
    set(config, pk, sk, name, AttributeValue::S(text.to_owned())).await;
}

/// Sets an attribute of an item to a number, as nobody of ours would.
pub(crate) async fn meddle_number(
    config: &AwsConfig,
    pk: &str,
    sk: &str,
    name: &str,
    digits: &str,
) {
    set(config, pk, sk, name, AttributeValue::N(digits.to_owned())).await;
}

async fn set(config: &AwsConfig, pk: &str, sk: &str, name: &str, value: AttributeValue) {
    let key = |text: &str| AttributeValue::S(text.to_owned());
    let update = foreign().update_item().table_name(&config.table).key("PK", key(pk));
    let update = update.key("SK", key(sk)).update_expression("SET #a = :v");
    let update = update.expression_attribute_names("#a", name);
    update.expression_attribute_values(":v", value).send().await.expect("an update");
}

/// Everything in the table, by its keys.
pub(crate) async fn rows(config: &AwsConfig) -> BTreeMap<(String, String), Attributes> {
    let mut pages = foreign().scan().table_name(&config.table).into_paginator().items().send();
    let mut found = BTreeMap::new();
    while let Some(item) = pages.next().await {
        let item = item.expect("an item");
        let text = |name: &str| item[name].as_s().expect("a key").clone();
        found.insert((text("PK"), text("SK")), item);
    }
    found
}

/// A claim of everything, for a minute.
pub(crate) fn claim(now: Timestamp, token: &str) -> Claim {
    Claim { now, lease_ms: 60_000, token: LeaseToken(token.to_owned()), limit: 100 }
}

/// All rows of a claimed stream were delivered.
pub(crate) fn delivered(stream: &ClaimedStream, now: Timestamp) -> Settlement {
    let result = |row: &OutboxRow| (row.message.id.clone(), Settled::Delivered);
    Settlement {
        tenant: stream.tenant.clone(),
        workflow_id: stream.workflow_id.clone(),
        recipient: stream.recipient.clone(),
        token: stream.token.clone(),
        now,
        results: stream.rows.iter().map(result).collect(),
    }
}
