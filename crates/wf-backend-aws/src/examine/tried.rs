//! Permissions, each tried out with the smallest request that needs it.

use std::collections::HashMap;
use std::error::Error;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, KeysAndAttributes, WriteRequest};

use crate::action::{Action, Expression};
use crate::fault::{self, Cause, Kind, Trouble};
use crate::item::{Attributes, key_to_sdk};
use crate::keys::Key;
use crate::permissions::{self, On, Sender};
use crate::table::SHAPE;

/// What our credentials may do.
#[derive(Debug, Clone)]
pub struct Permission {
    /// The action, as IAM calls it.
    pub action: String,
    /// The index that it is about; the table when absent.
    pub index: Option<&'static str>,
    /// Only commands for operators need it: `doctor`, `workflow verify`, `copy`.
    pub for_operators: bool,
    /// Whether it is allowed.
    pub verdict: Verdict,
}

/// Whether something is allowed.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// It is.
    Allowed,
    /// It is not.
    Denied,
    /// It could not be told.
    Unknown(Trouble),
}

/// The code says that the credentials are known and may not do this.
pub(super) fn is_no_permission(code: &str) -> bool {
    code == "AccessDeniedException" || code == "AccessDenied"
}

/// Tries everything that a server or an operator must be allowed.
pub(super) async fn permissions(client: &Client, table: &str) -> Vec<Permission> {
    let mut found = Vec::new();
    for (sender, for_operators) in [(Sender::Server, false), (Sender::Operator, true)] {
        for action in permissions::actions(sender, false) {
            let verdict = on_table(client, table, &action).await;
            found.push(Permission { action, index: None, for_operators, verdict });
        }
    }
    for (index, pk, _) in SHAPE.indexes {
        let request = client.query().table_name(table).index_name(index);
        let verdict = verdict(query(request, pk).send().await);
        let action = "dynamodb:Query".to_owned();
        found.push(Permission { action, index: Some(index), for_operators: false, verdict });
    }
    found
}

/// What there is besides the table.
const OF_STATES: [On; 2] = [On::Machine, On::Executions];

/// Tries what a server or an operator must be allowed to do with a state machine. Nothing runs and nothing stops: what is asked for is
/// never there, or is no input that a start takes.
pub(super) async fn of_states(client: &aws_sdk_sfn::Client, machine: &str) -> Vec<Permission> {
    let mut found = Vec::new();
    for (sender, for_operators) in [(Sender::Server, false), (Sender::Operator, true)] {
        for action in OF_STATES.iter().flat_map(|on| permissions::of_states(sender, *on)) {
            let verdict = on_states(client, machine, &action).await;
            found.push(Permission { action, index: None, for_operators, verdict });
        }
    }
    found
}

async fn on_states(client: &aws_sdk_sfn::Client, machine: &str, action: &str) -> Verdict {
    // Without a version or an alias, which executions do not have and lists do not take.
    let plain = machine.split(':').take(7).collect::<Vec<_>>().join(":");
    let nothing = format!("{}:doctor-nothing", plain.replacen(":stateMachine:", ":execution:", 1));
    match action {
        "states:DescribeExecution" => {
            looked_at(client.describe_execution().execution_arn(nothing).send().await)
        }
        "states:DescribeStateMachine" => {
            looked_at(client.describe_state_machine().state_machine_arn(plain).send().await)
        }
        "states:ListExecutions" => {
            let list = client.list_executions().state_machine_arn(plain).max_results(1);
            looked_at(list.send().await)
        }
        "states:SendTaskSuccess" => {
            looked_at(client.send_task_success().task_token("doctor").output("{}").send().await)
        }
        // Neither the name nor the input is one that a start takes.
        "states:StartExecution" => {
            let start = client.start_execution().state_machine_arn(machine);
            looked_at(start.name("doctor/nothing").input("{").send().await)
        }
        "states:StopExecution" => {
            looked_at(client.stop_execution().execution_arn(nothing).send().await)
        }
        _ => Verdict::Unknown(Trouble::Malformed("no request tries this permission out")),
    }
}

/// Step Functions looks at what is asked for after it has looked at the permission.
fn looked_at<T, E>(sent: Result<T, SdkError<E, HttpResponse>>) -> Verdict
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    const NOT_THERE: [&str; 6] = [
        "ExecutionDoesNotExist",
        "InvalidExecutionInput",
        "InvalidName",
        "InvalidToken",
        "TaskDoesNotExist",
        "TaskTimedOut",
    ];
    let code = sent.as_ref().err().and_then(ProvideErrorMetadata::code);
    if code.is_some_and(|code| NOT_THERE.contains(&code)) {
        return Verdict::Allowed;
    }
    verdict(sent)
}

