//! What `bench-round.yaml` says, written by hand: how a value of each step is judged. Knows nothing of workflows;
//! `world` does.
//!
//! Numbers are whole thousandths of a millimetre, which is exact for every value that the bench sends.

/// The steps, in their order.
pub(super) const STEPS: [&str; 5] = ["ready", "length", "surface", "depth", "remark"];
/// Steps that a workflow cannot pass without.
pub(super) const REQUIRED: [&str; 4] = ["ready", "length", "surface", "depth"];
/// Reasons for corrections and skips.
pub(super) const REASONS: [&str; 2] = ["WORN", "MISHEARD"];

/// The step's own name, when there is one.
pub(super) fn step(name: &str) -> Option<&'static str> {
    STEPS.into_iter().find(|step| *step == name)
}

/// How a step may be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skip {
    Never,
    Reason,
    Free,
}

pub(super) fn skip(step: &str) -> Skip {
    match step {
        "surface" | "depth" => Skip::Reason,
        "remark" => Skip::Free,
        _ => Skip::Never,
    }
}

/// What a decision leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Continue,
    Redo,
    Abort,
}

/// The decisions of a block: that of the length has its own, every other the procedure's.
pub(super) fn decision(code: &str, decision: &str) -> Option<Effect> {
    match (code, decision) {
        ("LENGTH_OUT", "accept_deviation") => Some(Effect::Continue),
        ("LENGTH_OUT", "require_redo") => Some(Effect::Redo),
        ("LENGTH_OUT", "carry_on" | "redo") => None,
        (_, "carry_on") => Some(Effect::Continue),
        (_, "redo") => Some(Effect::Redo),
        (_, "abort") => Some(Effect::Abort),
        _ => None,
    }
}

/// A value that may be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    /// In the step's unit, as it is kept.
    pub(super) value: String,
    /// A number in thousandths of a millimetre.
    pub(super) number: Option<i64>,
    /// The unit it was given in.
    pub(super) unit: &'static str,
    /// Outside what is accepted.
    pub(super) out: bool,
    /// The code of the block that it makes.
    pub(super) blocks: Option<&'static str>,
    /// It is read back before it is recorded.
    pub(super) asks: bool,
}

impl Reading {
    /// Both say the same: `2 cm` is `20 mm`, however it is written.
    pub(super) fn means(&self, other: &Self) -> bool {
        self.value == other.value || (self.number.is_some() && self.number == other.number)
    }
}

/// What is to be done with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judged {
    Accept(Reading),
    Decline,
    Refuse(&'static str),
}

impl Reading {
    fn plain(value: &str) -> Self {
        Self {
            value: value.to_owned(),
            number: None,
            unit: "",
            out: false,
            blocks: None,
            asks: false,
        }
    }
}

/// Judges a value. `length` is the recorded length, on which the limits of the depth depend.
pub(super) fn judge(step: &str, value: &str, unit: Option<&str>, length: Option<i64>) -> Judged {
    let value = value.trim();
    if value.is_empty() {
        return Judged::Refuse("VALIDATION_ERROR");
    }
    match step {
        "length" => length_of(value, unit),
        "depth" => depth_of(value, unit, length),
        _ if unit.is_some() => Judged::Refuse("UNIT_MISMATCH"),
        "ready" => match value.to_lowercase().as_str() {
            "yes" | "confirmed" | "done" | "true" => Judged::Accept(Reading::plain("yes")),
            "no" | "false" => Judged::Decline,
            _ => Judged::Refuse("VALIDATION_ERROR"),
        },
        "surface" => match value.to_lowercase().as_str() {
            "smooth" => Judged::Accept(Reading::plain("smooth")),
            "rough" => Judged::Accept(Reading::plain("rough")),
            "cracked" | "badly cracked" => Judged::Accept(Reading {
                out: true,
                blocks: Some("SURFACE_CRACKED"),
                ..Reading::plain("cracked")
            }),
            _ => Judged::Refuse("VALIDATION_ERROR"),
        },
        _ if value.chars().count() > 20 => Judged::Refuse("VALIDATION_ERROR"),
        _ => Judged::Accept(Reading::plain(value)),
    }
}

/// Impossible outside 2 to 100 mm, accepted from 10 to 50 mm; a number without a unit that would only be right in
/// centimetres is asked about, and taken in centimetres where it is impossible in millimetres.
fn length_of(value: &str, unit: Option<&str>) -> Judged {
    let (number, said) = match number(value, unit, &["mm", "cm"]) {
        Ok(read) => read,
        Err(code) => return Judged::Refuse(code),
    };
    let accepted = |mm: i64| (10_000..=50_000).contains(&mm);
    let possible = |mm: i64| (2_000..=100_000).contains(&mm);
    let doubtful = said.is_none()
        && !accepted(number.thousandths)
        && accepted(number.thousandths.saturating_mul(10));
    let unit = match said {
        Some(unit) => unit,
        None if doubtful && !possible(number.thousandths) => "cm",
        None => "mm",
    };
    let (mm, value) = if unit == "cm" {
        let mm = number.thousandths.saturating_mul(10);
        (mm, tenths(mm))
    } else if number.decimals > 1 {
        return Judged::Refuse("VALIDATION_ERROR");
    } else {
        (number.thousandths, number.written)
    };
    if !possible(mm) {
        return Judged::Refuse("IMPLAUSIBLE_VALUE");
    }
    let out = !accepted(mm);
    Judged::Accept(Reading {
        value,
        number: Some(mm),
        unit,
        out,
        blocks: out.then_some("LENGTH_OUT"),
        asks: out || doubtful,
    })
}

