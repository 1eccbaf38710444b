//! What a receiver does about a delivery, and what that says of the message.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::torture::peer::{Answer, Reply};

/// How a receiver is while it is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Takes everything.
    Honest,
    /// Something else each time.
    Lies,
    /// Refuses some messages for good.
    Refuses,
    /// Never answers.
    Hangs,
    /// Has a certificate that nobody trusts.
    Impostor,
}

/// What the sender must conclude.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// It has it.
    Taken,
    /// Try again.
    Later,
    /// Never again.
    Never,
}

/// What a receiver does once.
#[derive(Debug, Clone)]
pub(super) struct Done {
    /// For the summary.
    pub(super) name: &'static str,
    pub(super) reply: Reply,
    pub(super) said: Said,
}

/// Where a redirect leads: nobody may come there.
pub(super) const ELSEWHERE: &str = "/elsewhere";

const fn done(name: &'static str, reply: Reply, said: Said) -> Done {
    Done { name, reply, said }
}

/// What is done about every message by one that is well.
pub(super) fn takes() -> Done {
    done("takes", Reply::Answers(Answer::status(204)), Said::Taken)
}

/// What a receiver of this manner does about a delivery; `first` of this message.
pub(super) fn does(manner: Manner, first: bool, random: &mut StdRng) -> Done {
    match manner {
        Manner::Honest | Manner::Impostor => takes(),
        Manner::Hangs => done("hangs", Reply::Hangs, Said::Later),
        Manner::Refuses if first && random.random_bool(0.5) => {
            let status = [400, 410, 413, 422][random.random_range(0..4)];
            done("refuses", Reply::Answers(Answer::status(status)), Said::Never)
        }
        Manner::Refuses => takes(),
        Manner::Lies => lie(random),
    }
}

/// One of the lies; a third of the time none.
fn lie(random: &mut StdRng) -> Done {
    let fine = || Answer { body: b"thanks".to_vec(), ..Answer::status(200) };
    match random.random_range(0..36) {
        // Whether it keeps what it took is nothing that a sender could know.
        0..3 => done("forgets", Reply::Answers(Answer::status(200)), Said::Taken),
        3..6 => done("takes and fails", Reply::Answers(Answer::status(500)), Said::Later),
        6..8 => {
            let headers = vec!["retry-after: 1".to_owned()];
            let busy = Answer { headers, ..Answer::status(503) };
            done("is busy", Reply::Answers(busy), Said::Later)
        }
        8..10 => {
            let status = [301, 302, 307, 308][random.random_range(0..4)];
            let headers = vec![format!("location: {ELSEWHERE}")];
            let away = Answer { headers, ..Answer::status(status) };
            done("redirects", Reply::Answers(away), Said::Later)
        }
        10..12 => done("takes and closes", Reply::Closes, Said::Later),
        12..14 => done("babbles", Reply::Babbles, Said::Later),
        14..16 => done("breaks off", Reply::Breaks(fine()), Said::Taken),
        16..19 => done("answers twice", Reply::Twice(Answer::status(204)), Said::Taken),
        19..20 => done("drips", Reply::Drips(Duration::from_millis(20), fine()), Said::Taken),
        20..21 => done("floods", Reply::Floods(200), Said::Taken),
        21..22 => done("is late", Reply::Late(Duration::from_secs(1), fine()), Said::Taken),
        22..23 => {
            let asks =
                Answer { headers: vec!["retry-after: soon".to_owned()], ..Answer::status(429) };
            done("is slowed", Reply::Answers(asks), Said::Later)
        }
        _ => takes(),
    }
}
