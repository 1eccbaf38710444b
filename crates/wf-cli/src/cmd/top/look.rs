//! One look: rows of the store, through the reads of an operator, and the figures of servers. All lists are bounded.
//!
//! `panes` shows it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{StatusCode, Uri};
use serde_json::{Value, json};
use tokio::net::lookup_host;
use tokio::task::JoinSet;
use wf_core::locks::LockRow;
use wf_core::models::{Locale, Person, Phase, TenantId, Timestamp, Workflow};
use wf_core::ports::{
    Backlog, ClockPort as _, DamagedMessage, ListQuery, OutboxQuery, OutboxRow, OutboxState,
    StorageBackendPort,
};

use super::figures::Figures;
use crate::ambient::SystemClock;
use crate::client;
use crate::cmd::doctor::alive::here;
use crate::config::ServerConfig;
use crate::exit::Failure;

/// Most rows of a kind.
pub(super) const ROWS: u32 = 200;
/// Most lock rows, free ones included, among which held ones are looked for.
const LOCK_ROWS: u32 = 500;
/// Up to where messages are counted.
const COUNT_MAX: u32 = 10_000;
/// How long a server may take.
const WAIT: Duration = Duration::from_secs(2);
/// Where metrics are, when a URL does not say.
const PATH: &str = "/metrics";

/// Where the figures of a server are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// As it is shown.
    pub(super) name: String,
    host: String,
    port: u16,
    path: String,
}

impl Server {
    /// That of this configuration on this machine.
    pub(super) fn of(server: &ServerConfig) -> Self {
        let address = here(server.admin_listen.unwrap_or(server.listen));
        let (host, port) = (address.ip().to_string(), address.port());
        Self { name: address.to_string(), host, port, path: PATH.to_owned() }
    }

    /// The one at this URL.
    ///
    /// # Errors
    /// When it is none, or not plain http.
    pub(super) fn parse(url: &str) -> Result<Self, Failure> {
        let wrong = || {
            Failure::usage(format!("{url} is no URL of metrics over plain http"))
                .help("for example --metrics-url http://127.0.0.1:9090/metrics")
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        if uri.scheme_str() != Some("http") {
            return Err(wrong());
        }
        let authority = uri.authority().ok_or_else(wrong)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let path = match uri.path_and_query().map(http::uri::PathAndQuery::as_str) {
            None | Some("/") => PATH.to_owned(),
            Some(path) => path.to_owned(),
        };
        let port = authority.port_u16().unwrap_or(80);
        Ok(Self { name: format!("{}:{port}", authority.host()), host, port, path })
    }

    async fn ask(&self) -> Result<Figures, Failure> {
        let unknown = || Failure::unavailable(format!("{} has no address", self.host));
        let mut found = lookup_host((self.host.as_str(), self.port))
            .await
            .map_err(|error| unknown().because(error))?;
        let address: SocketAddr = found.next().ok_or_else(unknown)?;
        let (status, body) = client::get(address, &self.path, WAIT).await?;
        if status != StatusCode::OK {
            return Err(Failure::failed(format!("{} answered {status}", self.name)));
        }
        Ok(Figures::read(&String::from_utf8_lossy(&body)))
    }
}

/// Somebody who drives open workflows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) tenant: TenantId,
    pub(super) person: Person,
    pub(super) open: u32,
    pub(super) blocked: u32,
    pub(super) last_activity: Timestamp,
    /// What was driven last.
    pub(super) label: String,
}

/// What the store says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stored {
    /// Last active first.
    pub(super) callers: Vec<Caller>,
    pub(super) open: usize,
    /// Longest blocked first.
    pub(super) blocked: Vec<Workflow>,
    /// Held longest first.
    pub(super) locks: Vec<LockRow>,
    pub(super) backlog: Backlog,
    /// Dead ones first.
    pub(super) messages: Vec<Result<OutboxRow, DamagedMessage>>,
    /// There are more workflows, locks or messages than are looked at.
    pub(super) more: [bool; 3],
}

/// One look.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Look {
    pub(super) at: Timestamp,
    pub(super) store: String,
    pub(super) stored: Stored,
    /// Name, and figures or what is wrong.
    pub(super) servers: Vec<(String, Result<Figures, String>)>,
}

/// Looks.
#[derive(Debug, Clone)]
pub(super) struct Looker {
    store: Arc<dyn StorageBackendPort>,
    name: String,
    servers: Vec<Server>,
}

impl Looker {
    /// At this store, which has this name, and at these servers.
    pub(super) fn new(
        store: Arc<dyn StorageBackendPort>,
        name: String,
        servers: Vec<Server>,
    ) -> Self {
        Self { store, name, servers }
    }

    /// Looks once.
    ///
    /// # Errors
    /// When the store does not answer. A server that does not is part of the look.
    pub(super) async fn look(&self) -> Result<Look, Failure> {
        let (stored, servers) = tokio::join!(self.stored(), self.ask());
        let (at, store) = (SystemClock.now(), self.name.clone());
        Ok(Look { at, store, stored: stored?, servers })
    }

    /// All servers at once, in the order of their names on the command line.
    async fn ask(&self) -> Vec<(String, Result<Figures, String>)> {
        let mut asked = JoinSet::new();
        for (index, server) in self.servers.iter().cloned().enumerate() {
            asked.spawn(async move { (index, server.ask().await) });
        }
        let silent = || Err("it could not be asked".to_owned());
        let mut answers: Vec<_> =
            self.servers.iter().map(|server| (server.name.clone(), silent())).collect();
        while let Some(ended) = asked.join_next().await {
            if let Ok((index, answer)) = ended
                && let Some((_, slot)) = answers.get_mut(index)
            {
                *slot = answer.map_err(|failure| {
                    failure
                        .text()
                        .lines()
                        .next()
                        .unwrap_or_default()
                        .trim_start_matches("error: ")
                        .to_owned()
                });
            }
        }
        answers
    }

