//! Connections: takes them from a listener, shakes hands where there is TLS, serves HTTP/1.1 on them, and brings them to
//! an end.
//!
//! `server` runs one [`Acceptor`] for each listener; `guard` watches the bytes; `stack` answers the requests. HTTP/2 is
//! for the proxy in front (docs/adr/0010).

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::either::Either;

use crate::config::HttpConfig;
use crate::exchange::Response;
use crate::guard::{Ends, Guard, Patience, Wire};
use crate::layers::Inner;
use crate::telemetry;
use crate::tls::Tls;

/// First and longest pause after a failed accept, such as one for want of file descriptors.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Connections that are taken from the operating system's queue after it is time to stop; more than fit into it.
const WAITING_MAX: usize = 4096;
/// How long requests that have arrived may take to be seen before their connections count as idle.
const SETTLE: Duration = Duration::from_millis(50);

/// Serves the connections of one listener.
#[derive(Debug)]
pub(crate) struct Acceptor<S> {
    pub(crate) listener: TcpListener,
    pub(crate) service: S,
    pub(crate) config: Arc<HttpConfig>,
    /// Plain HTTP without one.
    pub(crate) tls: Option<Tls>,
    pub(crate) connections: Arc<Semaphore>,
    /// `Some(deadline)` once it is time to stop.
    pub(crate) stop: watch::Receiver<Option<Instant>>,
}

impl<S: Inner> Acceptor<S> {
    /// Accepts until told to stop, then waits for the connections until the deadline and closes the rest.
    pub(crate) async fn run(self) {
        let Self { listener, service, config, tls, connections, mut stop } = self;
        let serving = Serving { service, config, tls };
        let mut tasks = JoinSet::new();
        let graceful = GracefulShutdown::new();
        let mut pause = PAUSE_MIN;
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stop.wait_for(Option::is_some) => break,
                Some(_) = tasks.join_next() => continue,
                accepted = next(&listener, &connections) => accepted,
            };
            match accepted {
                Ok((stream, peer, permit)) => {
                    pause = PAUSE_MIN;
                    let open = Open::new(Some(permit));
                    serving.serve(&mut tasks, graceful.watcher(), stream, peer, open);
                }
                Err(error) if of_one_connection(&error) => {}
                Err(error) => {
                    // Trying again at once would take the whole processor until somebody closes a file.
                    tracing::warn!(%error, ?pause, "connections cannot be accepted");
                    let _ = timeout(pause, stop.wait_for(Option::is_some)).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
        let deadline = stop.borrow().unwrap_or_else(Instant::now);
        // Closing the listener resets the connections that the operating system has accepted already: their callers
        // would not know what became of requests that nobody looked at.
        for (stream, peer) in waiting(listener) {
            let open = Open::new(connections.clone().try_acquire_owned().ok());
            serving.serve(&mut tasks, graceful.watcher(), stream, peer, open);
        }
        // From here on the operating system refuses new connections. A connection that nothing was read from yet is
        // closed at once, so what has arrived gets a moment to be read. Out of time is no news here.
        let _ = timeout_at(deadline, sleep(SETTLE)).await;
        if timeout_at(deadline, graceful.shutdown()).await.is_err() {
            tracing::warn!(connections = tasks.len(), "connections are closed unfinished");
        }
        tasks.shutdown().await;
    }
}

/// An open connection, counted until it is dropped, however it ends.
#[derive(Debug)]
struct Open {
    _place: Option<OwnedSemaphorePermit>,
}

impl Open {
    fn new(place: Option<OwnedSemaphorePermit>) -> Self {
        telemetry::connections(1.0);
        Self { _place: place }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        telemetry::connections(-1.0);
    }
}

/// What the connections of a listener have in common.
#[derive(Clone)]
struct Serving<S> {
    service: S,
    config: Arc<HttpConfig>,
    tls: Option<Tls>,
}

impl<S: Inner> Serving<S> {
    /// Serves one connection in a task of its own: what goes wrong in it ends nothing else.
    fn serve(
        &self,
        tasks: &mut JoinSet<()>,
        watcher: Watcher,
        stream: TcpStream,
        peer: SocketAddr,
        open: Open,
    ) {
        let serving = self.clone();
        tasks.spawn(async move {
            if let Err(error) = serving.converse(watcher, stream, peer).await {
                // Peers go away all the time; that is no event.
                tracing::debug!(%error, "a connection ended early");
            }
            drop(open);
        });
    }

    async fn converse(
        self,
        watcher: Watcher,
        stream: TcpStream,
        peer: SocketAddr,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let Self { service, config, tls } = self;
        // Answers are small and whole; waiting to fill a segment only delays them.
        stream.set_nodelay(true)?;
        let ends = Ends { local: stream.local_addr()?, peer };
        let socket = match tls {
            None => Either::Left(stream),
            // A handshake has the time of a head; what is slow about it is the same.
            Some(tls) => {
                let shaken = timeout(config.header_timeout, tls.acceptor().accept(stream)).await;
                Either::Right(Box::new(shaken??))
            }
        };
        let patience = Patience { head: config.header_timeout, write: config.write_timeout };
        let (io, wire) = Guard::new(socket, ends, patience);
        let respond = service_fn(move |request| {
            let (service, wire) = (service.clone(), wire.clone());
            async move { Ok::<_, Infallible>(respond(service, wire, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            // The guard times the head from its first byte; this is how long hyper waits for that byte.
            .header_read_timeout(config.keep_alive.max(config.header_timeout))
            .max_header_size(config.max_header_bytes)
            .serve_connection(TokioIo::new(io), respond);
        Ok(watcher.watch(connection).await?)
    }
}

/// The next connection, once there is a place for it.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned();
    let place = place.await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}

/// Takes what the operating system has accepted, and closes the listener.
fn waiting(listener: TcpListener) -> Vec<(TcpStream, SocketAddr)> {
    // The runtime may not have noticed yet that there is something to accept; the operating system knows.
    let Ok(listener) = listener.into_std() else { return Vec::new() };
    let mut streams = Vec::new();
    while streams.len() < WAITING_MAX {
        match listener.accept() {
            Ok((stream, peer)) => {
                let stream =
                    stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
                streams.extend(stream.ok().map(|stream| (stream, peer)));
            }
            Err(error) if of_one_connection(&error) => {}
            // Nothing is left, or nothing can be had.
            Err(_) => break,
        }
    }
    streams
}

/// The peer was gone before it was accepted.
fn of_one_connection(error: &io::Error) -> bool {
    [
        io::ErrorKind::ConnectionAborted,
        io::ErrorKind::ConnectionRefused,
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::Interrupted,
    ]
    .contains(&error.kind())
}

/// Answers one request and decides whether its connection may bring another.
async fn respond<S: Inner>(
    service: S,
    wire: Wire,
    mut request: http::Request<Incoming>,
) -> Response {
    let headers = request.headers();
    let body = if headers.contains_key(TRANSFER_ENCODING) {
        None
    } else {
        let length = headers.get(CONTENT_LENGTH);
        length.map_or(Some(0), |v| v.to_str().ok()?.trim().parse().ok())
    };
    request.extensions_mut().insert(wire.clone());
    let mut response = crate::layers::proceed(service, request).await;
    if !wire.next_request(body) {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}
