//! Watches the bytes of one connection for what hyper leaves open: how long a head may take from its first byte, how
//! long the peer may refuse an answer, header lines that end with a bare LF, and bytes behind the request that is
//! being answered.
//!
//! `accept` puts a [`Guard`] under hyper and asks its [`Wire`] after each request; `layers::hosts` refuses bare LF.
//!
//! One request at a time: hyper reads ahead, so bytes that arrive behind a request are not looked at here. Therefore a
//! connection whose peer sent more than one request at once is closed after the first answer (RFC 9112 section 9.3.2
//! obliges a pipelining client to cope), and every head is seen whole.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// What is known about the bytes of a connection. Reader and requests of a connection run in one task, so the order
/// of the atomics does not matter.
#[derive(Debug, Clone)]
pub(crate) struct Wire(Arc<Seen>);

#[derive(Debug)]
struct Seen {
    local: SocketAddr,
    in_head: AtomicBool,
    bare_line_feed: AtomicBool,
    behind_head: AtomicU64,
}

impl Wire {
    fn new(local: SocketAddr) -> Self {
        Self(Arc::new(Seen {
            local,
            in_head: AtomicBool::new(true),
            bare_line_feed: AtomicBool::new(false),
            behind_head: AtomicU64::new(0),
        }))
    }

    /// The address that the peer connected to.
    pub(crate) fn local(&self) -> SocketAddr {
        self.0.local
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
        !self.had_bare_line_feed() && body == Some(behind_head)
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
    header_timeout: Duration,
    write_timeout: Duration,
    /// Runs while a head is arriving, and from the beginning.
    head_by: Option<Pin<Box<Sleep>>>,
    /// Runs while the peer takes nothing.
    write_by: Option<Pin<Box<Sleep>>>,
}

impl<T> Guard<T> {
    pub(crate) fn new(
        io: T,
        local: SocketAddr,
        header_timeout: Duration,
        write_timeout: Duration,
    ) -> (Self, Wire) {
        let wire = Wire::new(local);
        let guard = Self {
            io,
            wire: wire.clone(),
            scan: Scan::default(),
            header_timeout,
            write_timeout,
            head_by: Some(alarm(header_timeout)),
            write_by: None,
        };
        (guard, wire)
    }

    fn saw(&mut self, bytes: &[u8]) {
        let seen = &self.wire.0;
        let mut rest = bytes;
        if seen.in_head.load(Ordering::Relaxed) {
            let Some(end) = self.scan.take(bytes, seen) else {
                if self.head_by.is_none() {
                    self.head_by = Some(alarm(self.header_timeout));
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

    fn wrote(
        &mut self,
        cx: &mut Context<'_>,
        outcome: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if outcome.is_ready() {
            self.write_by = None;
            return outcome;
        }
        let timeout = self.write_timeout;
        let alarm = self.write_by.get_or_insert_with(|| alarm(timeout));
        late(alarm, cx)
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

impl<T: AsyncWrite + Unpin> AsyncWrite for Guard<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.io).poll_write(cx, bytes);
        this.wrote(cx, outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.io).poll_write_vectored(cx, bytes);
        this.wrote(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(pieces: &[&[u8]]) -> (Option<usize>, bool) {
        let wire = Wire::new(SocketAddr::from(([127, 0, 0, 1], 1)));
        let mut scan = Scan::default();
        let mut end = None;
        for piece in pieces {
            end = scan.take(piece, &wire.0);
        }
        (end, wire.had_bare_line_feed())
    }

    #[test]
    fn the_end_of_a_head_is_found_however_it_is_cut() {
        assert_eq!(scan(&[b"GET / HTTP/1.1\r\nA: b\r\n\r\nrest"]), (Some(24), false));
        assert_eq!(scan(&[b"GET / HTTP/1.1\r", b"\nA: b\r\n", b"\r", b"\n"]), (Some(1), false));
        assert_eq!(scan(&[b"\r\n\r\nGET / HTTP/1.1\r\n\r\n"]), (Some(22), false));
        assert_eq!(scan(&[b"GET / HTTP/1.1\r\nA: b"]), (None, false));
    }

    #[test]
    fn a_bare_line_feed_is_seen() {
        assert_eq!(scan(&[b"GET / HTTP/1.1\nA: b\n\n"]), (Some(21), true));
        assert_eq!(scan(&[b"GET / HTTP/1.1\r\nA: b\n\r\n"]), (Some(23), true));
        assert_eq!(scan(&[b"GET / HTTP/1.1\r\nA: b\r", b"\n\n"]), (Some(2), true));
    }

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_given_up() {
        use tokio::io::AsyncWriteExt;

        let (ours, _theirs) = tokio::io::duplex(8);
        let short = Duration::from_millis(10);
        let local = SocketAddr::from(([127, 0, 0, 1], 1));
        let (mut guard, _) = Guard::new(ours, local, short, short);
        guard.write_all(b"fits").await.unwrap();
        let error = guard.write_all(b"does not fit any more").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn surplus_and_unknown_bytes_end_the_connection() {
        let (mut guard, wire) = Guard::new(
            (),
            SocketAddr::from(([127, 0, 0, 1], 1)),
            Duration::from_secs(1),
            Duration::from_secs(1),
        );
        let request = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
        guard.saw(request);
        assert!(wire.next_request(Some(2)));
        guard.saw(&request[..20]);
        guard.saw(&request[20..]);
        assert!(wire.next_request(Some(2)));
        guard.saw(request);
        guard.saw(request);
        assert!(!wire.next_request(Some(2)));
        guard.saw(request);
        assert!(!wire.next_request(None));
    }
}
