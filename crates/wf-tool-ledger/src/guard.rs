//! The handler in front of a handler: reads the key of a call, and shows it in the schema of the tool. `call` does the
//! rest of a guarded call, `delegate` passes everything else on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, JsonObject, ListToolsResult, PaginatedRequestParams,
    Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use wf_idempotency::{Fingerprint, IdempotencyKey, sha256_hex};

use crate::answers::Refusal;
use crate::call;
use crate::ledger::Ledger;
use crate::policy::Unfinished;
use crate::sql::Asked;

/// The argument that has the key. It is added to the schema of a guarded tool and never reaches the tool.
pub const ARGUMENT: &str = "idempotency_key";
/// The key of `_meta` that may have it instead, for programs.
pub const META_KEY: &str = "checkpoint/idempotencyKey";

/// Longest scope that is stored as it is, in bytes; of a longer one, its hash is.
const SCOPE_BYTES_MAX: usize = 256;

type Context = RequestContext<RoleServer>;
type ScopeOf = dyn Fn(&Context) -> String + Send + Sync;

/// An `rmcp` handler whose guarded tools are safe to retry. Everything else of it is unchanged.
///
/// A guarded tool gets one more required argument, [`ARGUMENT`]. The first call under a key runs the tool and stores its
/// answer. The same call again, at any time, from any process with the same ledger, gets that answer with
/// [`META_DUPLICATE`](crate::META_DUPLICATE) in its `_meta`, and the tool does not run. Another call under the key is
/// refused. A refusal is an error result, with [`META_RETRY`](crate::META_RETRY) in its `_meta`.
///
/// Cheap to clone, as `rmcp`'s HTTP service wants it: one for each request.
pub struct RetrySafe<H> {
    handler: Arc<H>,
    ledger: Ledger,
    guarded: Arc<BTreeMap<String, Unfinished>>,
    scope: Arc<ScopeOf>,
}

impl<H> Clone for RetrySafe<H> {
    fn clone(&self) -> Self {
        Self {
            handler: Arc::clone(&self.handler),
            ledger: self.ledger.clone(),
            guarded: Arc::clone(&self.guarded),
            scope: Arc::clone(&self.scope),
        }
    }
}

impl<H> fmt::Debug for RetrySafe<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetrySafe").field("guarded", &self.guarded).finish_non_exhaustive()
    }
}

impl<H: ServerHandler> RetrySafe<H> {
    /// Puts itself in front of `handler`. No tool is guarded yet.
    pub fn new(handler: H, ledger: Ledger) -> Self {
        Self {
            handler: Arc::new(handler),
            ledger,
            guarded: Arc::default(),
            scope: Arc::new(|_| String::new()),
        }
    }

    /// Guards a tool.
    #[must_use]
    pub fn tool(mut self, name: &str, unfinished: Unfinished) -> Self {
        Arc::make_mut(&mut self.guarded).insert(name.to_owned(), unfinished);
        self
    }

    /// Says whose keys the keys of a request are: two callers may use the same one, and neither gets the other's answer.
    /// Without this there is one caller. Give every server with more than one a scope.
    #[must_use]
    pub fn scope(mut self, of: impl Fn(&Context) -> String + Send + Sync + 'static) -> Self {
        self.scope = Arc::new(of);
        self
    }

    pub(crate) fn handler(&self) -> &H {
        &self.handler
    }

    pub(crate) async fn call(
        &self,
        mut request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(unfinished) = self.guarded.get(&*request.name).copied() else {
            return self.handler.call_tool(request, context).await;
        };
        let asked = match self.asked(&mut request, &context, unfinished) {
            Ok(asked) => asked,
            Err(refusal) => return Ok(refusal.result().into()),
        };
        let (handler, ledger) = (Arc::clone(&self.handler), self.ledger.clone());
        call::once(handler, ledger, asked, request, context).await
    }

