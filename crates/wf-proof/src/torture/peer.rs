//! An HTTP server that answers as no honest one would: receivers of webhooks that lie, and issuers of tokens on bad days.
//!
//! Plain sockets and a thread for each connection, since what it does to its clients is below HTTP. What it does is for its
//! owner to say, request by request.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::fault::Fault;

/// Largest request that is read.
const REQUEST_BYTES_MAX: usize = 256 * 1024;
/// How often a connection on which nothing comes looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Longest wait for a client to take what is written.
const WRITE_WAIT: Duration = Duration::from_secs(20);

/// A request.
#[derive(Debug)]
pub(super) struct Asked {
    /// Path with query.
    pub(super) path: String,
    /// By name in small letters.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

/// An answer as HTTP has it.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Whole lines of the head.
    pub(super) headers: Vec<String>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// Nothing but a status.
    pub(super) const fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    fn head(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Said\r\n", self.status);
        for line in &self.headers {
            head.push_str(line);
            head.push_str("\r\n");
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        head.into_bytes()
    }

    fn bytes(&self) -> Vec<u8> {
        [self.head(), self.body.clone()].concat()
    }
}

/// What is done about a request.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// Answers, and keeps the connection.
    Answers(Answer),
    /// The same after so long.
    Late(Duration, Answer),
    /// Answers twice in one breath: nobody asked for the second.
    Twice(Answer),
    /// Answers a byte at a time, with this pause between two.
    Drips(Duration, Answer),
    /// Sends the head and less of a body than it promised, and closes.
    Breaks(Answer),
    /// Answers with a body of a gigabyte.
    Floods(u16),
    /// Says nothing until the client goes away.
    Hangs,
    /// Closes at once.
    Closes,
    /// Answers with something that is no HTTP.
    Babbles,
}

type Manners = dyn Fn(&Asked) -> Reply + Send + Sync;

/// What is counted.
#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    open: AtomicUsize,
    most: AtomicUsize,
}

