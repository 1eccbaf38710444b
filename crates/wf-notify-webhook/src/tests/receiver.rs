//! A receiver: keeps what it was sent, and answers as it was told.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What a receiver does with each request.
#[derive(Debug, Clone)]
pub(crate) enum Then {
    /// Answers, and keeps the connection.
    Answers(String),
    /// Answers, and says nothing more.
    Hangs(String),
    /// Closes before it answers.
    Closes,
    /// Answers 200 with a body that is a gigabyte long.
    Floods,
}

#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) connections: AtomicUsize,
    pub(crate) written: AtomicU64,
    pub(crate) requests: Mutex<Vec<String>>,
}

/// Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) port: u16,
    pub(crate) seen: Arc<Seen>,
    task: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn status(line: &str) -> String {
    format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n")
}

/// A certificate for a name, and what proves it.
pub(crate) fn certificate(name: &str) -> (TlsAcceptor, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .expect("a server");
    (TlsAcceptor::from(Arc::new(config)), certificate)
}

impl Receiver {
    pub(crate) async fn new(then: Then) -> Self {
        Self::over(then, None).await
    }

    pub(crate) async fn over(then: Then, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("binds");
        let port = listener.local_addr().expect("an address").port();
        let seen = Arc::new(Seen::default());
        let kept = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((peer, _)) = listener.accept().await {
                kept.connections.fetch_add(1, Ordering::SeqCst);
                let (seen, then, tls) = (Arc::clone(&kept), then.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => talk(peer, &seen, &then).await,
                        Some(tls) => {
                            if let Ok(peer) = tls.accept(peer).await {
                                talk(peer, &seen, &then).await;
                            }
                        }
                    }
                });
            }
        });
        Self { port, seen, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook?x=1", self.port)
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().expect("no panic").clone()
    }
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin>(mut peer: S, seen: &Seen, then: &Then) {
    while let Some(request) = request(&mut peer).await {
        seen.requests.lock().expect("no panic").push(request);
        match then {
            Then::Answers(answer) => {
                if peer.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
            Then::Hangs(answer) => {
                let _ = peer.write_all(answer.as_bytes()).await;
                let _ = peer.flush().await;
                std::future::pending::<()>().await;
            }
            Then::Closes => return,
            Then::Floods => {
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
                let _ = peer.write_all(head.as_bytes()).await;
                let chunk = [b'x'; 16 * 1024];
                while peer.write_all(&chunk).await.is_ok() {
                    seen.written.fetch_add(chunk.len() as u64, Ordering::SeqCst);
                }
                return;
            }
        }
        if peer.flush().await.is_err() {
            return;
        }
    }
}

/// Head and body of one request; `None` when the peer has closed.
async fn request<S: AsyncRead + Unpin>(peer: &mut S) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.and_then(|text| text.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return Some(text);
            }
        }
        match peer.read(&mut buffer).await {
            Ok(read @ 1..) => bytes.extend_from_slice(buffer.get(..read)?),
            _ => return None,
        }
    }
}