/// An item that never is: no key of ours starts so.
fn nothing() -> Key {
    Key::new("DOCTOR".to_owned(), "NOTHING")
}

/// A condition that no item meets and no absence of one.
fn never() -> Expression {
    Expression::new("attribute_exists(PK) AND attribute_not_exists(PK)", [])
}

async fn on_table(client: &Client, table: &str, action: &str) -> Verdict {
    let key = key_to_sdk(&nothing());
    match action {
        "dynamodb:GetItem" => {
            verdict(client.get_item().table_name(table).set_key(Some(key)).send().await)
        }
        "dynamodb:BatchGetItem" => match KeysAndAttributes::builder().keys(key).build() {
            Ok(keys) => verdict(client.batch_get_item().request_items(table, keys).send().await),
            Err(error) => not_made(&error),
        },
        // A batch knows no conditions: this one deletes what never is, which writes nothing.
        "dynamodb:BatchWriteItem" => match DeleteRequest::builder().set_key(Some(key)).build() {
            Ok(delete) => {
                let delete = vec![WriteRequest::builder().delete_request(delete).build()];
                verdict(client.batch_write_item().request_items(table, delete).send().await)
            }
            Err(error) => not_made(&error),
        },
        "dynamodb:Query" => {
            verdict(query(client.query().table_name(table), SHAPE.key.0).send().await)
        }
        "dynamodb:Scan" => verdict(client.scan().table_name(table).limit(1).send().await),
        "dynamodb:DescribeTable" => verdict(client.describe_table().table_name(table).send().await),
        "dynamodb:DescribeTimeToLive" => {
            verdict(client.describe_time_to_live().table_name(table).send().await)
        }
        "dynamodb:DescribeContinuousBackups" => {
            verdict(client.describe_continuous_backups().table_name(table).send().await)
        }
        "dynamodb:PutItem" => write(client, table, Action::put(nothing(), Attributes::new())).await,
        "dynamodb:UpdateItem" => {
            let set = Expression::new("REMOVE ttl_at", []);
            write(client, table, Action::update(nothing(), set)).await
        }
        "dynamodb:DeleteItem" => write(client, table, Action::delete(nothing())).await,
        "dynamodb:ConditionCheckItem" => {
            write(client, table, Action::check(nothing(), never())).await
        }
        _ => Verdict::Unknown(Trouble::Malformed("no request tries this permission out")),
    }
}

/// The actions of a transaction are what IAM looks at.
async fn write(client: &Client, table: &str, action: Action) -> Verdict {
    match action.when(never()).to_sdk(table) {
        Ok(item) => verdict(client.transact_write_items().transact_items(item).send().await),
        Err(error) => not_made(&error),
    }
}

fn query(
    request: aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder,
    partition: &str,
) -> aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder {
    let value = AttributeValue::S(nothing().pk);
    let request = request.key_condition_expression(format!("{partition} = :nothing"));
    request.set_expression_attribute_values(Some(HashMap::from([(":nothing".to_owned(), value)])))
}

fn not_made(error: &BuildError) -> Verdict {
    Verdict::Unknown(Trouble::Refused(Cause::said(error.to_string())))
}

fn verdict<T, E>(sent: Result<T, SdkError<E, HttpResponse>>) -> Verdict
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let Err(error) = sent else { return Verdict::Allowed };
    if error.code().is_some_and(is_no_permission) {
        return Verdict::Denied;
    }
    match Kind::of(&error) {
        // The condition was looked at, and does not hold. A conflict is not told before the permission, either.
        Kind::Condition | Kind::Cancelled | Kind::Contended => Verdict::Allowed,
        kind @ (Kind::Throttled
        | Kind::Unknown
        | Kind::TokenTaken
        | Kind::NoTable
        | Kind::Denied
        | Kind::Refused) => Verdict::Unknown(kind.trouble(fault::cause(error))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::permissions::{Sender, actions, of_states};

    /// What is granted is tried out: an action without a request of its own would stay unknown for ever.
    #[test]
    fn every_permission_is_tried_out() {
        let source = include_str!("tried.rs");
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let all: BTreeSet<String> =
            [Sender::Server, Sender::Operator].iter().flat_map(|s| actions(*s, false)).collect();
        let states = |sender| super::OF_STATES.map(|on| of_states(sender, on));
        let states = [Sender::Server, Sender::Operator].into_iter().flat_map(states).flatten();
        let all: BTreeSet<String> = all.into_iter().chain(states).collect();
        for action in all {
            assert!(code.contains(&format!("\"{action}\" =>")), "{action}");
        }
    }
}
