//! Every configuration key there is, in one table: kind, default, whether this build honours it.
//!
//! `layers` reads by it, `show` prints by it, and a test holds docs/configuration.md against it.

use super::value::Kind;

/// Whether this build does what a key asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    /// Every build does.
    Honoured,
    /// It needs a feature of the crate: without it, its default may be written, anything else is refused.
    Feature {
        /// The feature.
        name: &'static str,
        /// Whether this build has it.
        built: bool,
    },
}

/// One key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// Its place, for example `server.listen`.
    pub(crate) path: &'static str,
    /// What it accepts.
    pub(crate) kind: Kind,
    /// What counts when no layer sets it, as one would write it in the environment.
    pub(crate) default: Option<&'static str>,
    /// Whether this build honours it.
    pub(crate) support: Support,
}

impl Key {
    const fn new(path: &'static str, kind: Kind, default: &'static str) -> Self {
        Self { path, kind, default: Some(default), support: Support::Honoured }
    }

    pub(crate) const fn unset(path: &'static str, kind: Kind) -> Self {
        Self { path, kind, default: None, support: Support::Honoured }
    }

    /// The same key, for builds with this feature only.
    pub(crate) const fn needs(self, name: &'static str, built: bool) -> Self {
        Self { support: Support::Feature { name, built }, ..self }
    }

    /// The feature that it needs and that this build lacks.
    pub(crate) const fn lacks(&self) -> Option<&'static str> {
        match self.support {
            Support::Honoured | Support::Feature { built: true, .. } => None,
            Support::Feature { name, built: false } => Some(name),
        }
    }

    /// The environment variable that sets it: `WF_`, the path in capitals, dots as underscores.
    pub(crate) fn variable(&self) -> String {
        format!("WF_{}", self.path.to_ascii_uppercase().replace('.', "_"))
    }
}

const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

/// Every key but those of `notifications.route`.
pub(crate) const KEYS: &[Key] = &[
    Key::new("server.listen", Kind::Address, "127.0.0.1:8080"),
    Key::unset("server.admin_listen", Kind::Address),
    Key::unset("server.tls_cert", Kind::Path),
    Key::unset("server.tls_key", Kind::Path),
    Key::new("server.trusted_proxies", Kind::List, ""),
    Key::new("server.max_connections", count(1, 1_000_000), "4096"),
    Key::new("server.timezone", Kind::Zone, "UTC"),
    Key::new("server.locale", Kind::Language, "en"),
    Key::unset("server.public_url", Kind::Url),
    Key::new("server.max_body_bytes", count(1_024, 1_048_576), "1048576"),
    Key::new("server.request_timeout", Kind::Duration, "30s"),
    Key::new("server.max_in_flight", count(1, 1_000_000), "1024"),
    Key::unset("server.secret_file", Kind::Path),
    Key::new("server.allowed_hosts", Kind::List, ""),
    Key::new("server.allowed_origins", Kind::List, ""),
    Key::new("auth.mode", Kind::Choice(&["none", "dev", "jwt"]), "none"),
    Key::unset("auth.issuer", Kind::Url),
    Key::unset("auth.audience", Kind::Text),
    Key::unset("auth.jwks_url", Kind::Url),
    Key::new("auth.algorithms", Kind::List, "RS256,ES256,EdDSA"),
    Key::new("auth.challenge", Kind::Choice(&["headerless", "rfc9728", "by_path"]), "headerless"),
    Key::unset("auth.tenant_claim", Kind::Text),
    Key::new("auth.scope_claim", Kind::Text, "scope"),
    Key::new("auth.name_claim", Kind::Text, "name"),
    Key::unset("auth.roles_claim", Kind::Text),
    Key::new("auth.supervisor_roles", Kind::List, ""),
    Key::new("auth.service_scopes", Kind::List, "mcp:service"),
    Key::new("auth.service_clients", Kind::List, ""),
    Key::new("auth.service_lists", Kind::Choice(&["technician", "all"]), "technician"),
    Key::new("auth.visibility", Kind::Choice(&["tenant", "own"]), "tenant"),
    Key::new("auth.clock_skew", Kind::Duration, "60s"),
    Key::unset("auth.rate_limit", Kind::Rate),
    Key::new("auth.mirror", Kind::Switch, "false"),
    Key::unset("auth.documentation_url", Kind::Url),
    Key::new("backend.kind", Kind::Choice(&["local", "aws"]), "local"),
    Key::new("backend.local.path", Kind::Path, "checkpoint.db"),
    Key::unset("backend.aws.table", Kind::Text),
    Key::unset("backend.aws.region", Kind::Text),
    Key::unset("backend.aws.endpoint_url", Kind::Url),
    Key::unset("backend.aws.state_machine_arn", Kind::Text),
    Key::unset("backend.aws.states_endpoint_url", Kind::Url),
    Key::new("backend.aws.reconciler", Kind::Switch, "true"),
    Key::unset("procedures.dir", Kind::Path),
    Key::new("idempotency.retention", Kind::Duration, "30d"),
    Key::new("telemetry.log", Kind::Filter, "info"),
    Key::new("telemetry.format", Kind::Choice(&["text", "json"]), "text"),
    Key::unset("telemetry.otlp_endpoint", Kind::Url).needs("otlp", cfg!(feature = "otlp")),
];

