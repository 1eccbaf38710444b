//! How amounts are written in panes: rates, times, sizes. Neighbour: `panes`.

/// How much a counter grew in a second; nothing after a restart.
pub(super) fn rate(now: Option<f64>, then: Option<f64>, ms: i64) -> Option<f64> {
    let grown = now? - then?;
    let seconds = f64::from(u32::try_from(ms).ok().filter(|ms| *ms > 0)?) / 1000.0;
    (grown >= 0.0).then(|| grown / seconds)
}

/// A number with no more digits than one reads.
pub(super) fn number(of: Option<f64>) -> String {
    match of {
        None => "-".to_owned(),
        Some(of) if of.fract().abs() < 1e-9 => format!("{of:.0}"),
        Some(of) if of < 10.0 => format!("{of:.2}"),
        Some(of) => format!("{of:.1}"),
    }
}

/// Seconds, in milliseconds.
pub(super) fn millis(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |s| format!("{:.1} ms", s * 1000.0))
}

/// Bytes, in their largest unit.
pub(super) fn bytes(of: Option<f64>) -> String {
    match of {
        None => "-".to_owned(),
        Some(of) if of < 1e6 => format!("{:.0} kB", of / 1e3),
        Some(of) if of < 1e9 => format!("{:.1} MB", of / 1e6),
        Some(of) => format!("{:.1} GB", of / 1e9),
    }
}

/// A span of time in its two largest units.
pub(super) fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_and_rates_survive_a_restart() {
        let shown = [59_999, 60_000, 3_661_000, 90_000_000, -5].map(span);
        assert_eq!(shown, ["59s", "1m 00s", "1h 01m", "1d 01h", "0s"]);
        assert_eq!(rate(Some(30.0), Some(10.0), 2_000), Some(10.0));
        assert_eq!(rate(Some(5.0), Some(10.0), 2_000), None);
        assert_eq!(rate(Some(5.0), Some(1.0), 0), None);
        assert_eq!([number(None), number(Some(3.0)), number(Some(0.25))], ["-", "3", "0.25"]);
    }
}
