//! A replica's way to everything outside: it delays and loses, and nothing passes while the replica's process stands still.

use std::fmt;

use async_trait::async_trait;
use tokio::time::sleep;
use wf_core::ports::Commit;
use wf_testkit::fault::{Beside, Call, Fault, Weather};

use super::outside::Outside;
use super::sea::{Fate, Sea};
use super::still::Still;

/// One replica's way. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    pub(super) sea: Sea,
    pub(super) replica: usize,
    pub(super) still: Still,
    /// Where the rows are that commits write about executions, if there are any.
    pub(super) outside: Option<Outside>,
}

impl Wire {
    /// A call is on its way, or its answer.
    pub(super) async fn pass(&self) {
        self.still.over().await;
        sleep(self.sea.delay()).await;
        self.still.over().await;
    }

    /// What happens to a call that arrived.
    pub(super) fn fate(&self, what: impl fmt::Display) -> Fate {
        let fate = self.sea.fate();
        self.sea.note(format_args!("{} {what} {fate:?}", self.replica));
        fate
    }
}

#[async_trait]
impl Weather for Wire {
    async fn there(&self, call: Call) -> Option<Fault> {
        self.pass().await;
        match self.fate(format_args!("{call:?}")) {
            Fate::Fine => None,
            Fate::Before => Some(Fault::Before),
            Fate::After => Some(Fault::After),
            Fate::Later => Some(Fault::Later),
        }
    }

    async fn back(&self) {
        self.pass().await;
    }

    fn beside(&self, commit: &Commit) -> Option<Beside> {
        self.outside.as_ref().map(|outside| outside.beside(commit))
    }
}
