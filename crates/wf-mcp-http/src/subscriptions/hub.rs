//! Who listens to what, and what changed for them.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use wf_core::engine::{Engine, Watcher};
use wf_core::models::{Actor, Principal, TenantId, WorkflowId};

use crate::telemetry;

/// Who may listen at once.
const LISTENERS_MAX: usize = 256;
/// How often one person may, so that nobody takes all places.
const OF_ONE_MAX: usize = 16;

/// Hears of every commit of an engine and wakes who listens for it.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    listeners: Mutex<Listeners>,
    /// How many listen; most commits have nobody to wake, and are not held up.
    count: AtomicUsize,
    stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Listeners {
    next: u64,
    all: HashMap<u64, Arc<Listener>>,
    by_workflow: HashMap<(TenantId, WorkflowId), BTreeSet<u64>>,
}

#[derive(Debug)]
struct Listener {
    who: (TenantId, Actor),
    about: BTreeSet<WorkflowId>,
    /// What changed since it was last told: never more than what it is about.
    changed: Mutex<BTreeSet<WorkflowId>>,
    wake: Notify,
}

impl Hub {
    /// One that hears of every commit of `engine`.
    pub(crate) fn watching(engine: &Engine) -> Arc<Self> {
        let hub = Arc::new(Self::default());
        engine.watch(&(Arc::clone(&hub) as Arc<dyn Watcher>));
        hub
    }

    /// Begins to listen; `None` when there is no place.
    pub(super) fn listen(
        self: &Arc<Self>,
        by: &Principal,
        about: &[(WorkflowId, String)],
    ) -> Option<Listening> {
        let who = (by.tenant.clone(), by.actor.clone());
        let mut listeners = self.lock();
        let of_one = listeners.all.values().filter(|known| known.who == who).count();
        if self.stop.is_cancelled() || listeners.all.len() >= LISTENERS_MAX || of_one >= OF_ONE_MAX
        {
            return None;
        }
        let about: BTreeSet<WorkflowId> = about.iter().map(|(id, _)| id.clone()).collect();
        let number = listeners.next;
        listeners.next += 1;
        for id in &about {
            let key = (by.tenant.clone(), id.clone());
            listeners.by_workflow.entry(key).or_default().insert(number);
        }
        let changed = Mutex::default();
        let listener = Arc::new(Listener { who, about, changed, wake: Notify::new() });
        listeners.all.insert(number, Arc::clone(&listener));
        self.count.store(listeners.all.len(), Ordering::Release);
        telemetry::listeners(1.0);
        Some(Listening { hub: Arc::clone(self), number, listener })
    }

    /// The server stops: everybody is let go, and nobody listens any more.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the server stops.
    pub(super) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Hub {
    fn changed(&self, tenant: &TenantId, workflow: &WorkflowId) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let listeners = self.lock();
        let key = (tenant.clone(), workflow.clone());
        for number in listeners.by_workflow.get(&key).into_iter().flatten() {
            if let Some(listener) = listeners.all.get(number) {
                let mut changed = listener.changed.lock().unwrap_or_else(PoisonError::into_inner);
                changed.insert(workflow.clone());
                listener.wake.notify_one();
            }
        }
    }
}

/// One who listens, until it is dropped.
#[derive(Debug)]
pub(super) struct Listening {
    hub: Arc<Hub>,
    number: u64,
    listener: Arc<Listener>,
}

impl Listening {
    /// Waits for a change; all workflows that changed since the last time. Cancel safe.
    pub(super) async fn changed(&self) -> BTreeSet<WorkflowId> {
        loop {
            let changed = {
                let mut changed =
                    self.listener.changed.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::take(&mut *changed)
            };
            if !changed.is_empty() {
                return changed;
            }
            self.listener.wake.notified().await;
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut listeners = self.hub.lock();
        if listeners.all.remove(&self.number).is_none() {
            return;
        }
        for id in &self.listener.about {
            let key = (self.listener.who.0.clone(), id.clone());
            if let Some(numbers) = listeners.by_workflow.get_mut(&key) {
                numbers.remove(&self.number);
                if numbers.is_empty() {
                    listeners.by_workflow.remove(&key);
                }
            }
        }
        self.hub.count.store(listeners.all.len(), Ordering::Release);
        telemetry::listeners(-1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    fn person(name: &str, tenant: &str) -> Principal {
        Principal {
            tenant: TenantId::parse(tenant).unwrap(),
            actor: Actor::User(name.to_owned()),
            ..Principal::local()
        }
    }

    fn about(ids: &[&str]) -> Vec<(WorkflowId, String)> {
        ids.iter().map(|id| (WorkflowId::parse(id).unwrap(), (*id).to_owned())).collect()
    }

    fn change(hub: &Hub, tenant: &str, id: &str) {
        hub.changed(&TenantId::parse(tenant).unwrap(), &WorkflowId::parse(id).unwrap());
    }

    async fn heard(listening: &Listening) -> Vec<String> {
        let changed = timeout(Duration::from_secs(5), listening.changed()).await.unwrap();
        changed.iter().map(ToString::to_string).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_listens_hears_of_their_own_and_once_however_often_it_changed() {
        let hub = Arc::new(Hub::default());
        let one = hub.listen(&person("a", "t1"), &about(&["w-1", "w-2"])).unwrap();
        let other = hub.listen(&person("a", "t2"), &about(&["w-1"])).unwrap();
        for _ in 0..10_000 {
            change(&hub, "t1", "w-1");
            change(&hub, "t1", "w-9");
        }
        assert_eq!(heard(&one).await, ["w-1"]);
        change(&hub, "t1", "w-2");
        change(&hub, "t1", "w-1");
        assert_eq!(heard(&one).await, ["w-1", "w-2"]);
        let nothing = timeout(Duration::from_secs(60), other.changed()).await;
        assert!(nothing.is_err(), "another tenant's workflow of the same id");
        change(&hub, "t2", "w-1");
        assert_eq!(heard(&other).await, ["w-1"]);
    }

    #[test]
    fn places_are_bounded_for_all_and_for_one_and_are_free_again() {
        let hub = Arc::new(Hub::default());
        let mut kept = Vec::new();
        for _ in 0..OF_ONE_MAX {
            kept.push(hub.listen(&person("a", "t"), &about(&["w-1"])).unwrap());
        }
        assert!(hub.listen(&person("a", "t"), &about(&["w-1"])).is_none(), "one person");
        kept.pop();
        kept.push(hub.listen(&person("a", "t"), &about(&["w-1"])).unwrap());
        for n in OF_ONE_MAX..LISTENERS_MAX {
            kept.push(hub.listen(&person(&format!("p{n}"), "t"), &about(&["w-1"])).unwrap());
        }
        assert!(hub.listen(&person("z", "t"), &about(&["w-1"])).is_none(), "all places");
        kept.clear();
        let listeners = hub.lock();
        assert!(listeners.all.is_empty() && listeners.by_workflow.is_empty(), "nothing is kept");
        drop(listeners);
        hub.stop();
        assert!(hub.listen(&person("z", "t"), &about(&["w-1"])).is_none(), "the server stops");
    }
}
