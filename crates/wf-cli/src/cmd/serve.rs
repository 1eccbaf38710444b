//! `wf-cli serve`: the server, from its configuration to its polite end.
//!
//! Neighbours: `announce` (what it says first), `crate::gate` (who is let in), `certificate` (TLS), `files` (how many may be open), `signals`
//! (who asks to end or to reload), `reload` and `watched` (what is read again while it runs), `stdio` (a client on standard input and output), `work` (dispatch, sweep, upkeep),
//! `probes` (what `/readyz` and `/metrics` say).

mod announce;
mod backlog;
pub(crate) mod certificate;
mod console;
mod deadlines;
mod dispatch;
mod files;
mod probes;
mod reload;
mod signals;
mod standing;
mod stdio;
mod watched;
mod work;

use std::io::ErrorKind;
use std::sync::Arc;

use clap::Args;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;
use wf_core::engine::Engine;
use wf_core::ports::IdPort as _;
use wf_mcp_http::{HttpConfig, ServeError, Server, Traces};

use crate::ambient::OsIds;
use crate::compose::{self, Serving};
use crate::config::{self, Config, ConfigArgs, check, show};
use crate::exit::Failure;
use crate::gate;
use crate::otlp::Otlp;
use crate::output::Output;
use crate::procedures;
use crate::telemetry;
use signals::Signals;

/// Serve procedures over MCP
#[derive(Debug, Args)]
#[command(
    after_help = "Without any configuration: 127.0.0.1:8080, ./checkpoint.db, the built-in procedures, no authentication.
SIGTERM or SIGINT ends it politely within 25 seconds, SIGHUP reads procedures, certificate and secrets again.
With --stdio it serves the program that starts it instead, and ends with its standard input; nothing is listened on
unless --listen is given too, and everything it has to say goes to the standard error.

