//! The server where strangers reach it: too few open files, what gets into its log, TLS, limits.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;
use tempfile::TempDir;

use crate::binary::{self, Ran};
use crate::pump;
use crate::server::{PATIENCE, Server, until};

/// Stands where a client may write something, and in credentials.
const CANARY: &str = "canary-91c2";

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The start of an answer on a connection that goes on.
fn first_line(stream: &mut impl std::io::Read) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        line.push(byte[0]);
    }
    String::from_utf8_lossy(&line).trim_end().to_owned()
}

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// `ulimit -n`: what is open goes on, nothing is tried in a hurry, and the rest is served when there are files again.
#[test]
fn too_few_files_make_newcomers_wait_and_nobody_else() {
    let server = Server::start(&[]);
    let mut open = connect(&server);
    open.write_all(HEALTH).unwrap();
    assert_eq!(first_line(&mut open), "HTTP/1.1 200 OK");
    let view = pump::start(&server, "PUMP-204", "k1");

    let files = || std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count();
    // The connection of the last call may be closing still.
    let mut before = files();
    until("nobody else is connected", || std::mem::replace(&mut before, files()) == before);
    let id = i32::try_from(server.id()).ok().and_then(Pid::from_raw);
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = |current| prlimit(id, Resource::Nofile, Rlimit { current, maximum }).unwrap();
    let old = limit(Some(u64::try_from(before).unwrap() + 2));

    let begun = Instant::now();
    let mut crowd: Vec<_> = (0..8).map(|_| connect(&server)).collect();
    let failures = || server.log().matches("connections cannot be accepted").count();
    until("it has tried five times", || failures() >= 5);
    // It waits in between as long as it says, 10 ms at least; a loop without pauses is there in a fraction of that.
    let (took, log) = (begun.elapsed(), server.log());
    let pauses: Vec<u64> = log
        .lines()
        .filter(|line| line.contains("connections cannot be accepted"))
        .map(|line| line.split_once("pause=").unwrap().1.split_once("ms").unwrap().0)
        .map(|ms| ms.parse().unwrap())
        .collect();
    assert!(pauses.iter().all(|ms| *ms >= 10), "{pauses:?}");
    let waited = Duration::from_millis(pauses.iter().take(4).sum());
    assert!(took >= waited, "{took:?} for {pauses:?}");
    open.write_all(HEALTH).unwrap();
    let mut rest = String::new();
    until("an open connection is answered", || {
        rest = first_line(&mut open);
        // The body of the answer before has no line of its own.
        rest.ends_with("HTTP/1.1 200 OK")
    });

    limit(old.current);
    for waiting in &mut crowd {
        waiting.write_all(HEALTH).unwrap();
        assert_eq!(first_line(waiting), "HTTP/1.1 200 OK");
    }
    assert_eq!(pump::submit(&server, &view)["ok"], true);
    server.stop();
}

/// As many files as the system gives on request are asked for, so that the bound on connections is reached first.
#[test]
fn the_limit_of_open_files_is_raised_at_the_start() {
    // What a process starts with, it has from the one that starts it.
    let ours = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(512), maximum: ours.maximum }).unwrap();
    let server = Server::start(&[]);
    setrlimit(Resource::Nofile, ours).unwrap();
    let text = std::fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let line = text.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let soft: u64 = line.split_whitespace().nth(3).unwrap().parse().unwrap_or(u64::MAX);
    let most = ours.maximum.unwrap_or(u64::MAX);
    assert!(soft >= most.min(4_096), "{line}");
    server.stop();
}

