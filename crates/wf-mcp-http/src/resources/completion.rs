//! What may be meant by the beginning of an id (MCP, completion): only of what the caller sees.

use rmcp::ErrorData;
use rmcp::model::{ArgumentInfo, CompleteRequestParams, CompleteResult, CompletionInfo, Reference};
use wf_core::engine::is_meant;
use wf_core::models::{Principal, Workflow};
use wf_core::state_machine::Rejection;

use super::Library;
use super::address::{EVIDENCE, HISTORY, PROCEDURE, WORKFLOW};
use super::reader::Reader;
use crate::prompts::{self, Meant};
use crate::tools::Needs;

/// Longest text that is completed, in characters; longer ones are none of ours.
const TYPED_CHARS_MAX: usize = 200;

impl Library {
    /// Answers `completion/complete`.
    pub(crate) async fn complete(
        &self,
        request: &CompleteRequestParams,
        reader: &Reader,
    ) -> Result<CompleteResult, ErrorData> {
        let principal = reader.person()?;
        let ArgumentInfo { name, value, .. } = &request.argument;
        if value.chars().count() > TYPED_CHARS_MAX {
            return told(Vec::new());
        }
        let found = match &request.r#ref {
            Reference::Resource(resource) => {
                reader.in_time(self.ids(principal, &resource.uri, name, value)).await?
            }
            Reference::Prompt(prompt) => {
                let work = self.arguments(principal, &prompt.name, name, value);
                reader.in_time(work).await?
            }
            _ => None,
        };
        let unknown = || ErrorData::invalid_params("params.ref names nothing that is here", None);
        told(found.ok_or_else(unknown)?)
    }

    /// Of a template. `None` for one that is not here.
    async fn ids(
        &self,
        principal: &Principal,
        template: &str,
        argument: &str,
        typed: &str,
    ) -> Result<Option<Vec<String>>, Rejection> {
        Needs::Read.of(principal)?;
        Ok(match (template, argument) {
            (PROCEDURE, "id") => Some(self.procedure_ids(typed)),
            (WORKFLOW | HISTORY | EVIDENCE, "id") => {
                Some(meant(&self.engine.at_hand(principal).await?, typed))
            }
            (PROCEDURE | WORKFLOW | HISTORY | EVIDENCE, _) => Some(Vec::new()),
            _ => None,
        })
    }

    /// Of a prompt. `None` for one that is not here.
    async fn arguments(
        &self,
        principal: &Principal,
        prompt: &str,
        argument: &str,
        typed: &str,
    ) -> Result<Option<Vec<String>>, Rejection> {
        Needs::Read.of(principal)?;
        let Some(prompt) = prompts::find(&self.engine, prompt) else { return Ok(None) };
        Ok(Some(match prompts::completes(&prompt, argument) {
            Meant::Blocked => meant(&self.engine.blocked_in_sight(principal).await?, typed),
            Meant::Asset(policy) => {
                self.engine.free_assets(principal, policy.as_ref(), typed).await?
            }
            Meant::Nothing => Vec::new(),
        }))
    }

    fn procedure_ids(&self, typed: &str) -> Vec<String> {
        let all = self.engine.procedures();
        let ids = all.iter().map(|policy| policy.definition().id.to_string());
        ids.filter(|id| id.starts_with(typed)).collect()
    }
}

fn meant(workflows: &[Workflow], typed: &str) -> Vec<String> {
    let meant = workflows.iter().filter(|workflow| is_meant(workflow, typed));
    meant.map(|workflow| workflow.id.to_string()).collect()
}

/// At most as many as MCP allows.
fn told(mut values: Vec<String>) -> Result<CompleteResult, ErrorData> {
    let total = u32::try_from(values.len()).unwrap_or(u32::MAX);
    let more = values.len() > CompletionInfo::MAX_VALUES;
    values.truncate(CompletionInfo::MAX_VALUES);
    let info = CompletionInfo::with_pagination(values, Some(total), more);
    let info = info.map_err(|error| ErrorData::internal_error(error, None))?;
    Ok(CompleteResult::new(info))
}
