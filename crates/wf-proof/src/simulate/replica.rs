//! A server of the simulation: an engine, its dispatcher, its scheduler and, where executions are outside, its reconciler. It
//! may be killed and started again.

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use wf_core::access::Visibility;
use wf_core::engine::{Engine, EngineParts, Policies, Settings};
use wf_core::models::{Locale, Timestamp};
use wf_core::policy::DomainPolicyPort;
use wf_core::ports::{ClockPort, OrchestratorPort, StorageBackendPort};
use wf_procedure::Compiler;
use wf_testkit::fault::FaultStore;
use wf_testkit::ids::SequentialIds;
use wf_testkit::orchestrator::{ImmediateOrchestrator, SilentOrchestrator};

use super::outside::Outside;
use super::reconciler::{REST, Reconciler};
use super::sea::Sea;
use super::sink::Sink;
use super::still::Still;
use super::wire::Wire;
use crate::fault::Fault;

/// When a simulation begins, in milliseconds since 1970: any time will do.
const EPOCH_MS: i64 = 1_800_000_000_000;
/// How often the dispatcher and the scheduler look, and how long a server that cannot start waits.
const DISPATCH: Duration = Duration::from_millis(300);
const SCHEDULE: Duration = Duration::from_millis(500);
const BOOT: Duration = Duration::from_millis(100);
/// Deadlines that are fired at once.
const DUE_MAX: u32 = 16;
/// How long a ledger row outlives its workflow: longer than any simulation.
const RETENTION_MS: i64 = 30 * 24 * 60 * 60 * 1_000;

/// Workflows that a replica remembers: fewer than there are, so that some are forgotten.
const REMEMBERED: usize = 3;

/// The wall clock of one machine: the time of the simulation, and how far it is off.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    begun: Instant,
    off_ms: Arc<AtomicI64>,
}

impl Clock {
    /// A clock that is right, in a simulation that began then.
    pub(super) fn since(begun: Instant) -> Self {
        Self { begun, off_ms: Arc::default() }
    }

    /// Puts it so many milliseconds off.
    pub(super) fn set(&self, off_ms: i64) {
        self.off_ms.store(off_ms, Ordering::Relaxed);
    }
}

impl ClockPort for Clock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_ms(EPOCH_MS).plus_ms(passed).plus_ms(self.off_ms.load(Ordering::Relaxed))
    }

    fn sleep(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(sleep(Duration::from_millis(ms)))
    }
}

/// What all replicas have in common.
#[derive(Debug, Clone)]
pub(super) struct Common {
    pub(super) begun: Instant,
    pub(super) sea: Sea,
    pub(super) store: Arc<dyn StorageBackendPort>,
    pub(super) policy: Arc<dyn DomainPolicyPort>,
    pub(super) ids: Arc<SequentialIds>,
    pub(super) sink: Sink,
    /// The rows and executions of an orchestrator outside the servers, if there is one.
    pub(super) outside: Option<Outside>,
}

