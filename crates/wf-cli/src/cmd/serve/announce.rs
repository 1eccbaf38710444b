//! What `serve` says once it answers: where, who is let in, and where its state is. On the standard output; with a client
//! on it, on the standard error.

use serde_json::json;
use wf_core::policy::DomainPolicyPort as _;
use wf_mcp_http::Server;

use super::stdio;
use crate::compose::Found;
use crate::config::Config;
use crate::config::auth::AuthMode;
use crate::config::backend::BackendConfig;
use crate::exit::Failure;
use crate::output::{Output, Tone};
use crate::procedures::Loaded;

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

/// What is served. Once it is said, the server answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told<'a> {
    /// The listener, if there is one.
    pub(super) server: Option<&'a Server>,
    /// A client is on standard input and output.
    pub(super) stdio: bool,
    /// Its configuration.
    pub(super) config: &'a Config,
}

impl Told<'_> {
    /// Says it.
    ///
    /// # Errors
    /// When the standard output is closed.
    pub(super) fn say(self, found: &Found, loaded: &Loaded, output: Output) -> Result<(), Failure> {
        let lines = if output.is_json() {
            vec![self.as_json(found, loaded)]
        } else {
            self.as_text(found, loaded, output)
        };
        for line in &lines {
            if self.stdio {
                output.note(line);
            } else {
                output.line(line)?;
            }
        }
        Ok(())
    }

    fn url(self) -> Option<String> {
        let scheme = if self.config.server.tls.is_some() { "https" } else { "http" };
        self.server.map(|server| format!("{scheme}://{}/mcp", server.local_addr()))
    }

    fn as_json(self, found: &Found, loaded: &Loaded) -> String {
        let (kind, place) = place(self.config);
        let admin = self.server.and_then(Server::admin_addr);
        let procedures: Vec<_> = loaded
            .procedures
            .iter()
            .map(|procedure| {
                let definition = procedure.definition();
                json!({ "id": definition.id, "version": definition.version, "digest": definition.digest })
            })
            .collect();
        let mut said = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "url": self.url(),
            "auth": self.config.auth.mode.as_str(),
            "admin": admin.map(|address| address.to_string()),
            "backend": kind,
            "database": place,
            "created": found.created,
            "migrated_from": found.migrated_from,
            "backup": found.kept.as_ref().map(|path| path.display().to_string()),
            "procedures": procedures,
        });
        if self.stdio
            && let Some(said) = said.as_object_mut()
        {
            said.insert("stdio".to_owned(), stdio::person().actor.to_string().into());
        }
        said.to_string()
    }

    fn as_text(self, found: &Found, loaded: &Loaded, output: Output) -> Vec<String> {
        let auth = match self.config.auth.mode {
            AuthMode::None => "no authentication".to_owned(),
            AuthMode::Dev => "tokens of `wf-cli token issue`".to_owned(),
            AuthMode::Jwt => {
                format!("tokens of {}", self.config.auth.issuer.as_deref().unwrap_or_default())
            }
        };
        let state = match (found.created, found.migrated_from) {
            (true, _) => " (created)".to_owned(),
            (false, Some(version)) => format!(" (migrated from schema version {version})"),
            (false, None) => String::new(),
        };
        let name = format!("Checkpoint {}", env!("CARGO_PKG_VERSION"));
        // Nobody looks at the standard error of a client's child in colours.
        let name = if self.stdio { name } else { output.paint(Tone::Strong, &name) };
        let mut lines = vec![name, format!("  database    {}{state}", place(self.config).1)];
        if let Some(kept) = &found.kept {
            lines.push(format!("  kept        {} (as it was before)", kept.display()));
        }
        lines.push(format!("  procedures  {} ({})", loaded.names(), loaded.origin));
        if let Some(admin) = self.server.and_then(Server::admin_addr) {
            lines.push(format!("  operators   http://{admin}/readyz and /metrics"));
            lines.push(format!("  console     http://{admin}/console"));
        }
        if let Some(url) = self.url() {
            lines.push(format!("  MCP         {url}  ({auth})"));
        }
        if self.stdio {
            let who = stdio::person().actor;
            lines.push(format!("  MCP         standard input and output  (as {who})"));
        }
        lines
    }
}
