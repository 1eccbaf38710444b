//! How a server is killed next.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;

/// A failpoint of the server (`failpoint.rs` of wf-backend-local, wf-mcp-http and wf-cli), and at which hit of it the server is
/// killed at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) name: &'static str,
    hits: u32,
}

const fn point(name: &'static str, hits: u32) -> Point {
    Point { name, hits }
}

/// Those that a server at work comes by, again and again.
pub(super) const POINTS: [Point; 14] = [
    point("begin.before", 30),
    point("begin.after", 30),
    point("write", 30),
    point("commit.before", 30),
    point("commit.after", 30),
    point("answer", 50),
    point("checkpoint", 3),
    point("outbox.claim", 4),
    point("outbox.send", 10),
    point("outbox.send_after", 10),
    point("outbox.mark", 4),
    point("deadline.claim", 2),
    point("deadline.fire", 3),
    point("deadline.fired", 3),
];

/// Kinds of ends beside those at any time: at each of the points, and three more.
const TURNS: u64 = POINTS.len() as u64 + 3;

/// The one that a server comes by once it is asked to end.
pub(super) const DRAIN: &str = "drain";

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Killed so long after it began to serve.
    AnyTime(Duration),
    /// Ends itself at a hit of a failpoint.
    At {
        point: Point,
        /// Hits that pass before.
        passes: u32,
    },
    /// Killed so long after its process was made.
    Starting(Duration),
    /// Asked to end, and killed so long after that.
    Ending { work: Duration, after: Duration },
    /// Asked to end, and ends itself before it has told anybody.
    Draining { work: Duration },
}

impl How {
    /// Every second one at any time; the others take turns, so that a run of 34 has all of them.
    pub(super) fn draw(number: u64, random: &mut StdRng) -> Self {
        let mut ms = |from: u64, to: u64| Duration::from_millis(random.random_range(from..=to));
        if number.is_multiple_of(2) {
            return Self::AnyTime(ms(30, 350));
        }
        let turn = usize::try_from(number / 2 % TURNS).unwrap_or(0);
        if let Some(point) = POINTS.get(turn) {
            return Self::At { point: *point, passes: random.random_range(0..point.hits) };
        }
        match turn - POINTS.len() {
            0 => Self::Starting(ms(0, 80)),
            1 => Self::Ending { work: ms(30, 200), after: ms(0, 80) },
            _ => Self::Draining { work: ms(30, 200) },
        }
    }

    /// The value of `FAILPOINTS` for the server.
    pub(super) fn failpoints(self) -> Option<String> {
        match self {
            Self::At { point, passes } => {
                Some(format!("{}={passes}*off->1*return(abort)", point.name))
            }
            Self::Draining { .. } => Some(format!("{DRAIN}=return(abort)")),
            Self::AnyTime(_) | Self::Starting(_) | Self::Ending { .. } => None,
        }
    }

    /// For the count of what was done.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AnyTime(_) => "at any time",
            Self::At { point, .. } => point.name,
            Self::Starting(_) => "while starting",
            Self::Ending { .. } => "while ending",
            Self::Draining { .. } => DRAIN,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::{DRAIN, How, POINTS};

    #[test]
    fn thirty_four_kills_have_every_kind() {
        let mut random = StdRng::seed_from_u64(1);
        let names: BTreeSet<&str> = (0..34).map(|n| How::draw(n, &mut random).name()).collect();
        let others = ["at any time", "while starting", "while ending", DRAIN];
        let wanted: BTreeSet<&str> = POINTS.iter().map(|p| p.name).chain(others).collect();
        assert_eq!(names, wanted);
    }

    #[test]
    fn one_seed_gives_one_sequence() {
        let draw = |seed| {
            let mut random = StdRng::seed_from_u64(seed);
            (0..40).map(|n| How::draw(n, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
