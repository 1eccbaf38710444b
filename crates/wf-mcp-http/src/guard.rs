//! Watches the bytes of one connection for what hyper leaves open: how long a head may take from its first byte, how
//! long the peer may take for an answer, header lines that end with a bare LF, bytes behind the request that is being
//! answered, and bytes that are still on their way when the connection ends.
//!
//! `accept` puts a [`Guard`] under hyper and asks its [`Wire`] after each request; `layers::hosts` refuses bare LF.
//!
//! An answer has one deadline, which begins when the peer first takes no more: a peer that takes a byte now and then does
//! not buy more time with it.
//!
//! A connection that is closed while its peer is still sending is reset by the operating system, and the peer never sees
//! why it was refused. So after the last answer the rest is read and forgotten for a while (RFC 9112 section 9.6).
//!
//! One request at a time: hyper reads ahead, so bytes that arrive behind a request are not looked at here. Therefore a
//! connection whose peer sent more than one request at once is closed after the first answer (RFC 9112 section 9.3.2
//! obliges a pipelining client to cope), and every head is seen whole.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// How long a connection that ends in the middle of a request is read on, and how much of it.
const LINGER_TIME_MAX: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Both ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    /// The address that the peer connected to.
    pub(crate) local: SocketAddr,
    /// The peer's own.
    pub(crate) peer: SocketAddr,
}

/// How long the peer may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For a head, from its first byte; and for the first byte of the first head.
    pub(crate) head: Duration,
    /// For an answer, from when it first takes no more.
    pub(crate) write: Duration,
}

/// What is known about the bytes of a connection. Reader and requests of a connection run in one task, so the order
/// of the atomics does not matter.
#[derive(Debug, Clone)]
pub(crate) struct Wire(Arc<Seen>);

#[derive(Debug)]
struct Seen {
    ends: Ends,
    in_head: AtomicBool,
    bare_line_feed: AtomicBool,
    behind_head: AtomicU64,
    /// Nothing of the next request has arrived, and nothing of the last one is missing.
    between_requests: AtomicBool,
}

impl Wire {
    fn new(ends: Ends) -> Self {
        Self(Arc::new(Seen {
            ends,
            in_head: AtomicBool::new(true),
            bare_line_feed: AtomicBool::new(false),
            behind_head: AtomicU64::new(0),
            between_requests: AtomicBool::new(true),
        }))
    }

    /// Both ends.
    pub(crate) fn ends(&self) -> Ends {
        self.0.ends
    }

    /// The head of the current request has a line that ends with LF alone.
    pub(crate) fn had_bare_line_feed(&self) -> bool {
        self.0.bare_line_feed.load(Ordering::Relaxed)
    }

    /// Ends a request whose body has `body` bytes on the wire, if that is known; false when the connection must not
    /// be used again.
    pub(crate) fn next_request(&self, body: Option<u64>) -> bool {
        let behind_head = self.0.behind_head.swap(0, Ordering::Relaxed);
        self.0.in_head.store(true, Ordering::Relaxed);
        let clean = !self.had_bare_line_feed() && body == Some(behind_head);
        self.0.between_requests.store(clean, Ordering::Relaxed);
        clean
    }
}

/// Finds the end of a head.
#[derive(Debug, Default)]
struct Scan {
    /// The last byte was a CR.
    carriage_return: bool,
    /// The current line has bytes besides its end.
    in_line: bool,
    /// A line was complete: an empty one now ends the head (empty lines before it are allowed).
    started: bool,
}

impl Scan {
    /// Takes bytes of a head; returns how many belong to it when its end is among them.
    fn take(&mut self, bytes: &[u8], wire: &Seen) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'\n' => {
                    if !self.carriage_return {
                        wire.bare_line_feed.store(true, Ordering::Relaxed);
                    }
                    if self.started && !self.in_line {
                        *self = Self::default();
                        return Some(at + 1);
                    }
                    self.started |= self.in_line;
                    self.in_line = false;
                    self.carriage_return = false;
                }
                b'\r' => self.carriage_return = true,
                _ => {
                    self.carriage_return = false;
                    self.in_line = true;
                }
            }
        }
        None
    }
}

