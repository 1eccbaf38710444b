//! Decimals as people say and write them, and exact rationals to compute with. No floats.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};

/// An exact number.
pub(crate) type Exact = BigRational;

/// Longest number, in characters.
pub(crate) const NUMBER_CHARS_MAX: usize = 40;
/// Most decimals looked at when a rational is written out.
const WRITTEN_DECIMALS_MAX: u32 = 24;

/// A decimal with its written digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    /// The digits as written.
    pub(crate) written: String,
    /// What they mean.
    pub(crate) exact: Exact,
    /// How many digits stand after the point.
    pub(crate) decimals: usize,
}

impl Decimal {
    /// Reads `-?digits[.digits]`, ASCII digits only, at most [`NUMBER_CHARS_MAX`] characters. `.5`, `4.`, `+4`,
    /// `4,2` and exponents are none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > NUMBER_CHARS_MAX {
            return None;
        }
        let body = text.strip_prefix('-').unwrap_or(text);
        let (whole, part) = match body.split_once('.') {
            Some((whole, part)) if !part.is_empty() => (whole, part),
            Some(_) => return None,
            None => (body, ""),
        };
        let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(part) {
            return None;
        }
        let scaled = BigInt::parse_bytes(format!("{whole}{part}").as_bytes(), 10)?;
        let scaled = if body.len() < text.len() { -scaled } else { scaled };
        let decimals = part.len();
        Some(Self {
            written: text.to_owned(),
            exact: Exact::new(scaled, power_of_ten(decimals)),
            decimals,
        })
    }

    /// The digits without leading zeros and without the sign of a zero; trailing zeros say how precisely somebody
    /// read, so they stay.
    pub(crate) fn plain(&self) -> String {
        let body = self.written.strip_prefix('-').unwrap_or(&self.written);
        let (whole, rest) = body.split_at(body.find('.').unwrap_or(body.len()));
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            trimmed => trimmed,
        };
        let sign = if self.exact.is_negative() { "-" } else { "" };
        format!("{sign}{whole}{rest}")
    }
}

fn power_of_ten(n: usize) -> BigInt {
    let ten = BigInt::from(10);
    (0..n).fold(BigInt::one(), |acc, _| acc * &ten)
}

/// Where a number goes that has too many decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To the nearest; to the even digit when two are equally near.
    HalfEven,
    /// Down, towards minus infinity.
    Down,
    /// Up, towards plus infinity.
    Up,
}

/// `value` with exactly `decimals` decimals, and whether that is less than the whole value.
pub(crate) fn rounded(value: &Exact, decimals: u32, rounding: Rounding) -> (String, bool) {
    let decimals = usize::try_from(decimals).unwrap_or(usize::MAX).min(60);
    let scaled = value * Exact::from_integer(power_of_ten(decimals));
    let (floor, rest) = scaled.numer().div_mod_floor(scaled.denom());
    let lost = !rest.is_zero();
    let up = lost
        && match rounding {
            Rounding::Down => false,
            Rounding::Up => true,
            Rounding::HalfEven => match (rest * 2u32).cmp(scaled.denom()) {
                std::cmp::Ordering::Less => false,
                std::cmp::Ordering::Equal => floor.is_odd(),
                std::cmp::Ordering::Greater => true,
            },
        };
    let scaled = if up { floor + 1u32 } else { floor };
    (point(&scaled, decimals), lost)
}

/// The digits of `scaled` with a point before the last `decimals`.
fn point(scaled: &BigInt, decimals: usize) -> String {
    let sign = if scaled.is_negative() { "-" } else { "" };
    let digits = format!("{:0>width$}", scaled.abs().to_string(), width = decimals + 1);
    let (whole, part) = digits.split_at(digits.len() - decimals);
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

/// `value` as a decimal when it has one of at most 24 decimals; no trailing zeros.
pub(crate) fn written(value: &Exact) -> Option<String> {
    let ten = BigInt::from(10);
    let mut scaled = value.clone();
    for decimals in 0..=WRITTEN_DECIMALS_MAX {
        if scaled.is_integer() {
            let decimals = usize::try_from(decimals).ok()?;
            return Some(point(scaled.numer(), decimals));
        }
        scaled *= &ten;
    }
    None
}

/// The digits without zeros at the end of the part after the point.
pub(crate) fn without_trailing_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// `n/d`, read back by [`from_fraction`].
pub(crate) fn to_fraction(value: &Exact) -> String {
    format!("{}/{}", value.numer(), value.denom())
}

/// Reads what [`to_fraction`] wrote.
pub(crate) fn from_fraction(text: &str) -> Option<Exact> {
    const FRACTION_CHARS_MAX: usize = 400;
    let (n, d) = text.split_once('/')?;
    if text.len() > FRACTION_CHARS_MAX {
        return None;
    }
    let n: BigInt = n.parse().ok()?;
    let d: BigInt = d.parse().ok()?;
    d.is_positive().then(|| Exact::new(n, d))
}
