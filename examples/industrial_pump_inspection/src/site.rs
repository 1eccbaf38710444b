//! The composition root: which store, clock, ids, orchestrator and sink the engine gets.
//!
//! A program of your own differs here only in the clock, the ids and the sink, which are fixed so that every run prints
//! the same.

use std::error::Error;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use wf_backend_local::{LocalConfig, LocalStore};
use wf_core::access::Visibility;
use wf_core::engine::{Engine, EngineParts, Policies, Settings};
use wf_core::limits::RECENT_WORKFLOWS_MAX;
use wf_core::models::{Locale, Timestamp, Workflow};
use wf_core::ports::{
    ClockPort, DeliveryError, IdPort, Message, NotificationPort, OrchestratorPort,
};

use crate::policy::PumpInspection;

/// How long a key is remembered after its workflow is over.
const RETENTION_MS: i64 = 30 * 24 * 60 * 60 * 1_000;

/// What outlives a crash besides the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    clock: Arc<StoryClock>,
    ids: Arc<CountedIds>,
}

/// One life of the process: an engine over a file.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<StoryClock>,
    pub(crate) told: Arc<Told>,
}

impl Site {
    /// Opens the file, which is made when it is not there, and the engine over it.
    pub(crate) async fn open(file: &Path, world: &World) -> Result<Self, Box<dyn Error>> {
        let opened = LocalStore::open(LocalConfig::new(file)).await?;
        let told = Arc::new(Told::default());
        let parts = EngineParts {
            store: Arc::new(opened.store),
            policies: Policies::new(vec![Arc::new(PumpInspection::new()?)], None)?,
            clock: Arc::<StoryClock>::clone(&world.clock),
            ids: Arc::<CountedIds>::clone(&world.ids),
            orchestrator: Arc::new(AtOnce),
            notifications: Arc::<Told>::clone(&told),
            settings: Settings {
                locale: Locale::default(),
                timezone: "UTC".to_owned(),
                retention_ms: RETENTION_MS,
                visibility: Visibility::default(),
                public_url: None,
                recent_workflows: RECENT_WORKFLOWS_MAX,
            },
        };
        let engine = Engine::open(parts).await?;
        Ok(Self { engine, clock: Arc::clone(&world.clock), told })
    }
}

/// A clock that stands until the story moves it.
#[derive(Debug)]
pub(crate) struct StoryClock(AtomicI64);

impl Default for StoryClock {
    fn default() -> Self {
        // 2026-12-01T09:00:00Z
        Self(AtomicI64::new(1_796_115_600_000))
    }
}

impl StoryClock {
    /// Lets minutes pass.
    pub(crate) fn pass(&self, minutes: i64) {
        self.0.fetch_add(minutes * 60_000, Ordering::Relaxed);
    }
}

impl ClockPort for StoryClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
    }
}

/// Ids that count. A program of your own takes UUIDv7 and the randomness of the operating system.
#[derive(Debug, Default)]
pub(crate) struct CountedIds(AtomicU64);

impl CountedIds {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl IdPort for CountedIds {
    fn workflow_id(&self) -> String {
        format!("019ad9c1-0000-7000-8000-{:012x}", self.next())
    }

    fn random_hex(&self) -> String {
        format!("{:032x}", self.next())
    }
}

/// An orchestrator that is always there: starts are acknowledged in their own commit.
#[derive(Debug)]
struct AtOnce;

#[async_trait]
impl OrchestratorPort for AtOnce {
    fn acknowledges_at_start(&self) -> bool {
        true
    }

    async fn committed(&self, _workflow: &Workflow) {}
}

/// A sink that remembers what it was told.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<Vec<Message>>);

impl Told {
    /// What came since the last time, oldest event first.
    pub(crate) fn take(&self) -> Vec<Message> {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = std::mem::take(&mut *messages);
        taken.sort_by(|a, b| (a.seq, &a.recipient).cmp(&(b.seq, &b.recipient)));
        taken
    }
}

#[async_trait]
impl NotificationPort for Told {
    async fn deliver(&self, message: &Message) -> Result<(), DeliveryError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message.clone());
        Ok(())
    }
}
