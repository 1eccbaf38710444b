//! TLS of the main listener: who gets through, what is offered, and another certificate while it runs.

use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use wf_mcp_http::{HttpConfig, Tls, TlsError};

use crate::client::{call, receive};
use crate::slow::Verbose;
use crate::world::{World, within};

/// A certificate for `localhost` that vouches for itself, and its key.
struct Paper {
    chain: String,
    key: String,
    der: CertificateDer<'static>,
}

impl Paper {
    fn new() -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        Self { chain: cert.pem(), key: signing_key.serialize_pem(), der: cert.der().clone() }
    }

    fn tls(&self) -> Tls {
        Tls::new(self.chain.as_bytes(), self.key.as_bytes()).expect("a chain and its key")
    }

    /// A client that believes this certificate and offers these protocols.
    fn client(&self, protocols: &[&str]) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).expect("a certificate");
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }
}

async fn connect(
    world: &World,
    paper: &Paper,
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = world.client().connect().await;
    let name = ServerName::try_from("localhost").expect("a name");
    within(paper.client(protocols).connect(name, stream)).await
}

async fn answers(world: &World, stream: &mut TlsStream<TcpStream>) {
    let body = call("find_work", json!({})).to_string();
    let request = world.client().request(&[("host", "localhost")], body.as_bytes());
    within(stream.write_all(&request)).await.expect("sends");
    let answer = receive(stream).await.expect("an answer");
    assert_eq!(answer.result()["isError"], false);
}

#[tokio::test]
async fn calls_are_answered_over_tls_and_connections_are_kept() {
    let paper = Paper::new();
    let world = World::with(|config| config.tls = Some(paper.tls())).await;
    let mut stream = connect(&world, &paper, &["http/1.1"]).await.expect("shakes hands");
    answers(&world, &mut stream).await;
    answers(&world, &mut stream).await;
    let (_, session) = stream.get_ref();
    assert_eq!(session.alpn_protocol(), Some(b"http/1.1".as_slice()));
    // A client that names no protocol gets the only one there is.
    answers(&world, &mut connect(&world, &paper, &[]).await.expect("shakes hands")).await;
}

#[tokio::test]
async fn a_client_that_offers_http2_gets_http1_and_one_that_insists_gets_nothing() {
    let paper = Paper::new();
    let world = World::with(|config| config.tls = Some(paper.tls())).await;
    let mut stream = connect(&world, &paper, &["h2", "http/1.1"]).await.expect("shakes hands");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
    answers(&world, &mut stream).await;
    assert!(connect(&world, &paper, &["h2"]).await.is_err());
}

#[tokio::test]
async fn another_certificate_counts_for_connections_from_then_on() {
    let (old, new) = (Paper::new(), Paper::new());
    let tls = old.tls();
    let world = World::with(|config| config.tls = Some(tls.clone())).await;
    let mut open = connect(&world, &old, &[]).await.expect("shakes hands");
    assert!(connect(&world, &new, &[]).await.is_err(), "not this one yet");
    tls.replace(new.chain.as_bytes(), new.key.as_bytes()).expect("fits");
    answers(&world, &mut connect(&world, &new, &[]).await.expect("shakes hands")).await;
    assert!(connect(&world, &old, &[]).await.is_err(), "not this one any more");
    answers(&world, &mut open).await;
    // What does not fit changes nothing.
    let refused = tls.replace(old.chain.as_bytes(), new.key.as_bytes());
    assert!(matches!(refused, Err(TlsError::Rejected(_))), "{refused:?}");
    answers(&world, &mut connect(&world, &new, &[]).await.expect("shakes hands")).await;
}

#[tokio::test]
async fn whoever_does_not_shake_hands_loses_its_place() {
    let paper = Paper::new();
    let world = World::with(|config| {
        config.tls = Some(paper.tls());
        config.max_connections = 1;
        config.header_timeout = Duration::from_millis(50);
    })
    .await;
    // Nothing; the beginning of a handshake; HTTP, which is none; and a handshake with nothing behind it.
    for begin in [&b""[..], b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = world.client().connect().await;
        within(stream.write_all(begin)).await.expect("sends");
        let mut rest = Vec::new();
        let _ = within(tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest)).await;
        assert!(!rest.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&rest));
    }
    let mut silent = connect(&world, &paper, &[]).await.expect("shakes hands");
    assert!(receive(&mut silent).await.is_none());
    answers(&world, &mut connect(&world, &paper, &[]).await.expect("shakes hands")).await;
}

#[tokio::test]
async fn a_reader_that_takes_nothing_loses_its_place_over_tls_too() {
    let paper = Paper::new();
    let change = |config: &mut HttpConfig| {
        config.tls = Some(paper.tls());
        config.max_connections = 1;
        config.write_timeout = Duration::from_millis(100);
    };
    let world = World::build(change, None, Arc::new(Verbose)).await;
    let mut silent = connect(&world, &paper, &[]).await.expect("shakes hands");
    let head = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
    within(silent.write_all(head.as_bytes())).await.expect("sends");
    answers(&world, &mut connect(&world, &paper, &[]).await.expect("shakes hands")).await;
    drop(silent);
}

#[tokio::test]
async fn what_is_wrong_with_the_files_is_said_without_showing_them() {
    let (paper, other) = (Paper::new(), Paper::new());
    let canary = "canary-3d1e";
    let broken = paper.key.replace("-----END", &format!("{canary}\n-----END"));
    let torn = format!("-----BEGIN PRIVATE KEY-----\n{canary}\n");
    let new = |chain: &str, key: &str| Tls::new(chain.as_bytes(), key.as_bytes());
    let refused = [
        (new("", &paper.key), "certificate is not"),
        (new(&paper.key, &paper.key), "certificate is not"),
        (new(canary, &paper.key), "certificate is not"),
        (new(&paper.chain, ""), "key is not"),
        (new(&paper.chain, &paper.chain), "key is not"),
        (new(&paper.chain, &torn), "key is not"),
        (new(&paper.chain, &broken), "key is not"),
        (new(&paper.chain, &other.key), "cannot be used together"),
    ];
    for (result, said) in refused {
        let error = result.expect_err("refused");
        assert!(error.to_string().contains(said), "{said}: {error}");
        assert!(!format!("{error:?} {error}").contains(canary));
    }
    let shown = format!("{:?}", paper.tls());
    let secret: String = paper.key.lines().skip(1).take(1).collect();
    assert!(!shown.contains(&secret), "the key is in Debug");
}
