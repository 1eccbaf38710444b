//! Lines as rmcp's transport: reads them as strictly as bodies, and gives each request what a layer would have given it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant as StdInstant};

use http::Extensions;
use http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions as _, GetMeta as _,
    JsonRpcMessage, ProtocolVersion, RequestId as RpcId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::io::AsyncRead;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;
use tracing::field::Empty;

use super::pending::{Pending, Refused};
use super::reader::{Line, Lines};
use super::writer::Outgoing;
use crate::access::Visitor;
use crate::exchange::{Deadlines, InFlight, RequestSpan};
use crate::fault::{Fault, RpcFault, RpcKind};
use crate::front::{self, INITIALIZE};
use crate::joined::Joined;
use crate::layers::trace::RequestIds;
use crate::tools::VERSIONS;
use crate::traces::{Joining, Traces};
use crate::wire::envelope::{self, Message};

/// The method whose answer comes when its client wants no more.
const LISTEN: &str = "subscriptions/listen";

/// Ready when the server is to end.
pub(super) type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What does not change from request to request.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) served: Joined,
    pub(super) visitor: Visitor,
    pub(super) ids: RequestIds,
    pub(super) max_line_bytes: usize,
    pub(super) answer: Duration,
    pub(super) grace: Duration,
    pub(super) traces: Option<Arc<dyn Traces>>,
}

/// The transport.
pub(super) struct Wire<R> {
    pub(super) terms: Terms,
    pub(super) lines: Lines<R>,
    pub(super) out: mpsc::Sender<Outgoing>,
    pub(super) pending: Arc<Pending>,
    pub(super) stop: Stop,
    /// Ends what rmcp may still wait for.
    pub(super) closing: CancellationToken,
    /// Cancelled when nobody reads the answers.
    pub(super) gone: CancellationToken,
    /// Room for a refusal of ours, taken before the line is read that may deserve it.
    pub(super) room: Option<mpsc::OwnedPermit<Outgoing>>,
    pub(super) place: Option<OwnedSemaphorePermit>,
    /// rmcp knows by which lifecycle this client lives; before that, it ends at any notification.
    pub(super) begun: bool,
    /// Until when what is in flight is waited for, once nothing more is read.
    pub(super) ending: Option<Instant>,
}

/// Says that a request is over, when the last who held it is done.
#[derive(Debug)]
struct Ending {
    span: Span,
    started: StdInstant,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(parent: &self.span, ms, "answered");
    }
}

