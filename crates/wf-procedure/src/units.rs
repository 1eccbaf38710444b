//! Units of measurement: exact conversion and the words for speech.
//!
//! No library is used: the well-kept ones (`uom`, `dimensioned`, `measurements`) convert in floats, and a bound like
//! 6.0 bar must not depend on one. `units::table` holds every unit with its exact rational factor and source.

mod table;

use num_bigint::BigInt;
use wf_core::models::Text;
use wf_core::policy::UnitWords;

use crate::decimal::Exact;

/// What a unit measures; units of one quantity convert into each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    Pressure,
    Temperature,
    Length,
    Area,
    Volume,
    Mass,
    Force,
    Torque,
    Energy,
    Power,
    Speed,
    Acceleration,
    Flow,
    MassFlow,
    Time,
    Frequency,
    Angle,
    Voltage,
    Current,
    Resistance,
    Capacitance,
    Charge,
    Conductivity,
    Ratio,
    Concentration,
    Molarity,
    Density,
    Viscosity,
    KinematicViscosity,
    Illuminance,
    SoundLevel,
    Acidity,
}

/// A unit of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    /// As written.
    pub(crate) symbol: &'static str,
    /// As spoken for one.
    pub(crate) one: &'static str,
    /// As spoken for several.
    pub(crate) many: &'static str,
    /// Other ways to say or type it, lower case.
    aliases: &'static [&'static str],
    /// What it measures.
    pub(crate) quantity: Quantity,
    /// A value times this, plus the offset, is in the quantity's base unit.
    factor: (i128, i128),
    /// Zero for all but temperatures.
    offset: (i128, i128),
}

impl Unit {
    fn factor(&self) -> Exact {
        ratio(self.factor)
    }

    fn offset(&self) -> Exact {
        ratio(self.offset)
    }
}

fn ratio((n, d): (i128, i128)) -> Exact {
    Exact::new(BigInt::from(n), BigInt::from(d))
}

/// The unit with exactly this symbol, as procedure files write it.
pub(crate) fn by_symbol(symbol: &str) -> Option<&'static Unit> {
    let symbol = same_letters(symbol);
    table::UNITS.iter().find(|u| u.symbol == symbol)
}

/// The unit that somebody means who writes its words instead of its symbol, for suggestions.
pub(crate) fn said(words: &str) -> Option<&'static Unit> {
    table::UNITS.iter().find(|unit| StepUnit::of_table(unit).is_said(words))
}

/// Every symbol, for suggestions.
pub(crate) fn symbols() -> impl Iterator<Item = &'static str> {
    table::UNITS.iter().map(|u| u.symbol)
}

/// Symbols of one quantity, for suggestions.
pub(crate) fn symbols_of(quantity: Quantity) -> impl Iterator<Item = &'static str> {
    table::UNITS.iter().filter(move |u| u.quantity == quantity).map(|u| u.symbol)
}

/// `value` of one unit in another of the same quantity, exactly.
pub(crate) fn convert(value: &Exact, from: &Unit, to: &Unit) -> Exact {
    if from.symbol == to.symbol {
        return value.clone();
    }
    (value * from.factor() + from.offset() - to.offset()) / to.factor()
}

/// Letters that look the same and mean the same: the micro sign, the ohm sign, the ordinal sign.
fn same_letters(text: &str) -> String {
    text.trim()
        .chars()
        .map(|c| match c {
            '\u{3bc}' => '\u{b5}',
            '\u{2126}' => '\u{3a9}',
            '\u{ba}' | '\u{2da}' => '\u{b0}',
            c => c,
        })
        .collect()
}

/// A spoken unit in one form: lower case, single spaces, American spelling, no point at the end.
fn spoken_form(text: &str) -> String {
    same_letters(text)
        .trim_end_matches('.')
        .to_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace("metre", "meter")
        .replace("litre", "liter")
}

/// A unit a step may be answered in: of the table, or one that only the procedure knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StepUnit {
    /// Symbol and words.
    pub(crate) words: UnitWords,
    /// The unit of the table; none converts when absent.
    pub(crate) known: Option<&'static Unit>,
}

