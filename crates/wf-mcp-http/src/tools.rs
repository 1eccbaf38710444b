//! The tools: one table (`table`) from which the list, the input schemas and the reading of arguments follow, and the
//! schemas of results (`schema`).

mod schema;
mod table;

use std::sync::{Arc, LazyLock};

use rmcp::model::{ProtocolVersion, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

pub use schema::result_schema;
pub use table::Needs;
pub(crate) use table::{Kind, Param, Spec, TOOLS};

/// Revisions of MCP that this server speaks, oldest first.
pub const SUPPORTED_VERSIONS: &[&str] = &["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// The same for rmcp.
pub(crate) static VERSIONS: LazyLock<Vec<ProtocolVersion>> = LazyLock::new(|| {
    let supported = |known: &&ProtocolVersion| SUPPORTED_VERSIONS.contains(&known.as_str());
    let known = ProtocolVersion::KNOWN_VERSIONS.iter();
    known.filter(supported).cloned().collect()
});

/// The tools as rmcp sends them, in the order of the table. A function of the build alone.
pub(crate) static LISTED: LazyLock<Vec<Tool>> =
    LazyLock::new(|| TOOLS.iter().map(Spec::listed).collect());

/// Rules for a model that drives the tools; sent as the server's `instructions`.
#[must_use]
pub fn instructions() -> &'static str {
    "Checkpoint keeps the authoritative state of step-by-step procedures. Rules: \
     1. Say `speech` to the person, one step at a time; `step` is what to ask next. \
     2. Values come only from the person, ids only from earlier results. Never invent, guess, round or convert them. \
     3. On needs_confirmation read `confirm.read_back` back to the person. Only after a yes send the very same call with \
     confirm_token. \
     4. Copy `next_idempotency_key` of the last result into the next change as idempotency_key. \
     5. If an answer is lost, or error.retry is same_call, send the very same call again with the same key. \
     `duplicate`: true means it had been done already; go on. \
     6. On disambiguation ask the person which of `candidates` is meant. \
     7. On an error do what `error.next` says. Never work around a block: somebody has to decide it. \
     8. When you do not know where things stand, call get_status."
}

/// The answer to `tools/list`, as JSON: `{"tools": [...]}`.
#[must_use]
pub fn tool_list() -> Value {
    json!({ "tools": *LISTED })
}

/// The tool of this name.
pub(crate) fn spec(name: &str) -> Option<&'static Spec> {
    TOOLS.iter().find(|spec| spec.name == name)
}

/// Every tool by name, in one line.
pub(crate) fn names() -> String {
    TOOLS.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ")
}

impl Spec {
    fn listed(&self) -> Tool {
        let annotations = ToolAnnotations::from_raw(
            None,
            Some(self.reads_only),
            Some(self.destroys),
            Some(true),
            Some(false),
        );
        Tool::new(self.name, self.description, Arc::new(self.input_schema()))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(schema::envelope()))
            .with_annotations(annotations)
    }

    fn input_schema(&self) -> Map<String, Value> {
        let mut properties = Map::new();
        for param in self.params {
            properties.insert(param.name.to_owned(), param.schema());
        }
        let required: Vec<_> = self.params.iter().filter(|p| p.required).map(|p| p.name).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        schema.insert("additionalProperties".to_owned(), false.into());
        schema
    }

    /// The parameter of this name.
    pub(crate) fn param(&self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.name == name)
    }
}

impl Param {
    fn schema(&self) -> Value {
        let mut schema = Map::new();
        let kind = match self.kind {
            Kind::Text { .. } | Kind::Word(_) => "string",
            Kind::Names | Kind::Object => "object",
        };
        schema.insert("type".to_owned(), kind.into());
        match self.kind {
            Kind::Text { max } => {
                schema.insert("maxLength".to_owned(), max.into());
            }
            Kind::Word(words) => {
                schema.insert("enum".to_owned(), words.into());
            }
            Kind::Names => {
                let name = json!({ "type": "string" });
                schema.insert("additionalProperties".to_owned(), name);
            }
            Kind::Object => {}
        }
        schema.insert("description".to_owned(), self.description.into());
        Value::Object(schema)
    }
}

#[cfg(test)]
mod tests;
