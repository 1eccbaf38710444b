//! The sink against receivers that do everything a receiver may do; over real sockets on this machine.

mod addresses;
mod answers;
mod messages;
mod receiver;

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use wf_core::ports::Message;

use crate::connect::Lookup;
use crate::sink::{OpenError, WebhookConfig, WebhookSink};

pub(crate) const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
pub(crate) const PATIENT: Duration = Duration::from_secs(30);
pub(crate) const IMPATIENT: Duration = Duration::from_millis(200);

/// Answers every look-up with what it was told last, and counts.
#[derive(Debug, Default)]
pub(crate) struct Names {
    addresses: Mutex<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Names {
    pub(crate) fn are(addresses: &[&str]) -> Arc<Self> {
        let names = Arc::new(Self::default());
        names.become_(addresses);
        names
    }

    pub(crate) fn become_(&self, addresses: &[&str]) {
        let parsed = addresses.iter().map(|text| text.parse().expect("an address")).collect();
        *self.addresses.lock().expect("no panic") = parsed;
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Lookup for Names {
    async fn addresses(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(self.addresses.lock().expect("no panic").clone())
    }
}

pub(crate) fn trusting(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

pub(crate) fn config(url: &str, secret: &Path, allow_private: bool) -> WebhookConfig {
    WebhookConfig {
        url: url.to_owned(),
        secret_file: secret.to_owned(),
        allow_private,
        source: "https://wf.example.com".to_owned(),
    }
}

pub(crate) fn secret() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), SECRET).expect("written");
    file
}

/// A sink for a receiver on this machine.
pub(crate) fn sink(url: &str, deadline: Duration) -> WebhookSink {
    let names = Names::are(&["127.0.0.1"]);
    opened(url, true, names, RootCertStore::empty(), deadline).expect("a sink")
}

pub(crate) fn opened(
    url: &str,
    allow_private: bool,
    names: Arc<Names>,
    roots: RootCertStore,
    deadline: Duration,
) -> Result<WebhookSink, OpenError> {
    let secret = secret();
    let config = config(url, secret.path(), allow_private);
    let tls = trusting(roots);
    WebhookSink::for_tests(&config, Arc::new(move || Ok(tls.clone())), names, deadline)
}

pub(crate) fn message(seq: u64) -> Message {
    let id = "0197f3a0-1111-7222-8333-444455556666";
    serde_json::from_value(json!({
        "id": format!("{id}/{seq}/maintenance-lead"),
        "type": "workflow_blocked",
        "time": "2026-03-01T08:00:00.000Z",
        "tenant": "main",
        "workflow_id": id,
        "seq": seq,
        "recipient": "maintenance-lead",
        "data": { "label": "Pump 204", "state": "BLOCKED" },
    }))
    .expect("a message")
}
