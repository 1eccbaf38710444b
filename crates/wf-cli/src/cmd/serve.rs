//! `wf-cli serve`: the server, from its configuration to its polite end.
//!
//! Neighbours: `crate::gate` (who is let in), `certificate` (TLS), `files` (how many may be open), `signals`
//! (who asks to end or to reload), `work` (dispatch, sweep, upkeep), `probes` (what `/readyz` and `/metrics` say).

mod backlog;
pub(crate) mod certificate;
mod deadlines;
mod dispatch;
mod files;
mod probes;
mod signals;
mod work;

use std::io::ErrorKind;
use std::sync::Arc;

use clap::Args;
use serde_json::json;
use tokio::sync::Notify;
use wf_core::policy::DomainPolicyPort as _;
use wf_core::ports::IdPort as _;
use wf_mcp_http::{HttpConfig, ServeError, Server};

use crate::ambient::OsIds;
use crate::compose::{self, Found, Serving};
use crate::config::auth::AuthMode;
use crate::config::backend::BackendConfig;
use crate::config::{self, Config, ConfigArgs, check, show};
use crate::exit::Failure;
use crate::gate;
use crate::output::{Output, Tone};
use crate::procedures::{self, Loaded};
use crate::telemetry;
use signals::Signals;

/// Serve procedures over MCP
#[derive(Debug, Args)]
#[command(
    after_help = "Without any configuration: 127.0.0.1:8080, ./checkpoint.db, the built-in procedures, no authentication.
SIGTERM or SIGINT ends it politely within 25 seconds, SIGHUP reads procedures and certificate again.

Examples:
  wf-cli serve
  wf-cli serve --listen 127.0.0.1:9000 --database /var/lib/checkpoint/checkpoint.db
  wf-cli serve --auth dev
  wf-cli serve --config checkpoint.toml --print-config"
)]
pub(crate) struct ServeArgs {
    /// Address to listen on [key: server.listen]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Who is let in: none, dev or jwt [key: auth.mode]
    #[arg(long, value_name = "MODE")]
    auth: Option<String>,
    /// Show the configuration that counts, and start nothing
    #[arg(long)]
    print_config: bool,
}

/// Runs the command.
pub(crate) async fn run(
    args: &ServeArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let flags: Vec<(&str, String, &str)> = [
        ("server.listen", args.listen.as_ref(), "--listen"),
        ("auth.mode", args.auth.as_ref(), "--auth"),
    ]
    .into_iter()
    .filter_map(|(path, value, flag)| Some((path, value?.clone(), flag)))
    .collect();
    let layers = config.layers(&flags)?;
    if args.print_config {
        if output.is_json() {
            output.document(&show::as_json(&layers))?;
        } else {
            output.raw(show::as_toml(&layers).as_bytes())?;
        }
    }
    let accepted = config::accept(&layers)?;
    if let Some(problem) = check::exposure(&layers) {
        return Err(Failure::usage(problem).help(
            "set auth.mode = \"jwt\" and its issuer (docs/authentication.md), or listen on a loopback address such \
             as 127.0.0.1:8080",
        ));
    }
    if args.print_config {
        return Ok(());
    }
    // Before anything is opened, so that an early signal ends politely too.
    let signals = Signals::listen()?;
    telemetry::start(&accepted.log, accepted.format)?;
    #[cfg(feature = "failpoints")]
    tracing::warn!(
        "this server is built for tests: it can be made to fail by the variable FAILPOINTS"
    );
    serve(&accepted, signals, output).await
}

async fn serve(config: &Config, signals: Signals, output: Output) -> Result<(), Failure> {
    let registry = telemetry::metrics()?;
    let loaded = procedures::load(config.procedures.as_deref())?;
    let certificate = config.server.tls.as_ref().map(certificate::Files::new);
    let tls = certificate.as_ref().map(certificate::Files::load).transpose()?;
    loaded.warn();
    let found = compose::open(config).await?;
    let backend = found.backend.clone();
    let done = async {
        let Serving { engine, orchestrator } = compose::serving(config, &backend, &loaded).await?;
        let hangup = Arc::new(Notify::new());
        let (signals, stop) = signals.watch(work::Reload {
            engine: Arc::clone(&engine),
            dir: config.procedures.clone(),
            certificate: Arc::clone(&hangup),
        });
        let probes = probes::Process::new(backend.clone(), registry.clone());
        let gate = gate::open(config).await?;
        let http = HttpConfig { tls: tls.clone(), protection: gate.protection, ..http(config) };
        let (engine_of_server, probes) = (Arc::clone(&engine), Arc::new(probes));
        let server = Server::bind_with(http, engine_of_server, probes, gate.authenticator)
            .await
            .map_err(cannot_listen)?;
        if announce(&server, config, &found, &loaded, output).is_err() {
            // Nobody reads the standard output; that is no reason not to serve.
            tracing::warn!("the standard output is closed");
        }
        let watched =
            certificate.zip(tls).map(|(files, tls)| files.watch(tls, hangup, stop.clone()));
        let watched = watched.map(tokio::spawn);
        let work = work::start(work::Parts {
            engine,
            orchestrator,
            retention: config.retention,
            registry,
            stop: stop.clone(),
        });
        let drained = server.run(signals::stopped(stop)).await.map_err(cannot_listen)?;
        work.finish().await;
        signals.abort();
        if let Some(watched) = watched {
            watched.abort();
        }
        if drained.in_flight_abandoned > 0 {
            tracing::warn!(
                requests = drained.in_flight_abandoned,
                "requests were not over in time; their callers may send them again"
            );
        }
        Ok(())
    }
    .await;
    backend.close().await;
    if done.is_ok() {
        tracing::info!("stopped");
    }
    done
}

