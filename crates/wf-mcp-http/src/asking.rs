//! Asking back: where a client of MCP 2026-07-28 can ask its user (it declares elicitation, with every request), a read-back
//! and a choice are put to the user by it, and the same call comes back with the answer (multi round-trip requests).
//!
//! One round: `handler` calls the engine as ever; [`Round::back`] turns a reply that is a question into an
//! `InputRequiredResult`; the client calls again with `inputResponses` and `requestState`, which [`Round::begin`] checks
//! and [`go_on`] puts into the call. What the state is bound to and what makes it single-use is `wf_core::engine::asking`.
//! Everybody else gets the reply itself, which says the same: a confirm token, or candidates.

use std::collections::BTreeMap;

use rmcp::ErrorData;
use rmcp::model::{
    BooleanSchema, CallToolRequestParams, CallToolResponse, ConstTitle, ElicitRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema,
    InputRequest, InputRequiredResult, InputResponses, MetaObject, PrimitiveSchemaDefinition,
    RequestMetaObject, SingleSelectEnumSchema, TitledSingleSelectEnumSchema,
};
use serde_json::{Map, Value, json};
use wf_core::engine::{
    Answered, Asking, CallMeta, Choice, Consent, Engine, Question, Reply, StateRefusal,
};
use wf_core::models::{Principal, WorkflowId};

use crate::handler;
use crate::tools::Spec;
use crate::wire::arguments::Asked;
use crate::wire::envelope::Arguments;

/// The method whose calls ask back.
const METHOD: &str = "tools/call";
/// The question in `inputRequests`, and the field of its form, when something is read back.
const CONFIRM: &str = "confirm";
/// The same when one of several is meant.
const CHOICE: &str = "choice";
/// Where in the parameters the answers are, and the state.
const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// What is wrong with the parameters of an answer, which rmcp would take for an unknown method.
pub(crate) fn check_params(params: &Map<String, Value>) -> Option<&'static str> {
    let present = |name: &str| params.get(name).filter(|value| !value.is_null());
    if present(STATE).is_some_and(|state| !state.is_string()) {
        Some("params.requestState must be a string")
    } else if present(RESPONSES).is_some_and(|responses| !responses.is_object()) {
        Some("params.inputResponses must be an object")
    } else {
        None
    }
}

/// The client asks its user when it is asked to: it fills in forms.
pub(crate) fn asks(meta: &RequestMetaObject) -> bool {
    let elicitation = meta.client_capabilities().and_then(|can| can.elicitation);
    // Without a word about how, forms are meant (MCP 2026-07-28, elicitation, capabilities).
    elicitation.is_some_and(|how| how.form.is_some() || how.url.is_none())
}

/// One call of one caller: whether it may be asked back, and what it brings from an earlier round.
#[derive(Debug)]
pub(crate) struct Round<'a> {
    engine: &'a Engine,
    asking: Option<Asking<'a>>,
    asks: bool,
    given: Given,
}

/// What the person said to an earlier question.
#[derive(Debug, Clone)]
pub(crate) enum Given {
    /// There was none, or nothing was said to it: the call is what it is.
    Nothing,
    /// This one, or yes.
    Yes(Consent, Answered),
    /// No, or nothing that one wants to say.
    No(Answered),
}

impl<'a> Round<'a> {
    /// Reads what the call brings. `asks`: the client speaks 2026-07-28 and can ask its user; of others, who know no
    /// states, nothing is looked at.
    ///
    /// # Errors
    /// -32602 for a state that does not count, and for responses that are none.
    pub(crate) fn begin(
        engine: &'a Engine,
        (principal, spec, sent): (&'a Principal, &'static Spec, &'a Arguments),
        request: &CallToolRequestParams,
        (modern, asks): (bool, bool),
    ) -> Result<Self, ErrorData> {
        let asking = match sent {
            Arguments::Object(arguments) => {
                Some(Asking { principal, method: METHOD, operation: spec.name, arguments })
            }
            // Refused for what they are, before anything is asked.
            Arguments::NoObject(_) | Arguments::Unsafe { .. } => None,
        };
        let mut round = Self { engine, asking, asks: modern && asks, given: Given::Nothing };
        if let (true, Some(asking), Some(state)) = (modern, &round.asking, &request.request_state) {
            let answered = engine.answered(asking, state).map_err(refused)?;
            round.given = given(answered, request.input_responses.as_ref())?;
        }
        Ok(round)
    }

    pub(crate) fn given(&self) -> Given {
        self.given.clone()
    }

    /// The answer to the client: the question in the reply, where it can be asked; otherwise `None`, the reply is it.
    ///
    /// # Errors
    /// -32602 when the call had been recorded already: the state was used before.
    pub(crate) fn back(
        &self,
        reply: &Reply,
        meta: Option<MetaObject>,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        if let (Given::Yes(..), true) = (&self.given, reply.duplicate) {
            return Err(refused(StateRefusal::Used));
        }
        let Some(asking) = self.asking.as_ref().filter(|_| self.asks) else { return Ok(None) };
        let question = self.engine.question(asking, reply).map(|asked| form(&asked));
        Ok(question.map(|mut asked| {
            asked.meta = meta;
            asked.into()
        }))
    }
}

impl Given {
    /// The call as the person wants it.
    ///
    /// # Errors
    /// The question that was answered with a no, and the workflow it is about.
    fn with(&self, asked: Asked) -> Result<Asked, (Answered, Option<WorkflowId>)> {
        match (self, asked) {
            (Self::Nothing, asked) => Ok(asked),
            (Self::Yes(consent, _), Asked::Change(call)) => {
                Ok(Asked::Change(Box::new(call.with(consent))))
            }
            (Self::Yes(consent, _), Asked::GetStatus(query)) => {
                Ok(Asked::GetStatus(query.with(consent)))
            }
            (Self::Yes(..), asked @ (Asked::FindWork(_) | Asked::CheckValue(_))) => Ok(asked),
            (Self::No(answered), asked) => {
                let about = match asked {
                    Asked::Change(call) => call.request.workflow_id().cloned(),
                    Asked::GetStatus(query) => query.workflow_id,
                    Asked::CheckValue(query) => Some(query.workflow_id),
                    Asked::FindWork(_) => None,
                };
                Err((answered.clone(), about))
            }
        }
    }

