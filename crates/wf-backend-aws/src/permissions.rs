//! What our requests need to be allowed, and who sends them: `template` grants it, `examine` tries it out, and the tests
//! below hold it against the requests in the sources.
//!
//! Transactions have no actions of their own in IAM; they need those of what they do (Service Authorization Reference,
//! Amazon DynamoDB).

use std::collections::BTreeSet;

/// Who sends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sender {
    /// A server, and commands that work beside it.
    Server,
    /// Commands for operators only: doctor, verify, copy, reconcile.
    Operator,
    /// Whoever makes the table: `wf-cli aws init`, in development. The template grants it to nobody.
    Maker,
}

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    Table,
    TableAndIndexes,
    /// The state machine of Step Functions.
    Machine,
    /// Its executions.
    Executions,
}

impl On {
    /// The service, as IAM calls it.
    pub(crate) const fn service(self) -> &'static str {
        match self {
            Self::Table | Self::TableAndIndexes => "dynamodb",
            Self::Machine | Self::Executions => "states",
        }
    }

    fn is_the_table(self) -> bool {
        match self {
            Self::Table | Self::TableAndIndexes => true,
            Self::Machine | Self::Executions => false,
        }
    }
}

/// A request of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    /// Its operation, as the API calls it.
    pub(crate) operation: &'static str,
    pub(crate) sender: Sender,
    /// What it needs, without the prefix of the service.
    pub(crate) needs: &'static [&'static str],
    pub(crate) on: On,
}

const fn request(
    operation: &'static str,
    sender: Sender,
    needs: &'static [&'static str],
) -> Request {
    Request { operation, sender, needs, on: On::Table }
}

/// A request to Step Functions, which needs what it is called (Service Authorization Reference, AWS Step Functions).
const fn of(on: On, sender: Sender, needs: &'static [&'static str; 1]) -> Request {
    Request { operation: needs[0], sender, needs, on }
}

/// All of them.
pub(crate) const REQUESTS: &[Request] = &[
    request("BatchGetItem", Sender::Server, &["BatchGetItem"]),
    request("BatchWriteItem", Sender::Operator, &["BatchWriteItem"]),
    of(On::Machine, Sender::Maker, &["CreateStateMachine"]),
    request("CreateTable", Sender::Maker, &["CreateTable"]),
    request("DeleteItem", Sender::Server, &["DeleteItem"]),
    request("DescribeContinuousBackups", Sender::Operator, &["DescribeContinuousBackups"]),
    of(On::Executions, Sender::Server, &["DescribeExecution"]),
    // doctor compares its definition with that of the build.
    of(On::Machine, Sender::Operator, &["DescribeStateMachine"]),
    // A store is made only in a table of our shape.
    request("DescribeTable", Sender::Server, &["DescribeTable"]),
    request("DescribeTimeToLive", Sender::Operator, &["DescribeTimeToLive"]),
    request("GetItem", Sender::Server, &["GetItem"]),
    of(On::Machine, Sender::Operator, &["ListExecutions"]),
    Request {
        operation: "Query",
        sender: Sender::Server,
        needs: &["Query"],
        on: On::TableAndIndexes,
    },
    request("Scan", Sender::Operator, &["Scan"]),
    of(On::Machine, Sender::Server, &["SendTaskSuccess"]),
    of(On::Machine, Sender::Server, &["StartExecution"]),
    of(On::Executions, Sender::Server, &["StopExecution"]),
    of(On::Machine, Sender::Maker, &["UpdateStateMachine"]),
    request("TransactGetItems", Sender::Server, &["GetItem"]),
    request(
        "TransactWriteItems",
        Sender::Server,
        &["PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"],
    ),
    request("UpdateItem", Sender::Server, &["UpdateItem"]),
    request("UpdateTimeToLive", Sender::Maker, &["UpdateTimeToLive"]),
];

/// What one kind of sender must be allowed to do, on the table or on its indexes, in order.
pub(crate) fn actions(sender: Sender, of_indexes: bool) -> BTreeSet<String> {
    named(sender, |on| if of_indexes { on == On::TableAndIndexes } else { on.is_the_table() })
}

