//! The same server over lines: JSON-RPC messages on an input and an output, for clients that start it as their child
//! (MCP, stdio transport).
//!
//! `transport` reads lines as strictly as `front` reads bodies and gives each request what the layers give one of HTTP;
//! rmcp answers, through the same `handler`. `reader` and `writer` have the lines, `pending` what is in flight. There is one
//! client, and it is the person who started the process: nothing is asked of it, and nothing is told to others.

mod pending;
mod reader;
mod transport;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wf_core::engine::Engine;
use wf_core::models::Principal;

use crate::access::Visitor;
use crate::auth::Caller;
use crate::config::HttpConfig;
use crate::entrance::Entrance;
use crate::joined::Joined;
use crate::layers::trace::RequestIds;
use crate::server::Drained;
use pending::Pending;
use reader::Lines;
use transport::{Terms, Wire};

/// How long the last lines may take when the client does not read.
const LAST_LINES: Duration = Duration::from_secs(5);

/// Serves one client until its input ends or `stop` is ready, and then until what is in flight is done and answered.
///
/// Every call is `principal`'s. Of `config` count `max_body_bytes` (of a line), `max_in_flight` (the next line waits),
/// `request_timeout`, `shutdown_grace`, `instance` and `traces`; nothing is listened on.
///
/// Never fails: a client that is gone, or that speaks something else, is the end of its input.
pub async fn serve_lines<R, W>(
    config: &HttpConfig,
    engine: Arc<Engine>,
    principal: Principal,
    (input, output): (R, W),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Drained
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (out, queue) = mpsc::channel(writer::QUEUE);
    let (closing, gone) = (CancellationToken::new(), CancellationToken::new());
    let written = tokio::spawn(writer::write(queue, output, gone.clone()));
    let pending = Arc::new(Pending::new(config.max_in_flight));
    let served = Joined::new(Some(engine), None);
    let caller = Caller::User(Arc::new(principal));
    let wire = Wire {
        terms: Terms {
            served: served.clone(),
            visitor: Visitor { caller, entrance: Arc::new(Entrance::open()) },
            ids: RequestIds::new(&config.instance),
            max_line_bytes: config.max_body_bytes,
            answer: config.request_timeout,
            grace: config.shutdown_grace,
            traces: config.traces.clone(),
        },
        lines: Lines::new(input, config.max_body_bytes),
        out,
        pending: Arc::clone(&pending),
        stop: Box::pin(stop),
        closing: closing.clone(),
        gone,
        room: None,
        place: None,
        begun: false,
        ending: None,
    };
    match serve_server_with_ct(served, wire, closing).await {
        Ok(running) => {
            if let Err(error) = running.waiting().await {
                tracing::error!(%error, "the protocol layer ended by itself");
            }
        }
        Err(error) => told(&error),
    }
    if timeout(LAST_LINES, written).await.is_err() {
        tracing::warn!("the client did not read its last answers");
    }
    Drained { in_flight_abandoned: pending.abandoned() }
}

/// A client that never got as far as to ask something.
fn told(error: &ServerInitializeError) {
    use ServerInitializeError as Error;
    if matches!(error, Error::ConnectionClosed(_) | Error::Cancelled) {
        tracing::info!("the client left before it began");
    } else {
        tracing::warn!(%error, "the client did not begin as MCP wants it");
    }
}