    /// Remembers the answer where no commit does: to a read, which writes nothing.
    fn spend(&self, engine: &Engine, asked: &Asked, reply: &Reply) {
        let reads = match asked {
            Asked::GetStatus(_) | Asked::FindWork(_) | Asked::CheckValue(_) => true,
            Asked::Change(_) => false,
        };
        match self {
            Self::Yes(_, answered) if reads && reply.error.is_none() => engine.spend(answered),
            Self::Nothing | Self::Yes(..) | Self::No(_) => {}
        }
    }
}

/// Does what is asked, with what was said to an earlier question about it.
pub(crate) async fn go_on(
    engine: &Engine,
    principal: &Principal,
    asked: Asked,
    given: &Given,
    meta: &CallMeta,
) -> Reply {
    match given.with(asked) {
        Ok(asked) => {
            let reply = handler::ask(engine, principal, &asked, meta).await;
            given.spend(engine, &asked, &reply);
            reply
        }
        Err((answered, about)) => {
            engine.spend(&answered);
            engine.declined(principal, &answered, about.as_ref(), meta).await
        }
    }
}

/// What was said to the question of this state.
fn given(answered: Answered, responses: Option<&InputResponses>) -> Result<Given, ErrorData> {
    let name = if answered.is_read_back() { CONFIRM } else { CHOICE };
    // What is missing is asked for again (MCP 2026-07-28, multi round-trip requests, error handling).
    let Some(response) = responses.and_then(|responses| responses.get(name)) else {
        return Ok(Given::Nothing);
    };
    let malformed =
        |rule: &str| ErrorData::invalid_params(format!("params.{RESPONSES}.{name} {rule}"), None);
    let result = serde_json::from_value::<ElicitResult>(response.clone())
        .map_err(|_| malformed("must be the result of an elicitation"))?;
    if result.action != ElicitationAction::Accept {
        return Ok(Given::No(answered));
    }
    let said = result.content.as_ref().and_then(|content| content.get(name));
    match said {
        None | Some(Value::Null) => Ok(Given::Nothing),
        Some(Value::Bool(false)) if answered.is_read_back() => Ok(Given::No(answered)),
        Some(Value::Bool(true)) if answered.is_read_back() => {
            let consent = answered.yes().ok_or_else(|| malformed("was not asked"))?;
            Ok(Given::Yes(consent, answered))
        }
        Some(Value::String(id)) if !answered.is_read_back() => {
            let consent =
                answered.chosen(id).ok_or_else(|| malformed("must be one of those offered"))?;
            Ok(Given::Yes(consent, answered))
        }
        Some(_) => Err(malformed("must fit the form")),
    }
}

/// The refusal of a state. The reason is one of a few words; which part of a foreign one did not fit, nobody is told.
fn refused(refusal: StateRefusal) -> ErrorData {
    let (reason, text) = match refusal {
        StateRefusal::Foreign => ("foreign", "requestState does not belong to this call"),
        StateRefusal::Expired => ("expired", "requestState has expired"),
        StateRefusal::Used => ("used", "requestState was used before"),
    };
    let text = format!(
        "{text}: send the call again without it to be asked, or to learn what was recorded"
    );
    ErrorData::invalid_params(text, Some(json!({ "reason": reason })))
}

/// A question as a form.
fn form(question: &Question) -> InputRequiredResult {
    let (name, field) = if question.options.is_empty() {
        let yes = BooleanSchema::new().title("Right?").description("True if this is right");
        (CONFIRM, PrimitiveSchemaDefinition::Boolean(yes))
    } else {
        let titled = |option: &Choice| ConstTitle::new(&option.id, &option.label);
        let options = question.options.iter().map(titled).collect();
        let mut which = TitledSingleSelectEnumSchema::new(options);
        which.title = Some("Which one?".into());
        let which = EnumSchema::Single(SingleSelectEnumSchema::Titled(which));
        (CHOICE, PrimitiveSchemaDefinition::Enum(which))
    };
    let fields = BTreeMap::from([(name.to_owned(), field)]);
    let schema = ElicitationSchema::new(fields).with_required(vec![name.to_owned()]);
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.text.clone(),
        requested_schema: schema,
    };
    let request = InputRequest::Elicitation(ElicitRequest::new(params));
    let requests = BTreeMap::from([(name.to_owned(), request)]);
    InputRequiredResult::new(Some(requests), Some(question.state.clone()))
}

#[cfg(test)]
mod tests;
