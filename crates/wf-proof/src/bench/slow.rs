//! What peers that are slow on purpose cost honest callers: the same load alone and beside a crowd, in turns.
//!
//! A third of the crowd sends heads a byte at a time, a third bodies, a third asks and never reads the answers. Whoever the
//! server closes comes back at once, so the crowd stays as large as it was. It lives on a thread of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::contenders::{serve, temporary};
use super::load;
use super::plan::Plan;
use super::run::say;
use super::samples::Spread;
use crate::fault::Fault;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The built server.
    pub server: &'a Path,
    /// Slow connections at once.
    pub slow: usize,
    /// Honest callers.
    pub callers: usize,
    /// How long each load is measured.
    pub time: Duration,
    /// How often, alone and beside the crowd.
    pub rounds: usize,
    /// The most that the 99th of 100 calls may take beside the crowd, as a multiple of the same alone.
    pub most: f64,
}

/// Between two bytes of a slow peer.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest wait until the whole crowd is connected.
const GATHERING: Duration = Duration::from_secs(20);

/// Measures, and says what it measured.
///
/// # Errors
/// When something could not be measured, or the crowd costs more than it may.
pub async fn measure(asked: &Asked<'_>) -> Result<(), Fault> {
    let folder = temporary(None)?;
    let server = serve(asked.server, folder.path(), None)?;
    let plan = Plan::of(&server, asked.callers, asked.time);
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for round in 1..=asked.rounds.max(1) {
        let quiet = load::steps(&plan).await?;
        let crowd = Crowd::gather(server.address(), asked.slow)?;
        let crowded = load::steps(&plan).await?;
        let seen = crowd.disperse()?;
        say(&format!(
            "round {round}: alone {:.0} steps/s, p50 {:.0} µs, p99 {:.0} µs; beside {} slow ones {:.0} steps/s, \
             p50 {:.0} µs, p99 {:.0} µs; the server closed {} heads, {} bodies, {} readers; memory {:.1} MB",
            quiet.rate,
            quiet.times.p50_us,
            quiet.times.p99_us,
            seen.open,
            crowded.rate,
            crowded.times.p50_us,
            crowded.times.p99_us,
            seen.closed[0],
            seen.closed[1],
            seen.closed[2],
            super::run::megabytes(crowded.resident),
        ));
        alone.push(quiet.times.p99_us);
        beside.push(crowded.times.p99_us);
    }
    server.stop()?;
    let (alone, beside) = (Spread::of(&alone), Spread::of(&beside));
    let factor = beside.median / alone.median.max(1.0);
    let said = format!(
        "p99 alone {:.0} µs ({:.0} to {:.0}), beside {} slow connections {:.0} µs ({:.0} to {:.0}): {factor:.2} times, \
         at most {:.2} allowed",
        alone.median,
        alone.min,
        alone.max,
        asked.slow,
        beside.median,
        beside.min,
        beside.max,
        asked.most
    );
    say(&said);
    if factor > asked.most { Err(Fault::Run(said)) } else { Ok(()) }
}

/// How a peer is slow.
#[derive(Debug, Clone, Copy)]
enum Manner {
    Head,
    Body,
    Reader,
}

impl Manner {
    const ALL: [Self; 3] = [Self::Head, Self::Body, Self::Reader];
}

/// What the crowd and its owner tell each other.
#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    open: AtomicUsize,
    closed: [AtomicUsize; 3],
}

/// What was seen of a crowd.
#[derive(Debug)]
struct Seen {
    /// Connections that were open when it was asked to go.
    open: usize,
    /// Connections that the server closed, by manner.
    closed: [usize; 3],
}

/// Slow peers.
#[derive(Debug)]
struct Crowd {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(), Fault>>,
}

impl Crowd {
    /// Returns when all are connected.
    fn gather(address: SocketAddr, count: usize) -> Result<Self, Fault> {
        let shared = Arc::<Shared>::default();
        let of_crowd = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(Fault::io("starting the crowd's runtime"))?;
            runtime.block_on(async move {
                let mut peers = JoinSet::new();
                for manner in Manner::ALL.iter().cycle().take(count) {
                    peers.spawn(peer(address, *manner, Arc::clone(&of_crowd)));
                }
                while !of_crowd.over.load(Ordering::Relaxed) {
                    sleep(Duration::from_millis(10)).await;
                }
                peers.shutdown().await;
            });
            Ok(())
        });
        let crowd = Self { shared, thread };
        let begun = Instant::now();
        while crowd.shared.open.load(Ordering::Relaxed) < count {
            if begun.elapsed() > GATHERING {
                let open = crowd.disperse()?.open;
                return Err(Fault::Run(format!("only {open} of {count} slow peers could connect")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(crowd)
    }

    /// Lets them go.
    fn disperse(self) -> Result<Seen, Fault> {
        let closed = self.shared.closed.each_ref().map(|count| count.load(Ordering::Relaxed));
        let seen = Seen { open: self.shared.open.load(Ordering::Relaxed), closed };
        self.shared.over.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        ended.map_err(|_| Fault::Run("the crowd died".to_owned()))??;
        Ok(seen)
    }
}

/// One peer: connects, is slow until the server closes, and comes back.
async fn peer(address: SocketAddr, manner: Manner, shared: Arc<Shared>) {
    loop {
        let Ok(stream) = connect(address, manner).await else {
            sleep(PAUSE).await;
            continue;
        };
        shared.open.fetch_add(1, Ordering::Relaxed);
        // However it ends, it was the server: a peer never closes by itself.
        let _ = match manner {
            Manner::Head => {
                trickle(stream, format!("POST /mcp HTTP/1.1\r\nhost: {address}\r\nx: ")).await
            }
            Manner::Body => {
                let head = format!(
                    "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: */*\r\n\
                     content-length: 100000\r\n\r\n"
                );
                trickle(stream, head).await
            }
            Manner::Reader => ask_on(stream, address).await,
        };
        shared.open.fetch_sub(1, Ordering::Relaxed);
        if let Some(closed) = shared.closed.get(manner as usize) {
            closed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn connect(address: SocketAddr, manner: Manner) -> std::io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if let Manner::Reader = manner {
        socket.set_recv_buffer_size(4_096)?;
    }
    socket.connect(address).await
}

/// Sends the beginning, then a byte at a time, until the server has enough.
async fn trickle(mut stream: TcpStream, begin: String) -> std::io::Result<()> {
    stream.write_all(begin.as_bytes()).await?;
    let (mut reading, mut writing) = stream.split();
    let mut answer = Vec::new();
    let until_closed = reading.read_to_end(&mut answer);
    tokio::pin!(until_closed);
    loop {
        tokio::select! {
            ended = &mut until_closed => return ended.map(|_| ()),
            () = sleep(PAUSE) => writing.write_all(b" ").await?,
        }
    }
}

/// Asks again and again and reads no answer, until the server takes no more.
async fn ask_on(mut stream: TcpStream, address: SocketAddr) -> std::io::Result<()> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: */*\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    loop {
        stream.write_all(request.as_bytes()).await?;
        sleep(PAUSE / 4).await;
    }
}
