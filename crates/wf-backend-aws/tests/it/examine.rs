//! What doctor finds out about a table, and that looking changes nothing.

use std::pin::Pin;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use wf_backend_aws::examine::{Examination, Verdict, examine};
use wf_backend_aws::{AwsConfig, Trouble, table};
use wf_core::models::Timestamp;
use wf_core::ports::{ClockPort, OpenError};

use crate::fixture::{config, foreign, fresh_name, meddle_number, rows, store};
use crate::wire::{Fault, WRITE, Wire};

/// The system's clock, so many milliseconds off.
#[derive(Debug)]
struct Off(i64);

impl ClockPort for Off {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
        Timestamp::from_ms(i64::try_from(since.as_millis()).expect("a time") + self.0)
    }

    fn sleep(&self, _: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        unreachable!("an examination waits for nothing")
    }
}

async fn found(config: &AwsConfig) -> Examination {
    examine(config, &Off(0)).await.expect("an answer")
}

/// Actions that are not allowed, or of which it could not be told.
fn not_allowed(found: &Examination) -> Vec<&str> {
    let other = found.permissions.iter().filter(|p| !matches!(p.verdict, Verdict::Allowed));
    other.map(|permission| permission.action.as_str()).collect()
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_table_is_looked_at_and_stays_as_it_is() {
    let (store, wire, config) = store().await;
    let id = wf_core::ports::StorageBackendPort::identity(&store).await.expect("an identity").id;
    let before = rows(&config).await;
    let seen = found(&config).await;
    assert_eq!(rows(&config).await, before, "nothing is written");
    assert_eq!(before.len(), 1, "the store's identity");
    assert!(wire.take_operations().iter().any(|operation| operation == WRITE), "it was tried");

    assert_eq!(seen.store.ok(), Some(Some(id)));
    assert_eq!(seen.shape.expect("a shape"), Vec::<String>::new());
    let guards: Vec<_> = seen.guards.iter().map(|g| (g.name, g.on.as_ref().ok())).collect();
    // A table for tests has none of them.
    assert_eq!(guards.len(), 3);
    assert!(guards.iter().all(|(_, on)| *on == Some(&false)), "{guards:?}");
    let ahead = seen.answer.clock_ahead_ms.expect("the emulator says what time it is");
    assert!(ahead.abs() < 2_000, "{ahead}");
    let names: Vec<_> = seen.permissions.iter().map(|p| p.action.as_str()).collect();
    assert!(names.len() > 10 && names.contains(&"dynamodb:ConditionCheckItem"), "{names:?}");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn everything_that_is_granted_can_be_tried_out() {
    let (_, _, config) = store().await;
    assert_eq!(not_allowed(&found(&config).await), [""; 0]);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_permission_that_is_lacking_is_named() {
    let denied = Fault::Error(400, "AccessDeniedException");
    let (_, wire, config) = store().await;
    // In the order of their names: a check, a deletion, a put, an update.
    wire.next(WRITE, [Fault::Pass, denied.clone(), Fault::Pass, denied.clone()]);
    wire.next("Scan", [denied.clone()]);
    let seen = found(&config).await;
    assert_eq!(not_allowed(&seen), ["dynamodb:DeleteItem", "dynamodb:UpdateItem", "dynamodb:Scan"]);
    assert!(seen.permissions.iter().all(|p| !matches!(p.verdict, Verdict::Unknown(_))));

    // The first of three queries is of the table, the others are of the indexes.
    wire.next("Query", [Fault::Pass, Fault::Pass, denied.clone()]);
    let seen = found(&config).await;
    let lacking = seen.permissions.iter().find(|p| matches!(p.verdict, Verdict::Denied));
    assert_eq!(lacking.and_then(|p| p.index), Some(table::SHAPE.indexes[1].0));

    // Who may read nothing is told so with the permissions, and the rest is looked at.
    wire.always("GetItem", [denied]);
    let seen = found(&config).await;
    assert_eq!(not_allowed(&seen), ["dynamodb:GetItem"]);
    assert!(seen.answer.clock_ahead_ms.is_none(), "an answer of the wire has no date");
    assert!(matches!(seen.store, Err(OpenError::Refused { .. })), "{:?}", seen.store);
    assert_eq!(seen.shape.expect("a shape"), Vec::<String>::new());
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn what_could_not_be_tried_is_unknown() {
    let (_, wire, config) = store().await;
    wire.next("BatchGetItem", [Fault::Reset]);
    let seen = found(&config).await;
    let unknown = seen.permissions.iter().find(|p| matches!(p.verdict, Verdict::Unknown(_)));
    assert_eq!(unknown.map(|p| p.action.as_str()), Some("dynamodb:BatchGetItem"));
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_clock_that_is_off_is_noticed() {
    let (_, _, config) = store().await;
    for off in [-60_000, 90_000] {
        let seen = examine(&config, &Off(off)).await.expect("an answer");
        let ahead = seen.answer.clock_ahead_ms.expect("a date");
        assert!((ahead - off).abs() < 2_000, "{off}: {ahead}");
    }
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn guards_that_are_on_are_seen() {
    let wire = Wire::new();
    let config = config(&fresh_name(), &wire);
    table::create(&config, &mut |_| {}).await.expect("a table");
    let update = foreign().update_table().table_name(&config.table);
    update.deletion_protection_enabled(true).send().await.expect("an update");
    let on = aws_sdk_dynamodb::types::PointInTimeRecoverySpecification::builder();
    let on = on.point_in_time_recovery_enabled(true).build().expect("a setting");
    let update = foreign().update_continuous_backups().table_name(&config.table);
    update.point_in_time_recovery_specification(on).send().await.expect("an update");
    let seen = found(&config).await;
    assert!(seen.guards.iter().all(|guard| matches!(guard.on, Ok(true))), "{:?}", seen.guards);
    assert_eq!(seen.store.ok(), Some(None), "nobody made a store in it");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn another_table_and_a_newer_store_are_noticed() {
    let wire = Wire::new();
    let config = config(&fresh_name(), &wire);
    let attribute = AttributeDefinition::builder().attribute_name("id");
    let key = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash);
    let request = foreign().create_table().table_name(&config.table);
    let request = request.billing_mode(BillingMode::PayPerRequest);
    let attribute = attribute.attribute_type(ScalarAttributeType::S).build().expect("one");
    let request = request.attribute_definitions(attribute);
    request.key_schema(key.build().expect("one")).send().await.expect("a table");
    // Its key is another, so nothing of ours can be asked for.
    assert!(matches!(examine(&config, &Off(0)).await, Err(Trouble::Refused(_))));

    let (_, _, config) = store().await;
    meddle_number(&config, "STORE", "SECRET", "schema", "1000").await;
    let seen = found(&config).await;
    assert!(matches!(seen.store, Err(OpenError::NewerSchema { found: 1000, .. })));
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn what_keeps_a_table_from_answering_is_told_apart() {
    let wire = Wire::new();
    let config = config(&fresh_name(), &wire);
    assert!(matches!(examine(&config, &Off(0)).await, Err(Trouble::NoTable(_))));
    wire.next("GetItem", [Fault::Error(400, "UnrecognizedClientException")]);
    assert!(matches!(examine(&config, &Off(0)).await, Err(Trouble::Denied(_))));
    wire.next("GetItem", [Fault::Reset]);
    assert!(matches!(examine(&config, &Off(0)).await, Err(Trouble::Silent(_))));
    assert_eq!(wire.take_operations(), ["GetItem"; 3], "nothing else is asked");
}
