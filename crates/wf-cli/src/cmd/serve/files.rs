//! How many files this process may have open: each connection is one, and running out of them is worse than making a
//! caller wait.
//!
//! Many systems allow 1024 by default and far more on request, so the request is made before anything is opened.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beside connections: the database with its readers, listeners, logs, procedures, deliveries.
const BESIDE: u64 = 128;

/// Asks for as many files as these connections need. Returns how many connections there are files for.
pub(super) fn for_connections(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let needed = wanted.saturating_add(BESIDE);
    let Some(now) = limit.current.filter(|now| *now < needed) else {
        return wanted;
    };
    let most = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
    let raised = Rlimit { current: Some(most), maximum: limit.maximum };
    let allowed = if setrlimit(Resource::Nofile, raised).is_ok() { most } else { now };
    let connections = allowed.saturating_sub(BESIDE).clamp(1, wanted);
    if connections < wanted {
        tracing::warn!(
            allowed,
            connections,
            "server.max_connections needs more open files than this process may have: raise the limit (ulimit -n)"
        );
    }
    connections
}
