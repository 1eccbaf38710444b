//! Where the keys of the issuer come from, and how long they count. `jwt` asks for one key at a time.
//!
//! A set that grows old is fetched again while requests go on with it. One that nobody asked for in so long that it is
//! too old counts when the issuer could not be reached, and not before: whoever comes first waits for the fetch. A token
//! that names a key which nobody knows may start one, but only one at a time and not before the pause is over, whoever
//! asks and however often. A fetch is a task of its own, so that a client that hangs up does not take it along.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use jsonwebtoken::Algorithm;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::address::Address;
use super::check::Checks;
use super::fetch::Fetch;
use super::issuer::{Issuer, IssuerError, fetched, object};
use super::key::{Key, KeySet};
use super::settings::KeyTimes;

/// Requests that may wait for keys at once. More could fill the server while an issuer is slow.
const WAITING_MAX: usize = 32;

/// A key that there is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// The issuer has no such key, as far as is known.
    Unknown,
    /// No set of keys is known that still counts.
    Unavailable {
        /// When to ask again.
        after: Duration,
    },
}

/// Where a set is fetched.
#[derive(Debug)]
pub(super) enum Source {
    /// Where the configuration says.
    At(Address, Arc<dyn Fetch>),
    /// Where the issuer's metadata says.
    Of(Issuer, Arc<dyn Fetch>),
}

impl Source {
    async fn fetch(&self, checks: Checks) -> Result<Fetched, IssuerError> {
        let (address, fetch, metadata) = match self {
            Self::At(address, fetch) => (address.clone(), fetch, None),
            Self::Of(issuer, fetch) => {
                let metadata = issuer.metadata().await?;
                (issuer.keys_at(&metadata)?, fetch, Some(metadata.bytes))
            }
        };
        let bytes = fetched(&address, fetch.get(&address).await)?;
        let problem = |problem| IssuerError::Document { url: address.to_string(), problem };
        let set = KeySet::read(&object(&address, &bytes)?, checks)
            .ok_or_else(|| problem("is not a set of keys"))?;
        if set.len() == 0 {
            return Err(problem("has no key that tokens may be signed with"));
        }
        Ok(Fetched { set: Arc::new(set), bytes, metadata })
    }
}

struct Fetched {
    set: Arc<KeySet>,
    bytes: Bytes,
    metadata: Option<Bytes>,
}

/// The keys of one issuer.
#[derive(Debug, Clone)]
pub(super) enum Keys {
    /// Known from the beginning.
    Fixed(Arc<KeySet>),
    /// Fetched.
    Remote(Arc<Remote>),
}

impl Keys {
    /// The key with this id, fetched if need be.
    pub(super) async fn find(
        &self,
        id: Option<&str>,
        algorithm: Option<Algorithm>,
    ) -> Result<Arc<Key>, Missing> {
        match self {
            Self::Fixed(set) => set.find(id, algorithm).ok_or(Missing::Unknown),
            Self::Remote(remote) => remote.find(id, algorithm).await,
        }
    }

    /// Changes with every change of the keys: what was verified under another number has to be verified again.
    pub(super) fn generation(&self) -> u64 {
        match self {
            Self::Fixed(_) => 0,
            Self::Remote(remote) => remote.generation.load(Ordering::Acquire),
        }
    }

    /// Any key, for a test that leaves out the look-up.
    #[cfg(test)]
    pub(super) fn any(&self) -> Option<Arc<Key>> {
        match self {
            Self::Fixed(set) => set.any(),
            Self::Remote(_) => None,
        }
    }
}

/// A set that is fetched and kept.
#[derive(Debug)]
pub(super) struct Remote {
    source: Source,
    times: KeyTimes,
    checks: Checks,
    known: RwLock<Option<Known>>,
    generation: AtomicU64,
    /// Held while a fetch is under way.
    turn: tokio::sync::Mutex<()>,
    tried: Mutex<Tried>,
    waiting: Semaphore,
}

/// What became of the last fetch.
#[derive(Debug, Clone, Copy, Default)]
struct Tried {
    /// When it began, or ended.
    at: Option<Instant>,
    /// When it failed, if it did.
    failed: Option<Instant>,
}

#[derive(Debug, Clone)]
struct Known {
    set: Arc<KeySet>,
    bytes: Bytes,
    metadata: Option<Bytes>,
    at: Instant,
}

