//! Subscriptions (MCP 2026-07-28, `subscriptions/listen`): tells a client that a workflow changed, while it listens.
//!
//! A hint to read again, for changes by this process; what other processes commit is not told, and nothing is told twice.
//! Everything is bounded: how many listen, to how much, for how long. A listener that does not take what it is told for a
//! while is let go. Changes wait in a set, not in a queue, so that a slow listener costs no more than a quick one.
//!
//! Who listens is authenticated again, and what they see looked up again, before anything is told. Earlier revisions have
//! `resources/subscribe`, which needs a session: it is not offered.

mod hub;

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use rmcp::ErrorData;
use rmcp::model::SubscriptionFilter;
use rmcp::service::SubscriptionContext;
use tokio::time::{Instant, sleep_until, timeout};
use wf_core::models::Principal;

use crate::auth::Caller;
use crate::layers::identity::Credentials;
use crate::resources::Library;
use crate::resources::address::Address;
use crate::resources::reader::Reader;

pub(crate) use hub::Hub;

/// Addresses that one subscription may have; further ones are not accepted.
const ADDRESSES_MAX: usize = 32;
/// How long a subscription lasts; then it ends as it should, and the client subscribes again.
const LASTS: Duration = Duration::from_secs(60 * 60);
/// How long a listener may take for one notification.
const TAKES: Duration = Duration::from_secs(10);

/// What of a wish can be granted: changes of workflows. Whether there is such a workflow is not said.
pub(crate) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let wished = requested.resource_subscriptions.iter().flatten();
    let known = wished.filter(|uri| Address::parse(uri).is_some_and(|a| a.workflow().is_some()));
    SubscriptionFilter::builder().resource_subscriptions(known.take(ADDRESSES_MAX).cloned()).build()
}

impl Library {
    /// Serves one subscription to its end: the client leaves, the server stops, it has lasted long enough, or it may no
    /// longer listen.
    pub(crate) async fn listen(&self, context: &SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        let reader = Reader::of(request)?;
        let mut principal = Arc::clone(reader.person()?);
        let parts = request.extensions.get::<Parts>();
        let credentials = parts.and_then(|parts| parts.extensions.get::<Credentials>());
        let wished = context.accepted().resource_subscriptions.iter().flatten();
        let mut about = Vec::new();
        for uri in wished {
            let address = Address::parse(uri);
            let Some(id) = address.as_ref().and_then(Address::workflow) else { continue };
            let seen = reader.in_time(self.engine.is_in_sight(&principal, id)).await?;
            if seen {
                about.push((id.clone(), uri.clone()));
            }
        }
        if about.is_empty() {
            // There is nothing that could ever be told.
            return Ok(());
        }
        let listening = self.hub.listen(&principal, &about).ok_or_else(|| {
            ErrorData::internal_error("too many subscriptions; end one, or try again later", None)
        })?;
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
