//! Fetching over the network: what an issuer, or who stands in for it, may do to the client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::forge::{AUDIENCE, KEYS, ask, claims, clock, header, token, with, without};
use crate::auth::address::Address;
use crate::auth::fetch::{DOCUMENT_BYTES_MAX, Fetch as _, FetchError, HttpFetch};
use crate::auth::{JwtAuthenticator, JwtConfig, Refusal};

/// A server that answers every connection with the same bytes, and counts.
struct Raw {
    port: u16,
    hits: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// After the answer: close, or keep the connection and say nothing more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Closes,
    Stays,
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(mut peer: S, bytes: &[u8], then: Then) {
    let mut head = [0; 4096];
    let Ok(1..) = peer.read(&mut head).await else { return };
    if peer.write_all(bytes).await.is_ok() && then == Then::Stays {
        std::future::pending::<()>().await;
    }
    // A peer that has enough is no failure of this server.
    let _ = peer.shutdown().await;
}

impl Raw {
    async fn new(bytes: impl Into<Vec<u8>>, then: Then) -> Self {
        Self::with(bytes.into(), then, None).await
    }

    async fn with(bytes: Vec<u8>, then: Then, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("binds");
        let port = listener.local_addr().expect("an address").port();
        let hits = Arc::new(AtomicUsize::new(0));
        let (counter, bytes) = (Arc::clone(&hits), Arc::<[u8]>::from(bytes));
        let task = tokio::spawn(async move {
            while let Ok((peer, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                let (bytes, tls) = (Arc::clone(&bytes), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => answer(peer, &bytes, then).await,
                        Some(tls) => {
                            if let Ok(peer) = tls.accept(peer).await {
                                answer(peer, &bytes, then).await;
                            }
                        }
                    }
                });
            }
        });
        Self { port, hits, task }
    }

    fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/jwks", self.port)
    }
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn client(roots: RootCertStore, deadline: Duration) -> HttpFetch {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    HttpFetch::with(config, deadline)
}

async fn get(url: &str, deadline: Duration) -> Result<usize, FetchError> {
    let address = Address::parse(url).expect("an address");
    client(RootCertStore::empty(), deadline).get(&address).await.map(|body| body.len())
}

const PATIENT: Duration = Duration::from_secs(30);
const IMPATIENT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let canary = Raw::new(ok("{}"), Then::Closes).await;
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        let answer =
            format!("HTTP/1.1 {status}\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", canary.url());
        let server = Raw::new(answer, Then::Closes).await;
        let refused = get(&server.url(), PATIENT).await;
        assert!(matches!(refused, Err(FetchError::Status(s)) if s.is_redirection()), "{refused:?}");
        assert_eq!((server.hits(), canary.hits()), (1, 0), "{status}");
    }
}

#[tokio::test]
async fn a_document_is_bounded_however_its_length_is_told() {
    let whole = "x".repeat(DOCUMENT_BYTES_MAX);
    let server = Raw::new(ok(&whole), Then::Closes).await;
    assert_eq!(get(&server.url(), PATIENT).await.ok(), Some(DOCUMENT_BYTES_MAX));
    let more = format!("{whole}x");
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{more}\r\n",
        more.len()
    );
    // The last two never end, so that it is the bound that ends them.
    for (answer, then) in [
        (ok(&more), Then::Closes),
        (chunked, Then::Stays),
        (format!("HTTP/1.1 200 OK\r\n\r\n{more}"), Then::Stays),
    ] {
        let server = Raw::new(answer, then).await;
        let refused = get(&server.url(), PATIENT).await;
        assert!(matches!(refused, Err(FetchError::TooLarge { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn a_silent_or_slow_issuer_is_given_up() {
    for answer in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"] {
        let server = Raw::new(answer, Then::Stays).await;
        let refused = tokio::time::timeout(PATIENT / 3, get(&server.url(), IMPATIENT)).await;
        let refused = refused.expect("given up long before");
        assert!(matches!(refused, Err(FetchError::Timeout { .. })), "{answer:?}: {refused:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_none_is_a_failure() {
    for answer in [
        "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 Empty\r\n\r\n",
        "SSH-2.0-x\r\n",
        "",
    ] {
        let server = Raw::new(answer, Then::Closes).await;
        assert!(get(&server.url(), PATIENT).await.is_err(), "{answer:?}");
    }
    let free = TcpListener::bind(("127.0.0.1", 0)).await.expect("binds");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let refused = get(&format!("http://127.0.0.1:{port}/"), PATIENT).await;
    assert!(matches!(refused, Err(FetchError::Failed(_))), "{refused:?}");
}

#[tokio::test]
async fn keys_come_over_tls_that_the_system_trusts_only() {
    let certified =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.into())
        .expect("a certificate and its key");
    let tls = TlsAcceptor::from(Arc::new(config));
    let server = Raw::with(ok("{}").into_bytes(), Then::Closes, Some(tls)).await;
    let address = Address::parse(&format!("https://localhost:{}/", server.port)).expect("one");

    let strange = client(RootCertStore::empty(), PATIENT).get(&address).await;
    assert!(matches!(strange, Err(FetchError::Failed(_))), "{strange:?}");
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).expect("a root");
    let trusted = client(roots.clone(), PATIENT).get(&address).await;
    assert_eq!(trusted.expect("trusted"), "{}");
    // The name has to be the one that was asked for.
    let other = Address::parse(&format!("https://127.0.0.1:{}/", server.port)).expect("one");
    assert!(client(roots, PATIENT).get(&other).await.is_err());
}

/// A key that comes along in a token is never fetched, whatever the header says.
#[tokio::test]
async fn addresses_in_a_token_are_not_visited() {
    let canary = Raw::new(ok(&KEYS.jwks().to_string()), Then::Closes).await;
    let who = without(&[]);
    for member in ["jku", "x5u", "iss", "kid"] {
        for url in [canary.url(), format!("https://127.0.0.1:{}/", canary.port)] {
            let header = with(header(), json!({ member: url }));
            let claims = with(claims(), json!({ "iss": url, "jwks_uri": url }));
            let forged = token(&header, &claims, &KEYS.stranger);
            assert_eq!(ask(&who, &forged).await, Err(Refusal::Unauthenticated), "{member}");
        }
    }
    assert_eq!(canary.hits(), 0);
    // The control: the canary does sing.
    assert!(get(&canary.url(), PATIENT).await.is_ok());
    assert_eq!(canary.hits(), 1);
}

#[tokio::test]
async fn the_whole_way_from_an_issuer_on_this_machine() {
    let server = Raw::new(ok(&KEYS.jwks().to_string()), Then::Closes).await;
    let issuer = format!("http://127.0.0.1:{}", server.port);
    let mut config = JwtConfig::new(issuer.clone(), AUDIENCE);
    config.jwks_url = Some(server.url());
    let who = JwtAuthenticator::remote(config, Arc::new(clock())).expect("one");
    let good = token(&header(), &with(claims(), json!({ "iss": issuer })), &KEYS.ec);
    assert!(ask(&who, &good).await.is_ok());
    assert!(ask(&who, &good).await.is_ok());
    assert_eq!(server.hits(), 1);
}