/// Clones are the same server.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    common: Common,
    store: FaultStore,
    pub(super) wire: Wire,
    pub(super) clock: Clock,
    pub(super) still: Still,
    engine: Arc<Mutex<Option<Arc<Engine>>>>,
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl Replica {
    pub(super) fn new(number: usize, common: &Common) -> Self {
        let still = Still::default();
        let (sea, outside) = (common.sea.clone(), common.outside.clone());
        let wire = Wire { sea, replica: number, still: still.clone(), outside };
        Self {
            common: common.clone(),
            store: FaultStore::new(Arc::clone(&common.store)).in_weather(Arc::new(wire.clone())),
            wire,
            clock: Clock::since(common.begun),
            still,
            engine: Arc::default(),
            tasks: Arc::default(),
        }
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine, while there is one.
    pub(super) fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put(&self, engine: Option<Arc<Engine>>) {
        *self.engine.lock().unwrap_or_else(PoisonError::into_inner) = engine;
    }

    /// Does it in this server: it ends with it.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Opens an engine on the shared store as this server would.
    pub(super) async fn open(&self) -> Result<Engine, Fault> {
        let orchestrator: Arc<dyn OrchestratorPort> = match self.common.outside {
            None => Arc::new(ImmediateOrchestrator::default()),
            Some(_) => Arc::new(SilentOrchestrator::default()),
        };
        let policies = vec![Arc::clone(&self.common.policy)];
        let policies = Policies::new(policies, Some(Arc::new(Compiler)))
            .map_err(|error| Fault::Run(format!("the procedures: {error}")))?;
        Engine::open(EngineParts {
            store: Arc::new(self.store.clone()),
            policies,
            clock: Arc::new(self.clock.clone()),
            ids: Arc::clone(&self.common.ids) as Arc<_>,
            orchestrator,
            notifications: Arc::new(self.common.sink.clone()),
            settings: Settings {
                locale: Locale::default(),
                timezone: "UTC".to_owned(),
                retention_ms: RETENTION_MS,
                visibility: Visibility::Tenant,
                public_url: Some("https://wf.example.com".to_owned()),
                recent_workflows: REMEMBERED,
            },
        })
        .await
        .map_err(|error| Fault::Run(format!("opening the store: {error}")))
    }

    /// Starts the server; it serves as soon as the store lets it.
    pub(super) fn start(&self) {
        self.common.sea.note(format_args!("{} starts", self.wire.replica));
        let replica = self.clone();
        self.spawn(async move {
            let engine = loop {
                match replica.open().await {
                    Ok(engine) => break Arc::new(engine),
                    Err(_) => sleep(BOOT).await,
                }
            };
            let dispatching = Arc::clone(&engine);
            replica.spawn(async move {
                loop {
                    // What could not be done is done in the next round.
                    let _ = dispatching.dispatch_once().await;
                    sleep(DISPATCH).await;
                }
            });
            let firing = Arc::clone(&engine);
            replica.spawn(async move {
                loop {
                    let _ = firing.fire_due(DUE_MAX).await;
                    sleep(SCHEDULE).await;
                }
            });
            if let Some(mut reconciler) = replica.reconciler() {
                let engine = Arc::clone(&engine);
                replica.spawn(async move {
                    loop {
                        // What could not be read is read in the next turn.
                        let _ = reconciler.turn(&engine).await;
                        sleep(REST).await;
                    }
                });
            }
            replica.put(Some(engine));
        });
    }

    /// A reconciler, as this server has it after a start.
    pub(super) fn reconciler(&self) -> Option<Reconciler> {
        let outside = self.common.outside.as_ref()?;
        Some(Reconciler::new(&self.wire, outside, &self.clock))
    }

    /// Commits of this server that were on their way for long arrive, whatever became of the server.
    pub(super) async fn land(&self) {
        for landed in self.store.land().await {
            self.common.sea.note(format_args!("{} landed {}", self.wire.replica, landed.is_ok()));
        }
    }

    /// Kills the server: whatever it was doing ends where it is, except what it has already sent.
    pub(super) async fn kill(&self) {
        self.common.sea.note(format_args!("{} is killed", self.wire.replica));
        self.put(None);
        self.still.set(false);
        let mut tasks = std::mem::take(&mut *self.tasks());
        tasks.shutdown().await;
    }
}

/// The procedure that is worked: read once, since it is the same in every simulation.
pub(super) fn policy() -> Result<Arc<dyn DomainPolicyPort>, Fault> {
    static READ: OnceLock<Arc<dyn DomainPolicyPort>> = OnceLock::new();
    if let Some(policy) = READ.get() {
        return Ok(Arc::clone(policy));
    }
    let procedure =
        wf_procedure::parse(&crate::harness::workload::hurried(), "pump-inspection.yaml")
            .map_err(|problems| Fault::Run(format!("the procedure: {problems:?}")))?;
    Ok(Arc::clone(READ.get_or_init(|| Arc::new(procedure))))
}
