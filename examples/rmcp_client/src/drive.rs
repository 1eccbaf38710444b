//! A whole pump inspection, from what the tools answer; each answer is checked against the schema of its tool.

use std::collections::BTreeMap;

use jsonschema::Validator;
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, JsonObject, ReadResourceRequestParams, ResourceContents};
use rmcp::service::{Peer, ServiceError};
use serde_json::{Value, json};

/// Why it did not get to the end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriveError {
    /// No answer.
    #[error("no answer")]
    Service(#[from] ServiceError),
    /// A tool without an output schema, or with one that is none.
    #[error("{0} has no output schema that can be used")]
    Schema(String),
    /// An answer that is not what the schema says.
    #[error("{tool} answered what its schema does not allow: {rule}")]
    Answer {
        /// The tool.
        tool: String,
        /// What is wrong.
        rule: String,
    },
    /// An answer that is not what comes next.
    #[error("unexpected: {0}")]
    Unexpected(String),
}

#[expect(clippy::needless_pass_by_value, reason = "map_err hands its error over by value")]
fn unexpected(what: impl ToString) -> DriveError {
    DriveError::Unexpected(what.to_string())
}

/// A connection and the schemas of its tools.
struct Desk<'a> {
    peer: &'a Peer<RoleClient>,
    schemas: BTreeMap<String, Validator>,
}

impl Desk<'_> {
    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, DriveError> {
        let arguments: JsonObject = serde_json::from_value(arguments).map_err(unexpected)?;
        let call = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let answered = self.peer.call_tool(call).await?;
        let answer = answered.structured_content.ok_or_else(|| unexpected(tool))?;
        let schema = self.schemas.get(tool).ok_or_else(|| DriveError::Schema(tool.to_owned()))?;
        schema.validate(&answer).map_err(|error| DriveError::Answer {
            tool: tool.to_owned(),
            rule: error.to_string(),
        })?;
        if answer["ok"] != true {
            return Err(unexpected(&answer));
        }
        Ok(answer)
    }
}

/// Lists, reads, drives; answers what it did, one line each.
pub(crate) async fn whole_job(peer: &Peer<RoleClient>) -> Result<Vec<String>, DriveError> {
    let mut done = Vec::new();
    let mut schemas = BTreeMap::new();
    for tool in peer.list_all_tools().await? {
        let name = tool.name.to_string();
        let schema = tool.output_schema.map(|schema| Value::Object((*schema).clone()));
        let schema = schema.and_then(|schema| jsonschema::validator_for(&schema).ok());
        schemas.insert(name.clone(), schema.ok_or(DriveError::Schema(name))?);
    }
    done.push(format!("{} tools, each with an output schema", schemas.len()));
    let desk = Desk { peer, schemas };
    let resources = peer.list_all_resources().await?;
    let procedure = "workflow://procedures/pump-inspection";
    if !resources.iter().any(|resource| resource.uri == procedure) {
        return Err(unexpected("the procedure is not among the resources"));
    }
    read(peer, procedure, "pump-inspection").await?;
    done.push(format!("{} resources; the procedure was read", resources.len()));

    let start = json!({
        "procedure_id": "pump-inspection",
        "assets": { "pump": "PUMP-204" },
        "inputs": { "work_order": "WO 1" },
        "idempotency_key": "rmcp-start",
    });
    let mut view = desk.call("start_workflow", start.clone()).await?;
    if desk.call("start_workflow", start).await?["duplicate"] != true {
        return Err(unexpected("the same call again is no duplicate"));
    }
    let workflow = view["workflow"]["id"].clone();
    let mut steps = 0;
    while view["step"].is_object() {
        view = step(&desk, &view).await?;
        steps += 1;
    }
    let key = view["next_idempotency_key"].clone();
    let finish = json!({ "workflow_id": workflow, "result": "passed", "idempotency_key": key });
    let view = desk.call("finish_workflow", finish).await?;
    let (state, result) = (&view["workflow"]["state"], &view["workflow"]["result"]);
    if (state, result) != (&json!("COMPLETED"), &json!("passed")) {
        return Err(unexpected(&view));
    }
    let id = workflow.as_str().unwrap_or_default();
    read(peer, &format!("workflow://workflows/{id}"), id).await?;
    done.push(format!("{steps} steps were recorded, and the inspection was finished as passed"));
    Ok(done)
}

async fn read(peer: &Peer<RoleClient>, uri: &str, has: &str) -> Result<(), DriveError> {
    let read = peer.read_resource(ReadResourceRequestParams::new(uri)).await?;
    if let Some(ResourceContents::TextResourceContents { text, .. }) = read.contents.first()
        && text.contains(has)
    {
        return Ok(());
    }
    Err(unexpected(uri))
}

/// Records a good value for the open step, reading it back if asked to.
async fn step(desk: &Desk<'_>, view: &Value) -> Result<Value, DriveError> {
    let step = &view["step"];
    let mut arguments = json!({
        "workflow_id": view["workflow"]["id"],
        "step_id": step["id"],
        "value": good_value(step).ok_or_else(|| unexpected(step))?,
        "idempotency_key": view["next_idempotency_key"],
    });
    if step["unit"].is_string() {
        arguments["unit"] = step["unit"].clone();
    }
    let mut answer = desk.call("submit_step", arguments.clone()).await?;
    if answer["outcome"] == "needs_confirmation" {
        arguments["confirm_token"] = answer["confirm"]["token"].clone();
        answer = desk.call("submit_step", arguments).await?;
    }
    if answer["outcome"] == "recorded" { Ok(answer) } else { Err(unexpected(&answer)) }
}

/// What a person who does everything right answers.
fn good_value(step: &Value) -> Option<String> {
    match step["kind"].as_str()? {
        "number" => {
            let bound = |name: &str| step[name].as_str()?.parse::<f64>().ok();
            let digits = usize::try_from(step["decimals"].as_u64().unwrap_or(0)).ok()?;
            Some(format!("{:.digits$}", f64::midpoint(bound("min")?, bound("max")?)))
        }
        "choice" => step["choices"][0]["id"].as_str().map(str::to_owned),
        "confirm" => Some("yes".to_owned()),
        "text" => Some("nothing to add".to_owned()),
        _ => None,
    }
}
