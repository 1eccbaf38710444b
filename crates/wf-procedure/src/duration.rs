//! Durations in words, for prompts and for the time that is left.

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// `ms`, at least 1, in words, rounded up to what somebody who waits wants to know: seconds up to a minute and a half, then minutes up
/// to an hour and a half, then hours and minutes, then days and hours.
pub(crate) fn spoken(ms: i64) -> String {
    let whole = |unit: i64| ms.saturating_add(unit - 1) / unit;
    if ms <= MINUTE_MS + MINUTE_MS / 2 && ms % MINUTE_MS != 0 {
        return counted(whole(1_000), "second");
    }
    if ms <= HOUR_MS + HOUR_MS / 2 && ms % HOUR_MS != 0 {
        return counted(whole(MINUTE_MS), "minute");
    }
    if ms < 2 * DAY_MS {
        let minutes = whole(MINUTE_MS);
        return both((minutes / 60, "hour"), (minutes % 60, "minute"));
    }
    let hours = whole(HOUR_MS);
    both((hours / 24, "day"), (hours % 24, "hour"))
}

fn both((large, of): (i64, &str), (small, rest): (i64, &str)) -> String {
    match small {
        0 => counted(large, of),
        _ => format!("{} and {}", counted(large, of), counted(small, rest)),
    }
}

fn counted(n: i64, of: &str) -> String {
    if n == 1 { format!("1 {of}") } else { format!("{n} {of}s") }
}

#[cfg(test)]
mod tests {
    use super::spoken;

    #[test]
    fn times_are_rounded_up_and_spoken_as_people_do() {
        let cases = [
            (1, "1 second"),
            (1_000, "1 second"),
            (30_000, "30 seconds"),
            (60_000, "1 minute"),
            (60_001, "61 seconds"),
            (90_000, "90 seconds"),
            (90_001, "2 minutes"),
            (239_500, "4 minutes"),
            (600_000, "10 minutes"),
            (3_600_000, "1 hour"),
            (3_600_001, "61 minutes"),
            (5_400_001, "1 hour and 31 minutes"),
            (7_200_000, "2 hours"),
            (172_799_999, "48 hours"),
            (172_800_000, "2 days"),
            (180_000_000, "2 days and 2 hours"),
        ];
        for (ms, words) in cases {
            assert_eq!(spoken(ms), words, "{ms}");
        }
    }
}