/// The server. Ends when dropped.
pub(super) struct Peer {
    address: SocketAddr,
    seen: Arc<Seen>,
    tls: Arc<Mutex<Option<Arc<ServerConfig>>>>,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("address", &self.address)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

impl Peer {
    /// On a loopback port of the system's choice.
    pub(super) fn start(
        manners: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Result<Self, Fault> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Fault::io("a port for a peer"))?;
        let address = listener.local_addr().map_err(Fault::io("a port for a peer"))?;
        let seen = Arc::<Seen>::default();
        let tls = Arc::<Mutex<Option<Arc<ServerConfig>>>>::default();
        let over = Arc::<AtomicBool>::default();
        let manners: Arc<Manners> = Arc::new(manners);
        let of_peer = (Arc::clone(&seen), Arc::clone(&tls), Arc::clone(&over));
        let accepting = std::thread::spawn(move || {
            let (seen, tls, over) = of_peer;
            for stream in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let config = lock(&tls).clone();
                let (seen, over) = (Arc::clone(&seen), Arc::clone(&over));
                let manners = Arc::clone(&manners);
                std::thread::spawn(move || {
                    seen.connections.fetch_add(1, Ordering::Relaxed);
                    let open = seen.open.fetch_add(1, Ordering::Relaxed) + 1;
                    seen.most.fetch_max(open, Ordering::Relaxed);
                    // However it ends, it is the client's business.
                    let _ = connection(stream, config, &over, &*manners);
                    seen.open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Ok(Self { address, seen, tls, over, accepting: Some(accepting) })
    }

    /// From the next connection on it speaks TLS like this; in clear text without.
    pub(super) fn speaks(&self, config: Option<Arc<ServerConfig>>) {
        *lock(&self.tls) = config;
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections so far.
    pub(super) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// Connections that were open at once at most.
    pub(super) fn most_open(&self) -> usize {
        self.seen.most.load(Ordering::Relaxed)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // It waits for a connection, and this is one.
        let woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let (Ok(_), Some(accepting)) = (woken, self.accepting.take()) {
            // A panic there was said already.
            let _ = accepting.join();
        }
    }
}

fn lock<T>(what: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connection(
    mut stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    over: &AtomicBool,
    manners: &Manners,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    stream.set_write_timeout(Some(WRITE_WAIT))?;
    match tls {
        None => requests(&mut stream, over, manners),
        Some(config) => {
            let session = ServerConnection::new(config).map_err(io::Error::other)?;
            requests(&mut StreamOwned::new(session, stream), over, manners)
        }
    }
}

/// Serves one request after the other, until one ends the connection.
fn requests(
    stream: &mut (impl Read + Write),
    over: &AtomicBool,
    manners: &Manners,
) -> io::Result<()> {
    let mut kept = Vec::new();
    while let Some(asked) = request(stream, &mut kept, over)? {
        match manners(&asked) {
            Reply::Answers(answer) => stream.write_all(&answer.bytes())?,
            Reply::Late(after, answer) => {
                if !pause(after, over) {
                    return Ok(());
                }
                stream.write_all(&answer.bytes())?;
            }
            Reply::Twice(answer) => stream.write_all(&answer.bytes().repeat(2))?,
            Reply::Drips(every, answer) => {
                for byte in answer.bytes() {
                    stream.write_all(&[byte])?;
                    stream.flush()?;
                    if !pause(every, over) {
                        return Ok(());
                    }
                }
            }
            Reply::Breaks(mut answer) => {
                answer.body = vec![b' '; 100];
                return stream.write_all(&[answer.head(), vec![b' '; 10]].concat());
            }
            Reply::Floods(status) => {
                stream.write_all(
                    format!("HTTP/1.1 {status} Said\r\ncontent-length: 1000000000\r\n\r\n")
                        .as_bytes(),
                )?;
                while !over.load(Ordering::Relaxed) {
                    stream.write_all(&[b'x'; 65_536])?;
                }
                return Ok(());
            }
            Reply::Hangs => {
                // What comes before the end is no request: there was no answer to the last one.
                while more(stream, &mut kept, over)? > 0 {
                    kept.clear();
                }
                return Ok(());
            }
            Reply::Closes => return Ok(()),
            Reply::Babbles => return stream.write_all(b"200 fine, thank you\r\n\r\n"),
        }
        stream.flush()?;
    }
    Ok(())
}

/// Waits; false when it is over meanwhile.
fn pause(long: Duration, over: &AtomicBool) -> bool {
    let end = Instant::now() + long;
    while !over.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
    false
}

/// The next request of a connection; none when the client went away between two.
fn request(
    stream: &mut impl Read,
    kept: &mut Vec<u8>,
    over: &AtomicBool,
) -> io::Result<Option<Asked>> {
    let head = loop {
        if let Some(at) = kept.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if more(stream, kept, over)? == 0 {
            return Ok(None);
        }
    };
    let text = String::from_utf8_lossy(kept.get(..head).unwrap_or_default()).into_owned();
    let mut lines = text.lines();
    let path = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    while kept.len() < head + length {
        if more(stream, kept, over)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    let body = kept.get(head..head + length).unwrap_or_default().to_vec();
    kept.drain(..head + length);
    Ok(Some(Asked { path, headers, body }))
}

/// Reads what comes next; 0 at the end, and when it is over.
fn more(stream: &mut impl Read, kept: &mut Vec<u8>, over: &AtomicBool) -> io::Result<usize> {
    let mut buffer = [0; 16 * 1024];
    while !over.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(read) if kept.len() + read > REQUEST_BYTES_MAX => {
                return Err(ErrorKind::FileTooLarge.into());
            }
            Ok(read) => {
                kept.extend_from_slice(buffer.get(..read).unwrap_or_default());
                return Ok(read);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use super::{Answer, Peer, Reply};

    fn said(reply: &Reply) -> String {
        let reply = reply.clone();
        let peer = Peer::start(move |asked| match (asked.path.as_str(), asked.body.as_slice()) {
            ("/first", b"abc") => Reply::Answers(Answer::status(204)),
            ("/second", b"") => reply.clone(),
            _ => Reply::Answers(Answer::status(500)),
        });
        let peer = peer.expect("a peer");
        let mut client = TcpStream::connect(peer.address()).expect("connects");
        let both =
            "POST /first HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /second HTTP/1.1\r\n\r\n";
        client.write_all(both.as_bytes()).expect("sends");
        client.shutdown(std::net::Shutdown::Write).expect("says that it is all");
        let mut answer = Vec::new();
        // A flood is more than anybody wants to read.
        (&client).take(100_000).read_to_end(&mut answer).expect("an answer");
        assert_eq!((peer.connections(), peer.most_open()), (1, 1));
        let text = String::from_utf8(answer).expect("text");
        let first = "HTTP/1.1 204 Said\r\ncontent-length: 0\r\n\r\n";
        text.strip_prefix(first).expect("the first request is answered").to_owned()
    }

    #[test]
    fn it_answers_as_it_is_told() {
        let fine = || Answer { body: b"x".to_vec(), ..Answer::status(200) };
        let whole = "HTTP/1.1 200 Said\r\ncontent-length: 1\r\n\r\nx";
        let moment = std::time::Duration::from_millis(1);
        assert_eq!(said(&Reply::Answers(fine())), whole);
        assert_eq!(said(&Reply::Late(moment, fine())), whole);
        assert_eq!(said(&Reply::Drips(moment, fine())), whole);
        assert_eq!(said(&Reply::Twice(fine())), whole.repeat(2));
        assert!(said(&Reply::Breaks(fine())).ends_with("content-length: 100\r\n\r\n          "));
        assert!(said(&Reply::Floods(200)).len() > 90_000);
        assert_eq!(said(&Reply::Hangs), "");
        assert_eq!(said(&Reply::Closes), "");
        assert!(!said(&Reply::Babbles).starts_with("HTTP/"));
    }
}