Examples:
  wf-cli serve
  wf-cli serve --listen 127.0.0.1:9000 --database /var/lib/checkpoint/checkpoint.db
  wf-cli serve --auth dev
  wf-cli serve --stdio --database ~/checkpoint.db
  wf-cli serve --config checkpoint.toml --print-config"
)]
pub(crate) struct ServeArgs {
    /// Address to listen on [key: server.listen]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Who is let in: none, dev or jwt [key: auth.mode]
    #[arg(long, value_name = "MODE")]
    auth: Option<String>,
    /// Serve one client on standard input and output, as the user of the operating system
    #[arg(long)]
    stdio: bool,
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
    let http = !args.stdio || args.listen.is_some();
    let mut ways = Ways { http, stdio: args.stdio, traces: None };
    if !ways.http {
        stdio::refuse_tokens(&accepted)?;
    } else if let Some(problem) = check::exposure(&layers) {
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
    let collector = accepted.otlp_endpoint.as_deref().map(Otlp::open).transpose()?;
    telemetry::start(&accepted.log, accepted.format, collector.as_ref())?;
    ways.traces = collector.as_ref().map(Otlp::traces);
    #[cfg(feature = "failpoints")]
    tracing::warn!(
        "this server is built for tests: it can be made to fail by the variable FAILPOINTS"
    );
    let registry = telemetry::metrics()?;
    let sending = collector.map(|collector| collector.begin(registry.clone()));
    let done = serve(&accepted, ways, (signals, registry), output).await;
    if let Some(sending) = sending {
        sending.finish().await;
    }
    done
}

/// How clients come in, and who is told to which traces they belong.
#[derive(Debug)]
struct Ways {
    http: bool,
    stdio: bool,
    traces: Option<Arc<dyn Traces>>,
}

async fn serve(
    config: &Config,
    ways: Ways,
    (signals, registry): (Signals, PrometheusHandle),
    output: Output,
) -> Result<(), Failure> {
    telemetry::catalogue::begin(config);
    let before = reload::Sources::before(config);
    let loaded = procedures::load(config.procedures.as_deref())?;
    let certificate = config.server.tls.as_ref().map(certificate::Files::new);
    let tls = certificate.as_ref().map(certificate::Files::load).transpose()?;
    loaded.warn();
    let found = compose::open(config).await?;
    let backend = found.backend.clone();
    let done = async {
        let Serving { engine, orchestrator, reconciler, webhooks } =
            compose::serving(config, &backend, &loaded).await?;
        let (ask, _) = watch::channel(());
        let (end, stop) = watch::channel(false);
        let reload = reload::Reload::new(Arc::clone(&engine), config, ask.clone());
        let signals = signals.watch(reload, end.clone());
        let probes = Arc::new(probes::Process::new(backend.clone(), registry.clone()));
        let server = if ways.http {
            let settings = HttpConfig { tls: tls.clone(), ..http(config, &ways) };
            Some(listen(config, settings, Arc::clone(&engine), Arc::clone(&probes)).await?)
        } else {
            None
        };
        let told = announce::Told { server: server.as_ref(), stdio: ways.stdio, config };
        if told.say(&found, &loaded, output).is_err() {
            // Nobody reads the standard output; that is no reason not to serve.
            tracing::warn!("the standard output is closed");
        }
        let desk = ways.stdio.then(|| {
            let (engine, stop) = (Arc::clone(&engine), stop.clone());
            tokio::spawn(stdio::serve(http(config, &ways), engine, stop, end))
        });
        let sources = reload::Sources {
            certificate: certificate.zip(tls.clone()),
            engine: Arc::clone(&engine),
            webhooks,
        };
        let watched = sources.watch(config, &before, &ask, &stop);
        let work = work::start(work::Parts {
            standing: standing::Parts::new(Arc::clone(&engine), probes, tls, config),
            engine,
            orchestrator,
            reconciler,
            retention: config.retention,
            registry,
            stop: stop.clone(),
        });
        let mut abandoned = listened(server, stop).await?;
        if let Some(desk) = desk {
            abandoned += stdio::ended(desk).await;
        }
        work.finish().await;
        signals.abort();
        drop(watched);
        tell_abandoned(abandoned);
        Ok(())
    }
    .await;
    backend.close().await;
    if done.is_ok() {
        tracing::info!("stopped");
    }
    done
}

/// Answers over HTTP, where it does, until it is to stop; how many requests were not over in time.
async fn listened(server: Option<Server>, stop: watch::Receiver<bool>) -> Result<usize, Failure> {
    let Some(server) = server else { return Ok(0) };
    let drained = server.run(signals::stopped(stop)).await.map_err(cannot_listen)?;
    Ok(drained.in_flight_abandoned)
}

fn tell_abandoned(requests: usize) {
    if requests > 0 {
        tracing::warn!(
            requests,
            "requests were not over in time; their callers may send them again"
        );
    }
}

/// Takes the addresses to listen on.
async fn listen(
    config: &Config,
    settings: HttpConfig,
    engine: Arc<Engine>,
    probes: Arc<probes::Process>,
) -> Result<Server, Failure> {
    let gate = gate::open(config).await?;
    let settings = HttpConfig { protection: gate.protection, ..settings };
    let mut builder = Server::builder(settings)
        .engine(Arc::clone(&engine))
        .probes(probes)
        .authenticator(Arc::clone(&gate.authenticator));
    if config.server.admin_listen.is_some() {
        builder = builder.pages(console::pages(config, engine, gate.authenticator));
    } else {
        tracing::info!("there is no console: set server.admin_listen to an address for it");
    }
    builder.bind().await.map_err(cannot_listen)
}

/// The largest value that is sure to fit; the configuration bounds these numbers far below.
fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn http(config: &Config, ways: &Ways) -> HttpConfig {
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
        traces: ways.traces.clone(),
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
        ServeError::Allowed { .. }
        | ServeError::NoAddress
        | ServeError::Nothing
        | ServeError::ToolTaken { .. }
        | ServeError::NoSuchTool { .. } => Failure::usage(error.to_string()),
    }
}