/// What one kind of sender must be allowed to do on the state machine or on its executions, in order.
pub(crate) fn of_states(sender: Sender, on: On) -> BTreeSet<String> {
    named(sender, |other| !other.is_the_table() && other == on)
}

fn named(sender: Sender, is_on: impl Fn(On) -> bool) -> BTreeSet<String> {
    let sent = REQUESTS.iter().filter(|request| request.sender == sender && is_on(request.on));
    let needs = |request: &'static Request| {
        request.needs.iter().map(|name| format!("{}:{name}", request.on.service()))
    };
    sent.flat_map(needs).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::{On, REQUESTS, Sender, actions, of_states};
    use crate::action::{Action, What, absent};
    use crate::keys;

    /// The operations that are called on a client of the SDK, under their names in the API.
    fn sent_by(source: &str) -> BTreeSet<String> {
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let dense: String = lines.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect();
        let dense = dense.replace("client().", "client.");
        let calls = dense.split("client.").skip(1).filter_map(|rest| rest.split_once("()"));
        let names = calls.map(|(name, _)| name).filter(|name| *name != "clone");
        let names = names.filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
        names.map(camel).collect()
    }

    fn camel(snake: &str) -> String {
        let word = |word: &str| word[..1].to_uppercase() + &word[1..];
        snake.split('_').filter(|part| !part.is_empty()).map(word).collect()
    }

    fn sources(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("the sources").flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, found);
            } else {
                found.extend(sent_by(&std::fs::read_to_string(&path).expect("a source")));
            }
        }
    }

    #[test]
    fn what_is_sent_is_what_is_listed() {
        let mut sent = BTreeSet::new();
        sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut sent);
        let listed: BTreeSet<String> = REQUESTS.iter().map(|r| r.operation.to_owned()).collect();
        assert_eq!(sent, listed, "name what it needs in REQUESTS, or take it out");
    }

    #[test]
    fn a_request_that_nobody_listed_is_found() {
        let code = "let a = self\n    .client\n    .put_resource_policy()\n    .table_name(x);";
        assert_eq!(sent_by(code), BTreeSet::from(["PutResourcePolicy".to_owned()]));
        let code = "link.client().batch_write_item() // client.scan()\n// client.query()";
        assert_eq!(sent_by(code).len(), 2, "a comment behind code counts, one of its own does not");
        assert!(sent_by("let client = client::connect(config).await;").is_empty());
    }

    #[test]
    fn a_transaction_needs_what_its_actions_do() {
        let key = || keys::identity();
        let all = [
            Action::put(key(), Default::default()),
            Action::update(key(), absent()),
            Action::delete(key()),
            Action::check(key(), absent()),
        ];
        let needed: Vec<&str> = all.iter().map(|action| needs(&action.what)).collect();
        let listed = REQUESTS.iter().find(|r| r.operation == "TransactWriteItems");
        assert_eq!(listed.map(|r| r.needs.to_vec()), Some(needed));
    }

    /// A new kind of action does not compile until it is said here what it needs.
    fn needs(what: &What) -> &'static str {
        match what {
            What::Put(_) => "PutItem",
            What::Update(_) => "UpdateItem",
            What::Delete => "DeleteItem",
            What::Check => "ConditionCheckItem",
        }
    }

    #[test]
    fn a_server_may_not_change_or_read_the_table_as_a_whole() {
        let server = actions(Sender::Server, false);
        let never = ["Scan", "BatchWriteItem", "DeleteTable", "UpdateTable", "CreateTable"];
        assert!(!never.iter().any(|name| server.contains(&format!("dynamodb:{name}"))));
        let on_indexes: Vec<String> = actions(Sender::Server, true).into_iter().collect();
        assert_eq!(on_indexes, ["dynamodb:Query"]);
        assert!(!server.iter().any(|name| name.contains('*')));
        for on in [On::Machine, On::Executions] {
            let states = of_states(Sender::Server, on);
            assert!(!states.is_empty() && states.iter().all(|name| name.starts_with("states:")));
        }
    }
}
