//! What callers show to be let in: tokens that are good, and every way in which one is not. Each kind says what must come of
//! it at this moment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::issuer::Key;

/// How far clocks may be apart, by the configuration of the server, in seconds.
pub(super) const SKEW_S: i64 = 2;
/// Around the moment when a token ends nobody knows what comes of it, in milliseconds.
const EDGE_MS: i64 = 150;
/// Who else tokens may be for.
pub(super) const OTHER_AUDIENCE: &str = "https://other.example.com/mcp";
/// What people may do.
const SCOPE: &str = "workflow:read workflow:write workflow:supervise";

/// What must come of something that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    Accept,
    Refuse,
    /// Things are changing.
    Either,
}

/// What is known of a key that comes and goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nobody can know it, or the server must have forgotten it.
    Unknown,
    /// Published or taken out a moment ago.
    Changing,
    /// The server knows it.
    Known,
}

/// Kinds of what is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A new token each time.
    Good,
    /// The same one.
    GoodAgain,
    /// By the key that comes and goes.
    ByTheOther,
    /// One that ends while the bench runs: the server has recognised it by then.
    Fading,
    Missing,
    Nonsense,
    /// `alg` is `none`.
    Unsigned,
    /// HS256, with the public key as its secret (RFC 8725, section 2.1).
    Symmetric,
    /// One bit of the signature differs.
    Flipped,
    /// Signed, then given more scopes.
    Promoted,
    /// A stranger's signature under the name of a known key.
    Stranger,
    /// A stranger's signature under the stranger's own name.
    StrangersKey,
    /// A name of a key that nobody has ever had; another one each time.
    UnknownKey,
    /// A stranger's key in the head of the token.
    KeyInside,
    /// The address of a stranger's keys in the head of the token.
    KeyElsewhere,
    Expired,
    NotYet,
    IssuedAhead,
    OtherAudience,
    /// For this server and for another: whoever runs that one could have stolen it.
    MoreAudience,
    OtherIssuer,
    NoSubject,
    IdToken,
}

impl Kind {
    pub(super) const GOOD: [Self; 4] =
        [Self::Good, Self::GoodAgain, Self::ByTheOther, Self::Fading];
    pub(super) const BAD: [Self; 19] = [
        Self::Missing,
        Self::Nonsense,
        Self::Unsigned,
        Self::Symmetric,
        Self::Flipped,
        Self::Promoted,
        Self::Stranger,
        Self::StrangersKey,
        Self::UnknownKey,
        Self::KeyInside,
        Self::KeyElsewhere,
        Self::Expired,
        Self::NotYet,
        Self::IssuedAhead,
        Self::OtherAudience,
        Self::MoreAudience,
        Self::OtherIssuer,
        Self::NoSubject,
        Self::IdToken,
    ];
}

/// A token that ends, and when.
#[derive(Debug, Clone, Default)]
struct Fading {
    token: String,
    ends_ms: i64,
}

/// What tokens are made with.
pub(super) struct Mint {
    issuer: String,
    audience: String,
    /// Published all the time.
    pub(super) lasting: Key,
    /// Never published.
    pub(super) stranger: Key,
    /// Comes and goes.
    other: RwLock<(Arc<Key>, Standing)>,
    fading: Mutex<Fading>,
    again: String,
    made: AtomicU64,
}

impl Mint {
    pub(super) fn new(issuer: String, audience: &str, keys: (Key, Key, Key)) -> Self {
        let (lasting, stranger, other) = keys;
        let mut mint = Self {
            issuer,
            audience: audience.to_owned(),
            lasting,
            stranger,
            other: RwLock::new((Arc::new(other), Standing::Unknown)),
            fading: Mutex::default(),
            again: String::new(),
            made: AtomicU64::new(0),
        };
        mint.again = mint.good("prober");
        mint
    }

    /// A good token of this person.
    pub(super) fn good(&self, subject: &str) -> String {
        signed(&self.head(&self.lasting), &self.claims(subject), &self.lasting)
    }

    /// From now on a token is shown that ends in about a moment.
    pub(super) fn fade(&self) {
        let mut claims = self.claims("prober");
        let ends = now_ms() / 1_000;
        put(&mut claims, "exp", ends);
        let token = signed(&self.head(&self.lasting), &claims, &self.lasting);
        *self.fading.lock().unwrap_or_else(PoisonError::into_inner) =
            Fading { token, ends_ms: (ends + SKEW_S) * 1_000 };
    }

    /// What is known of the key that comes and goes; another key with a new one.
    pub(super) fn other_is(&self, standing: Standing, key: Option<Key>) -> Arc<Key> {
        let mut other = self.other.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = key {
            other.0 = Arc::new(key);
        }
        other.1 = standing;
        Arc::clone(&other.0)
    }

    /// What must come of a kind that is shown now.
    pub(super) fn expect(&self, kind: Kind) -> Expect {
        match kind {
            Kind::Good | Kind::GoodAgain => Expect::Accept,
            Kind::ByTheOther => match self.other.read().unwrap_or_else(PoisonError::into_inner).1 {
                Standing::Unknown => Expect::Refuse,
                Standing::Changing => Expect::Either,
                Standing::Known => Expect::Accept,
            },
            Kind::Fading => {
                let ends = self.fading.lock().unwrap_or_else(PoisonError::into_inner).ends_ms;
                let since = now_ms() - ends;
                if since.abs() <= EDGE_MS {
                    Expect::Either
                } else if since < 0 {
                    Expect::Accept
                } else {
                    Expect::Refuse
                }
            }
            Kind::Missing
            | Kind::Nonsense
            | Kind::Unsigned
            | Kind::Symmetric
            | Kind::Flipped
            | Kind::Promoted
            | Kind::Stranger
            | Kind::StrangersKey
            | Kind::UnknownKey
            | Kind::KeyInside
            | Kind::KeyElsewhere
            | Kind::Expired
            | Kind::NotYet
            | Kind::IssuedAhead
            | Kind::OtherAudience
            | Kind::MoreAudience
            | Kind::OtherIssuer
            | Kind::NoSubject
            | Kind::IdToken => Expect::Refuse,
        }
    }

