//! Who is signed in: in the memory of this process, bounded in number and time. `console` asks the door again at each use, so
//! that a session never outlives its token.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use wf_core::models::{Digest, Timestamp};
use wf_core::ports::IdPort;

/// Sessions at once; one more ends the one that was used least lately.
pub(crate) const SESSIONS_MAX: usize = 256;
/// A session that nobody used for so long is over, in milliseconds.
pub(crate) const IDLE_MS: i64 = 30 * 60 * 1_000;
/// The longest a session lasts, in milliseconds.
pub(crate) const LIFE_MS: i64 = 8 * 60 * 60 * 1_000;

/// What a session stands for.
#[derive(Clone)]
pub(crate) struct Session {
    /// The token that was given.
    pub(crate) token: String,
    /// What the forms of its pages carry.
    pub(crate) form_token: String,
    opened: Timestamp,
    used: Timestamp,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("opened", &self.opened).finish_non_exhaustive()
    }
}

impl Session {
    fn is_over(&self, now: Timestamp) -> bool {
        now.since_ms(self.opened) >= LIFE_MS || now.since_ms(self.used) >= IDLE_MS
    }
}

/// All sessions, by the digest of their id, so that looking one up tells nothing of another by its time.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<Digest, Session>>);

impl Sessions {
    /// Opens a session for a token that was just recognised; answers its id, for the cookie.
    pub(crate) fn open(&self, token: String, now: Timestamp, ids: &dyn IdPort) -> String {
        let id = format!("{}{}", ids.random_hex(), ids.random_hex());
        let session = Session { token, form_token: ids.random_hex(), opened: now, used: now };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, session| !session.is_over(now));
        if all.len() >= SESSIONS_MAX {
            let oldest = all.iter().min_by_key(|(_, session)| session.used);
            if let Some(digest) = oldest.map(|(digest, _)| digest.clone()) {
                all.remove(&digest);
            }
        }
        all.insert(Digest::of(id.as_bytes()), session);
        id
    }

    /// The session with this id, if it is not over; using it keeps it alive.
    pub(crate) fn find(&self, id: &str, now: Timestamp) -> Option<Session> {
        let digest = Digest::of(id.as_bytes());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let session = all.get_mut(&digest)?;
        if session.is_over(now) {
            all.remove(&digest);
            return None;
        }
        session.used = now;
        Some(session.clone())
    }

    /// Ends it.
    pub(crate) fn close(&self, id: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&Digest::of(id.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use wf_testkit::build::at;
    use wf_testkit::ids::SequentialIds;

    use super::*;

    #[test]
    fn a_session_ends_when_it_is_idle_and_when_it_is_old() {
        let (all, ids) = (Sessions::default(), SequentialIds::new());
        let id = all.open("t".to_owned(), at(0), &ids);
        assert_eq!(all.find(&id, at(IDLE_MS - 1)).map(|s| s.token).as_deref(), Some("t"));
        assert!(all.find(&id, at(2 * IDLE_MS - 2)).is_some(), "used, so alive");
        assert!(all.find(&id, at(3 * IDLE_MS - 2)).is_none(), "idle");
        let id = all.open("t".to_owned(), at(0), &ids);
        let mut now = 0;
        while now + IDLE_MS / 2 < LIFE_MS {
            now += IDLE_MS / 2;
            assert!(all.find(&id, at(now)).is_some(), "{now}");
        }
        assert!(all.find(&id, at(LIFE_MS)).is_none(), "old");
        assert!(all.find("guessed", at(0)).is_none());
    }

    #[test]
    fn sessions_are_bounded_and_the_least_used_gives_way() {
        let (all, ids) = (Sessions::default(), SequentialIds::new());
        let first = all.open("first".to_owned(), at(0), &ids);
        let second = all.open("second".to_owned(), at(1), &ids);
        assert!(all.find(&first, at(2)).is_some());
        for n in 2..SESSIONS_MAX {
            all.open(n.to_string(), at(3), &ids);
        }
        assert!(all.find(&second, at(1)).is_some(), "there was room for all");
        assert!(all.find(&second, at(1)).is_some_and(|s| s.token == "second"));
        all.open("one more".to_owned(), at(4), &ids);
        assert!(all.find(&second, at(4)).is_none(), "least lately used");
        assert!(all.find(&first, at(4)).is_some());
        all.close(&first);
        assert!(all.find(&first, at(4)).is_none());
    }

    #[test]
    fn a_session_does_not_show_its_token() {
        let (all, ids) = (Sessions::default(), SequentialIds::new());
        all.open("secret-token".to_owned(), at(0), &ids);
        assert!(!format!("{all:?}").contains("secret-token"));
    }
}
