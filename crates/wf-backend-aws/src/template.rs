//! The table and who may use it, as a CloudFormation template: what `wf-cli aws template` prints.
//!
//! The table is [`SHAPE`], the permissions are those of `permissions`: nothing is said here a second time. The state
//! machine for orchestration by Step Functions is not in it.

use serde_json::{Value, json};

use crate::permissions::{Sender, actions};
use crate::table::SHAPE;

/// Prints the same for the same name: keys in order, two blanks, a line end.
#[must_use]
pub fn template(table: &str) -> Value {
    json!({
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Checkpoint: the DynamoDB table of one store, and roles for its servers and operators. \
                        Printed by `wf-cli aws template`.",
        "Parameters": parameters(table),
        "Conditions": {
            "AnybodyAllowed": { "Fn::Equals": [{ "Ref": "OperatorPrincipal" }, ""] },
        },
        "Resources": {
            "Table": the_table(),
            "ServerRole": role(
                "What a server of Checkpoint is",
                &json!({ "Service": { "Ref": "ServerService" } }),
            ),
            "ServerPolicy": policy("ServerRole", "What a server of Checkpoint may do", &server()),
            "OperatorRole": role(
                "Who runs commands of Checkpoint beside the servers",
                &json!({ "AWS": {
                    "Fn::If": [
                        "AnybodyAllowed",
                        { "Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root" },
                        { "Ref": "OperatorPrincipal" },
                    ],
                } }),
            ),
            "OperatorPolicy": policy(
                "OperatorRole",
                "What an operator of Checkpoint may do: all that a server may, and look at the whole table",
                &operator(),
            ),
        },
        "Outputs": {
            "TableName": { "Description": "backend.aws.table", "Value": { "Ref": "Table" } },
            "TableArn": { "Value": arn_of("Table") },
            "ServerRoleArn": { "Value": arn_of("ServerRole") },
            "ServerPolicyArn": { "Value": { "Ref": "ServerPolicy" } },
            "OperatorRoleArn": { "Value": arn_of("OperatorRole") },
            "OperatorPolicyArn": { "Value": { "Ref": "OperatorPolicy" } },
        },
    })
}

fn parameters(table: &str) -> Value {
    json!({
        "TableName": {
            "Type": "String",
            "Default": table,
            "AllowedPattern": "[a-zA-Z0-9_.-]{3,255}",
            "Description": "Name of the table",
        },
        "ServerService": {
            "Type": "String",
            "Default": "ecs-tasks.amazonaws.com",
            "AllowedPattern": "[a-z0-9.-]+",
            "Description": "The service that runs the servers and hands them their role, for example ec2.amazonaws.com",
        },
        "OperatorPrincipal": {
            "Type": "String",
            "Default": "",
            "Description": "ARN of who may take the role of operators; when empty, whoever this account allows to",
        },
    })
}

fn the_table() -> Value {
    let indexes = SHAPE.indexes.iter().map(|(name, pk, sk)| {
        json!({
            "IndexName": name,
            "KeySchema": key(pk, sk),
            "Projection": { "ProjectionType": "KEYS_ONLY" },
        })
    });
    let attributes = SHAPE.attributes();
    let attributes =
        attributes.iter().map(|name| json!({ "AttributeName": name, "AttributeType": "S" }));
    json!({
        "Type": "AWS::DynamoDB::Table",
        // Histories outlive the stack, and a table that would have to be made anew.
        "DeletionPolicy": "Retain",
        "UpdateReplacePolicy": "Retain",
        "Properties": {
            "TableName": { "Ref": "TableName" },
            "AttributeDefinitions": attributes.collect::<Vec<_>>(),
            "KeySchema": key(SHAPE.key.0, SHAPE.key.1),
            "GlobalSecondaryIndexes": indexes.collect::<Vec<_>>(),
            "BillingMode": "PAY_PER_REQUEST",
            "DeletionProtectionEnabled": true,
            "PointInTimeRecoverySpecification": { "PointInTimeRecoveryEnabled": true },
            // Under the key that AWS manages for DynamoDB in this account; without it, under one that nobody sees.
            "SSESpecification": { "SSEEnabled": true },
            "TimeToLiveSpecification": { "AttributeName": SHAPE.ttl, "Enabled": true },
        },
    })
}

fn key(pk: &str, sk: &str) -> Value {
    json!([
        { "AttributeName": pk, "KeyType": "HASH" },
        { "AttributeName": sk, "KeyType": "RANGE" },
    ])
}

fn role(description: &str, who: &Value) -> Value {
    let trust = json!({ "Effect": "Allow", "Principal": who, "Action": "sts:AssumeRole" });
    json!({
        "Type": "AWS::IAM::Role",
        "Properties": { "Description": description, "AssumeRolePolicyDocument": document(&[trust]) },
    })
}

fn policy(role: &str, description: &str, statements: &[Value]) -> Value {
    json!({
        "Type": "AWS::IAM::ManagedPolicy",
        "Properties": {
            "Description": description,
            "PolicyDocument": document(statements),
            "Roles": [{ "Ref": role }],
        },
    })
}

fn document(statements: &[Value]) -> Value {
    json!({ "Version": "2012-10-17", "Statement": statements })
}