/// A connection under watch.
#[derive(Debug)]
pub(crate) struct Guard<T> {
    io: T,
    wire: Wire,
    scan: Scan,
    patience: Patience,
    /// Runs while a head is arriving, and from the beginning.
    head_by: Option<Pin<Box<Sleep>>>,
    /// Runs while the peer has not taken all of an answer, since it first took no more.
    write_by: Option<Pin<Box<Sleep>>>,
    /// The peer has said that it sends nothing more.
    at_end: bool,
    /// Runs while what is still on its way is read and forgotten.
    linger_by: Option<Pin<Box<Sleep>>>,
    lingered: usize,
}

impl<T> Guard<T> {
    pub(crate) fn new(io: T, ends: Ends, patience: Patience) -> (Self, Wire) {
        let wire = Wire::new(ends);
        let guard = Self {
            io,
            wire: wire.clone(),
            scan: Scan::default(),
            patience,
            head_by: Some(alarm(patience.head)),
            write_by: None,
            at_end: false,
            linger_by: None,
            lingered: 0,
        };
        (guard, wire)
    }

    fn saw(&mut self, bytes: &[u8]) {
        let seen = &self.wire.0;
        if bytes.is_empty() {
            self.at_end = true;
            return;
        }
        seen.between_requests.store(false, Ordering::Relaxed);
        let mut rest = bytes;
        if seen.in_head.load(Ordering::Relaxed) {
            let Some(end) = self.scan.take(bytes, seen) else {
                if self.head_by.is_none() {
                    self.head_by = Some(alarm(self.patience.head));
                }
                return;
            };
            self.head_by = None;
            seen.in_head.store(false, Ordering::Relaxed);
            rest = &bytes[end..];
        }
        let more = u64::try_from(rest.len()).unwrap_or(u64::MAX);
        seen.behind_head.fetch_add(more, Ordering::Relaxed);
    }

    /// Some of an answer was offered to the peer.
    fn offered<R>(
        &mut self,
        cx: &mut Context<'_>,
        outcome: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if outcome.is_ready() {
            return outcome;
        }
        let timeout = self.patience.write;
        let alarm = self.write_by.get_or_insert_with(|| alarm(timeout));
        late(alarm, cx)
    }
}

impl<T: AsyncRead + Unpin> Guard<T> {
    /// Reads and forgets what is still on its way, within bounds.
    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let alarm = self.linger_by.get_or_insert_with(|| alarm(LINGER_TIME_MAX));
        if self.at_end || alarm.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let mut scratch = [0; 4_096];
        while self.lingered < LINGER_BYTES_MAX {
            let mut forgotten = ReadBuf::new(&mut scratch);
            let read = ready!(Pin::new(&mut self.io).poll_read(cx, &mut forgotten));
            if read.is_err() || forgotten.filled().is_empty() {
                break;
            }
            self.lingered += forgotten.filled().len();
        }
        Poll::Ready(())
    }
}

fn alarm(after: Duration) -> Pin<Box<Sleep>> {
    Box::pin(sleep_until(Instant::now() + after))
}

/// Pending until the alarm rings, then an error.
fn late<R>(alarm: &mut Pin<Box<Sleep>>, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
    alarm.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
}

impl<T: AsyncRead + Unpin> AsyncRead for Guard<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        match Pin::new(&mut this.io).poll_read(cx, buf) {
            Poll::Ready(Ok(())) => {
                this.saw(&buf.filled()[before..]);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => match &mut this.head_by {
                Some(alarm) => late(alarm, cx),
                None => Poll::Pending,
            },
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guard<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.io).poll_write(cx, bytes);
        this.offered(cx, outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.io).poll_write_vectored(cx, bytes);
        this.offered(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.io).poll_flush(cx);
        if outcome.is_ready() {
            // hyper flushes once it has written everything it has.
            this.write_by = None;
        }
        this.offered(cx, outcome)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.linger_by.is_none() {
            let outcome = Pin::new(&mut this.io).poll_shutdown(cx);
            ready!(this.offered(cx, outcome))?;
            if this.wire.0.between_requests.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        this.linger(cx).map(Ok)
    }
}

#[cfg(test)]
mod tests;
