//! How many requests one caller may send: 429 with `Retry-After`, before the body is read and before the store is asked.
//!
//! Inside `layers::identity`, which says who the caller is. The algorithm is GCRA (ITU-T I.371): for each caller one
//! instant, up to which the allowance is spent, is all there is to keep. An instant in the past says nothing, so what is
//! kept can be bounded without forgetting anybody who is near the limit.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{Around, Inner, proceed};
use crate::access::Visitor;
use crate::auth::Caller;
use crate::config::RateLimit;
use crate::exchange::{Request, Response};
use crate::fault::{Denied, Fault};

/// Most callers that are kept in mind.
const CALLERS_MAX: usize = 65_536;
/// How often those that say nothing any more are looked for, while the place is full.
const TIDY_EVERY: Duration = Duration::from_secs(1);

/// Limits everything inside, each caller apart.
#[derive(Debug, Clone)]
pub(crate) struct Rate {
    /// Nothing is limited without one.
    limiter: Option<Arc<Limiter>>,
}

impl Rate {
    pub(crate) fn new(limit: Option<RateLimit>) -> Self {
        Self { limiter: limit.map(|limit| Arc::new(Limiter::new(limit, CALLERS_MAX))) }
    }

    fn check(&self, request: &Request) -> Result<(), Fault> {
        let (Some(limiter), Some(visitor)) = (&self.limiter, request.extensions().get::<Visitor>())
        else {
            return Ok(());
        };
        limiter
            .spend(limiter.of(&visitor.caller), Instant::now())
            .map_err(|after| Denied::RateLimited { after }.into())
    }
}

impl Around for Rate {
    async fn around<S: Inner>(self, request: Request, next: S) -> Response {
        match self.check(&request) {
            Ok(()) => proceed(next, request).await,
            Err(fault) => fault.into_response(),
        }
    }
}

/// What each caller has spent.
#[derive(Debug)]
struct Limiter {
    /// How long one request takes to be earned again.
    each: Duration,
    /// How much may be spent ahead.
    ahead: Duration,
    callers_max: usize,
    /// Of a key that nobody outside knows: callers cannot be made to share a place.
    hasher: RandomState,
    spent: Mutex<Spent>,
}

#[derive(Debug)]
struct Spent {
    /// Until when the allowance of a caller is spent.
    until: HashMap<u64, Instant>,
    tidied: Option<Instant>,
}

impl Limiter {
    fn new(limit: RateLimit, callers_max: usize) -> Self {
        let each = limit.per / limit.requests.get();
        let spent = Spent { until: HashMap::new(), tidied: None };
        Self {
            each,
            ahead: limit.per.saturating_sub(each),
            callers_max,
            hasher: RandomState::new(),
            spent: Mutex::new(spent),
        }
    }

    /// The place of a caller: who it is, not the token that says so.
    fn of(&self, caller: &Caller) -> u64 {
        match caller {
            Caller::User(person) => self.hasher.hash_one((0, &person.tenant, &person.actor)),
            Caller::Service(client) => self.hasher.hash_one((1, &client.tenant, &client.client_id)),
        }
    }

    /// Spends one request, or says when one can be spent.
    fn spend(&self, place: u64, now: Instant) -> Result<(), Duration> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.until.len() >= self.callers_max && !spent.until.contains_key(&place) {
            spent.tidy(now);
            if spent.until.len() >= self.callers_max {
                spent.forget_anybody();
            }
        }
        let until = spent.until.entry(place).or_insert(now);
        let from = (*until).max(now);
        let early = from.duration_since(now).saturating_sub(self.ahead);
        if early.is_zero() {
            *until = from + self.each;
            Ok(())
        } else {
            Err(early)
        }
    }
}

impl Spent {
    /// Forgets everybody whose allowance is whole again, if that was not tried a moment ago.
    fn tidy(&mut self, now: Instant) {
        if self.tidied.is_none_or(|tidied| now.duration_since(tidied) >= TIDY_EVERY) {
            self.until.retain(|_, until| *until > now);
            self.tidied = Some(now);
        }
    }

    /// Whoever it is gets a new allowance, which is better than none for a newcomer.
    fn forget_anybody(&mut self) {
        if let Some(anybody) = self.until.keys().next().copied() {
            self.until.remove(&anybody);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn limiter(requests: u32, callers_max: usize) -> Limiter {
        let requests = NonZeroU32::new(requests).unwrap();
        Limiter::new(RateLimit { requests, per: SECOND * 10 }, callers_max)
    }

    #[test]
    fn all_may_be_spent_at_once_and_is_earned_back_evenly() {
        let (limiter, now) = (limiter(5, 10), Instant::now());
        for _ in 0..5 {
            assert_eq!(limiter.spend(1, now), Ok(()));
        }
        assert_eq!(limiter.spend(1, now), Err(SECOND * 2));
        // A refused one costs nothing.
        assert_eq!(limiter.spend(1, now + SECOND), Err(SECOND));
        assert_eq!(limiter.spend(1, now + SECOND * 2), Ok(()));
        assert_eq!(limiter.spend(1, now + SECOND * 2), Err(SECOND * 2));
        // After a long time there is no more than the whole.
        let later = now + SECOND * 1_000;
        assert_eq!((0..9).filter(|_| limiter.spend(1, later).is_ok()).count(), 5);
    }

    #[test]
    fn callers_do_not_spend_for_each_other() {
        let (limiter, now) = (limiter(1, 10), Instant::now());
        assert_eq!(limiter.spend(1, now), Ok(()));
        assert_eq!(limiter.spend(2, now), Ok(()));
        assert!(limiter.spend(1, now).is_err() && limiter.spend(2, now).is_err());
    }

    #[test]
    fn what_is_kept_is_bounded_and_those_near_the_limit_are_kept_longest() {
        let (limiter, now) = (limiter(1, 10), Instant::now());
        for place in 0..9 {
            assert_eq!(limiter.spend(place, now), Ok(()));
        }
        // When these nine are whole again, one is not.
        let later = now + SECOND * 10;
        assert_eq!(limiter.spend(100, later), Ok(()));
        for place in 200..209 {
            assert_eq!(limiter.spend(place, later), Ok(()));
        }
        assert!(limiter.spend(100, later).is_err());
        // Full of such that are not: newcomers get in, and no more is kept.
        for place in 300..400 {
            assert_eq!(limiter.spend(place, later), Ok(()));
        }
        assert_eq!(limiter.spent.lock().unwrap().until.len(), 10);
    }
}
