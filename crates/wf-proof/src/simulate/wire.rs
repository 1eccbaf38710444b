//! A replica's way to the shared store: it delays and loses, and nothing passes while the replica's process stands still.

use async_trait::async_trait;
use tokio::time::sleep;
use wf_testkit::fault::{Call, Fault, Weather};

use super::sea::{Fate, Sea};
use super::still::Still;

/// One replica's way.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) sea: Sea,
    pub(super) replica: usize,
    pub(super) still: Still,
}

impl Wire {
    async fn pass(&self) {
        self.still.over().await;
        sleep(self.sea.delay()).await;
        self.still.over().await;
    }
}

#[async_trait]
impl Weather for Wire {
    async fn there(&self, call: Call) -> Option<Fault> {
        self.pass().await;
        let fate = self.sea.fate();
        self.sea.note(format_args!("{} {call:?} {fate:?}", self.replica));
        match fate {
            Fate::Fine => None,
            Fate::Before => Some(Fault::Before),
            Fate::After => Some(Fault::After),
            Fate::Later => Some(Fault::Later),
        }
    }

    async fn back(&self) {
        self.pass().await;
    }
}
