//! Resources (MCP, server features): what can be read by an address, beside the tools.
//!
//! | address | is |
//! |---|---|
//! | `workflow://schemas/result` | the schema of what every tool answers |
//! | `workflow://procedures/{id}` | a procedure that may be started, as written |
//! | `workflow://workflows/{id}` | a workflow as it stands: the answer of `get_status` |
//! | `workflow://workflows/{id}/history{?page}` | everything that happened to it, by pages |
//! | `workflow://workflows/{id}/evidence` | all of it in one document that can be verified without the store |
//!
//! `address` reads addresses, `reader` says who asks, `listing` has the lists, `completion` what may be meant by the
//! beginning of an id. `prompts` and `subscriptions` are beside this module. Nobody learns of what they do not see: it is
//! answered like what never was.

pub(crate) mod address;
mod completion;
pub(crate) mod listing;
pub(crate) mod reader;

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResult, Resource, ResourceContents,
};
use serde_json::Value;
use tokio::sync::Semaphore;
use wf_core::engine::Engine;
use wf_core::idempotency::canonical_string;
use wf_core::models::Principal;
use wf_core::state_machine::Rejection;

use crate::fault::{nothing_at, unread};
use crate::handler::TTL_MS;
use crate::subscriptions::Hub;
use crate::tools::{Needs, result_schema};
use address::Address;
use reader::Reader;

/// Documents of evidence that are made at once: each may take some hundred megabytes of memory for a moment.
const EVIDENCE_AT_ONCE: usize = 2;

/// What is read, and who waits for changes of it. One for a server.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) engine: Arc<Engine>,
    pub(crate) hub: Arc<Hub>,
    evidence: Semaphore,
}

/// The right that a method needs which is no call of a tool; `None` where it needs none.
pub(crate) fn needs(method: &str) -> Option<Needs> {
    let reads = ["resources/read", "prompts/get", "completion/complete", "subscriptions/listen"];
    reads.contains(&method).then_some(Needs::Read)
}

impl Library {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let hub = Hub::watching(&engine);
        Self { engine, hub, evidence: Semaphore::new(EVIDENCE_AT_ONCE) }
    }

    /// Answers `resources/list`: the schema, the procedures, and the caller's open workflows with those offered to them.
    pub(crate) async fn list(
        &self,
        request: Option<PaginatedRequestParams>,
        reader: &Reader,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut all = vec![listing::schema()];
        if let Some(principal) = reader.may_list() {
            all.extend(listing::procedures(&self.engine, reader.locale()));
            if let Some(principal) = principal {
                let at_hand = reader.in_time(self.engine.at_hand(principal)).await?;
                all.extend(at_hand.iter().map(|w| listing::workflow(w, reader.locale())));
            }
        }
        let key = |resource: &Resource| resource.uri.clone();
        let (items, next_cursor) = listing::page(all, key, request)?;
        let mut listed = ListResourcesResult::with_all_items(items);
        listed.next_cursor = next_cursor;
        // What a caller has open changes with every call.
        Ok(if reader.modern {
            listed.with_ttl_ms(0).with_cache_scope(CacheScope::Private)
        } else {
            listed
        })
    }

    /// Answers `resources/templates/list`.
    pub(crate) fn templates(
        request: Option<PaginatedRequestParams>,
        reader: &Reader,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let key = |template: &rmcp::model::ResourceTemplate| template.uri_template.clone();
        let (items, next_cursor) = listing::page(listing::templates(), key, request)?;
        let mut listed = ListResourceTemplatesResult::with_all_items(items);
        listed.next_cursor = next_cursor;
        Ok(if reader.modern {
            listed.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private)
        } else {
            listed
        })
    }

    /// Answers `resources/read`.
    pub(crate) async fn read(
        &self,
        request: &ReadResourceRequestParams,
        reader: &Reader,
    ) -> Result<ReadResourceResult, ErrorData> {
        let uri = &request.uri;
        let principal = reader.person()?;
        let address = Address::parse(uri).ok_or_else(|| nothing_at(uri))?;
        let work = self.text(principal, &address, reader);
        let text = reader.answered(work).await.map_err(|rejection| unread(&rejection, uri))?;
        let contents =
            ResourceContents::text(text, uri.clone()).with_mime_type(address.mime_type());
        let read = ReadResourceResult::new(vec![contents]);
        Ok(if reader.modern {
            read.with_ttl_ms(address.fresh_ms()).with_cache_scope(CacheScope::Private)
        } else {
            read
        })
    }

    async fn text(
        &self,
        principal: &Principal,
        address: &Address,
        reader: &Reader,
    ) -> Result<String, Rejection> {
        Needs::Read.of(principal)?;
        match address {
            Address::Schema => written(&result_schema()),
            Address::Procedure(id) => {
                written(&self.engine.procedure(principal, id.as_str(), &reader.meta)?)
            }
            Address::Workflow(id) => {
                written(&self.engine.workflow_view(principal, id, &reader.meta).await?)
            }
            Address::History(id, page) => {
                written(&self.engine.history_page(principal, id, *page).await?)
            }
            Address::Evidence(id) => {
                // Nobody closes it.
                let _place = self.evidence.acquire().await.ok();
                self.engine.evidence(principal, id).await
            }
        }
    }
}

fn written(value: &Value) -> Result<String, Rejection> {
    canonical_string(value).map_err(|error| reader::bug(&error.to_string()))
}
