//! A range with its bounds evaluated, and how it is shown.

use crate::decimal::{self, Exact, Rounding};
use crate::expr::{Facts, Missing};
use crate::rules::{Bound, Bounds};

/// Decimals that a bound without digits of its own is shown with, when the step names none.
const SHOWN_DECIMALS: u32 = 6;

/// A range as it stands in one workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    low: Exact,
    high: Exact,
    /// The lower bound for display; what it shows is inside.
    pub(crate) low_shown: String,
    /// The upper bound for display; what it shows is inside.
    pub(crate) high_shown: String,
}

impl Span {
    /// Evaluates both bounds. `decimals` limits how a bound is shown that no digits express.
    ///
    /// A range whose lower bound turns out above its upper one accepts nothing: that is a mistake in the procedure, not
    /// in the value, so it has no span.
    pub(crate) fn of(
        bounds: &Bounds,
        facts: &Facts<'_>,
        decimals: Option<u32>,
    ) -> Result<Self, Missing> {
        let (low, low_shown) = evaluated(&bounds.low, facts, decimals, Rounding::Up)?;
        let (high, high_shown) = evaluated(&bounds.high, facts, decimals, Rounding::Down)?;
        if low > high {
            return Err(Missing::Ever);
        }
        Ok(Self { low, high, low_shown, high_shown })
    }

    /// Whether the unrounded `value` lies inside; both ends do.
    pub(crate) fn contains(&self, value: &Exact) -> bool {
        *value >= self.low && *value <= self.high
    }

    /// `1.5 to 6.0`.
    pub(crate) fn words(&self) -> String {
        format!("{} to {}", self.low_shown, self.high_shown)
    }
}

fn evaluated(
    bound: &Bound,
    facts: &Facts<'_>,
    decimals: Option<u32>,
    inward: Rounding,
) -> Result<(Exact, String), Missing> {
    match bound {
        Bound::Fixed { written, exact } => Ok((exact.clone(), written.clone())),
        Bound::Computed(expression) => {
            let exact = expression.number(facts)?;
            let shown = decimal::written(&exact).unwrap_or_else(|| {
                decimal::rounded(&exact, decimals.unwrap_or(SHOWN_DECIMALS), inward).0
            });
            Ok((exact, shown))
        }
    }
}