    /// What is shown; nothing for the kind that is missing.
    pub(super) fn show(&self, kind: Kind) -> Option<String> {
        let lasting = &self.lasting;
        let (mut head, claims) = (self.head(lasting), self.claims("ann"));
        let with = |message: String, signature: &[u8]| {
            Some(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
        };
        match kind {
            Kind::Good => Some(self.good("prober")),
            Kind::GoodAgain => Some(self.again.clone()),
            Kind::ByTheOther => {
                let other = self.other.read().unwrap_or_else(PoisonError::into_inner).0.clone();
                Some(signed(&self.head(&other), &self.claims("prober"), &other))
            }
            Kind::Fading => {
                Some(self.fading.lock().unwrap_or_else(PoisonError::into_inner).token.clone())
            }
            Kind::Missing => None,
            Kind::Nonsense => Some("a.b.c".to_owned()),
            Kind::Unsigned => {
                put(&mut head, "alg", "none");
                with(message(&head, &claims), &[])
            }
            Kind::Symmetric => {
                put(&mut head, "alg", "HS256");
                let message = message(&head, &claims);
                let secret = hmac::Key::new(hmac::HMAC_SHA256, lasting.public_bytes());
                let signature = hmac::sign(&secret, message.as_bytes());
                with(message, signature.as_ref())
            }
            Kind::Flipped => {
                let message = message(&head, &claims);
                let mut signature = lasting.sign(message.as_bytes());
                signature.iter_mut().skip(40).take(1).for_each(|byte| *byte ^= 1);
                with(message, &signature)
            }
            Kind::Promoted => {
                let mut less = claims.clone();
                put(&mut less, "scope", "workflow:read");
                let signature = lasting.sign(message(&head, &less).as_bytes());
                with(message(&head, &claims), &signature)
            }
            Kind::Stranger
            | Kind::StrangersKey
            | Kind::UnknownKey
            | Kind::KeyInside
            | Kind::KeyElsewhere => {
                self.name_key(kind, &mut head);
                Some(signed(&head, &claims, &self.stranger))
            }
            Kind::Expired
            | Kind::NotYet
            | Kind::IssuedAhead
            | Kind::OtherAudience
            | Kind::MoreAudience
            | Kind::OtherIssuer
            | Kind::NoSubject
            | Kind::IdToken => Some(signed(&head, &self.claim(kind, claims), lasting)),
        }
    }

    /// How a token of a stranger says whose key it is signed with.
    fn name_key(&self, kind: Kind, head: &mut Value) {
        if kind == Kind::UnknownKey {
            let number = self.made.fetch_add(1, Ordering::Relaxed);
            put(head, "kid", format!("no-{number}"));
        } else if kind != Kind::Stranger {
            put(head, "kid", self.stranger.name.clone());
        }
        if kind == Kind::KeyInside {
            put(head, "jwk", self.stranger.public());
        }
        if kind == Kind::KeyElsewhere {
            put(head, "jku", format!("{}/elsewhere", self.issuer));
        }
    }

    /// What a token claims that is well signed and does not count.
    fn claim(&self, kind: Kind, mut claims: Value) -> Value {
        let now = now_ms() / 1_000;
        let (name, value) = match kind {
            Kind::Expired => ("exp", Value::from(now - 60)),
            Kind::NotYet => ("nbf", Value::from(now + 60)),
            Kind::IssuedAhead => ("iat", Value::from(now + 60)),
            Kind::OtherAudience => ("aud", Value::from(OTHER_AUDIENCE)),
            Kind::MoreAudience => ("aud", json!([self.audience, OTHER_AUDIENCE])),
            Kind::OtherIssuer => ("iss", Value::from(format!("{}/", self.issuer))),
            Kind::NoSubject => ("sub", Value::Null),
            Kind::IdToken => ("nonce", Value::from("n-0S6_WzA2Mj")),
            Kind::Good
            | Kind::GoodAgain
            | Kind::ByTheOther
            | Kind::Fading
            | Kind::Missing
            | Kind::Nonsense
            | Kind::Unsigned
            | Kind::Symmetric
            | Kind::Flipped
            | Kind::Promoted
            | Kind::Stranger
            | Kind::StrangersKey
            | Kind::UnknownKey
            | Kind::KeyInside
            | Kind::KeyElsewhere => return claims,
        };
        put(&mut claims, name, value);
        claims
    }

    fn head(&self, key: &Key) -> Value {
        json!({ "alg": "ES256", "kid": key.name, "typ": "at+jwt" })
    }

    fn claims(&self, subject: &str) -> Value {
        let now = now_ms() / 1_000;
        json!({
            "iss": self.issuer, "aud": self.audience, "sub": subject, "client_id": "torture",
            "scope": SCOPE, "iat": now, "exp": now + 6 * 60 * 60,
            "jti": self.made.fetch_add(1, Ordering::Relaxed).to_string(),
        })
    }
}

fn signed(head: &Value, claims: &Value, by: &Key) -> String {
    let message = message(head, claims);
    let signature = URL_SAFE_NO_PAD.encode(by.sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn put(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.to_owned(), value.into());
    }
}

fn message(head: &Value, claims: &Value) -> String {
    let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    format!("{}.{}", part(head), part(claims))
}

/// By the clock of the machine, which is the server's too.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
