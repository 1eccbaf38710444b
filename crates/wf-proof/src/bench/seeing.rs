//! What it costs a step that somebody looks: the same load on a server that tells nothing but its log, and on one with an
//! address for operators, traces and metrics to a collector, and a scrape of `/metrics` every second, in turns.
//!
//! Each load has a new server on a new database, and the order turns each round. One caller at a time is what a person
//! waits for, and is judged: the p50 of a step in one round against that of the other load in the same round. Many
//! callers are measured as well and said, not judged: there the processor is full, and what is added to it is said in
//! microseconds. The collector is a thread that reads and forgets; that it got a span for each step, at least, shows that
//! the loud server was loud.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::contenders::{launch, temporary};
use super::load::{self, Measured};
use super::plan::Plan;
use super::run::say;
use super::samples::Spread;
use crate::fault::Fault;
use crate::harness::server::Server;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The built server.
    pub server: &'a Path,
    /// Callers of the wide load.
    pub callers: usize,
    /// How long each load is measured.
    pub time: Duration,
    /// How often.
    pub rounds: usize,
    /// How many times as long the p50 of a step may be, with one caller.
    pub most: f64,
}

/// How often `/metrics` is read; scrapers ask every 15 seconds or so.
const SCRAPE: Duration = Duration::from_secs(1);
/// Bytes of a span on its way at least: two ids and two times.
const SPAN_BYTES: u64 = 40;

/// Measures, and says what it measured.
///
/// # Errors
/// When something could not be measured, or looking costs more than it may.
pub async fn measure(asked: &Asked<'_>) -> Result<(), Fault> {
    let (mut alone, mut wide) = (Pairs::default(), Pairs::default());
    for round in 0..asked.rounds.max(1) {
        for (callers, pairs) in [(1, &mut alone), (asked.callers, &mut wide)] {
            let mut measured = [Measured::default(), Measured::default()];
            for turn in 0..2 {
                let loud = (turn + round) % 2 == 1;
                measured[usize::from(loud)] = load(asked, callers, loud).await?;
            }
            let [quiet, loud] = measured;
            say(&format!("round {}, {callers} callers: {}", round + 1, pairs.add(&quiet, &loud)));
        }
    }
    say(&format!("{} callers: {}", asked.callers, wide.said()));
    say(&format!("one caller: {}", alone.said()));
    alone.judge(asked.most)
}

async fn load(asked: &Asked<'_>, callers: usize, loud: bool) -> Result<Measured, Fault> {
    let folder = temporary(None)?;
    let mut launch = launch(asked.server, folder.path(), None)?;
    let collector = Collector::start()?;
    if loud {
        launch = launch
            .env("WF_SERVER_ADMIN_LISTEN", "127.0.0.1:0")
            .env("WF_TELEMETRY_OTLP_ENDPOINT", collector.endpoint());
    }
    let server = Server::start(&launch)?;
    let plan = Plan::of(&server, callers, asked.time);
    let scraper = loud.then(|| Scraper::start(server.address()));
    let measured = load::steps(&plan).await?;
    drop(scraper);
    server.stop()?;
    let told = collector.bytes.load(Ordering::Relaxed) / SPAN_BYTES;
    let steps = measured.times.count;
    if loud && told < u64::try_from(steps).unwrap_or(u64::MAX) {
        return Err(Fault::Run(format!(
            "the measure is blind: the collector got at most {told} spans for {steps} steps; was the server built with \
             the feature otlp?"
        )));
    }
    Ok(measured)
}

/// Takes whatever it is sent, and forgets it.
struct Collector {
    address: SocketAddr,
    bytes: Arc<AtomicU64>,
}

impl Collector {
    fn start() -> Result<Self, Fault> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(Fault::io("a collector"))?;
        let address = listener.local_addr().map_err(Fault::io("a collector"))?;
        let bytes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&bytes);
        // It ends with the process; nobody connects to it after its server is gone.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let counted = Arc::clone(&counted);
                std::thread::spawn(move || take(&stream, &counted));
            }
        });
        Ok(Self { address, bytes })
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Answers requests on one connection until it ends.
fn take(stream: &TcpStream, counted: &AtomicU64) {
    let mut lines = BufReader::new(stream);
    while let Some(length) = head(&mut lines) {
        let taken = std::io::copy(&mut (&mut lines).take(length), &mut std::io::sink());
        counted.fetch_add(taken.unwrap_or(0), Ordering::Relaxed);
        let mut answers = stream;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        if answers.write_all(answer).is_err() {
            return;
        }
    }
}

