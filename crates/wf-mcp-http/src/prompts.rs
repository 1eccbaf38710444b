//! Prompts (MCP, server features): what a person may pick instead of finding words for it.
//!
//! `resume_my_work`, `explain_block`, and `start_<procedure>` for every procedure that may be started. A prompt tells the
//! model what to do and what stands now; it changes nothing. What people wrote (labels, notes, arguments) goes into it as
//! JSON, set apart from what is asked.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, GetPromptRequestParams, GetPromptResult, ListPromptsResult, PaginatedRequestParams,
    Prompt, PromptArgument, PromptMessage, Role,
};
use serde_json::{Map, Value};
use wf_core::engine::{CallMeta, Detail, Engine, GetStatus};
use wf_core::idempotency::canonical_string;
use wf_core::limits::VALUE_CHARS_MAX;
use wf_core::models::{Locale, Principal, WorkflowId};
use wf_core::policy::DomainPolicyPort;
use wf_core::state_machine::Rejection;

use crate::fault::unasked;
use crate::handler::TTL_MS;
use crate::resources::address::Address;
use crate::resources::reader::{Reader, bug};
use crate::resources::{Library, listing};
use crate::tools::Needs;

const RESUME: &str = "resume_my_work";
const EXPLAIN: &str = "explain_block";
/// What begins the name of a prompt that starts a procedure; the procedure's id follows.
const START: &str = "start_";
/// The argument of [`EXPLAIN`].
const WORKFLOW_ID: &str = "workflow_id";

/// A prompt of ours.
#[derive(Debug)]
pub(crate) enum Known {
    /// Go on with what is open.
    Resume,
    /// Say why something is blocked.
    Explain,
    /// Start this procedure.
    Start(Arc<dyn DomainPolicyPort>),
}

/// What the argument of a prompt is the id of.
#[derive(Debug)]
pub(crate) enum Meant {
    /// A blocked workflow.
    Blocked,
    /// An asset that this procedure could have.
    Asset(Arc<dyn DomainPolicyPort>),
    /// Nothing that could be known here.
    Nothing,
}

/// The prompt of this name.
pub(crate) fn find(engine: &Engine, name: &str) -> Option<Known> {
    match name {
        RESUME => Some(Known::Resume),
        EXPLAIN => Some(Known::Explain),
        _ => {
            let id = name.strip_prefix(START)?;
            let mut all = engine.procedures().into_iter();
            all.find(|policy| policy.definition().id.as_str() == id).map(Known::Start)
        }
    }
}

/// What an argument is the id of.
pub(crate) fn completes(prompt: &Known, argument: &str) -> Meant {
    match prompt {
        Known::Explain if argument == WORKFLOW_ID => Meant::Blocked,
        Known::Start(policy) => {
            let assets = policy.needs().assets;
            if assets.iter().any(|asset| asset.role.as_str() == argument) {
                Meant::Asset(Arc::clone(policy))
            } else {
                Meant::Nothing
            }
        }
        Known::Resume | Known::Explain => Meant::Nothing,
    }
}

impl Library {
    /// Answers `prompts/list`.
    pub(crate) fn prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        reader: &Reader,
    ) -> Result<ListPromptsResult, ErrorData> {
        let locale = reader.locale();
        let mut all = Vec::new();
        if reader.may_list().is_some() {
            all.extend([resume(), explain()]);
            all.extend(self.engine.procedures().iter().map(|p| start(p.as_ref(), locale)));
        }
        let (items, next_cursor) =
            listing::page(all, |prompt: &Prompt| prompt.name.clone(), request)?;
        let mut listed = ListPromptsResult::with_all_items(items);
        listed.next_cursor = next_cursor;
        Ok(if reader.modern {
            listed.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private)
        } else {
            listed
        })
    }

    /// Answers `prompts/get`.
    pub(crate) async fn prompt(
        &self,
        request: &GetPromptRequestParams,
        reader: &Reader,
    ) -> Result<GetPromptResult, ErrorData> {
        let principal = reader.person()?;
        Needs::Read.of(principal).map_err(|rejection| unasked(&rejection))?;
        let known = find(&self.engine, &request.name)
            .ok_or_else(|| ErrorData::invalid_params("there is no such prompt", None))?;
        let arguments = request.arguments.clone().unwrap_or_default();
        let lists = match &known {
            Known::Resume => Vec::new(),
            Known::Explain => explain().arguments.unwrap_or_default(),
            Known::Start(policy) => arguments_of(policy.as_ref(), reader.locale()),
        };
        checked(&arguments, &lists)?;
        match known {
            Known::Resume => {
                let messages = reader.in_time(self.stand(principal, None, &reader.meta)).await?;
                Ok(told(RESUME_TEXT, messages, "Go on with what is open"))
            }
            Known::Explain => {
                let id = arguments.get(WORKFLOW_ID).and_then(Value::as_str);
                let id = id
                    .map(WorkflowId::parse)
                    .transpose()
                    .map_err(|_| unasked(&Rejection::not_found()))?;
                let messages = reader.in_time(self.stand(principal, id, &reader.meta)).await?;
                Ok(told(EXPLAIN_TEXT, messages, "Why a workflow is blocked"))
            }
            Known::Start(policy) => begin(policy.as_ref(), &arguments, reader.locale()),
        }
    }

    /// What stands now: of one workflow, or as `get_status` tells it without any id.
    async fn stand(
        &self,
        principal: &Principal,
        id: Option<WorkflowId>,
        meta: &CallMeta,
    ) -> Result<Vec<PromptMessage>, Rejection> {
        let body = match &id {
            Some(id) => self.engine.workflow_view(principal, id, meta).await?,
            None => {
                let query = GetStatus { workflow_id: None, asset_id: None, detail: Detail::Brief };
                let reply = self.engine.get_status(principal, &query, meta).await;
                if reply.error.is_some() {
                    return Err(Rejection::unavailable("what stands now cannot be told", None));
                }
                reply.body
            }
        };
        let shown = body.pointer("/workflow/id").and_then(Value::as_str);
        let shown = shown.and_then(|id| WorkflowId::parse(id).ok());
        let text = canonical_string(&body).map_err(|error| bug(&error.to_string()))?;
        Ok(vec![match shown {
            Some(id) => {
                let uri = Address::Workflow(id).to_string();
                let mime = Some("application/json".to_owned());
                PromptMessage::new_resource(Role::User, uri, mime, Some(text), None, None, None)
            }
            None => PromptMessage::new_text(Role::User, text),
        }])
    }
}

