//! `[[notifications.route]]`: who is told where.

use std::path::PathBuf;

use super::check::Typed;
use super::keys::ROUTES;
use super::layers::{Layers, Origin, Settings};

/// Most routes of one configuration.
const ROUTES_MAX: usize = 100;

/// One route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RouteConfig {
    /// The recipient, or `*`.
    pub(crate) to: String,
    /// Kinds of events, or `*`.
    pub(crate) kinds: Vec<String>,
    /// Where its messages go.
    pub(crate) sink: SinkConfig,
}

/// Where messages go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SinkConfig {
    /// Into the log.
    Log,
    /// To a webhook.
    Webhook {
        /// Its URL.
        url: String,
        /// The file with its secret.
        secret_file: PathBuf,
        /// Whether the URL may lead inside.
        allow_private: bool,
    },
}

impl SinkConfig {
    /// The file with its secret, where it has one.
    pub(crate) fn secret_file(&self) -> Option<&PathBuf> {
        match self {
            Self::Log => None,
            Self::Webhook { secret_file, .. } => Some(secret_file),
        }
    }
}

/// The routes, in order. Call it only when [`problems`] has none.
pub(super) fn typed(layers: &Layers) -> Vec<RouteConfig> {
    layers.routes.iter().map(route).collect()
}

fn route(settings: &Settings) -> RouteConfig {
    let settings = Typed(settings);
    let webhook = settings.text("url").zip(settings.path("secret_file"));
    let sink = match webhook.filter(|_| settings.text("sink") == Some("webhook")) {
        Some((url, secret_file)) => SinkConfig::Webhook {
            url: url.to_owned(),
            secret_file,
            allow_private: settings.switch("allow_private"),
        },
        None => SinkConfig::Log,
    };
    RouteConfig {
        to: settings.text("to").unwrap_or("*").to_owned(),
        kinds: settings.list("kinds"),
        sink,
    }
}

/// What contradicts itself, one line each.
pub(super) fn problems(layers: &Layers) -> Vec<String> {
    let mut problems = Vec::new();
    if layers.routes.len() > ROUTES_MAX {
        problems.push(format!("there are more than {ROUTES_MAX} routes"));
    }
    for (number, settings) in (1..).zip(&layers.routes) {
        let is_set = |key: &str| settings.get(key).is_some_and(|s| s.origin != Origin::Default);
        let webhook = Typed(settings).text("sink") == Some("webhook");
        let name = format!("{ROUTES} {number}");
        for key in ["url", "secret_file"] {
            if webhook && !is_set(key) {
                problems.push(format!("{name}: a webhook needs {key}"));
            }
        }
        for key in ["url", "secret_file", "allow_private"] {
            if !webhook && is_set(key) {
                problems.push(format!("{name}: {key} is for sink = \"webhook\""));
            }
        }
        if Typed(settings).list("kinds").is_empty() {
            problems.push(format!("{name}: without kinds it fits no message"));
        }
    }
    problems
}