/// Reads the head of a request; how long its body is.
fn head(lines: &mut BufReader<&TcpStream>) -> Option<u64> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            return length;
        }
        if let Some(bytes) = line.strip_prefix("content-length:") {
            length = bytes.trim().parse().ok();
        }
    }
}

/// Reads `/metrics` until it is dropped.
struct Scraper {
    stop: Arc<AtomicBool>,
    thread: std::thread::Thread,
}

impl Scraper {
    fn start(address: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let scraping = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                // A scrape that fails is the next one's business.
                let _ = scrape(address);
                std::thread::park_timeout(SCRAPE);
            }
        });
        Self { stop, thread: scraping.thread().clone() }
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

fn scrape(address: SocketAddr) -> std::io::Result<u64> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SCRAPE))?;
    stream.write_all(
        format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").as_bytes(),
    )?;
    std::io::copy(&mut stream, &mut std::io::sink())
}

/// What was measured of two loads, a round at a time.
#[derive(Debug, Default)]
struct Pairs {
    /// How many times as long the p50 of a step is.
    times: Vec<f64>,
    /// What is added to the processor time of the server for one step, in microseconds.
    processor: Vec<f64>,
}

impl Pairs {
    /// Adds a round; says what it was.
    fn add(&mut self, quiet: &Measured, loud: &Measured) -> String {
        let times = loud.times.p50_us / quiet.times.p50_us.max(0.001);
        self.times.push(times);
        self.processor.push(loud.server_cpu_us - quiet.server_cpu_us);
        format!(
            "p50 {:.0} µs, seen {:.0} µs ({times:.3} times); {:.0} and {:.0} steps/s; {:.1} and {:.1} µs of processor a \
             step",
            quiet.times.p50_us,
            loud.times.p50_us,
            quiet.rate,
            loud.rate,
            quiet.server_cpu_us,
            loud.server_cpu_us
        )
    }

    fn said(&self) -> String {
        let (times, processor) = (Spread::of(&self.times), Spread::of(&self.processor));
        format!(
            "a step takes {:.3} times as long ({:.3} to {:.3}), and {:+.1} µs of the server's processor ({:+.1} to {:+.1})",
            times.median, times.min, times.max, processor.median, processor.min, processor.max
        )
    }

    fn judge(&self, most: f64) -> Result<(), Fault> {
        let times = Spread::of(&self.times).median;
        let said =
            format!("being seen takes {times:.3} times as long a step, at most {most:.2} allowed");
        say(&said);
        if times > most { Err(Fault::Run(said)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::Quantiles;
    use super::*;

    fn measured(p50_us: f64) -> Measured {
        Measured { times: Quantiles { p50_us, ..Quantiles::default() }, ..Measured::default() }
    }

    #[test]
    fn rounds_are_compared_one_by_one() {
        // The machine is twice as fast in the second round; a step takes the same part longer.
        let mut pairs = Pairs::default();
        pairs.add(&measured(1_000.0), &measured(1_080.0));
        pairs.add(&measured(500.0), &measured(540.0));
        assert!(pairs.judge(1.1).is_ok());
        assert!(pairs.judge(1.07).is_err(), "more than it may");
    }

    #[test]
    fn a_collector_takes_and_counts_what_it_is_sent() {
        let collector = Collector::start().expect("starts");
        let mut stream = TcpStream::connect(collector.address).expect("connects");
        for _ in 0..2 {
            let request = b"POST /v1/traces HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody";
            stream.write_all(request).expect("is sent");
            let mut answer = [0; 38];
            stream.read_exact(&mut answer).expect("is answered");
            assert!(answer.starts_with(b"HTTP/1.1 200"));
        }
        assert_eq!(collector.bytes.load(Ordering::Relaxed), 8);
    }
}
