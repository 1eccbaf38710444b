//! Tokens of an authorization server that this run plays itself: keys made here, their public halves on a loopback
//! address, and as many signed tokens as a load wants to show. `auth` measures with them, `load` sends them.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use serde_json::{Value, json};

use crate::fault::Fault;

/// What callers show with their calls.
#[derive(Debug, Clone, Default)]
pub enum Shown {
    /// Nothing.
    #[default]
    Nothing,
    /// One token, the same with every call of every caller.
    One(HeaderValue),
    /// Another token with every call.
    Another(Arc<Pool>),
}

impl Shown {
    /// What a connection begins with.
    #[must_use]
    pub fn first(&self) -> Option<HeaderValue> {
        match self {
            Self::Nothing => None,
            Self::One(token) => Some(token.clone()),
            Self::Another(pool) => pool.take(),
        }
    }

    /// What the next call shows, where it is not what the last one did.
    #[must_use]
    pub fn next(&self) -> Option<HeaderValue> {
        match self {
            Self::Nothing | Self::One(_) => None,
            Self::Another(pool) => pool.take(),
        }
    }
}

/// Signed tokens, handed out in turn to all callers together, and from the beginning when all were.
#[derive(Debug)]
pub struct Pool {
    tokens: Vec<HeaderValue>,
    next: AtomicUsize,
}

impl Pool {
    fn take(&self) -> Option<HeaderValue> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        self.tokens.get(at % self.tokens.len().max(1)).cloned()
    }
}

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256 and a key of 2048 bits.
    Rs256,
}

impl Algorithm {
    /// The name of RFC 7518 section 3.1; of the key, too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
        }
    }
}

/// How long a token counts: longer than any run.
const LIFE: Duration = Duration::from_secs(6 * 60 * 60);
/// How long a peer may take to ask for the keys.
const PATIENCE: Duration = Duration::from_secs(1);

/// An issuer of tokens that serves its keys. The server ends when dropped.
#[derive(Debug)]
pub struct Issuer {
    ec: EcdsaKeyPair,
    rsa: RsaKeyPair,
    address: SocketAddr,
    over: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Issuer {
    /// Makes keys and serves them.
    ///
    /// # Errors
    /// When the system makes no key or gives no port.
    pub fn start() -> Result<Self, Fault> {
        let ec = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(|_| no_key())?;
        let rsa = RsaKeyPair::generate(KeySize::Rsa2048).map_err(|_| no_key())?;
        let document = published(&ec, &rsa).to_string();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .map_err(Fault::io("a port for the issuer"))?;
        let address = listener.local_addr().map_err(Fault::io("a port for the issuer"))?;
        let over = Arc::<AtomicBool>::default();
        let ending = Arc::clone(&over);
        let serving = std::thread::spawn(move || {
            for peer in listener.incoming() {
                if ending.load(Ordering::Relaxed) {
                    break;
                }
                // A peer that goes away is its own business: the server under test asks again.
                let _ = peer.and_then(|peer| answer(peer, &document));
            }
        });
        Ok(Self { ec, rsa, address, over, serving: Some(serving) })
    }

    /// What its tokens have as `iss`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where its keys are.
    #[must_use]
    pub fn keys(&self) -> String {
        format!("{}/jwks", self.name())
    }

    /// One technician's token for `resource`, as the header that shows it; `number` tells it from the others.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub fn token(
        &self,
        algorithm: Algorithm,
        resource: &str,
        number: usize,
    ) -> Result<HeaderValue, Fault> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let header = json!({ "alg": algorithm.name(), "kid": algorithm.name(), "typ": "at+jwt" });
        let claims = json!({
            "iss": self.name(), "aud": resource, "sub": "bench", "client_id": "wf-bench",
            "scope": "workflow:read workflow:write", "iat": now, "exp": now + LIFE.as_secs(),
            "jti": format!("{number:08}"),
        });
        let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let message = format!("{}.{}", part(&header), part(&claims));
        let signature = URL_SAFE_NO_PAD.encode(self.sign(algorithm, message.as_bytes())?);
        let mut shown = HeaderValue::from_str(&format!("Bearer {message}.{signature}"))
            .map_err(|error| Fault::Run(format!("the token is no header: {error}")))?;
        shown.set_sensitive(true);
        Ok(shown)
    }

    /// So many tokens, all of one person.
    ///
    /// # Errors
    /// When they cannot be signed.
    pub fn pool(
        &self,
        algorithm: Algorithm,
        resource: &str,
        count: usize,
    ) -> Result<Arc<Pool>, Fault> {
        let tokens: Result<Vec<_>, _> =
            (0..count).map(|number| self.token(algorithm, resource, number)).collect();
        Ok(Arc::new(Pool { tokens: tokens?, next: AtomicUsize::new(0) }))
    }

    fn sign(&self, algorithm: Algorithm, message: &[u8]) -> Result<Vec<u8>, Fault> {
        let random = SystemRandom::new();
        let unsigned = |_| Fault::Run("a token was not signed".to_owned());
        match algorithm {
            Algorithm::Es256 => {
                let signature = self.ec.sign(&random, message).map_err(unsigned)?;
                Ok(signature.as_ref().to_vec())
            }
            Algorithm::Rs256 => {
                let mut signature = vec![0; self.rsa.public_modulus_len()];
                self.rsa
                    .sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map_err(unsigned)?;
                Ok(signature)
            }
        }
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // It waits for a peer, and this is one.
        let woken = TcpStream::connect_timeout(&self.address, PATIENCE);
        if let (Ok(_), Some(serving)) = (woken, self.serving.take()) {
            // A panic there was said already.
            let _ = serving.join();
        }
    }
}