/// The keys of one `[[notifications.route]]`; they have no environment variables.
pub(crate) const ROUTE_KEYS: &[Key] = &[
    Key::new("to", Kind::Text, "*"),
    Key::new("kinds", Kind::List, "*"),
    Key::new("sink", Kind::Choice(&["log", "webhook"]), "log"),
    Key::unset("url", Kind::Url),
    Key::unset("secret_file", Kind::Path),
    Key::new("allow_private", Kind::Switch, "false"),
];

/// Where routes stand in a file.
pub(crate) const ROUTES: &str = "notifications.route";

/// The key with this path.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The name among `known` that `wrong` was probably meant to be.
pub(crate) fn nearest<'a>(
    wrong: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    const CLOSE_ENOUGH: f64 = 0.8;
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(wrong, name), name))
        .filter(|(score, _)| *score >= CLOSE_ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::super::value::Raw;
    use super::*;

    #[test]
    fn every_default_fits_its_kind_and_every_variable_is_unique() {
        for key in KEYS.iter().chain(ROUTE_KEYS) {
            if let Some(default) = key.default {
                let raw = Raw::Loose(default.to_owned());
                assert!(key.kind.read(&raw, Path::new("")).is_ok(), "{}", key.path);
            }
        }
        let variables: BTreeSet<String> = KEYS.iter().map(Key::variable).collect();
        assert_eq!(variables.len(), KEYS.len());
        assert_eq!(find("server.listen").unwrap().variable(), "WF_SERVER_LISTEN");
    }

    #[test]
    fn a_slip_is_recognised_and_nonsense_is_not() {
        let known = || KEYS.iter().map(|key| key.path);
        assert_eq!(nearest("server.listne", known()), Some("server.listen"));
        assert_eq!(nearest("serverlisten", known()), Some("server.listen"));
        assert_eq!(nearest("zzz", known()), None);
    }

    #[test]
    fn every_key_is_documented_with_its_default_and_variable() {
        let page = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/configuration.md"
        ))
        .unwrap();
        for key in KEYS {
            let row = page
                .lines()
                .find(|line| line.starts_with(&format!("| `{}` ", key.path)))
                .unwrap_or_else(|| panic!("docs/configuration.md has no row for {}", key.path));
            assert!(row.contains(&format!("`{}`", key.variable())), "{row}");
            if let Some(default) = key.default.filter(|d| !d.is_empty()) {
                assert!(row.contains(&format!("`{default}`")), "{default}: {row}");
            }
            if let Support::Feature { name, .. } = key.support {
                assert!(row.contains(&format!("feature `{name}`")), "{row}");
            }
        }
        for key in ROUTE_KEYS {
            assert!(page.contains(&format!("| `{}` ", key.path)), "{}", key.path);
        }
    }
}
