//! A caller that shows something else with each call, and holds what comes of it against what must.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Response, StatusCode};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::shown::{Expect, Kind, Mint, Standing};
use crate::harness::client::{Client, Lost, request_body};

/// The body of every 401, whatever is wrong.
const REFUSED: &[u8] = br#"{"error":"unauthorized"}"#;
/// Findings that are kept of each kind.
const FOUND_MAX: usize = 2;

/// What all probers share with the bench.
#[derive(Debug)]
pub(super) struct Book {
    /// Whether the server can have keys at all. As long as it cannot, it answers 503 with everything that needs one.
    keys: Mutex<Standing>,
    over: AtomicBool,
    seen: Mutex<Seen>,
    calls: AtomicU64,
}

#[derive(Debug, Default)]
struct Seen {
    found: BTreeMap<Kind, Vec<String>>,
    /// By kind and status; 0 where there was no answer.
    answers: BTreeMap<(Kind, u16), u64>,
    /// How long good callers waited since it was asked last.
    waits: Vec<Duration>,
}

impl Book {
    pub(super) fn new(keys: Standing) -> Self {
        Self { keys: Mutex::new(keys), over: false.into(), seen: Mutex::default(), calls: 0.into() }
    }

    pub(super) fn keys_are(&self, keys: Standing) {
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// Lets every prober end with the call in hand.
    pub(super) fn close(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// What must not be.
    pub(super) fn found(&self) -> Vec<String> {
        let seen = self.seen();
        let all = seen.found.iter().flat_map(|(kind, found)| found.iter().map(move |f| (kind, f)));
        all.map(|(kind, found)| format!("{kind:?}: {found}")).collect()
    }

    /// How often a kind was answered with a status.
    pub(super) fn answers(&self) -> BTreeMap<(Kind, u16), u64> {
        self.seen().answers.clone()
    }

    /// How long good callers waited since this was asked last.
    pub(super) fn waits(&self) -> Vec<Duration> {
        std::mem::take(&mut self.seen().waits)
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them.
pub(super) struct Prober {
    pub(super) number: u32,
    pub(super) address: SocketAddr,
    pub(super) mint: Arc<Mint>,
    pub(super) book: Arc<Book>,
}

impl Prober {
    /// Probes until the book is closed.
    pub(super) async fn run(self, seed: u64) {
        let mut random = StdRng::seed_from_u64(seed ^ (u64::from(self.number) << 40) ^ 0xa07);
        let mut client = None;
        while !self.book.over.load(Ordering::Relaxed) {
            let good = random.random_bool(0.4);
            let kinds = if good { &Kind::GOOD[..] } else { &Kind::BAD[..] };
            let Some(kind) = kinds.get(random.random_range(0..kinds.len())) else { continue };
            client = self.probe(*kind, client).await;
        }
    }

    /// One call; the connection, while it is good for another.
    async fn probe(&self, kind: Kind, client: Option<Client>) -> Option<Client> {
        let number = self.book.calls.fetch_add(1, Ordering::Relaxed);
        // What is refused would leave a trace if it were not: the audit knows of no such call.
        let body = if Kind::GOOD.contains(&kind) {
            request_body("find_work", &serde_json::Map::new())
        } else {
            request_body("start_workflow", &self.start(number))
        };
        let mut client = client.unwrap_or_else(|| Client::new(self.address));
        let before = self.expect(kind);
        client.bears(self.mint.show(kind));
        let sent = Instant::now();
        let answer = client.post(body).await;
        let took = sent.elapsed();
        let after = self.expect(kind);
        let expect = if before == after { before } else { (Expect::Either, Standing::Changing) };
        let wrong = wrong(&answer, expect);
        let status = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
        let mut seen = self.book.seen();
        *seen.answers.entry((kind, status)).or_default() += 1;
        if expect == (Expect::Accept, Standing::Known) {
            seen.waits.push(took);
        }
        if let Some(wrong) = wrong {
            let found = seen.found.entry(kind).or_default();
            if found.len() < FOUND_MAX {
                found.push(wrong);
            }
        }
        (status == 200).then_some(client)
    }

    /// What must come of it, and whether the server can have keys.
    fn expect(&self, kind: Kind) -> (Expect, Standing) {
        let keys = *self.book.keys.lock().unwrap_or_else(PoisonError::into_inner);
        (self.mint.expect(kind), keys)
    }

    fn start(&self, number: u64) -> serde_json::Map<String, serde_json::Value> {
        // Ids of pumps have six digits at most; those of the working callers are below.
        let pump = format!("PUMP-{}", 500_000 + number % 400_000);
        let start = json!({
            "procedure_id": "pump-inspection", "assets": { "pump": pump },
            "inputs": { "work_order": format!("WO {number}") },
            "idempotency_key": format!("stolen-{}-{number}", self.number),
        });
        start.as_object().cloned().unwrap_or_default()
    }
}

/// What is wrong with an answer, if anything is.
fn wrong(answer: &Result<Response<Bytes>, Lost>, expect: (Expect, Standing)) -> Option<String> {
    let (expect, keys) = expect;
    let answer = match answer {
        Ok(answer) => answer,
        // Who is refused before the whole request was read may find the connection broken; it was not let in.
        Err(_) if expect == Expect::Refuse => return None,
        Err(lost) => return Some(format!("no answer: {lost:?}")),
    };
    let (status, body) = (answer.status(), answer.body());
    let said = || String::from_utf8_lossy(body).chars().take(200).collect::<String>();
    match status {
        StatusCode::OK if expect == Expect::Refuse => Some(format!("was let in: {}", said())),
        StatusCode::OK if keys == Standing::Unknown => Some("was let in without a key".to_owned()),
        StatusCode::OK if !said().contains("\"result\"") => Some(format!("got {}", said())),
        StatusCode::OK => None,
        StatusCode::UNAUTHORIZED if expect == Expect::Accept && keys != Standing::Changing => {
            Some("was refused".to_owned())
        }
        StatusCode::UNAUTHORIZED if body != REFUSED => Some(format!("a 401 with {}", said())),
        StatusCode::UNAUTHORIZED => None,
        StatusCode::SERVICE_UNAVAILABLE if keys != Standing::Known => {
            let silent = answer.headers().get(RETRY_AFTER).is_none();
            silent.then(|| "a 503 that does not say when to come again".to_owned())
        }
        other => Some(format!("got {other}: {}", said())),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Response;

    use super::Expect::{Accept, Either, Refuse};
    use super::Standing::{Changing, Known, Unknown};
    use super::{REFUSED, wrong};

    #[test]
    fn what_must_not_come_is_told() {
        let result: &[u8] = br#"{"result":{}}"#;
        for (status, body, expect, found) in [
            (200, result, (Accept, Known), false),
            (200, result, (Either, Known), false),
            (200, result, (Refuse, Known), true),
            (200, result, (Accept, Unknown), true),
            (200, b"{}", (Accept, Known), true),
            (401, REFUSED, (Accept, Known), true),
            (401, REFUSED, (Accept, Changing), false),
            (401, REFUSED, (Refuse, Known), false),
            (401, b"expired", (Refuse, Known), true),
            (503, b"", (Accept, Known), true),
            (503, b"", (Accept, Unknown), true),
            (500, b"", (Refuse, Known), true),
        ] {
            let answer = Response::builder().status(status).body(Bytes::from_static(body));
            let said = wrong(&Ok(answer.expect("an answer")), expect);
            assert_eq!(said.is_some(), found, "{status} {expect:?}: {said:?}");
        }
        let later = Response::builder().status(503).header("retry-after", "1").body(Bytes::new());
        assert_eq!(wrong(&Ok(later.expect("an answer")), (Accept, Unknown)), None);
    }
}