impl StepUnit {
    /// A unit of the table with its words.
    pub(crate) fn of_table(unit: &'static Unit) -> Self {
        Self {
            words: UnitWords {
                symbol: unit.symbol.to_owned(),
                one: Text::from(unit.one),
                many: Text::from(unit.many),
            },
            known: Some(unit),
        }
    }

    /// Its symbol.
    pub(crate) fn symbol(&self) -> &str {
        &self.words.symbol
    }

    /// Whether somebody who says `said` means this unit. Symbols count with their case (mW is not MW), words do not.
    pub(crate) fn is_said(&self, said: &str) -> bool {
        if same_letters(said) == same_letters(self.symbol()) {
            return true;
        }
        let said = spoken_form(said);
        let words = [&self.words.one, &self.words.many];
        if words.iter().flat_map(|t| t.wordings()).any(|w| spoken_form(w) == said) {
            return true;
        }
        self.known.is_some_and(|unit| unit.aliases.contains(&said.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::decimal::{Decimal, written};

    fn converted(value: &str, from: &str, to: &str) -> String {
        let value = Decimal::parse(value).unwrap().exact;
        let exact = convert(&value, by_symbol(from).unwrap(), by_symbol(to).unwrap());
        written(&exact).unwrap_or_else(|| crate::decimal::to_fraction(&exact))
    }

    #[test]
    fn known_conversions_are_exact() {
        for (value, from, to, expected) in [
            ("1", "bar", "kPa", "100"),
            ("1", "atm", "Pa", "101325"),
            ("1", "psi", "Pa", "8896443230521/1290320000"),
            ("760", "Torr", "atm", "1"),
            ("0", "°C", "K", "273.15"),
            ("100", "°C", "°F", "212"),
            ("-40", "°F", "°C", "-40"),
            ("0", "K", "°F", "-459.67"),
            ("1", "in", "mm", "25.4"),
            ("1", "ft", "m", "0.3048"),
            ("1", "in/s", "mm/s", "25.4"),
            ("1", "lb", "g", "453.59237"),
            ("16", "oz", "lb", "1"),
            ("1", "gal", "L", "3.785411784"),
            ("1", "lbf·ft", "Nm", "1.3558179483314004"),
            ("90", "km/h", "m/s", "25"),
            ("3000", "rpm", "Hz", "50"),
            ("1", "kWh", "J", "3600000"),
            ("1", "h", "s", "3600"),
            ("1", "hp", "W", "745.69987158227022"),
            ("12.5", "%", "ppm", "125000"),
            ("1", "g/cm³", "kg/m³", "1000"),
            ("60", "L/min", "m³/h", "3.6"),
        ] {
            assert_eq!(converted(value, from, to), expected, "{value} {from} in {to}");
        }
    }

    #[test]
    fn every_symbol_and_word_means_one_unit() {
        let mut said: BTreeMap<String, &str> = BTreeMap::new();
        for unit in table::UNITS {
            for alias in unit.aliases {
                assert_eq!(&spoken_form(alias), alias, "not in its spoken form");
            }
            let words = unit.aliases.iter().copied().chain([unit.one, unit.many]);
            for word in words {
                if let Some(other) = said.insert(spoken_form(word), unit.symbol) {
                    assert_eq!(other, unit.symbol, "{word} is said for both");
                }
            }
            assert_eq!(by_symbol(unit.symbol).unwrap(), unit, "symbol twice");
        }
    }

    #[test]
    fn case_counts_in_symbols_and_not_in_words() {
        let milli = StepUnit::of_table(by_symbol("mW").unwrap());
        assert!(milli.is_said("mW") && milli.is_said("Milliwatts") && !milli.is_said("MW"));
        let bar = StepUnit::of_table(by_symbol("bar").unwrap());
        assert!(bar.is_said("BAR") && bar.is_said(" bars ") && !bar.is_said("mbar"));
        let celsius = StepUnit::of_table(by_symbol("°C").unwrap());
        for said in ["degrees Celsius", "Celsius", "°C", "ºC", "C", "deg c"] {
            assert!(celsius.is_said(said), "{said}");
        }
        let speed = StepUnit::of_table(by_symbol("mm/s").unwrap());
        assert!(speed.is_said("millimetres per second"));
        let ohm = StepUnit::of_table(by_symbol("k\u{2126}").unwrap());
        assert!(ohm.is_said("kilohms"));
    }
}