fn server() -> Vec<Value> {
    let indexes = SHAPE.indexes.iter().map(|(name, ..)| {
        let arn = format!("${{Table.Arn}}/index/{name}");
        json!({ "Fn::Sub": arn })
    });
    let indexes: Vec<Value> = indexes.collect();
    vec![
        allow("Items", Sender::Server, false, &arn_of("Table")),
        allow("Indexes", Sender::Server, true, &Value::from(indexes)),
    ]
}

fn operator() -> Vec<Value> {
    let mut statements = server();
    statements.push(allow("Whole", Sender::Operator, false, &arn_of("Table")));
    statements
}

fn allow(name: &str, sender: Sender, of_indexes: bool, on: &Value) -> Value {
    let actions = actions(sender, of_indexes);
    json!({ "Sid": name, "Effect": "Allow", "Action": actions, "Resource": on })
}

fn arn_of(resource: &str) -> Value {
    json!({ "Fn::GetAtt": [resource, "Arn"] })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::template;
    use crate::permissions::REQUESTS;
    use crate::table::SHAPE;

    fn names(schema: &Value) -> Vec<&str> {
        let keys = schema.as_array().into_iter().flatten();
        keys.filter_map(|key| key["AttributeName"].as_str()).collect()
    }

    #[test]
    fn the_table_is_the_shape() {
        let template = template("checkpoint");
        let table = &template["Resources"]["Table"];
        let set = &table["Properties"];
        assert_eq!(names(&set["KeySchema"]), [SHAPE.key.0, SHAPE.key.1]);
        let indexes = set["GlobalSecondaryIndexes"].as_array().expect("indexes");
        let indexes: Vec<_> =
            indexes.iter().map(|i| (&i["IndexName"], names(&i["KeySchema"]))).collect();
        assert_eq!(indexes.len(), SHAPE.indexes.len());
        for ((name, keys), (expected, pk, sk)) in indexes.into_iter().zip(SHAPE.indexes) {
            assert_eq!((name.as_str(), keys), (Some(expected), vec![pk, sk]));
        }
        // DynamoDB refuses a definition of an attribute that is in no key.
        let mut defined = names(&set["AttributeDefinitions"]);
        defined.sort_unstable();
        let mut in_keys = vec![SHAPE.key.0, SHAPE.key.1];
        in_keys.extend(SHAPE.indexes.iter().flat_map(|(_, pk, sk)| [*pk, *sk]));
        in_keys.sort_unstable();
        assert_eq!(defined, in_keys);
        assert_eq!(set["TimeToLiveSpecification"]["AttributeName"], SHAPE.ttl);
        for (name, value) in [
            ("/Properties/TimeToLiveSpecification/Enabled", json!(true)),
            (
                "/Properties/PointInTimeRecoverySpecification/PointInTimeRecoveryEnabled",
                json!(true),
            ),
            ("/Properties/SSESpecification/SSEEnabled", json!(true)),
            ("/Properties/DeletionProtectionEnabled", json!(true)),
            ("/Properties/BillingMode", json!("PAY_PER_REQUEST")),
            ("/DeletionPolicy", json!("Retain")),
            ("/UpdateReplacePolicy", json!("Retain")),
        ] {
            assert_eq!(table.pointer(name), Some(&value), "{name}");
        }
    }

    /// What a policy of the template allows, and on what.
    fn allowed(template: &Value, policy: &str) -> (BTreeSet<String>, String) {
        let document = &template["Resources"][policy]["Properties"]["PolicyDocument"];
        let statements = document["Statement"].as_array().expect("statements");
        let actions = statements.iter().flat_map(|s| s["Action"].as_array().expect("a list"));
        let actions = actions.map(|action| action.as_str().expect("a text").to_owned()).collect();
        let on: Vec<String> = statements.iter().map(|s| s["Resource"].to_string()).collect();
        (actions, on.join(" "))
    }

    #[test]
    fn a_policy_allows_what_is_sent_and_no_more() {
        use crate::permissions::Sender::{Maker, Operator, Server};
        let template = template("checkpoint");
        for (policy, senders) in
            [("ServerPolicy", &[Server][..]), ("OperatorPolicy", &[Server, Operator])]
        {
            let (actions, on) = allowed(&template, policy);
            let sent = REQUESTS.iter().filter(|request| senders.contains(&request.sender));
            let needed = sent.filter(|r| r.on.service() == "dynamodb").flat_map(|r| r.needs);
            let needed = needed.map(|name| format!("dynamodb:{name}"));
            assert_eq!(actions, needed.collect(), "{policy}");
            let made = REQUESTS.iter().filter(|request| request.sender == Maker);
            for name in made.flat_map(|request| request.needs) {
                assert!(!actions.contains(&format!("dynamodb:{name}")), "{policy}: {name}");
            }
            assert!(!on.contains('*') && !actions.iter().any(|action| action.contains('*')));
            for (index, ..) in SHAPE.indexes {
                assert!(on.contains(&format!("${{Table.Arn}}/index/{index}")), "{policy}: {index}");
            }
        }
    }

    #[test]
    fn the_name_is_a_default_and_everything_refers_to_it() {
        let text = template("other.table").to_string();
        assert_eq!(text.matches("other.table").count(), 1);
        assert_eq!(template("other.table")["Parameters"]["TableName"]["Default"], "other.table");
        assert_eq!(template("a-b"), template("a-b"));
    }
}