    async fn stored(&self) -> Result<Stored, Failure> {
        let mut open = Vec::new();
        let mut more = [false; 3];
        for phase in [Phase::Created, Phase::Running, Phase::Blocked] {
            let query = ListQuery { phase: Some(phase), limit: ROWS, ..ListQuery::default() };
            let page = self.store.list(&query).await?;
            more[0] |= page.next.is_some();
            open.extend(page.items);
        }
        let page = self.store.list_locks(None, None, LOCK_ROWS).await?;
        more[1] = page.next.is_some();
        let mut locks: Vec<LockRow> =
            page.items.into_iter().filter(|row| row.holder.is_some()).collect();
        locks.sort_by_key(|row| row.holder.as_ref().map(|holder| holder.acquired_at));
        let mut messages = Vec::new();
        for state in [OutboxState::Dead, OutboxState::Pending] {
            let query = OutboxQuery { state: Some(state), after: None, limit: ROWS };
            let page = self.store.list_outbox(&query).await?;
            more[2] |= page.next.is_some();
            messages.extend(page.items.into_iter().map(Ok));
            messages.extend(page.damaged.into_iter().map(Err));
        }
        let backlog = self.store.outbox_backlog(COUNT_MAX).await?;
        let callers = callers(&open);
        let count = open.len();
        let mut blocked: Vec<Workflow> =
            open.into_iter().filter(|workflow| workflow.phase == Phase::Blocked).collect();
        blocked.sort_by_key(|workflow| workflow.blocks.iter().map(|block| block.at).min());
        Ok(Stored { callers, open: count, blocked, locks, backlog, messages, more })
    }
}

/// Who drives these, last active first.
pub(super) fn callers(open: &[Workflow]) -> Vec<Caller> {
    let mut found: BTreeMap<(TenantId, String), Caller> = BTreeMap::new();
    for workflow in open {
        let key = (workflow.tenant.clone(), workflow.owner.id.to_string());
        let caller = found.entry(key).or_insert_with(|| Caller {
            tenant: workflow.tenant.clone(),
            person: workflow.owner.clone(),
            open: 0,
            blocked: 0,
            last_activity: workflow.last_activity,
            label: label(workflow).to_owned(),
        });
        caller.open += 1;
        caller.blocked += u32::from(workflow.phase == Phase::Blocked);
        if workflow.last_activity > caller.last_activity {
            caller.last_activity = workflow.last_activity;
            label(workflow).clone_into(&mut caller.label);
        }
    }
    let mut found: Vec<Caller> = found.into_values().collect();
    found.sort_by_key(|caller| std::cmp::Reverse(caller.last_activity));
    found
}

/// How a workflow is called.
pub(super) fn label(workflow: &Workflow) -> &str {
    workflow.label.get(&Locale::default())
}

impl Look {
    /// For programs.
    pub(super) fn document(&self) -> Value {
        let stored = &self.stored;
        let callers: Vec<Value> = stored
            .callers
            .iter()
            .map(|caller| {
                json!({
                    "tenant": caller.tenant, "person": caller.person, "open": caller.open,
                    "blocked": caller.blocked, "last_activity": caller.last_activity, "label": caller.label,
                })
            })
            .collect();
        let blocked: Vec<Value> = stored
            .blocked
            .iter()
            .map(|workflow| {
                json!({
                    "tenant": workflow.tenant, "workflow_id": workflow.id, "label": workflow.label,
                    "owner": workflow.owner, "since": workflow.blocks.iter().map(|block| block.at).min(),
                    "codes": workflow.blocks.iter().map(|block| &block.code).collect::<Vec<_>>(),
                })
            })
            .collect();
        let servers: Vec<Value> = self
            .servers
            .iter()
            .map(|(name, answer)| match answer {
                Ok(figures) => json!({ "server": name, "metrics": figures.sums() }),
                Err(problem) => json!({ "server": name, "error": problem }),
            })
            .collect();
        let outbox = json!({
            "pending": stored.backlog.pending, "dead": stored.backlog.dead,
            "oldest_pending": stored.backlog.oldest_pending,
        });
        json!({
            "at": self.at, "store": self.store, "open": stored.open, "callers": callers,
            "blocked": blocked, "locks": stored.locks, "outbox": outbox, "servers": servers,
            "more": { "workflows": stored.more[0], "locks": stored.more[1], "messages": stored.more[2] },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    #[test]
    fn a_server_is_named_by_its_url_and_metrics_are_where_they_usually_are() {
        let of = |url: &str| Server::parse(url).map(|s| (s.name, s.host, s.port, s.path));
        let some = |name: &str, host: &str, port, path: &str| {
            (name.to_owned(), host.to_owned(), port, path.to_owned())
        };
        assert_eq!(
            of("http://a.example:9/m?x").unwrap(),
            some("a.example:9", "a.example", 9, "/m?x")
        );
        assert_eq!(of("http://[::1]").unwrap(), some("[::1]:80", "::1", 80, "/metrics"));
        for bad in ["", "a.example:9", "https://a.example/metrics", "http://"] {
            assert_eq!(of(bad).unwrap_err().exit(), Exit::Usage, "{bad:?}");
        }
    }
}
