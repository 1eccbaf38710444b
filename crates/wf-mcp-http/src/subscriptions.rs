//! Subscriptions (MCP 2026-07-28, `subscriptions/listen`): tells a client that a workflow changed, while it listens.
//!
//! A hint to read again, for changes by this process; what other processes commit is not told, and nothing is told twice.
//! Everything is bounded: how many listen, to how much, for how long. A listener that does not take what it is told for a
//! while is let go. Changes wait in a set, not in a queue, so that a slow listener costs no more than a quick one.
//!
//! Who listens is authenticated again, and what they see looked up again, before anything is told. Earlier revisions have
//! `resources/subscribe`, which needs a session: it is not offered.

mod hub;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Extensions;
use http::request::Parts;
use rmcp::ErrorData;
use rmcp::model::SubscriptionFilter;
use rmcp::service::SubscriptionContext;
use serde::Deserialize as _;
use tokio::time::{Instant, sleep_until, timeout};
use wf_core::models::{Principal, WorkflowId};

use crate::access::Visitor;
use crate::auth::Caller;
use crate::fault::{RpcFault, RpcKind};
use crate::layers::identity::Credentials;
use crate::resources::Library;
use crate::resources::address::Address;
use crate::resources::reader::Reader;
use crate::wire::envelope::Request as Asked;

pub(crate) use hub::Hub;
use hub::Listening;

/// Addresses that one subscription may have; further ones are not accepted.
const ADDRESSES_MAX: usize = 32;
/// How long a subscription lasts; then it ends as it should, and the client subscribes again.
const LASTS: Duration = Duration::from_secs(60 * 60);
/// How long a listener may take for one notification.
const TAKES: Duration = Duration::from_secs(10);

/// The method.
pub(crate) const LISTEN: &str = "subscriptions/listen";

/// A place that was taken before the client is told that it listens, so that no change falls in between; in the extensions
/// of the request.
#[derive(Debug, Clone)]
struct Begun(Arc<Mutex<Option<Listening>>>);

/// What of a wish can be granted: changes of workflows. Whether there is such a workflow is not said.
pub(crate) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let wished = requested.resource_subscriptions.iter().flatten();
    let known = wished.filter(|uri| Address::parse(uri).is_some_and(|a| a.workflow().is_some()));
    SubscriptionFilter::builder().resource_subscriptions(known.take(ADDRESSES_MAX).cloned()).build()
}

/// The workflows of what was accepted, each with its address.
fn addresses(accepted: &SubscriptionFilter) -> Vec<(WorkflowId, String)> {
    let all = accepted.resource_subscriptions.iter().flatten();
    all.filter_map(|uri| Some((Address::parse(uri)?.workflow()?.clone(), uri.clone()))).collect()
}

impl Library {
    /// Begins to listen to what a request wishes, before anything is answered.
    pub(crate) fn begin(&self, extensions: &mut Extensions, asked: &Asked) -> Result<(), RpcFault> {
        let wish = asked.params.as_ref().and_then(|params| params.get("notifications"));
        let wish = wish.and_then(|wish| SubscriptionFilter::deserialize(wish).ok());
        let about = addresses(&accepted(&wish.unwrap_or_default()));
        let principal = match extensions.get::<Visitor>().map(|visitor| &visitor.caller) {
            Some(Caller::User(principal)) if !about.is_empty() => Arc::clone(principal),
            Some(Caller::User(_) | Caller::Service(_)) | None => return Ok(()),
        };
        let listening = self.hub.listen(&principal, &about).ok_or_else(|| {
            let text = "too many subscriptions; end one, or try again later";
            RpcFault::new(Some(&asked.id), RpcKind::InvalidParams, text)
        })?;
        extensions.insert(Begun(Arc::new(Mutex::new(Some(listening)))));
        Ok(())
    }

    /// Serves one subscription to its end: the client leaves, the server stops, it has lasted long enough, or it may no
    /// longer listen.
    pub(crate) async fn listen(&self, context: &SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        let reader = Reader::of(request)?;
        let mut principal = Arc::clone(reader.person()?);
        let parts = request.extensions.get::<Parts>();
        let credentials = parts.and_then(|parts| parts.extensions.get::<Credentials>());
        let about = addresses(context.accepted());
        let begun = parts.and_then(|parts| parts.extensions.get::<Begun>());
        let listening =
            begun.and_then(|begun| begun.0.lock().unwrap_or_else(PoisonError::into_inner).take());
        let Some(listening) = listening else { return Ok(()) };
        let mut any = false;
        for (id, _) in &about {
            any = any || reader.in_time(self.engine.is_in_sight(&principal, id)).await?;
        }
        if !any {
            // There is nothing that could be told.
            return Ok(());
        }
        let ends = Instant::now() + LASTS;
        loop {
            let changed = tokio::select! {
                changed = listening.changed() => changed,
                () = context.cancelled() => return Ok(()),
                () = self.hub.stopped() => return Ok(()),
                () = sleep_until(ends) => return Ok(()),
            };
            match again(credentials, &principal).await {
                Some(now) => principal = now,
                None => return Ok(()),
            }
            for id in changed {
                // What cannot be looked up now is not told; the next change is.
                if !self.engine.is_in_sight(&principal, &id).await.unwrap_or(false) {
                    continue;
                }
                for (_, uri) in about.iter().filter(|(known, _)| *known == id) {
                    if !told(context, uri).await {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Tells of one change; false when the listener does not take it.
async fn told(context: &SubscriptionContext, uri: &str) -> bool {
    let sent = timeout(TAKES, context.sink().notify_resource_updated(uri)).await;
    match sent {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a listener is gone");
            false
        }
        Err(_) => {
            tracing::warn!("a listener takes nothing; its subscription ends");
            false
        }
    }
}

/// Who listens, now: `None` when the credentials count no more, or for somebody else. Without any, who began.
async fn again(
    credentials: Option<&Credentials>,
    began: &Arc<Principal>,
) -> Option<Arc<Principal>> {
    let Some(credentials) = credentials else { return Some(Arc::clone(began)) };
    match credentials.caller().await {
        Ok(Caller::User(now)) if now.tenant == began.tenant && now.actor == began.actor => {
            Some(now)
        }
        Ok(Caller::User(_) | Caller::Service(_)) | Err(_) => None,
    }
}