/// Impossible outside 0 to 100 mm, accepted up to the length; what is more is recorded as out of range and goes on.
fn depth_of(value: &str, unit: Option<&str>, length: Option<i64>) -> Judged {
    let number = match number(value, unit, &["mm"]) {
        Ok((number, _)) => number,
        Err(code) => return Judged::Refuse(code),
    };
    let Some(length) = length else {
        return Judged::Refuse("VALIDATION_ERROR");
    };
    if number.decimals > 1 {
        return Judged::Refuse("VALIDATION_ERROR");
    }
    if !(0..=100_000).contains(&number.thousandths) {
        return Judged::Refuse("IMPLAUSIBLE_VALUE");
    }
    Judged::Accept(Reading {
        value: number.written,
        number: Some(number.thousandths),
        unit: "mm",
        out: number.thousandths > length,
        blocks: None,
        asks: false,
    })
}

struct Number {
    thousandths: i64,
    decimals: usize,
    /// Without leading zeros.
    written: String,
}

/// The number and the unit that was said with it, in `unit` or after the digits.
fn number(
    value: &str,
    unit: Option<&str>,
    accepted: &[&'static str],
) -> Result<(Number, Option<&'static str>), &'static str> {
    let end = value.find(|c: char| c.is_alphabetic() || c.is_whitespace() || c == ',');
    let (digits, rest) = value.split_at(end.unwrap_or(value.len()));
    let rest = rest.trim();
    let number = digits_of(digits).ok_or("VALIDATION_ERROR")?;
    // `4,2` has no point, and `1e5` no unit.
    let exponent = rest.starts_with('e') && rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
    if rest.starts_with(',') || exponent {
        return Err("VALIDATION_ERROR");
    }
    let known = |said: &str| accepted.iter().copied().find(|u| *u == said).ok_or("UNIT_MISMATCH");
    let arguments = unit.map(known).transpose()?;
    let trailing = (!rest.is_empty()).then(|| known(rest)).transpose()?;
    match (arguments, trailing) {
        (Some(one), Some(other)) if one != other => Err("UNIT_MISMATCH"),
        (Some(said), _) | (None, Some(said)) => Ok((number, Some(said))),
        (None, None) => Ok((number, None)),
    }
}

fn digits_of(text: &str) -> Option<Number> {
    let (sign, body) = match text.strip_prefix('-') {
        Some(body) => (-1, body),
        None => (1, text),
    };
    let (whole, fraction) = match body.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (body, ""),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 3 {
        return None;
    }
    let padded = format!("{fraction:0<3}");
    let whole_part = whole.parse::<i64>().ok()?.checked_mul(1_000)?;
    let thousandths = sign * whole_part.checked_add(padded.parse().ok()?)?;
    let plain = match whole.trim_start_matches('0') {
        "" => "0",
        plain => plain,
    };
    let sign = if thousandths < 0 { "-" } else { "" };
    let written = match fraction {
        "" => format!("{sign}{plain}"),
        fraction => format!("{sign}{plain}.{fraction}"),
    };
    Some(Number { thousandths, decimals: fraction.len(), written })
}

/// With one decimal. The bench sends no value that would have to be rounded.
fn tenths(thousandths: i64) -> String {
    format!("{}.{}", thousandths / 1_000, thousandths % 1_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(value: &str, unit: Option<&str>) -> Judged {
        judge("length", value, unit, None)
    }

    #[test]
    fn lengths_are_judged_as_the_file_says() {
        let reading = |judged: Judged| match judged {
            Judged::Accept(reading) => (reading.value, reading.out, reading.asks, reading.unit),
            other @ (Judged::Decline | Judged::Refuse(_)) => panic!("{other:?}"),
        };
        assert_eq!(reading(length("10", None)), ("10".into(), false, false, "mm"));
        assert_eq!(reading(length("50.1", None)), ("50.1".into(), true, true, "mm"));
        assert_eq!(reading(length("3", None)), ("3".into(), true, true, "mm"));
        assert_eq!(reading(length("1.5", None)), ("15.0".into(), false, true, "cm"));
        assert_eq!(reading(length("3 cm", Some("cm"))), ("30.0".into(), false, false, "cm"));
        for wrong in ["4,2", "1e5", ".5", "4.", "x", "12.55", ""] {
            assert_eq!(length(wrong, None), Judged::Refuse("VALIDATION_ERROR"), "{wrong}");
        }
        assert_eq!(length("3 kg", None), Judged::Refuse("UNIT_MISMATCH"));
        assert_eq!(length("3 cm", Some("mm")), Judged::Refuse("UNIT_MISMATCH"));
        assert_eq!(length("-1", None), Judged::Refuse("IMPLAUSIBLE_VALUE"));
    }
}
