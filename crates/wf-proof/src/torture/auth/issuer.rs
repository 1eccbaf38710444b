//! An issuer of tokens: keys that are made here, published or not, behind an address that has good and bad days.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::torture::peer::{Answer, Asked, Peer, Reply};

/// A key for ES256.
pub(super) struct Key {
    /// What tokens call it.
    pub(super) name: String,
    pair: EcdsaKeyPair,
}

impl Key {
    pub(super) fn new(name: impl Into<String>) -> Result<Self, Fault> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)
            .map_err(|_| Fault::Run("the system made no key".to_owned()))?;
        Ok(Self { name: name.into(), pair })
    }

    /// The public half as a JSON Web Key (RFC 7517).
    pub(super) fn public(&self) -> Value {
        // An uncompressed point: 4, then both coordinates of 32 bytes (SEC 1, section 2.3.3).
        let point = self.pair.public_key().as_ref();
        let coordinate =
            |at: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(point.get(at).unwrap_or_default());
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "kid": self.name,
            "x": coordinate(1..33), "y": coordinate(33..65),
        })
    }

    /// The bytes that everybody knows.
    pub(super) fn public_bytes(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        let signed = self.pair.sign(&SystemRandom::new(), message);
        signed.map(|signature| signature.as_ref().to_vec()).unwrap_or_default()
    }
}

/// How the issuer's address is today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mood {
    Well,
    /// Answers after a while, within what a server waits.
    Slow,
    Hangs,
    Closes,
    /// 500, with a stranger's keys in the body.
    Fails,
    /// 302 to a stranger's keys.
    Redirects,
    /// 200 and a page for people.
    Page,
    /// 200 and no keys.
    Empty,
    /// 200 and a key to sign with, not to verify with.
    Symmetric,
    Floods,
    Babbles,
    Drips,
    /// Promises more than it sends.
    Breaks,
}

impl Mood {
    /// In which there are no keys to be had, and that is soon known.
    pub(super) const BAD: [Self; 9] = [
        Self::Closes,
        Self::Fails,
        Self::Redirects,
        Self::Page,
        Self::Empty,
        Self::Symmetric,
        Self::Floods,
        Self::Babbles,
        Self::Breaks,
    ];

    /// In which nothing comes for as long as somebody waits.
    pub(super) const MUTE: [Self; 2] = [Self::Hangs, Self::Drips];
}

/// How long a slow answer takes.
const SLOW: Duration = Duration::from_secs(1);
/// Between two bytes of an answer that drips.
const DRIP: Duration = Duration::from_millis(100);

struct State {
    mood: Mood,
    published: Vec<Value>,
    stranger: Value,
    asked: BTreeMap<Mood, usize>,
}

/// The issuer.
pub(super) struct Issuer {
    peer: Peer,
    state: Arc<Mutex<State>>,
}

impl Issuer {
    /// Publishes nothing yet. `stranger` is what it offers on bad days.
    pub(super) fn start(mood: Mood, stranger: &Key) -> Result<Self, Fault> {
        let (published, asked) = (Vec::new(), BTreeMap::new());
        let state = State { mood, published, stranger: stranger.public(), asked };
        let state = Arc::new(Mutex::new(state));
        let of_peer = Arc::clone(&state);
        let peer = Peer::start(move |asked| {
            let mut state = lock(&of_peer);
            let mood = state.mood;
            *state.asked.entry(mood).or_default() += 1;
            state.reply(asked)
        })?;
        Ok(Self { peer, state })
    }

    /// What its tokens have as `iss`.
    pub(super) fn name(&self) -> String {
        format!("http://{}", self.peer.address())
    }

    /// Where its keys are.
    pub(super) fn keys(&self) -> String {
        format!("{}/jwks", self.name())
    }

    pub(super) fn feels(&self, mood: Mood) {
        lock(&self.state).mood = mood;
    }

    pub(super) fn publishes(&self, keys: &[&Key]) {
        lock(&self.state).published = keys.iter().map(|key| key.public()).collect();
    }

    /// How often it was asked.
    pub(super) fn fetches(&self) -> usize {
        self.asked().values().sum()
    }

    /// The same by how it was then.
    pub(super) fn asked(&self) -> BTreeMap<Mood, usize> {
        lock(&self.state).asked.clone()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn reply(&self, asked: &Asked) -> Reply {
        let document = |status, keys: &Value| {
            let headers = vec!["content-type: application/json".to_owned()];
            Answer { status, headers, body: keys.to_string().into_bytes() }
        };
        let stranger = || json!({ "keys": [self.stranger] });
        if asked.path != "/jwks" {
            // Where a redirect leads.
            return Reply::Answers(document(200, &stranger()));
        }
        let good = || document(200, &json!({ "keys": self.published }));
        match self.mood {
            Mood::Well => Reply::Answers(good()),
            Mood::Slow => Reply::Late(SLOW, good()),
            Mood::Hangs => Reply::Hangs,
            Mood::Closes => Reply::Closes,
            Mood::Fails => Reply::Answers(document(500, &stranger())),
            Mood::Redirects => {
                let mut answer = document(302, &stranger());
                answer.headers.push("location: /elsewhere".to_owned());
                Reply::Answers(answer)
            }
            Mood::Page => {
                let body = b"<html>Signed in as nobody</html>".to_vec();
                Reply::Answers(Answer { body, ..Answer::status(200) })
            }
            Mood::Empty => Reply::Answers(document(200, &json!({ "keys": [] }))),
            Mood::Symmetric => {
                let key = json!({ "kty": "oct", "kid": "a", "alg": "HS256", "k": "AAAA" });
                Reply::Answers(document(200, &json!({ "keys": [key] })))
            }
            Mood::Floods => Reply::Floods(200),
            Mood::Babbles => Reply::Babbles,
            Mood::Drips => Reply::Drips(DRIP, good()),
            Mood::Breaks => Reply::Breaks(good()),
        }
    }
}