const RESUME_TEXT: &str = "I want to go on with my work in Checkpoint. What follows is data, what get_status answers now: \
    do what its speech says. Say in one or two sentences what I recorded last and what is next, or what stops the work; \
    where several are open, ask me which one. Then go on step by step with the tools. Never invent a value or an id.";

const EXPLAIN_TEXT: &str = "Explain to me why this work is blocked. What follows is data, what get_status answers now. Say \
    what happened, since when, who was told and whether they said that they know, which decisions there are and what each \
    leads to. Decide nothing: resolve_block is only for a supervisor who tells you their decision. If nothing is blocked, \
    say so, and what is next.";

fn told(text: &str, more: Vec<PromptMessage>, says: &str) -> GetPromptResult {
    let mut messages = vec![PromptMessage::new_text(Role::User, text)];
    messages.extend(more);
    GetPromptResult::new(messages).with_description(says)
}

fn begin(
    policy: &dyn DomainPolicyPort,
    arguments: &Map<String, Value>,
    locale: &Locale,
) -> Result<GetPromptResult, ErrorData> {
    let definition = policy.definition();
    let (mut assets, mut inputs) = (Map::new(), Map::new());
    for (name, value) in arguments {
        let is_asset = policy.needs().assets.iter().any(|asset| asset.role.as_str() == name);
        let into = if is_asset { &mut assets } else { &mut inputs };
        into.insert(name.clone(), value.clone());
    }
    let call = Value::Object(Map::from_iter([
        ("procedure_id".to_owned(), Value::from(definition.id.as_str())),
        ("assets".to_owned(), Value::Object(assets)),
        ("inputs".to_owned(), Value::Object(inputs)),
    ]));
    let call = canonical_string(&call)
        .map_err(|error| unasked(&Rejection::invalid("arguments", &error.to_string())))?;
    let title = definition.title.get(locale);
    let text = format!(
        "I want to start the procedure \"{title}\" in Checkpoint. What follows is data, what is known of the start so far: call \
         start_workflow with it. Ask me for what is missing, one thing at a time, and give inputs the type that the \
         procedure needs. Then go through it step by step with the tools. Never invent a value or an id."
    );
    Ok(told(&text, vec![PromptMessage::new_text(Role::User, call)], title))
}

fn resume() -> Prompt {
    let says = "What is open for me, what I recorded last and what is next";
    Prompt::new(RESUME, Some(says), None).with_title("Resume my work")
}

fn explain() -> Prompt {
    let says = "Why a workflow is blocked, who was told, and what can be decided";
    let argument = PromptArgument::new(WORKFLOW_ID)
        .with_title("Workflow")
        .with_description("The blocked workflow; my only open one without it")
        .with_required(false);
    Prompt::new(EXPLAIN, Some(says), Some(vec![argument])).with_title("Explain a block")
}

fn start(policy: &dyn DomainPolicyPort, locale: &Locale) -> Prompt {
    let definition = policy.definition();
    let title = definition.title.get(locale);
    let arguments = arguments_of(policy, locale);
    let arguments = (!arguments.is_empty()).then_some(arguments);
    Prompt::new(format!("{START}{}", definition.id), Some(format!("Start: {title}")), arguments)
        .with_title(title)
}

/// Nothing is required: what is missing is asked for.
fn arguments_of(policy: &dyn DomainPolicyPort, locale: &Locale) -> Vec<PromptArgument> {
    let needs = policy.needs();
    let argument = |name: &str, say: &str, example: Option<String>| {
        let says =
            example.map_or_else(|| say.to_owned(), |example| format!("{say}, such as {example}"));
        PromptArgument::new(name).with_title(say).with_description(says).with_required(false)
    };
    let assets = needs
        .assets
        .iter()
        .map(|a| argument(a.role.as_str(), a.say.get(locale), a.example.clone()));
    let inputs = needs.inputs.iter().map(|i| {
        let example = i.example.as_ref().map(|value| match value.as_str() {
            Some(text) => text.to_owned(),
            None => value.to_string(),
        });
        argument(&i.name, i.say.get(locale), example)
    });
    assets.chain(inputs).collect()
}

/// Arguments are texts, each one that is listed, none longer than a value may be.
fn checked(arguments: &Map<String, Value>, listed: &[PromptArgument]) -> Result<(), ErrorData> {
    for (name, value) in arguments {
        let known = listed.iter().any(|argument| argument.name == *name);
        let length = value.as_str().map(|text| text.chars().count());
        if !known || length.is_none_or(|length| length > VALUE_CHARS_MAX) {
            let rule = format!(
                "params.arguments: each is one that prompts/list names, a text of at most {VALUE_CHARS_MAX} characters"
            );
            return Err(ErrorData::invalid_params(rule, None));
        }
    }
    Ok(())
}

/// A name that only a prompt of ours can have.
pub(crate) fn is_own(name: &str) -> bool {
    [RESUME, EXPLAIN].contains(&name) || name.starts_with(START)
}
