//! Identifiers that count instead of being random, so that a test knows them beforehand.

use std::sync::atomic::{AtomicU64, Ordering};

use wf_core::ports::IdPort;

/// Workflow ids in the form of a `UUIDv7`, and hexadecimal texts, each counting from 1.
#[derive(Debug, Default)]
pub struct SequentialIds {
    workflows: AtomicU64,
    texts: AtomicU64,
}

impl SequentialIds {
    /// Ids from 1.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of the workflow number `n`.
    #[must_use]
    pub fn workflow(n: u64) -> String {
        format!("00000000-0000-7000-8000-{n:012x}")
    }

    /// The text number `n`.
    #[must_use]
    pub fn hex(n: u64) -> String {
        format!("{n:032x}")
    }
}

impl IdPort for SequentialIds {
    fn workflow_id(&self) -> String {
        Self::workflow(self.workflows.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn random_hex(&self) -> String {
        Self::hex(self.texts.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
