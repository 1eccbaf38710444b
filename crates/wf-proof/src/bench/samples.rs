//! Times of calls, and what is said of them.

use std::time::Duration;

use serde::Serialize;

/// Times of calls.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    nanos: Vec<u64>,
}

/// Quantiles of [`Samples`], in microseconds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Quantiles {
    /// How many calls.
    pub count: usize,
    /// Half of the calls took at most this.
    pub p50_us: f64,
    /// 90 of 100.
    pub p90_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
    /// 999 of 1,000.
    pub p999_us: f64,
}

impl Samples {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { nanos: Vec::new() }
    }

    /// In nanoseconds, the shortest first.
    #[must_use]
    pub fn sorted(&self) -> Vec<u64> {
        let mut sorted = self.nanos.clone();
        sorted.sort_unstable();
        sorted
    }

    /// Adds one.
    pub fn push(&mut self, time: Duration) {
        self.nanos.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds those of another.
    pub fn extend(&mut self, other: Self) {
        self.nanos.extend(other.nanos);
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nanos.len()
    }

    /// None yet?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nanos.is_empty()
    }

    /// Their quantiles; zero when there are none.
    #[must_use]
    pub fn quantiles(&self) -> Quantiles {
        let sorted = self.sorted();
        let at = |per_mille: usize| {
            // The smallest value that so many are not above.
            let rank = (sorted.len() * per_mille).div_ceil(1_000).max(1);
            sorted
                .get(rank - 1)
                .map_or(0.0, |nanos| Duration::from_nanos(*nanos).as_secs_f64() * 1e6)
        };
        Quantiles {
            count: sorted.len(),
            p50_us: at(500),
            p90_us: at(900),
            p99_us: at(990),
            p999_us: at(999),
        }
    }
}

/// One figure over the rounds of a run.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// Half of them are at most this.
    pub median: f64,
    /// The most.
    pub max: f64,
}

impl Spread {
    /// Of these; zero when there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        let at = |place: usize| sorted.get(place).copied().unwrap_or_default();
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            at(middle)
        } else {
            f64::midpoint(at(middle - 1), at(middle))
        };
        Self { min: *min, median, max: *max }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Samples, Spread};

    #[test]
    fn a_quantile_is_the_least_value_that_so_many_are_not_above() {
        let mut samples = Samples::default();
        for micros in (1..=1_000).rev() {
            samples.push(Duration::from_micros(micros));
        }
        let said = samples.quantiles();
        assert_eq!(said.count, 1_000);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(near(said.p50_us, 500.0), "{said:?}");
        assert!(near(said.p99_us, 990.0), "{said:?}");
        assert!(near(said.p999_us, 999.0), "{said:?}");
        assert_eq!(Samples::default().quantiles().count, 0);
    }

    #[test]
    fn the_middle_of_an_even_number_is_between_two() {
        let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0]);
        assert!((spread.median - 2.5).abs() < 1e-9 && spread.min < 1.1 && spread.max > 3.9);
        assert!((Spread::of(&[3.0, 9.0, 1.0]).median - 3.0).abs() < 1e-9);
    }
}