/// Kept in the extensions of a request for its drop.
#[derive(Debug, Clone)]
struct Ends(#[expect(dead_code, reason = "held for its drop")] Arc<Ending>);

impl<R: AsyncRead + Unpin + Send> Wire<R> {
    fn end(&mut self, why: &'static str) {
        if self.ending.is_none() {
            tracing::info!(grace = ?self.terms.grace, why, "reading no more requests");
            self.ending = Some(Instant::now() + self.terms.grace);
            self.terms.served.stop_listening();
        }
    }

    /// Waits for room and a place. False when the server ends instead.
    async fn ready(&mut self) -> bool {
        while self.room.is_none() || self.place.is_none() {
            tokio::select! {
                biased;
                () = &mut self.stop => self.end("the server is stopped"),
                () = self.gone.cancelled() => self.end("the client is gone"),
                room = self.out.clone().reserve_owned(), if self.room.is_none() => match room {
                    Ok(room) => self.room = Some(room),
                    Err(_) => self.end("the client is gone"),
                },
                place = self.pending.place(), if self.place.is_none() => match place {
                    Some(place) => self.place = Some(place),
                    None => self.end("the client is gone"),
                },
            }
            if self.ending.is_some() {
                return false;
            }
        }
        true
    }

    /// The next message for rmcp; `None` when none is there yet, or the server ends.
    async fn step(&mut self) -> Option<ClientJsonRpcMessage> {
        if !self.ready().await {
            return None;
        }
        let line = tokio::select! {
            biased;
            () = &mut self.stop => {
                self.end("the server is stopped");
                return None;
            }
            () = self.gone.cancelled() => {
                self.end("the client is gone");
                return None;
            }
            line = self.lines.next() => line,
        };
        match line {
            Ok(Line::Whole(line)) => self.line(&line),
            Ok(Line::TooLong) => {
                let limit = self.terms.max_line_bytes;
                let text = format!("send at most {limit} bytes in a line");
                self.refuse(&RpcFault::new(None, RpcKind::InvalidRequest, text).into())
            }
            Ok(Line::End) => {
                self.end("the input ended");
                None
            }
            Err(error) => {
                tracing::warn!(%error, "the input cannot be read");
                self.end("the input broke off");
                None
            }
        }
    }

    fn refuse(&mut self, fault: &Fault) -> Option<ClientJsonRpcMessage> {
        if let Some(room) = self.room.take() {
            // The sender comes back with the next room.
            drop(room.send(Outgoing::of(&fault.as_message())));
        }
        None
    }

    fn line(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        match envelope::read(line) {
            Ok(Message::Request(request)) => match self.request(request, line) {
                Ok(message) => Some(message),
                Err(fault) => self.refuse(&fault),
            },
            Ok(Message::Notification) => self.notification(line),
            // This server asks its clients nothing.
            Ok(Message::Response) => None,
            Err(fault) => self.refuse(&fault.into()),
        }
    }

    fn request(
        &mut self,
        request: envelope::Request,
        line: &[u8],
    ) -> Result<ClientJsonRpcMessage, Fault> {
        let mut extensions = self.extensions();
        front::admit(&self.terms.served, &extensions, &request)?;
        let id = request.id.clone();
        let lasts = request.method == LISTEN;
        if request.method == INITIALIZE {
            front::check_handshake(None, &request)?;
        }
        let shortened = front::prepare(&self.terms.served, &mut extensions, request)?;
        if shortened.is_none() {
            front::check_size(line, Some(&id))?;
        }
        let message = shortened.as_deref().unwrap_or(line);
        let refused = |text: &str| RpcFault::new(Some(&id), RpcKind::InvalidRequest, text);
        let Ok(mut message) = serde_json::from_slice::<ClientJsonRpcMessage>(message) else {
            return Err(refused("this request cannot be read").into());
        };
        let JsonRpcMessage::Request(asked) = &mut message else {
            return Err(refused("this request cannot be read").into());
        };
        let place = if lasts { None } else { self.place.take().map(InFlight::new) };
        self.pending.begin(asked.id.clone(), place.clone()).map_err(|why| match why {
            Refused::SameId => refused("another request with this id has no answer yet"),
            Refused::TooMany => refused("too many subscriptions at once"),
        })?;
        if let Some(place) = place {
            extensions.insert(place);
        }
        asked.request.extensions_mut().insert(parts(extensions));
        self.begun |= begins(&asked.request);
        Ok(message)
    }

    /// What the layers of HTTP put around a request.
    fn extensions(&self) -> Extensions {
        let id = self.terms.ids.next();
        let span = tracing::info_span!(
            "request",
            id = &*id.0,
            route = "stdio",
            trace_id = Empty,
            method = Empty,
            tenant = Empty,
            tool = Empty,
            outcome = Empty,
            code = Empty,
        );
        let mut extensions = Extensions::new();
        extensions.insert(self.terms.visitor.clone());
        extensions.insert(id);
        extensions.insert(Joining::begin(self.terms.traces.clone(), None, &span));
        extensions.insert(RequestSpan(span.clone()));
        extensions.insert(Deadlines::from_now(self.terms.answer, self.terms.answer));
        extensions.insert(Ends(Arc::new(Ending { span, started: StdInstant::now() })));
        extensions
    }

    fn notification(&self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        if !self.begun || front::check_size(line, None).is_err() {
            return None;
        }
        let message = serde_json::from_slice::<ClientJsonRpcMessage>(line).ok()?;
        let JsonRpcMessage::Notification(told) = &message else {
            return None;
        };
        if let ClientNotification::CancelledNotification(cancelled) = &told.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.pending.end(id);
        }
        Some(message)
    }
}

fn parts(extensions: Extensions) -> Parts {
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.extensions = extensions;
    parts
}

/// Whether rmcp takes this request for the beginning of a lifecycle: the handshake, or the first with all metadata.
fn begins(request: &ClientRequest) -> bool {
    if matches!(request, ClientRequest::InitializeRequest(_)) {
        return true;
    }
    let probe =
        matches!(request, ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_));
    let meta = request.get_meta();
    !probe
        && meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
        && meta.protocol_version().is_some_and(|version| VERSIONS.contains(&version))
}

fn answered(message: &ServerJsonRpcMessage) -> Option<&RpcId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// An answer that cannot be given.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    /// It cannot be written down.
    #[error("an answer cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// Nobody is there to read it.
    #[error("the client is gone")]
    Gone,
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for Wire<R> {
    type Error = WireError;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), WireError>> + Send + 'static {
        let place = answered(&message).and_then(|id| self.pending.end(id));
        let out = self.out.clone();
        async move {
            let outgoing = Outgoing::new(serde_json::to_vec(&message)?, place);
            out.send(outgoing).await.map_err(|_| WireError::Gone)
        }
    }

    /// May be dropped and asked again at any time: what was read is in `self`, and no await follows on it.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(deadline) = self.ending {
                self.place = None;
                self.pending.drained(deadline).await;
                self.closing.cancel();
                return None;
            }
            if let Some(message) = self.step().await {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), WireError> {
        Ok(())
    }
}
