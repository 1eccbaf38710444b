//! How often somebody may try to sign in with tokens that count for nobody. A token cannot be guessed; this keeps the checking
//! of signatures for those who have one.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use wf_core::models::Timestamp;

/// Tries that fail, of one address in one [`WINDOW_MS`].
pub(crate) const TRIES_MAX: u32 = 10;
/// The time in which they are counted, in milliseconds.
pub(crate) const WINDOW_MS: i64 = 60 * 1_000;
/// Addresses that are counted apart; where there are more, the one that was seen first is forgotten.
const ADDRESSES_MAX: usize = 1_024;

#[derive(Debug, Clone, Copy)]
struct Tries {
    since: Timestamp,
    failed: u32,
}

/// Failed tries by address.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<BTreeMap<IpAddr, Tries>>);

impl Throttle {
    /// Whether this address may try again, or else in how many seconds.
    pub(crate) fn may_try(&self, from: IpAddr, now: Timestamp) -> Result<(), i64> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get(&from) {
            Some(tries) if tries.failed >= TRIES_MAX => {
                let left = WINDOW_MS - now.since_ms(tries.since);
                if left > 0 { Err(left.div_euclid(1_000) + 1) } else { Ok(()) }
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Counts a try that failed.
    pub(crate) fn failed(&self, from: IpAddr, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&from) {
            all.retain(|_, tries| now.since_ms(tries.since) < WINDOW_MS);
            if all.len() >= ADDRESSES_MAX {
                let oldest = all.iter().min_by_key(|(_, tries)| tries.since);
                if let Some(address) = oldest.map(|(address, _)| *address) {
                    all.remove(&address);
                }
            }
        }
        let tries = all.entry(from).or_insert(Tries { since: now, failed: 0 });
        if now.since_ms(tries.since) >= WINDOW_MS {
            *tries = Tries { since: now, failed: 0 };
        }
        tries.failed = tries.failed.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use wf_testkit::build::at;

    use super::*;

    #[test]
    fn failed_tries_are_bounded_for_each_address_and_forgotten_in_time() {
        let (all, one) = (Throttle::default(), IpAddr::from([192, 0, 2, 1]));
        for n in 0..TRIES_MAX {
            assert_eq!(all.may_try(one, at(0)), Ok(()), "{n}");
            all.failed(one, at(0));
        }
        assert_eq!(all.may_try(one, at(0)), Err(61));
        assert_eq!(all.may_try(one, at(WINDOW_MS - 1)), Err(1));
        assert_eq!(all.may_try(IpAddr::from([192, 0, 2, 2]), at(0)), Ok(()));
        assert_eq!(all.may_try(one, at(WINDOW_MS)), Ok(()));
        all.failed(one, at(WINDOW_MS));
        assert_eq!(all.may_try(one, at(WINDOW_MS)), Ok(()), "counted anew");
    }

    #[test]
    fn addresses_are_bounded() {
        let all = Throttle::default();
        for n in 0..=u32::try_from(ADDRESSES_MAX).unwrap() {
            all.failed(IpAddr::from(Ipv4Addr::from_bits(n)), at(i64::from(n)));
        }
        let kept = all.0.lock().unwrap();
        assert_eq!(kept.len(), ADDRESSES_MAX);
        assert!(!kept.contains_key(&IpAddr::from(Ipv4Addr::from_bits(0))), "the first is gone");
    }
}
