//! The cheap check: numbers must agree with real time.

/// One call about an object whose states are numbered: it found the object at `low` and left it at `high`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The number before; the same as `high` for a call that only looked.
    pub low: u64,
    /// The number after.
    pub high: u64,
    /// When it was sent.
    pub sent: u64,
    /// When it was over; `u64::MAX` when nobody knows.
    pub over: u64,
    /// What to call it in a report.
    pub what: String,
}

/// Two calls of which the first was over before the second was sent, although the second found an older state than
/// the first left. O(n log n) in the number of calls.
#[must_use]
pub fn disorder(points: &[Point]) -> Option<(&Point, &Point)> {
    let mut by_sent: Vec<&Point> = points.iter().collect();
    by_sent.sort_by_key(|point| point.sent);
    let mut by_over: Vec<&Point> = points.iter().collect();
    by_over.sort_by_key(|point| point.over);
    let mut over = by_over.into_iter().peekable();
    let mut newest: Option<&Point> = None;
    for point in by_sent {
        while let Some(done) = over.next_if(|done| done.over < point.sent) {
            if newest.is_none_or(|newest| newest.high < done.high) {
                newest = Some(done);
            }
        }
        if let Some(newest) = newest.filter(|newest| newest.high > point.low) {
            return Some((newest, point));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(low: u64, high: u64, sent: u64, over: u64) -> Point {
        Point { low, high, sent, over, what: format!("{low}→{high}") }
    }

    #[test]
    fn numbers_that_agree_with_time_are_in_order() {
        let lawful = [
            point(0, 1, 0, 10),
            point(1, 1, 5, 15),
            point(0, 0, 5, 15),
            point(1, 2, 11, 20),
            point(2, 2, 21, 30),
            point(2, 3, 12, u64::MAX),
        ];
        assert_eq!(disorder(&lawful), None);
    }

    #[test]
    fn a_stale_read_and_a_swapped_commit_are_found() {
        let stale = [point(0, 1, 0, 10), point(0, 0, 11, 12)];
        assert_eq!(disorder(&stale), Some((&stale[0], &stale[1])));
        let swapped = [point(1, 2, 0, 10), point(0, 1, 11, 20)];
        assert_eq!(disorder(&swapped), Some((&swapped[0], &swapped[1])));
        let twice = [point(0, 1, 0, 10), point(0, 1, 11, 20)];
        assert!(disorder(&twice).is_some());
    }

    #[test]
    fn what_overlaps_has_no_order() {
        assert_eq!(disorder(&[point(1, 2, 0, 10), point(0, 1, 10, 20)]), None);
    }
}
