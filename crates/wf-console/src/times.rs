//! Instants and durations as the pages show them: in the time zone of the configuration, machine-readable besides.

use jiff::tz::TimeZone;
use maud::{Markup, html};
use wf_core::models::Timestamp;

/// The clock of one answer.
#[derive(Debug, Clone)]
pub(crate) struct Times {
    zone: TimeZone,
    /// When the page is made.
    pub(crate) now: Timestamp,
}

impl Times {
    /// Times in the IANA zone `zone`, UTC when it is unknown.
    pub(crate) fn new(zone: &str, now: Timestamp) -> Self {
        Self { zone: TimeZone::get(zone).unwrap_or(TimeZone::UTC), now }
    }

    /// Day, time and zone.
    pub(crate) fn at(&self, at: Timestamp) -> Markup {
        html! { time datetime=(at) { (self.shown(at, "%Y-%m-%d %H:%M %Z")) } }
    }

    /// The same with seconds.
    pub(crate) fn exactly(&self, at: Timestamp) -> Markup {
        html! { time datetime=(at) { (self.shown(at, "%Y-%m-%d %H:%M:%S %Z")) } }
    }

    /// How long ago, with the time itself.
    pub(crate) fn since(&self, at: Timestamp) -> Markup {
        html! {
            span.age { (lasting(self.now.since_ms(at))) }
            " "
            span.when { "since " (self.at(at)) }
        }
    }

    /// How long ago something happened, and when.
    pub(crate) fn ago(&self, at: Timestamp) -> Markup {
        html! {
            span.age { (lasting(self.now.since_ms(at))) " ago" }
            " "
            span.when { (self.at(at)) }
        }
    }

    fn shown(&self, at: Timestamp, format: &str) -> String {
        let instant = jiff::Timestamp::from_millisecond(at.as_ms()).unwrap_or_default();
        jiff::ZonedDateTime::new(instant, self.zone.clone()).strftime(format).to_string()
    }
}

/// A duration in its two largest units.
pub(crate) fn lasting(ms: i64) -> String {
    let minutes = ms / 60_000;
    let (days, hours) = (minutes / 1_440, minutes / 60 % 24);
    match (days, hours, minutes % 60) {
        (0, 0, 0) => "under a minute".to_owned(),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (1, hours, _) => format!("1 day {hours} h"),
        (days, hours, _) => format!("{days} days {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_zone_and_the_instant() {
        let at = Timestamp::parse("2026-07-01T10:30:15Z").unwrap();
        let shown = Times::new("Europe/Berlin", at).at(at).into_string();
        let wanted = "<time datetime=\"2026-07-01T10:30:15.000Z\">2026-07-01 12:30 CEST</time>";
        assert_eq!(shown, wanted);
        assert!(Times::new("No/Where", at).exactly(at).into_string().contains("10:30:15 UTC"));
    }

    #[test]
    fn durations_have_their_two_largest_units() {
        let shown = [0, 61_000, 3_600_000, 90_000_000, 266_400_000].map(lasting);
        assert_eq!(shown, ["under a minute", "1 min", "1 h 0 min", "1 day 1 h", "3 days 2 h"]);
    }
}