fn no_key() -> Fault {
    Fault::Run("the system made no key".to_owned())
}

/// The public halves as a JSON Web Key Set (RFC 7517).
fn published(ec: &EcdsaKeyPair, rsa: &RsaKeyPair) -> Value {
    // An uncompressed point: 4, then both coordinates of 32 bytes (SEC 1, section 2.3.3).
    let point = ec.public_key().as_ref();
    let coordinate =
        |at: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(point.get(at).unwrap_or_default());
    let components = RsaPublicKeyComponents::<Vec<u8>>::from(rsa.public_key());
    let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    json!({ "keys": [
        {
            "kty": "EC", "crv": "P-256", "use": "sig", "kid": Algorithm::Es256.name(),
            "x": coordinate(1..33), "y": coordinate(33..65),
        },
        {
            "kty": "RSA", "use": "sig", "kid": Algorithm::Rs256.name(),
            "n": number(&components.n), "e": number(&components.e),
        },
    ] })
}

/// Reads the head of a request and answers with the document, whatever was asked for.
fn answer(mut peer: TcpStream, document: &str) -> std::io::Result<()> {
    const HEAD_BYTES_MAX: usize = 8 * 1024;
    peer.set_read_timeout(Some(PATIENCE))?;
    peer.set_write_timeout(Some(PATIENCE))?;
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|window| window == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        match peer.read(&mut buffer)? {
            0 => return Ok(()),
            read => head.extend_from_slice(buffer.get(..read).unwrap_or_default()),
        }
    }
    let length = document.len();
    write!(
        peer,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{document}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESOURCE: &str = "http://127.0.0.1:8080/mcp";

    #[test]
    fn keys_are_served_to_whoever_asks() {
        let issuer = Issuer::start().expect("an issuer");
        for _ in 0..2 {
            let mut peer = TcpStream::connect(issuer.address).expect("connects");
            peer.write_all(b"GET /jwks HTTP/1.1\r\nhost: x\r\n\r\n").expect("sends");
            let mut answer = String::new();
            peer.read_to_string(&mut answer).expect("an answer");
            let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
            let document: Value = serde_json::from_str(body).expect("JSON");
            assert_eq!(document["keys"][0]["x"].as_str().map(str::len), Some(43));
            assert_eq!(document["keys"][1]["n"].as_str().map(str::len), Some(342));
        }
    }

    #[test]
    fn a_pool_gives_every_token_once_before_any_twice() {
        let issuer = Issuer::start().expect("an issuer");
        let pool = issuer.pool(Algorithm::Es256, RESOURCE, 3).expect("tokens");
        let shown = Shown::Another(pool);
        let taken: Vec<_> = (0..6).filter_map(|_| shown.next()).collect();
        let distinct: std::collections::HashSet<_> = taken.iter().take(3).collect();
        assert_eq!(distinct.len(), 3);
        assert_eq!(taken[..3], taken[3..]);
        assert!(!format!("{shown:?}").contains("Bearer"), "tokens are not shown in Debug");
        let one = Shown::One(taken[0].clone());
        assert!(one.first().is_some() && one.next().is_none());
        assert!(Shown::Nothing.first().is_none());
    }
}
