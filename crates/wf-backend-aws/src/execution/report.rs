//! What reconciling once came to: for the command that does it.

use wf_core::engine::pass::Looked;

/// What reconciling once came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Each workflow that was looked at.
    pub workflows: Vec<Looked>,
    /// Shards that another process has the lease of: it does their work.
    pub elsewhere: Vec<u8>,
    /// Executions of the state machine that run, as far as they were listed; none when they could not be.
    pub listed: Option<usize>,
    /// What could not be done at all, in words.
    pub problems: Vec<String>,
}