/// The largest value that is sure to fit; the configuration bounds these numbers far below.
fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn http(config: &Config) -> HttpConfig {
    let server = &config.server;
    let mut allowed_hosts = server.allowed_hosts.clone();
    // Clients name the server by its public URL, so that is what they send as Host.
    allowed_hosts.extend(
        server
            .public_url
            .as_deref()
            .and_then(|url| url.parse::<http::Uri>().ok())
            .and_then(|url| url.authority().map(|a| a.as_str().to_owned())),
    );
    HttpConfig {
        listen: vec![server.listen],
        admin_listen: server.admin_listen,
        max_body_bytes: size(server.max_body_bytes),
        max_connections: size(files::for_connections(server.max_connections)),
        max_in_flight: size(server.max_in_flight),
        request_timeout: server.request_timeout,
        allowed_hosts,
        allowed_origins: server.allowed_origins.clone(),
        trusted_proxies: server.trusted_proxies.clone(),
        rate_limit: config.auth.rate_limit,
        instance: OsIds.random_hex().chars().take(6).collect(),
        ..HttpConfig::default()
    }
}

fn cannot_listen(error: ServeError) -> Failure {
    match error {
        ServeError::Bind { address, source } => {
            let kind = source.kind();
            let help = if kind == ErrorKind::AddrInUse {
                "another process listens there: stop it, or choose another address with --listen"
            } else if kind == ErrorKind::PermissionDenied {
                "this user may not listen there: choose a port above 1023 with --listen"
            } else {
                "choose another address with --listen"
            };
            Failure::failed(format!("cannot listen on {address}")).because(source).help(help)
        }
        ServeError::Allowed { .. } | ServeError::NoAddress => Failure::usage(error.to_string()),
    }
}

/// Where the state is: the kind of backend, and the absolute path of a file or the name of a table.
fn place(config: &Config) -> (&'static str, String) {
    match &config.backend {
        BackendConfig::Local { path } => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            ("local", path.display().to_string())
        }
        BackendConfig::Aws(table) => ("aws", table.to_string()),
    }
}

/// Says what is served and where its state is. Once this is printed, the server answers.
fn announce(
    server: &Server,
    config: &Config,
    found: &Found,
    loaded: &Loaded,
    output: Output,
) -> Result<(), Failure> {
    let scheme = if config.server.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}/mcp", server.local_addr());
    let auth = match config.auth.mode {
        AuthMode::None => "no authentication".to_owned(),
        AuthMode::Dev => "tokens of `wf-cli token issue`".to_owned(),
        AuthMode::Jwt => {
            format!("tokens of {}", config.auth.issuer.as_deref().unwrap_or_default())
        }
    };
    let admin = server.admin_addr();
    let (kind, place) = place(config);
    if output.is_json() {
        let procedures: Vec<_> = loaded
            .procedures
            .iter()
            .map(|procedure| {
                let definition = procedure.definition();
                json!({ "id": definition.id, "version": definition.version, "digest": definition.digest })
            })
            .collect();
        let line = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "url": url,
            "auth": config.auth.mode.as_str(),
            "admin": admin.map(|address| address.to_string()),
            "backend": kind,
            "database": place,
            "created": found.created,
            "migrated_from": found.migrated_from,
            "procedures": procedures,
        });
        return output.line(&line.to_string());
    }
    let state = match (found.created, found.migrated_from) {
        (true, _) => " (created)".to_owned(),
        (false, Some(version)) => format!(" (migrated from schema version {version})"),
        (false, None) => String::new(),
    };
    let name = format!("Checkpoint {}", env!("CARGO_PKG_VERSION"));
    output.line(&output.paint(Tone::Strong, &name))?;
    output.line(&format!("  database    {place}{state}"))?;
    output.line(&format!("  procedures  {} ({})", loaded.names(), loaded.origin))?;
    if let Some(admin) = admin {
        output.line(&format!("  operators   http://{admin}/readyz and /metrics"))?;
    }
    output.line(&format!("  MCP         {url}  ({auth})"))
}
