//! What a server reads again without a restart: procedures when asked to (SIGHUP); certificate, signing keys and secrets
//! of webhooks also when their files change.
//!
//! `watched` has the rule: what cannot be used is reported in log and metrics, and what was there before stays. The
//! server stays ready meanwhile: it serves well, and a slip in a file must not take every replica out of service.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use wf_core::engine::Engine;
use wf_mcp_http::Tls;

use super::certificate;
use super::watched::{Seen, Watched, begin, count, shown};
use crate::compose;
use crate::config::Config;
use crate::exit::Failure;
use crate::procedures;
use crate::signing_keys;
use crate::sink::Webhook;

/// Procedures in log and metrics.
const PROCEDURES: &str = "procedures";

/// Reads what there is again.
#[derive(Debug)]
pub(super) struct Reload {
    engine: Arc<Engine>,
    dir: Option<PathBuf>,
    /// Tells the watches to read their files again.
    ask: watch::Sender<()>,
}

impl Reload {
    pub(super) fn new(engine: Arc<Engine>, config: &Config, ask: watch::Sender<()>) -> Self {
        let reload = Self { engine, dir: config.procedures.clone(), ask };
        begin(PROCEDURES, reload.place());
        reload
    }

    /// Reloads; on any problem the old set stays, and the log says why.
    pub(super) async fn now(&self) {
        self.ask.send_replace(());
        let dir = self.dir.clone();
        let read = tokio::task::spawn_blocking(move || procedures::load(dir.as_deref())).await;
        let loaded = match read {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(failure)) => return self.kept(&failure.text()),
            Err(error) => return self.kept(&error.to_string()),
        };
        loaded.warn();
        match self.engine.reload(loaded.policies()).await {
            Ok(()) => {
                count(PROCEDURES, self.place(), true);
                tracing::info!(procedures = loaded.names(), "procedures reloaded");
            }
            Err(error) => self.kept(&compose::cannot_serve(error, &loaded).text()),
        }
    }

    fn kept(&self, problem: &str) {
        count(PROCEDURES, self.place(), false);
        for line in problem.lines() {
            let problem = line.trim_start();
            tracing::error!(problem, "procedures not reloaded, the old ones stay");
        }
    }

    fn place(&self) -> String {
        self.dir.as_deref().map_or_else(String::new, shown)
    }
}

/// What is read again when its files change.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) certificate: Option<(certificate::Files, Tls)>,
    pub(super) engine: Arc<Engine>,
    pub(super) webhooks: Vec<Webhook>,
}

impl Sources {
    /// The states of all files that `config` names, to be looked at before the first of them is read.
    pub(super) fn before(config: &Config) -> Seen {
        let server = &config.server;
        let certificate = server.tls.iter().flat_map(|(chain, key)| [chain, key]);
        let secrets = config.routes.iter().filter_map(|route| route.sink.secret_file());
        Seen::now(certificate.chain(server.secret_file.as_ref()).chain(secrets))
    }

    /// Watches the files from now on, from how they were `before`.
    pub(super) fn watch(
        self,
        config: &Config,
        before: &Seen,
        ask: &watch::Sender<()>,
        stop: &watch::Receiver<bool>,
    ) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for watched in self.watched(config) {
            tasks.spawn(watched.watch(before, ask.subscribe(), stop.clone()));
        }
        tasks
    }

    fn watched(self, config: &Config) -> Vec<Watched> {
        let mut all: Vec<Watched> = self.webhooks.into_iter().map(of_webhook).collect();
        all.extend(self.certificate.map(|(files, tls)| files.watched(&tls)));
        if let Some(path) = config.server.secret_file.clone() {
            let (engine, file) = (self.engine, path.clone());
            let read = move || signing_keys::apply(&file, &engine);
            all.push(Watched::new("file of signing keys", vec![path], read));
        }
        all
    }
}

fn of_webhook(webhook: Webhook) -> Watched {
    let Webhook { secret_file, sink } = webhook;
    let read = move || {
        let reload = sink.reload_secret();
        reload.map_err(|error| Failure::failed("it cannot be used").because(error))
    };
    Watched::new("secret of a webhook", vec![secret_file], read)
}
