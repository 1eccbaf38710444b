//! What became of an action, kept for the page that is shown after it: the form is answered with a redirection, so that a reload
//! sends nothing again. Only whoever acted is shown it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use wf_core::models::{Actor, Principal, TenantId};

/// Notices that are kept; the oldest gives way.
const NOTICES_MAX: usize = 256;

/// What became of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The answer of the engine, in words.
    pub(crate) text: String,
    /// The code of the refusal, if it was one.
    pub(crate) refused: Option<&'static str>,
    /// It had been done before, by the same form.
    pub(crate) again: bool,
}

#[derive(Debug)]
struct Kept {
    id: String,
    tenant: TenantId,
    actor: Actor,
    notice: Notice,
}

/// The newest notices.
#[derive(Debug, Default)]
pub(crate) struct Notices(Mutex<VecDeque<Kept>>);

impl Notices {
    /// Keeps it for this one, under an id that nobody guesses.
    pub(crate) fn keep(&self, id: String, by: &Principal, notice: Notice) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= NOTICES_MAX {
            all.pop_front();
        }
        all.push_back(Kept { id, tenant: by.tenant.clone(), actor: by.actor.clone(), notice });
    }

    /// The notice, where it is theirs.
    pub(crate) fn find(&self, id: &str, by: &Principal) -> Option<Notice> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own =
            |kept: &&Kept| kept.tenant == by.tenant && kept.actor == by.actor && kept.id == id;
        all.iter().find(own).map(|kept| kept.notice.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_for_who_acted_and_the_oldest_gives_way() {
        let (all, me) = (Notices::default(), Principal::local());
        let notice = |text: &str| Notice { text: text.to_owned(), refused: None, again: false };
        all.keep("first".to_owned(), &me, notice("a"));
        assert_eq!(all.find("first", &me), Some(notice("a")));
        let other = Principal { actor: Actor::User("other".to_owned()), ..Principal::local() };
        assert_eq!(all.find("first", &other), None);
        for n in 0..NOTICES_MAX {
            all.keep(n.to_string(), &me, notice("b"));
        }
        assert_eq!(all.find("first", &me), None);
        assert_eq!(all.find("0", &me), Some(notice("b")));
    }
}
