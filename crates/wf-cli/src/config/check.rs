//! What the merged configuration asks for: refused where this build cannot do it, typed where it can.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wf_core::models::Locale;

use super::keys::{KEYS, Key};
use super::layers::{Layers, Origin, Setting, Settings};
use super::value::{Raw, Value};
use super::{Config, LogFormat, ServerConfig, auth, backend, routes};

/// Everything that is set and that this build does not do, one line each.
pub(crate) fn unsupported(layers: &Layers) -> Vec<String> {
    left_out(KEYS, &layers.settings)
}

/// As [`unsupported`], by this table.
pub(super) fn left_out(keys: &[Key], settings: &Settings) -> Vec<String> {
    let mut problems = Vec::new();
    for key in keys {
        let (Some(feature), Some(setting)) = (key.lacks(), settings.get(key.path)) else {
            continue;
        };
        if !is_default(key, setting) {
            problems.push(format!(
                "{}: {} = {} needs the feature `{feature}`, which this build lacks",
                setting.origin,
                key.path,
                super::show::shown(key, &setting.value)
            ));
        }
    }
    problems
}

/// Not set, or set to what it is anyway.
fn is_default(key: &Key, setting: &Setting) -> bool {
    setting.origin == Origin::Default
        || key.default.is_some_and(|default| {
            let raw = Raw::Loose(default.to_owned());
            key.kind.read(&raw, Path::new("")).as_ref() == Ok(&setting.value)
        })
}

/// What contradicts itself, one line each.
pub(crate) fn contradictions(layers: &Layers) -> Vec<String> {
    let mut problems = auth::problems(layers);
    problems.extend(backend::problems(layers));
    problems.extend(routes::problems(layers));
    let set = |path: &str| layers.settings.contains_key(path);
    if set("server.tls_cert") != set("server.tls_key") {
        problems.push("server.tls_cert and server.tls_key must be set together".to_owned());
    }
    let settings = Typed(&layers.settings);
    let listen = settings.address("server.listen");
    if listen.is_some_and(|listen| listen.port() != 0)
        && listen == settings.address("server.admin_listen")
    {
        problems.push("server.admin_listen must be another address than server.listen".to_owned());
    }
    problems
}

/// An address that only this machine reaches needs no authentication; any other needs tokens that an authorization
/// server signs.
pub(crate) fn exposure(layers: &Layers) -> Option<String> {
    let missing = match Typed(&layers.settings).text("auth.mode") {
        Some("jwt") => return None,
        Some("dev") => "auth.mode = \"dev\" is for this machine only",
        _ => "there is no authentication",
    };
    let setting = layers.settings.get("server.listen")?;
    let Value::Address(address) = setting.value else {
        return None;
    };
    (!address.ip().is_loopback()).then(|| {
        format!(
            "{}: server.listen = \"{address}\" is reachable from other machines, and {missing}",
            setting.origin
        )
    })
}

/// The typed configuration. Call it only when `layers` has no problems.
pub(crate) fn typed(layers: &Layers) -> Config {
    let settings = Typed(&layers.settings);
    Config {
        server: ServerConfig {
            listen: settings.address("server.listen").unwrap_or_else(fallback),
            admin_listen: settings.address("server.admin_listen"),
            max_connections: settings.count("server.max_connections"),
            max_in_flight: settings.count("server.max_in_flight"),
            max_body_bytes: settings.count("server.max_body_bytes"),
            request_timeout: settings.duration("server.request_timeout"),
            timezone: settings.text("server.timezone").unwrap_or("UTC").to_owned(),
            locale: settings.text("server.locale").and_then(Locale::parse).unwrap_or_default(),
            public_url: settings.text("server.public_url").map(str::to_owned),
            allowed_hosts: settings.list("server.allowed_hosts"),
            allowed_origins: settings.list("server.allowed_origins"),
            trusted_proxies: settings.list("server.trusted_proxies"),
            tls: settings.path("server.tls_cert").zip(settings.path("server.tls_key")),
            secret_file: settings.path("server.secret_file"),
        },
        auth: auth::typed(settings),
        backend: backend::typed(settings),
        folder: layers.folder.clone(),
        procedures: settings.path("procedures.dir"),
        retention: settings.duration("idempotency.retention"),
        routes: routes::typed(layers),
        otlp_endpoint: settings.text("telemetry.otlp_endpoint").map(str::to_owned),
        log: settings.text("telemetry.log").unwrap_or("info").to_owned(),
        format: match settings.text("telemetry.format") {
            Some("json") => LogFormat::Json,
            _ => LogFormat::Text,
        },
    }
}

fn fallback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 8080))
}

/// Reads settings by type. The table of keys guarantees that a default is there and has the type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Typed<'a>(pub(super) &'a Settings);

impl<'a> Typed<'a> {
    pub(super) fn get(self, path: &str) -> Option<&'a Value> {
        self.0.get(path).map(|setting| &setting.value)
    }

    pub(super) fn text(self, path: &str) -> Option<&'a str> {
        match self.get(path)? {
            Value::Text(text) => Some(text),
            Value::Path(_)
            | Value::Address(_)
            | Value::Count(_)
            | Value::Duration(_)
            | Value::List(_)
            | Value::Switch(_) => None,
        }
    }

    pub(super) fn path(self, path: &str) -> Option<PathBuf> {
        if let Value::Path(found) = self.get(path)? {
            return Some(found.clone());
        }
        None
    }

    fn address(self, path: &str) -> Option<SocketAddr> {
        if let Value::Address(found) = self.get(path)? {
            return Some(*found);
        }
        None
    }

    fn count(self, path: &str) -> u64 {
        match self.get(path) {
            Some(Value::Count(found)) => *found,
            _ => 0,
        }
    }

    pub(super) fn duration(self, path: &str) -> Duration {
        match self.get(path) {
            Some(Value::Duration(found)) => *found,
            _ => Duration::ZERO,
        }
    }

    pub(super) fn list(self, path: &str) -> Vec<String> {
        match self.get(path) {
            Some(Value::List(found)) => found.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn switch(self, path: &str) -> bool {
        matches!(self.get(path), Some(Value::Switch(true)))
    }
}
