//! A receiver of webhooks that writes down whatever comes, and what it did about it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rusqlite::OpenFlags;
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::Value;
use standardwebhooks::Webhook;

use super::lies::{self, Manner, Said};
use crate::fault::Fault;
use crate::torture::peer::{Answer, Asked, Peer, Reply};

/// Of no secrecy; and one that receivers do not know.
pub(super) const SECRET: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
pub(super) const OTHER_SECRET: &str = "whsec_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB";

/// A delivery that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) id: String,
    pub(super) body: Vec<u8>,
    pub(super) said: Said,
}

/// What a receiver wrote down.
#[derive(Debug, Default)]
struct Log {
    arrivals: Vec<Arrival>,
    /// What came that must not come at all.
    wrong: BTreeSet<String>,
    did: BTreeMap<&'static str, u64>,
    seen: BTreeSet<String>,
}

struct State {
    manner: Mutex<Manner>,
    log: Mutex<Log>,
    random: Mutex<StdRng>,
    database: PathBuf,
    secret: Webhook,
}

/// The receiver.
pub(super) struct Hook {
    peer: Peer,
    state: Arc<State>,
    /// In place of the impostor's.
    own: Option<Arc<ServerConfig>>,
    secure: bool,
}

impl Hook {
    /// `certificate` is where the one is written that senders trust, if this receiver speaks TLS.
    pub(super) fn start(
        manner: Manner,
        database: &Path,
        seed: u64,
        certificate: Option<&Path>,
    ) -> Result<Self, Fault> {
        let secret = Webhook::new(SECRET).map_err(|e| Fault::Run(format!("the secret: {e}")))?;
        let state = Arc::new(State {
            manner: Mutex::new(manner),
            log: Mutex::default(),
            random: Mutex::new(StdRng::seed_from_u64(seed ^ 0x5119)),
            database: database.to_owned(),
            secret,
        });
        let of_peer = Arc::clone(&state);
        let peer = Peer::start(move |asked| of_peer.receive(asked))?;
        let mut own = None;
        if let Some(trusted) = certificate {
            let (config, pem) = certified()?;
            std::fs::write(trusted, pem).map_err(Fault::io("a certificate"))?;
            own = Some(config);
            let (impostor, _) = certified()?;
            peer.speaks(Some(impostor));
        }
        Ok(Self { peer, state, secure: own.is_some(), own })
    }

    pub(super) fn url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}/hook", self.peer.address())
    }

    /// From now on it takes everything, and is who it says.
    pub(super) fn is_well(&self) {
        *lock(&self.state.manner) = Manner::Honest;
        if let Some(own) = &self.own {
            self.peer.speaks(Some(Arc::clone(own)));
        }
    }

    pub(super) fn arrivals(&self) -> Vec<Arrival> {
        lock(&self.state.log).arrivals.clone()
    }

    /// What came that must not come at all.
    pub(super) fn wrong(&self) -> Vec<String> {
        lock(&self.state.log).wrong.iter().cloned().collect()
    }

    /// How often it did what.
    pub(super) fn did(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.state.log).did.clone()
    }

    /// Connections so far, and open at once at most.
    pub(super) fn connections(&self) -> (usize, usize) {
        (self.peer.connections(), self.peer.most_open())
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A certificate of its own for this machine, and its text.
fn certified() -> Result<(Arc<ServerConfig>, String), Fault> {
    let wrong = |what: String| Fault::Run(format!("a certificate: {what}"));
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])
        .map_err(|error| wrong(error.to_string()))?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            let chain = vec![made.cert.der().clone()];
            config.with_no_client_auth().with_single_cert(chain, key.into())
        })
        .map_err(|error| wrong(error.to_string()))?;
    Ok((Arc::new(config), made.cert.pem()))
}

impl State {
    fn receive(&self, asked: &Asked) -> Reply {
        let message = match self.read(asked) {
            Ok(message) => message,
            Err(wrong) => {
                lock(&self.log).wrong.insert(wrong);
                return Reply::Answers(Answer::status(500));
            }
        };
        let id = message.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let manner = *lock(&self.manner);
        let mut log = lock(&self.log);
        let first = log.seen.insert(id.clone());
        let done = lies::does(manner, first, &mut lock(&self.random));
        *log.did.entry(done.name).or_default() += 1;
        log.arrivals.push(Arrival { id, body: asked.body.clone(), said: done.said });
        done.reply
    }

    /// The message, if it may come at all: to this path, signed, and of an event that is committed.
    fn read(&self, asked: &Asked) -> Result<Value, String> {
        if asked.path != "/hook" {
            return Err(format!("{} was asked for", asked.path));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &asked.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| e.to_string())?;
            headers.insert(name, HeaderValue::from_str(value).map_err(|e| e.to_string())?);
        }
        self.secret.verify(&asked.body, &headers).map_err(|e| format!("the signature: {e}"))?;
        let message: Value =
            serde_json::from_slice(&asked.body).map_err(|e| format!("the body: {e}"))?;
        let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        for header in ["webhook-id", "ce-id"] {
            if asked.headers.get(header).map(String::as_str) != Some(text("id")) {
                return Err(format!("{header} is not the id of the message {}", text("id")));
            }
        }
        let seq = message.get("seq").and_then(Value::as_i64).unwrap_or_default();
        let committed = self.is_committed(text("workflow_id"), seq);
        match committed {
            Ok(true) => Ok(message),
            Ok(false) => Err(format!("{} came before its commit", text("id"))),
            Err(error) => Err(format!("looking for the event of {}: {error}", text("id"))),
        }
    }

    fn is_committed(&self, workflow: &str, seq: i64) -> rusqlite::Result<bool> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let db = rusqlite::Connection::open_with_flags(&self.database, flags)?;
        db.busy_timeout(Duration::from_secs(10))?;
        let sql = "SELECT count(*) FROM events e JOIN workflows w ON w.wid = e.wid WHERE w.id = ?1 AND e.seq = ?2";
        let found: i64 = db.query_row(sql, (workflow, seq), |row| row.get(0))?;
        Ok(found == 1)
    }
}
