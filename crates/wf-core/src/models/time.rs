//! Wall-clock instants as values; nothing here reads a clock.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Milliseconds since the Unix epoch, UTC; written as RFC 3339 with milliseconds and `Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is no RFC 3339 instant of the years 1 to 9999.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not an RFC 3339 time: {text:?}")]
pub struct TimestampError {
    /// The text that was read.
    pub text: String,
}

/// 9999-12-31T00:00:00Z: later instants are clamped, so that every value can be written.
const MAX_MS: i64 = 253_402_214_400_000;

impl Timestamp {
    /// The instant `ms` milliseconds after the epoch, clamped to 1970..9999.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Self {
        if ms < 0 {
            Self(0)
        } else if ms > MAX_MS {
            Self(MAX_MS)
        } else {
            Self(ms)
        }
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// This instant `ms` milliseconds later (earlier when negative), clamped.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self::from_ms(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this instant; 0 when it is not earlier.
    #[must_use]
    pub const fn since_ms(self, earlier: Self) -> i64 {
        let d = self.0 - earlier.0;
        if d < 0 { 0 } else { d }
    }

    /// Reads an RFC 3339 instant.
    ///
    /// # Errors
    /// [`TimestampError`] when `text` is none.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        text.parse::<jiff::Timestamp>()
            .map(|t| Self::from_ms(t.as_millisecond()))
            .map_err(|_| TimestampError { text: text.chars().take(64).collect() })
    }

    /// Hour and minute in the IANA time zone `zone` (UTC when it is unknown), as `14:05`.
    #[must_use]
    pub fn clock_time(self, zone: &str) -> String {
        let local = self.in_zone(zone);
        format!("{:02}:{:02}", local.hour(), local.minute())
    }

    /// Calendar days from `other` to this instant in the IANA time zone `zone` (UTC when it is unknown); negative when it
    /// is on an earlier day.
    #[must_use]
    pub fn days_after(self, other: Self, zone: &str) -> i64 {
        let day = |at: Self| at.in_zone(zone).date().duration_since(jiff::civil::date(1970, 1, 1));
        (day(self) - day(other)).as_hours() / 24
    }

    /// Day and month in the IANA time zone `zone` (UTC when it is unknown), as `28 November`.
    #[must_use]
    pub fn day_and_month(self, zone: &str) -> String {
        self.in_zone(zone).date().strftime("%-d %B").to_string()
    }

    fn in_zone(self, zone: &str) -> jiff::civil::DateTime {
        let zone = jiff::tz::TimeZone::get(zone).unwrap_or(jiff::tz::TimeZone::UTC);
        zone.to_datetime(self.to_jiff())
    }

    fn to_jiff(self) -> jiff::Timestamp {
        // The constructor clamps to a range that jiff covers, so the default is never used.
        jiff::Timestamp::from_millisecond(self.0).unwrap_or_default()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.to_jiff())
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        Self::parse(text)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Every state has one for each of its steps: printed at once, not piece by piece through the serialiser.
        serializer.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        wf_idempotency::from_text(deserializer)
    }
}

impl TryFrom<String> for Timestamp {
    type Error = TimestampError;
    fn try_from(text: String) -> Result<Self, TimestampError> {
        Self::parse(&text)
    }
}

impl From<Timestamp> for String {
    fn from(t: Timestamp) -> Self {
        t.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_form_has_milliseconds_and_reads_back() {
        let t = Timestamp::from_ms(1_796_000_000_120);
        assert_eq!(t.to_string(), "2026-11-30T00:53:20.120Z");
        assert_eq!(Timestamp::parse(&t.to_string()), Ok(t));
        assert_eq!(Timestamp::from_ms(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert!(Timestamp::parse("yesterday").is_err());
    }

    #[test]
    fn clock_time_follows_the_zone_and_falls_back_to_utc() {
        let t = Timestamp::from_ms(1_796_000_000_120);
        assert_eq!(t.clock_time("Europe/Berlin"), "01:53");
        assert_eq!(t.clock_time("No/Where"), "00:53");
    }

    #[test]
    fn days_are_counted_by_the_calendar_of_the_zone() {
        let late = Timestamp::parse("2026-11-30T22:30:00Z").expect("a time");
        let hours = |n: i64| late.plus_ms(n * 3_600_000);
        assert_eq!(hours(1).days_after(late, "UTC"), 0);
        assert_eq!(hours(2).days_after(late, "UTC"), 1);
        assert_eq!(hours(1).days_after(late, "Europe/Berlin"), 1);
        assert_eq!(late.days_after(hours(2), "UTC"), -1);
        assert_eq!(late.days_after(hours(24 * 400), "UTC"), -400);
        assert_eq!(late.day_and_month("UTC"), "30 November");
        assert_eq!(hours(1).day_and_month("Europe/Berlin"), "1 December");
    }
}
