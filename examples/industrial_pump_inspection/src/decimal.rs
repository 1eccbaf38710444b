//! Exact decimals: what a technician reads off an instrument, without floating point.
//!
//! 6.0 is inside a limit of 6.0 and 6.01 is not, on every machine. `procedure` writes limits with them, `judge` reads
//! values into them.

use std::fmt;

use serde::{Serialize, Serializer};

/// A decimal with at most three places, between -999,999,999 and 999,999,999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Decimal {
    thousandths: i64,
}

const PLACES_MAX: usize = 3;
const WHOLE_DIGITS_MAX: usize = 9;

impl Decimal {
    /// `n` tenths: `tenths(15)` is 1.5.
    pub(crate) const fn tenths(n: i32) -> Self {
        // An i32 times 100 always fits an i64.
        Self { thousandths: n as i64 * 100 }
    }

    /// Reads `-?digits[.digits]` with at most `places` decimals; `None` for everything else, such as `4,2` or `1e3`.
    pub(crate) fn parse(text: &str, places: usize) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = match digits.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (digits, ""),
        };
        let is_number = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        let fits = !whole.is_empty()
            && whole.len() <= WHOLE_DIGITS_MAX
            && fraction.len() <= places.min(PLACES_MAX);
        if !fits || !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let thousandths: i64 = format!("{whole}{fraction:0<PLACES_MAX$}").parse().ok()?;
        Some(Self { thousandths: if negative { -thousandths } else { thousandths } })
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.thousandths < 0 { "-" } else { "" };
        let all = self.thousandths.unsigned_abs();
        let fraction = format!("{:03}", all % 1_000);
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{sign}{}", all / 1_000),
            places => write!(f, "{sign}{}.{places}", all / 1_000),
        }
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_said_and_compares_exactly() {
        let read = |text| Decimal::parse(text, 2);
        assert_eq!(read("6"), Some(Decimal::tenths(60)));
        assert_eq!(read("6.00"), Some(Decimal::tenths(60)));
        assert_eq!(read("-0.5"), Some(Decimal::tenths(-5)));
        assert!(read("6.01") > Some(Decimal::tenths(60)));
        for bad in ["", "-", ".5", "4.", "+4", "4,2", "4e1", "4.200", " 4", "٤", "1234567890"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn writes_no_zero_too_many() {
        for (text, written) in [("6.00", "6"), ("-0.5", "-0.5"), ("007", "7"), ("0.25", "0.25")] {
            assert_eq!(Decimal::parse(text, 2).map(|d| d.to_string()).as_deref(), Some(written));
        }
    }
}