    /// The call as the ledger sees it. Takes the key out of the arguments.
    fn asked(
        &self,
        request: &mut CallToolRequestParams,
        context: &Context,
        unfinished: Unfinished,
    ) -> Result<Asked, Refusal> {
        let arguments = request.arguments.get_or_insert_default();
        let sent = [arguments.remove(ARGUMENT), context.meta.get(META_KEY).cloned()];
        let key = key(sent.into_iter().flatten())?;
        let fingerprint = Fingerprint::of(&request.name, arguments, &[])
            .map_err(|error| Refusal::Arguments(format!("The arguments: {error}.")))?;
        let mut scope = (self.scope)(context);
        if scope.len() > SCOPE_BYTES_MAX {
            scope = sha256_hex(scope.as_bytes());
        }
        let operation = request.name.clone().into_owned();
        Ok(Asked { scope, key: key.as_str().to_owned(), operation, fingerprint, unfinished })
    }

    pub(crate) async fn list(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.handler.list_tools(request, context).await?;
        for tool in &mut listed.tools {
            self.show(tool);
        }
        Ok(listed)
    }

    pub(crate) fn get(&self, name: &str) -> Option<Tool> {
        let mut tool = self.handler.get_tool(name)?;
        self.show(&mut tool);
        Some(tool)
    }

    /// Shows the key in the schema of a guarded tool.
    fn show(&self, tool: &mut Tool) {
        if !self.guarded.contains_key(&*tool.name) {
            return;
        }
        let mut schema = (*tool.input_schema).clone();
        with_key(&mut schema);
        tool.input_schema = Arc::new(schema);
        tool.annotations.get_or_insert_default().idempotent_hint = Some(true);
    }
}

/// The one key that was sent.
fn key(mut sent: impl Iterator<Item = Value>) -> Result<IdempotencyKey, Refusal> {
    let rule = || {
        Refusal::Key(format!(
            "{ARGUMENT} must be 1 to 128 visible ASCII characters without spaces: a new random one for each thing that is \
             to happen, the same one when the call is sent again."
        ))
    };
    let first = sent.next().ok_or_else(rule)?;
    if sent.any(|other| other != first) {
        return Err(Refusal::Key(format!("{ARGUMENT} and {META_KEY} differ: send one key.")));
    }
    first.as_str().and_then(|text| IdempotencyKey::parse(text).ok()).ok_or_else(rule)
}

fn with_key(schema: &mut JsonObject) {
    let property = json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 128,
        "description": "A new random text for each thing that is to happen. Without an answer, send the very same call \
                        again, with the same text: it happens once.",
    });
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert(ARGUMENT.to_owned(), property);
    }
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut()
        && !required.iter().any(|name| name == ARGUMENT)
    {
        required.push(ARGUMENT.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_is_sent_and_it_is_one() {
        let of = |sent: &[Value]| key(sent.iter().cloned()).map(|key| key.as_str().to_owned());
        assert_eq!(of(&[json!("a")]), Ok("a".to_owned()));
        assert_eq!(of(&[json!("a"), json!("a")]), Ok("a".to_owned()));
        let bad: [&[Value]; 6] = [
            &[],
            &[json!("")],
            &[json!(1)],
            &[json!("a b")],
            &[json!(null)],
            &[json!("a"), json!("b")],
        ];
        for bad in bad {
            assert!(matches!(of(bad), Err(Refusal::Key(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_schema_gets_the_key_once() {
        for schema in [json!({}), json!({ "type": "object", "properties": {}, "required": ["to"] })]
        {
            let mut schema = schema.as_object().cloned().unwrap();
            with_key(&mut schema);
            let once = schema.clone();
            with_key(&mut schema);
            assert_eq!(schema, once);
            assert_eq!(schema["properties"][ARGUMENT]["type"], "string");
            assert!(schema["required"].as_array().unwrap().contains(&json!(ARGUMENT)));
        }
    }
}
