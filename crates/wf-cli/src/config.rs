//! Configuration: defaults, then `--config FILE`, then `WF_…` variables, then flags; the later wins.
//!
//! Reading order: [`keys`] (the table), [`value`] (kinds), [`layers`] (reading and merging), [`check`] (what this
//! build does) with [`auth`], [`backend`] and [`routes`], [`show`] (`--print-config`).

pub(crate) mod auth;
pub(crate) mod backend;
pub(crate) mod check;
pub(crate) mod keys;
pub(crate) mod layers;
pub(crate) mod routes;
pub(crate) mod show;
#[cfg(test)]
mod tests;
pub(crate) mod value;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use clap::Args;
use wf_core::models::Locale;

use crate::exit::Failure;
use auth::AuthConfig;
use backend::BackendConfig;
use layers::{Layers, Sources};
use routes::RouteConfig;

/// Where the configuration comes from; accepted after every subcommand.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct ConfigArgs {
    /// Configuration file (TOML)
    #[arg(long, global = true, value_name = "FILE", env = "WF_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
    /// Set one configuration key, such as server.locale=de; may be repeated
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Database file [key: backend.local.path]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) database: Option<PathBuf>,
    /// Folder with procedure files [key: procedures.dir]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) procedures: Option<PathBuf>,
    /// What the configuration file says: it may be a pipe, which can be read only once.
    #[arg(skip)]
    text: OnceLock<String>,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The configuration as this build uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    /// The server.
    pub(crate) server: ServerConfig,
    /// Who is let in.
    pub(crate) auth: AuthConfig,
    /// Where the state is.
    pub(crate) backend: BackendConfig,
    /// The folder of the configuration file; empty, which is the current folder, without one.
    pub(crate) folder: PathBuf,
    /// The folder of procedures; the built-in ones when absent.
    pub(crate) procedures: Option<PathBuf>,
    /// How long a ledger row outlives its completed workflow.
    pub(crate) retention: Duration,
    /// Where messages go; into the log where no route fits.
    pub(crate) routes: Vec<RouteConfig>,
    /// The collector that gets traces and metrics.
    pub(crate) otlp_endpoint: Option<String>,
    /// Log directives.
    pub(crate) log: String,
    /// Log format.
    pub(crate) format: LogFormat,
}

/// Section `[server]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerConfig {
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// Where readiness and metrics are, besides the main address while that is loopback.
    pub(crate) admin_listen: Option<SocketAddr>,
    /// Most open connections.
    pub(crate) max_connections: u64,
    /// Most requests at work.
    pub(crate) max_in_flight: u64,
    /// Largest body, in bytes.
    pub(crate) max_body_bytes: u64,
    /// Longest request.
    pub(crate) request_timeout: Duration,
    /// Time zone that times are spoken in.
    pub(crate) timezone: String,
    /// Language when a request names none.
    pub(crate) locale: Locale,
    /// Under which URL clients know the server.
    pub(crate) public_url: Option<String>,
    /// Further Host values.
    pub(crate) allowed_hosts: Vec<String>,
    /// Origins of browsers.
    pub(crate) allowed_origins: Vec<String>,
    /// Networks of proxies that are believed.
    pub(crate) trusted_proxies: Vec<String>,
    /// Certificate chain and key.
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    /// Keys that sign, instead of the store's own.
    pub(crate) secret_file: Option<PathBuf>,
}

impl ConfigArgs {
    /// Reads and merges all layers; problems are in the result. `more` are flags of the command: key path, value, the
    /// flag.
    ///
    /// # Errors
    /// When the file cannot be read, or `--set` has no `=`.
    pub(crate) fn layers(&self, more: &[(&str, String, &str)]) -> Result<Layers, Failure> {
        let file = match &self.config {
            Some(path) => Some((path.as_path(), self.text(path)?)),
            None => None,
        };
        let mut flags = Vec::new();
        for pair in &self.set {
            let (path, value) = pair.split_once('=').ok_or_else(|| {
                Failure::usage(format!("--set {pair}: write KEY=VALUE"))
                    .help("for example --set server.locale=de")
            })?;
            flags.push((path.trim().to_owned(), value.to_owned(), "--set".to_owned()));
        }
        let named = [
            ("--database", "backend.local.path", &self.database),
            ("--procedures", "procedures.dir", &self.procedures),
        ];
        for (flag, path, value) in named {
            if let Some(value) = value {
                let value = value.to_string_lossy().into_owned();
                flags.push((path.to_owned(), value, flag.to_owned()));
            }
        }
        for (path, value, flag) in more {
            flags.push(((*path).to_owned(), value.clone(), (*flag).to_owned()));
        }
        Ok(Layers::read(&Sources { file, environment: std::env::vars_os().collect(), flags }))
    }

    fn text(&self, path: &Path) -> Result<&str, Failure> {
        if let Some(text) = self.text.get() {
            return Ok(text);
        }
        let text = read_file(path)?;
        Ok(self.text.get_or_init(|| text))
    }

    /// Whether the state is in a file, as far as the layers can be read.
    pub(crate) fn is_local(&self) -> bool {
        self.layers(&[]).is_ok_and(|layers| backend::is_local(&layers))
    }

    /// What a file says by itself, without variables and flags.
    ///
    /// # Errors
    /// Exit code 2 with one line for each problem.
    pub(crate) fn load_file(path: &Path) -> Result<Config, Failure> {
        let text = read_file(path)?;
        accept(&Layers::read(&Sources {
            file: Some((path, &text)),
            environment: Vec::new(),
            flags: Vec::new(),
        }))
    }

    /// The configuration of a command that is no server.
    ///
    /// # Errors
    /// Exit code 2 with one line for each problem.
    pub(crate) fn load(&self) -> Result<Config, Failure> {
        accept(&self.layers(&[])?)
    }
}

fn read_file(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("the configuration file {} cannot be read", path.display()))
            .because(error)
    })
}

/// The typed configuration, if nothing in the layers is wrong or asks for more than this build does.
///
/// # Errors
/// Exit code 2 with one line for each problem.
pub(crate) fn accept(layers: &Layers) -> Result<Config, Failure> {
    if !layers.problems.is_empty() {
        return Err(Failure::usage("the configuration cannot be used")
            .details(layers.problems.clone())
            .help("docs/configuration.md lists every key"));
    }
    if let Some((problem, help)) = backend::left_out(layers, backend::Backends::HERE) {
        return Err(Failure::usage(problem).help(help));
    }
    let later = check::unsupported(layers);
    if !later.is_empty() {
        return Err(Failure::usage("the configuration asks for what this build cannot do")
            .details(later)
            .help("remove these keys, or build it with `cargo build --release -p wf-cli --features FEATURE`"));
    }
    let wrong = check::contradictions(layers);
    if !wrong.is_empty() {
        return Err(Failure::usage("the configuration contradicts itself")
            .details(wrong)
            .help("docs/configuration.md lists every key, docs/authentication.md shows whole configurations"));
    }
    Ok(check::typed(layers))
}
