//! The table and who may use it, as a CloudFormation template: what `wf-cli aws template` prints.
//!
//! The table is [`SHAPE`], the permissions are those of `permissions`, the state machine is that of `execution::definition`:
//! nothing is said here a second time.

use serde_json::{Value, json};

use crate::execution::definition::definition;
use crate::permissions::{On, Sender, actions, of_states};
use crate::table::SHAPE;

/// Prints the same for the same name: keys in order, two blanks, a line end.
#[must_use]
pub fn template(table: &str) -> Value {
    json!({
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Checkpoint: the DynamoDB table of one store, the state machine that gives its workflows a life \
                        in time, and roles for its servers and operators. \
                        Printed by `wf-cli aws template`.",
        "Parameters": parameters(table),
        "Conditions": {
            "AnybodyAllowed": { "Fn::Equals": [{ "Ref": "OperatorPrincipal" }, ""] },
        },
        "Resources": {
            "Table": the_table(),
            "Machine": the_machine(),
            "ExecutionLog": {
                "Type": "AWS::Logs::LogGroup",
                "DeletionPolicy": "Delete",
                "UpdateReplacePolicy": "Delete",
                "Properties": {
                    // Where Step Functions may write without a policy of its own for each log group.
                    "LogGroupName": { "Fn::Sub": "/aws/vendedlogs/states/${StateMachineName}" },
                    "RetentionInDays": 90,
                },
            },
            "ExecutionRole": execution_role(),
            "ExecutionPolicy": policy(
                "ExecutionRole",
                "What an execution may do: write to items of workflows, and say in the log why it failed",
                &execution(),
            ),
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
            "StateMachineArn": {
                "Description": "backend.aws.state_machine_arn",
                "Value": { "Ref": "Machine" },
            },
            "ExecutionRoleArn": { "Value": arn_of("ExecutionRole") },
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
        "StateMachineName": {
            "Type": "String",
            "Default": machine_name(table),
            "AllowedPattern": "[a-zA-Z0-9_-]{1,80}",
            "Description": "Name of the state machine",
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

/// A name that Step Functions takes: at most 80 characters, no dots.
fn machine_name(table: &str) -> String {
    table.replace('.', "-").chars().take(80).collect()
}

fn the_machine() -> Value {
    json!({
        "Type": "AWS::StepFunctions::StateMachine",
        // Without it the first execution fails, and so does a state machine that may not log.
        "DependsOn": ["ExecutionPolicy"],
        "Properties": {
            "StateMachineName": { "Ref": "StateMachineName" },
            "StateMachineType": "STANDARD",
            "RoleArn": arn_of("ExecutionRole"),
            "Definition": deployed_definition(),
            "LoggingConfiguration": {
                "Level": "ERROR",
                // Their input is references only; the log needs not even those.
                "IncludeExecutionData": false,
                "Destinations": [{ "CloudWatchLogsLogGroup": { "LogGroupArn": arn_of("ExecutionLog") } }],
            },
        },
    })
}

/// The definition, whose resources are in the partition of the stack.
fn deployed_definition() -> Value {
    let mut definition = definition("${AWS::Partition}");
    let states = definition["States"].as_object_mut();
    for state in states.into_iter().flat_map(|states| states.values_mut()) {
        if let Some(resource) = state.get_mut("Resource") {
            *resource = json!({ "Fn::Sub": resource.take() });
        }
    }
    definition
}

/// Only state machines of this account take it (the confused deputy, Step Functions Developer Guide).
fn execution_role() -> Value {
    let mut role = role(
        "What executions of Checkpoint's state machine are",
        &json!({ "Service": "states.amazonaws.com" }),
    );
    role["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]["Condition"] = json!({
        "StringEquals": { "aws:SourceAccount": { "Ref": "AWS::AccountId" } },
    });
    role
}

/// What the definition does: it writes to bindings of workflows. The rest is what delivering logs needs, which IAM takes for
/// all log groups only (Step Functions Developer Guide, logging).
fn execution() -> Vec<Value> {
    vec![
        json!({
            "Sid": "Bindings",
            "Effect": "Allow",
            "Action": ["dynamodb:UpdateItem"],
            "Resource": arn_of("Table"),
            "Condition": { "ForAllValues:StringLike": { "dynamodb:LeadingKeys": ["T#*#WF#*"] } },
        }),
        json!({
            "Sid": "Logs",
            "Effect": "Allow",
            "Action": [
                "logs:CreateLogDelivery",
                "logs:DeleteLogDelivery",
                "logs:DescribeLogGroups",
                "logs:DescribeResourcePolicies",
                "logs:GetLogDelivery",
                "logs:ListLogDeliveries",
                "logs:PutResourcePolicy",
                "logs:UpdateLogDelivery",
            ],
            "Resource": "*",
        }),
    ]
}

/// What one kind of sender may do with the state machine, and with its executions.
fn states(sender: Sender) -> Vec<Value> {
    let executions =
        "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:execution:${Machine.Name}:*";
    let on = [
        (On::Machine, "Machine", json!({ "Ref": "Machine" })),
        (On::Executions, "Executions", json!({ "Fn::Sub": executions })),
    ];
    let allow = on.into_iter().map(|(on, name, resource)| (of_states(sender, on), name, resource));
    let some = allow.filter(|(actions, ..)| !actions.is_empty());
    some.map(|(actions, name, resource)| {
        let sid = format!("{sender:?}{name}");
        json!({ "Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resource })
    })
    .collect()
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
    let mut statements = vec![
        allow("Items", Sender::Server, false, &arn_of("Table")),
        allow("Indexes", Sender::Server, true, &Value::from(indexes)),
    ];
    statements.extend(states(Sender::Server));
    statements
}

fn operator() -> Vec<Value> {
    let mut statements = server();
    statements.push(allow("Whole", Sender::Operator, false, &arn_of("Table")));
    statements.extend(states(Sender::Operator));
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
            let named = |r: &crate::permissions::Request| {
                r.needs.iter().map(|name| format!("{}:{name}", r.on.service())).collect::<Vec<_>>()
            };
            assert_eq!(actions, sent.flat_map(named).collect(), "{policy}");
            let made = REQUESTS.iter().filter(|request| request.sender == Maker);
            for name in made.flat_map(named) {
                assert!(!actions.contains(&name), "{policy}: {name}");
            }
            // All executions of the one state machine, and nothing else by a pattern.
            let on = on.replace("execution:${Machine.Name}:*", "");
            assert!(!on.contains('*') && !actions.iter().any(|action| action.contains('*')));
            for (index, ..) in SHAPE.indexes {
                assert!(on.contains(&format!("${{Table.Arn}}/index/{index}")), "{policy}: {index}");
            }
        }
    }

    #[test]
    fn the_state_machine_is_the_definition_and_may_write_to_bindings_only() {
        let template = template("checkpoint");
        let machine = &template["Resources"]["Machine"]["Properties"];
        let mut deployed = machine["Definition"].clone();
        let mut resources = 0;
        for state in deployed["States"].as_object_mut().expect("states").values_mut() {
            if let Some(Value::String(resource)) = state.pointer("/Resource/Fn::Sub").cloned() {
                state["Resource"] = json!(resource.replace("${AWS::Partition}", "aws"));
                resources += 1;
            }
        }
        assert_eq!(deployed, super::definition("aws"));
        assert_eq!(resources, 2);
        assert_eq!(machine["StateMachineType"], "STANDARD");
        assert_eq!(machine["LoggingConfiguration"]["IncludeExecutionData"], false);
        let policy = &template["Resources"]["ExecutionPolicy"]["Properties"]["PolicyDocument"];
        for statement in policy["Statement"].as_array().expect("statements") {
            let actions = statement["Action"].to_string();
            if statement["Sid"] == "Bindings" {
                assert_eq!(actions, r#"["dynamodb:UpdateItem"]"#);
                let keys = &statement["Condition"]["ForAllValues:StringLike"];
                assert_eq!(keys["dynamodb:LeadingKeys"], json!(["T#*#WF#*"]));
            } else {
                assert!(!actions.contains("dynamodb:") && !actions.contains('*'), "{actions}");
            }
        }
        let trust =
            &template["Resources"]["ExecutionRole"]["Properties"]["AssumeRolePolicyDocument"];
        assert!(trust.to_string().contains("aws:SourceAccount"), "{trust}");
    }

    #[test]
    fn the_name_is_a_default_and_everything_refers_to_it() {
        let text = template("other.table").to_string();
        assert_eq!(text.matches("other.table").count(), 1);
        assert_eq!(template("other.table")["Parameters"]["TableName"]["Default"], "other.table");
        assert_eq!(template("a-b"), template("a-b"));
    }
}
