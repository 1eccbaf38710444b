//! What `wf-cli doctor` asks of a table: whether it answers, by how much the clocks differ, its shape, what guards its
//! data, and what our credentials may do.
//!
//! Nothing is written: a permission to write is tried out under a condition that never holds, which DynamoDB looks at only
//! after it has looked at the permission; one to write in batches, which know no conditions, by deleting what never is.

mod tried;

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::{BoxError, ProvideErrorMetadata};
use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use aws_sdk_dynamodb::types::{PointInTimeRecoveryStatus, TableDescription, TimeToLiveStatus};
use wf_core::ports::{ClockPort, OpenError};

use crate::client;
use crate::config::AwsConfig;
use crate::fault::{self, Kind, Trouble};
use crate::item::key_to_sdk;
use crate::link::Link;
use crate::table::{self, SHAPE};
use crate::{keys, open};

pub use tried::{Permission, Verdict};

/// What was found out about a table.
#[derive(Debug)]
#[non_exhaustive]
pub struct Examination {
    /// How it answers.
    pub answer: Answer,
    /// The id of the store in it; none when it holds no store yet.
    pub store: Result<Option<String>, OpenError>,
    /// What differs from [`SHAPE`] in keys and indexes; nothing when the table can be used.
    pub shape: Result<Vec<String>, Trouble>,
    /// What guards its data.
    pub guards: Vec<Guard>,
    /// What our credentials may do.
    pub permissions: Vec<Permission>,
}

/// How the table answered first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// After how many milliseconds, connecting included.
    pub after_ms: i64,
    /// By how many milliseconds the local clock is ahead of DynamoDB's, behind where negative; to about a second, since
    /// the `Date` header has no fractions (RFC 9110, section 6.6.1). None when it was not sent.
    pub clock_ahead_ms: Option<i64>,
}

/// Something that guards data without being needed to serve.
#[derive(Debug, Clone)]
pub struct Guard {
    /// What it is, as DynamoDB calls it.
    pub name: &'static str,
    /// Whether it is on.
    pub on: Result<bool, Trouble>,
}

/// Looks at everything. A table that does not answer, or credentials that nobody knows, are the only things that end it
/// early; the requests are each sent once.
///
/// # Errors
/// [`Trouble`] when nothing can be looked at.
pub async fn examine(config: &AwsConfig, clock: &dyn ClockPort) -> Result<Examination, Trouble> {
    let client = client::connect(config).await;
    let answer = first_answer(&client, &config.table, clock).await?;
    let link = Link::new(client.clone(), config.clone());
    let store = open::identity(&link).await.map(|found| found.map(|identity| identity.id));
    let described = client.describe_table().table_name(&config.table).send().await;
    let described = described.map_err(|error| Kind::of(&error).trouble(fault::cause(error)));
    let shape = described.as_ref().map(table::wrong_with).map_err(Trouble::clone);
    let mut guards = vec![Guard {
        name: "deletion protection",
        on: described.map(|answer| answer.table().is_some_and(is_protected)),
    }];
    guards
        .push(Guard { name: "point-in-time recovery", on: recovers(&client, &config.table).await });
    guards.push(Guard { name: "TTL", on: expires(&client, &config.table).await });
    let mut permissions = tried::permissions(&client, &config.table).await;
    if let Some(machine) = &config.state_machine_arn {
        let states = client::connect_states(config).await;
        permissions.extend(tried::of_states(&states, machine).await);
    }
    Ok(Examination { answer, store, shape, guards, permissions })
}

/// Reads what every server reads first, for the time it takes and the clock on the other side.
async fn first_answer(
    client: &Client,
    table: &str,
    clock: &dyn ClockPort,
) -> Result<Answer, Trouble> {
    let date = DateHeader::default();
    let request = client.get_item().table_name(table).set_key(Some(key_to_sdk(&keys::identity())));
    let request = request.customize().interceptor(date.clone());
    let begun = clock.now().as_ms();
    let sent = request.send().await;
    let after_ms = clock.now().as_ms() - begun;
    if let Err(error) = sent {
        let refused = error.code().is_some_and(tried::is_no_permission);
        // What may not be read is told with the permissions.
        if !refused {
            return Err(Kind::of(&error).trouble(fault::cause(error)));
        }
    }
    let clock_ahead_ms = date.get().map(|date| begun + after_ms / 2 - (date + 500));
    Ok(Answer { after_ms, clock_ahead_ms })
}

/// Notes the `Date` header of an answer, whatever else is in it.
#[derive(Debug, Clone, Default)]
struct DateHeader(Arc<Mutex<Option<i64>>>);

impl DateHeader {
    /// Milliseconds since the epoch.
    fn get(&self) -> Option<i64> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Intercept for DateHeader {
    fn name(&self) -> &'static str {
        "date header"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let header = context.response().headers().get("date");
        let date = header.and_then(|text| DateTime::from_str(text, DateTimeFormat::HttpDate).ok());
        let ms = date.and_then(|date| date.to_millis().ok());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = ms;
        Ok(())
    }
}

fn is_protected(table: &TableDescription) -> bool {
    table.deletion_protection_enabled() == Some(true)
}

async fn recovers(client: &Client, table: &str) -> Result<bool, Trouble> {
    let answer = client.describe_continuous_backups().table_name(table).send().await;
    let answer = answer.map_err(|error| Kind::of(&error).trouble(fault::cause(error)))?;
    let backups = answer.continuous_backups_description();
    let recovery = backups.and_then(|backups| backups.point_in_time_recovery_description());
    let status = recovery.and_then(|recovery| recovery.point_in_time_recovery_status());
    Ok(status == Some(&PointInTimeRecoveryStatus::Enabled))
}

async fn expires(client: &Client, table: &str) -> Result<bool, Trouble> {
    let answer = client.describe_time_to_live().table_name(table).send().await;
    let answer = answer.map_err(|error| Kind::of(&error).trouble(fault::cause(error)))?;
    let ttl = answer.time_to_live_description();
    Ok(ttl.is_some_and(|ttl| {
        ttl.attribute_name() == Some(SHAPE.ttl)
            && matches!(
                ttl.time_to_live_status(),
                Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)
            )
    }))
}
