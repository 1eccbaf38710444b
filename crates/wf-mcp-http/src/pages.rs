//! Pages for people at the operator's address: the seam for a console, which `wf-cli` puts in. This crate reads the request
//! within its bounds, checks its `Host` (`layers::hosts`), and passes it on; what a page says and who may see it is the console's.

use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use crate::body;
use crate::clients::Clients;
use crate::exchange::{Deadlines, Request, RequestId, Response};
use crate::fault::Fault;
use crate::guard::Wire;

/// Where the pages are; the address itself leads there too.
pub(crate) const PREFIX: &str = "/console";

/// Largest form of a page, in bytes: an access token, or the words of a decision.
const FORM_BYTES_MAX: usize = 32 * 1024;

/// Answers requests at `/` and `/console` of the operator's address ([`HttpConfig::admin_listen`](crate::HttpConfig)).
///
/// Laws: it never blocks the executor, and ends by itself. It runs in a task of its own: when the client goes away, or the
/// time of a request is over, it is waited for no longer and goes on.
#[async_trait]
pub trait Pages: Debug + Send + Sync {
    /// Answers a request whose host was checked and whose body is bounded; `client` is who sent it, as far as trusted
    /// proxies say so.
    async fn answer(&self, request: http::Request<Bytes>, client: IpAddr) -> http::Response<Bytes>;
}

/// Is this an address of the pages?
pub(crate) fn is_page(path: &str) -> bool {
    path == "/"
        || path.strip_prefix(PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Reads the request, and lets the pages answer.
pub(crate) async fn answer(
    pages: Arc<dyn Pages>,
    clients: Clients,
    request: Request,
) -> Result<Response, Fault> {
    let (head, body) = request.into_parts();
    let now = Instant::now();
    let deadlines = head.extensions.get::<Deadlines>().copied();
    let body_by = deadlines.map_or(now, |d| d.body_by);
    let answer_by = deadlines.map_or(now, |d| d.answer_by);
    // Every connection has its ends; without them nobody is known to trust.
    let peer = head.extensions.get::<Wire>().map(|wire| wire.ends().peer.ip());
    let Some(peer) = peer else { return Err(Fault::NotFound) };
    let client = clients.of(peer, &head.headers);
    let bytes = body::collect(body, FORM_BYTES_MAX, body_by).await?;
    // Only what a page may read: nothing of the layers.
    let mut asked = http::Request::new(bytes);
    *asked.method_mut() = head.method;
    *asked.uri_mut() = head.uri;
    *asked.headers_mut() = head.headers;
    let incident = head.extensions.get::<RequestId>().map(|id| id.0.to_string());
    // In a task of its own: a browser that goes away ends the waiting, never the work.
    let task = async move { pages.answer(asked, client).await };
    match timeout_at(answer_by, tokio::spawn(task.in_current_span())).await {
        Ok(Ok(answered)) => Ok(answered.map(|bytes| Full::new(bytes).boxed())),
        Ok(Err(_)) => {
            let incident = incident.unwrap_or_default();
            tracing::error!(incident, "a page panicked");
            Err(Fault::Internal { incident })
        }
        Err(_) => Err(Fault::Timeout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_at_the_root_and_below_their_prefix() {
        for page in ["/", "/console", "/console/", "/console/assets"] {
            assert!(is_page(page), "{page}");
        }
        for other in ["", "/consoles", "/metrics", "/mcp", "/x/console"] {
            assert!(!is_page(other), "{other}");
        }
    }
}