impl Remote {
    pub(super) fn new(source: Source, times: KeyTimes, checks: Checks) -> Self {
        Self {
            source,
            times,
            checks,
            known: RwLock::new(None),
            generation: AtomicU64::new(0),
            turn: tokio::sync::Mutex::new(()),
            tried: Mutex::default(),
            waiting: Semaphore::new(WAITING_MAX),
        }
    }

    async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Option<Algorithm>,
    ) -> Result<Arc<Key>, Missing> {
        let known = self.known();
        if let Some(known) = &known {
            let old = known.at.elapsed() >= self.times.refresh / 2;
            if old && self.may_fetch(self.times.retry) && !self.is_fetching() {
                // Nobody waits for it, so there is no answer to look at.
                drop(self.fetch(self.times.retry));
            }
            if let Some(key) = known.set.find(id, algorithm) {
                return Ok(key);
            }
        }
        let pause = if known.is_some() { self.times.pause } else { self.times.retry };
        if let Ok(_place) = self.waiting.try_acquire()
            && (self.may_fetch(pause) || self.is_fetching())
        {
            // A panic in the task is one more fetch that failed.
            let _ = self.fetch(pause).await;
        }
        match self.known() {
            Some(known) => known.set.find(id, algorithm).ok_or(Missing::Unknown),
            None => Err(Missing::Unavailable { after: self.times.retry }),
        }
    }

    /// Fetches the set now.
    pub(super) async fn load(&self) -> Result<(), IssuerError> {
        let _turn = self.turn.lock().await;
        self.fetch_in_turn().await
    }

    /// Fetches the set in a task of its own, unless there was a fetch within `pause` once it is its turn.
    fn fetch(self: &Arc<Self>, pause: Duration) -> tokio::task::JoinHandle<()> {
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let _turn = this.turn.lock().await;
            if this.may_fetch(pause) {
                // Said in the log already.
                let _ = this.fetch_in_turn().await;
            }
        })
    }

    async fn fetch_in_turn(&self) -> Result<(), IssuerError> {
        self.begins();
        let fetched = self.source.fetch(self.checks).await;
        self.ends(fetched.is_err());
        match fetched {
            Ok(fetched) => self.keep(fetched),
            Err(error) => {
                let shown: &(dyn std::error::Error + 'static) = &error;
                tracing::warn!(error = shown, "the issuer's keys could not be fetched");
                return Err(error);
            }
        }
        Ok(())
    }

    fn keep(&self, fetched: Fetched) {
        let Fetched { set, bytes, metadata } = fetched;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|known| known.bytes != bytes) {
            tracing::info!(keys = set.len(), "the issuer's keys are new");
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        *known = Some(Known { set, bytes, metadata, at: Instant::now() });
    }

    fn begins(&self) {
        // A failure is remembered until the next one ends: meanwhile the last good set counts on.
        self.tried.lock().unwrap_or_else(PoisonError::into_inner).at = Some(Instant::now());
    }

    fn ends(&self, failed: bool) {
        let now = Some(Instant::now());
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        *tried = Tried { at: now, failed: now.filter(|_| failed) };
    }

    fn tried(&self) -> Tried {
        *self.tried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_fetching(&self) -> bool {
        self.turn.try_lock().is_err()
    }

    /// Whether the last fetch began or ended at least `pause` ago.
    fn may_fetch(&self, pause: Duration) -> bool {
        self.tried().at.is_none_or(|at| at.elapsed() >= pause)
    }

    /// The set, while it counts: as long as it is fresh, and longer when the issuer was asked and did not answer.
    fn known(&self) -> Option<Known> {
        let kept = self.kept()?;
        let age = kept.at.elapsed();
        let asked = || self.tried().failed.is_some_and(|at| at.elapsed() < self.times.refresh);
        (age < self.times.refresh || asked()).then_some(kept)
    }

    /// The last good set, while it may count at all.
    fn kept(&self) -> Option<Known> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.clone().filter(|known| known.at.elapsed() < self.times.keep)
    }

    /// The issuer's metadata as it was fetched last, where the set came from it.
    pub(super) fn metadata(&self) -> Option<Bytes> {
        self.kept()?.metadata
    }
}