/// Everything that may prove an identity, and everything that acts on a terminal, with every library at its loudest.
#[test]
fn neither_credentials_nor_escapes_reach_the_log() {
    for format in ["text", "json"] {
        let log = "trace,rmcp=trace,hyper=trace,hyper_util=trace,tower=trace,rustls=trace";
        let server = Server::start(&[
            "--set",
            &format!("telemetry.log={log}"),
            "--set",
            &format!("telemetry.format={format}"),
        ]);
        let forged = "a\u{1b}[31m\r\n2026-01-01T00:00:00Z ERROR forged\u{202e}";
        let post = |headers: &str, body: &str| {
            let mut stream = connect(&server);
            let head = format!(
                "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
                 accept: */*\r\n{headers}content-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
            assert!(!answer.contains(CANARY), "{answer}");
        };
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
        for name in ["authorization", "proxy-authorization", "cookie", "x-api-key"] {
            post(&format!("{name}: Bearer {CANARY}\r\n"), &ping);
        }
        post(&format!("authorization: Bearer {CANARY}\r\nauthorization: Bearer {CANARY}\r\n"), "");
        let target = format!("/mcp?access_token={CANARY}");
        assert_eq!(server.get(&target).unwrap().0, 405);
        for message in [
            json!({"jsonrpc": "2.0", "id": forged, "method": forged}),
            json!({"jsonrpc": "2.0", "id": forged, "method": "tools/call", "params": {"name": forged}}),
            json!({"jsonrpc": "2.0", "method": forged, "params": {forged: forged}}),
        ] {
            post("", &message.to_string());
        }
        let arguments =
            json!({"workflow_id": forged, "step_id": "s", "value": CANARY, "note": CANARY});
        assert_eq!(server.call("submit_step", &arguments)["ok"], false);
        let text = server.log();
        assert!(text.contains("forged"), "the libraries were asked to show everything");
        assert!(
            !text.contains(CANARY),
            "{format}: {:?}",
            text.lines().find(|l| l.contains(CANARY))
        );
        for line in text.lines() {
            assert!(!line.starts_with("2026-01-01T00:00:00Z"), "{format}: {line:?}");
            let acts = |c: char| c.is_control() || ('\u{2028}'..='\u{202e}').contains(&c);
            // JSON may hold U+202E as it is: it is read by programs.
            let acts_here = |c: char| acts(c) && (format == "text" || c.is_control());
            assert!(!line.contains(acts_here), "{format}: {line:?}");
        }
        server.stop();
    }
}

#[test]
fn more_calls_than_allowed_are_429() {
    let server = Server::start(&["--set", "auth.rate_limit=2/h"]);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
        let mut stream = connect(&server);
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        statuses.push(first_line(&mut stream));
    }
    assert_eq!(statuses, ["HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 429 Too Many Requests"]);
    assert_eq!(server.get("/healthz").unwrap().0, 200);
    server.stop();
}

/// Writes a certificate for `localhost` that vouches for itself, and its key; returns what a client has to believe.
fn certify(folder: &TempDir) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).unwrap();
    std::fs::write(folder.path().join("chain.pem"), cert.pem()).unwrap();
    cert.der().clone()
}

/// The status of `/healthz` for a client that believes this certificate only.
fn health_over_tls(port: u16, believed: &CertificateDer<'static>) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(believed.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = StreamOwned::new(session, socket);
    stream.write_all(HEALTH).ok()?;
    Some(first_line(&mut stream))
}

/// `call` finds a server with a certificate by its configuration, and calls no other than the one that the certificate is
/// of: with the authority it is answered, without it and under another name it is told what to do.
fn calls_check_the_certificate(server: &Server) {
    let listen = format!("server.listen=127.0.0.1:{}", server.port());
    let call = |authority: &str, more: &[&str]| -> Ran {
        let set = ["--set", "server.tls_cert=chain.pem", "--set", "server.tls_key=key.pem"];
        let mut command = binary::command(server.path());
        command.env("SSL_CERT_FILE", authority).env_remove("SSL_CERT_DIR");
        command.args(["call", "find_work", "--set", &listen]).args(set).args(more);
        command.output().unwrap().into()
    };
    let answered = call("chain.pem", &["--token", "abc"]).exits(0);
    assert!(answered.out.starts_with("You can start"), "{answered:?}");
    let other = TempDir::new().unwrap();
    certify(&other);
    let stranger = call(other.path().join("chain.pem").to_str().unwrap(), &[]).exits(1);
    let by_number = format!("https://127.0.0.1:{}/mcp", server.port());
    let misnamed = call("chain.pem", &["--url", &by_number]).exits(1);
    for refused in [stranger, misnamed] {
        assert!(refused.err.contains("is not to be trusted"), "{refused:?}");
        assert!(refused.err.contains("SSL_CERT_FILE"), "{refused:?}");
    }
    let plain = format!("http://127.0.0.1:{}/mcp", server.port());
    let garbled = call("chain.pem", &["--url", &plain]).exits(1);
    assert!(garbled.err.contains("by https://"), "{garbled:?}");
}

#[test]
fn a_certificate_is_replaced_by_a_signal_and_a_broken_one_is_not_taken() {
    let folder = TempDir::new().unwrap();
    let old = certify(&folder);
    let set = ["--set", "server.tls_cert=chain.pem", "--set", "server.tls_key=key.pem"];
    let server = Server::start_silently(folder, &set);
    let ok = Some("HTTP/1.1 200 OK".to_owned());
    until("it answers over TLS", || health_over_tls(server.port(), &old) == ok);
    assert!(server.log().contains("https://"), "{}", server.log());
    calls_check_the_certificate(&server);

    // Nothing has changed, so it is the signal that it is read for.
    server.signal("HUP");
    until("it is read again", || server.log().contains("the certificate was replaced"));

    std::fs::write(server.path().join("key.pem"), "-----BEGIN PRIVATE KEY-----\ncanary-91c2\n")
        .unwrap();
    server.signal("HUP");
    until("it says so", || {
        server.log().contains("the certificate was not replaced, the old one stays")
    });
    assert!(!server.log().contains(CANARY), "{}", server.log());
    assert_eq!(health_over_tls(server.port(), &old), ok);

    let new = certify(&server.folder);
    server.signal("HUP");
    until("the new one is there", || health_over_tls(server.port(), &new) == ok);
    assert_eq!(health_over_tls(server.port(), &old), None);
    server.stop();
}
