//! Each figure with its target: reached or not, from the ratios of the rounds.

use serde::Serialize;

use super::figures::{Asked, Round, ToolList};
use super::load::Measured;
use super::samples::Spread;

/// One figure.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// Its short name.
    pub name: &'static str,
    /// What it is about.
    pub what: String,
    /// What it must be.
    pub target: String,
    /// What it is, over the rounds.
    pub value: Spread,
    /// What the value counts: `×`, `%`, `ms`, `MB`, `characters`.
    pub unit: &'static str,
    /// The median meets the target.
    pub reached: bool,
}

/// What a figure must be.
#[derive(Debug, Clone, Copy)]
enum Target {
    AtMost(f64),
    AtLeast(f64),
}

fn verdict(
    name: &'static str,
    what: String,
    target: Target,
    unit: &'static str,
    values: &[f64],
) -> Verdict {
    let value = Spread::of(values);
    let (words, reached) = match target {
        Target::AtMost(most) => (format!("≤ {most} {unit}"), value.median <= most),
        Target::AtLeast(least) => (format!("≥ {least} {unit}"), value.median >= least),
    };
    // What was not measured is not reached.
    let reached = reached && !values.is_empty();
    Verdict { name, what, target: words, value, unit, reached }
}

/// All of them.
#[must_use]
pub fn verdicts(rounds: &[Round], tools: ToolList, asked: &Asked) -> Vec<Verdict> {
    let callers = asked.callers;
    let of = |value: &dyn Fn(&Round) -> f64| rounds.iter().map(value).collect::<Vec<_>>();
    let peer: Vec<f64> = rounds
        .iter()
        .filter_map(|r| Some(r.product_many.rate / r.peer_many.as_ref()?.rate))
        .collect();
    let mut all = vec![
        verdict(
            "P1",
            "one caller: p50 of a durable step beside the floor (raw commit + bare echo)"
                .to_owned(),
            Target::AtMost(1.5),
            "×",
            &of(&|r| r.product_one.times.p50_us / floor_one(r)),
        ),
        verdict(
            "P2",
            format!(
                "{callers} callers: steps a second beside the floor (grouped commits and bare echo)"
            ),
            Target::AtLeast(50.0),
            "%",
            &of(&|r| 100.0 * r.product_many.rate / floor_many(r)),
        ),
        verdict(
            "P2",
            format!("{callers} callers: steps a second beside the Python peer"),
            Target::AtLeast(10.0),
            "×",
            &peer,
        ),
    ];
    all.extend(engines(rounds, callers));
    all.extend(growth(rounds, asked));
    all.extend(memory(rounds, asked));
    all.push(verdict(
        "P7",
        "one caller: the first call beside its replay, p50".to_owned(),
        Target::AtLeast(3.0),
        "×",
        &of(&|r| {
            r.product_one.times.p50_us / r.product_one.replays.map_or(f64::INFINITY, |q| q.p50_us)
        }),
    ));
    for (what, most, length) in [
        ("the list of tools without the schemas of results", 12_000.0, tools.bare),
        ("the list of tools with them", 18_000.0, tools.whole),
    ] {
        #[expect(clippy::cast_precision_loss, reason = "a length of a list is far below 2^52")]
        let length = [length as f64];
        all.push(verdict("P7", what.to_owned(), Target::AtMost(most), "characters", &length));
    }
    all
}

/// Time of a step that costs nothing but its commit and its way over HTTP, in microseconds.
#[must_use]
pub fn floor_one(round: &Round) -> f64 {
    round.raw_one.times.p50_us + round.echo_one.times.p50_us
}

/// Rate of steps that cost nothing but that, when both take turns on the same processors.
#[must_use]
pub fn floor_many(round: &Round) -> f64 {
    1.0 / (1.0 / round.raw_many.rate + 1.0 / round.echo_many.rate)
}

/// Beside the better one of the engines, which is known only where both were measured.
fn engines(rounds: &[Round], callers: usize) -> Vec<Verdict> {
    let mut all = Vec::with_capacity(4);
    for (many, who) in [(false, "one caller".to_owned()), (true, format!("{callers} callers"))] {
        let measured: Vec<(&Measured, &Measured)> = rounds
            .iter()
            .filter_map(|r| {
                let (ours, restate, dbos) = if many {
                    (&r.product_many, &r.restate_many, &r.dbos_many)
                } else {
                    (&r.product_one, &r.restate_one, &r.dbos_one)
                };
                Some((ours, better(restate.as_ref()?, dbos.as_ref()?)))
            })
            .collect();
        let of = |value: fn(&Measured) -> f64| -> Vec<f64> {
            measured.iter().map(|(ours, theirs)| value(ours) / value(theirs)).collect()
        };
        all.push(verdict(
            "P3",
            format!("{who}: steps a second beside the better of Restate and DBOS"),
            Target::AtLeast(5.0),
            "×",
            &of(|m| m.rate),
        ));
        all.push(verdict(
            "P3",
            format!("{who}: p99 of a step beside that of the same"),
            Target::AtMost(0.2),
            "×",
            &of(|m| m.times.p99_us),
        ));
    }
    all
}

/// The one with more steps a second.
fn better<'a>(one: &'a Measured, other: &'a Measured) -> &'a Measured {
    if one.rate >= other.rate { one } else { other }
}

fn growth(rounds: &[Round], asked: &Asked) -> Vec<Verdict> {
    let ratio = |of: fn(&Round) -> (f64, f64)| -> Vec<f64> {
        rounds.iter().map(|r| of(r).1 / of(r).0).collect()
    };
    let (small, large) = asked.workflows;
    let workflows = format!("with {large} workflows beside {small}");
    let events = format!("of a workflow with {} events beside one with 10", asked.history);
    let most = Target::AtMost(1.2);
    vec![
        verdict("P4", format!("p50 of a step {workflows}"), most, "×", &ratio(|r| r.growth.step)),
        verdict("P4", format!("p50 of a step {events}"), most, "×", &ratio(|r| r.growth.history)),
        verdict(
            "P4",
            format!("p50 of find_work {workflows}"),
            most,
            "×",
            &ratio(|r| r.growth.find_work),
        ),
        verdict(
            "P4",
            format!("p50 of get_status {workflows}"),
            most,
            "×",
            &ratio(|r| r.growth.get_status),
        ),
        verdict(
            "P4",
            format!("p50 of get_status {events}"),
            most,
            "×",
            &ratio(|r| r.growth.history_status),
        ),
    ]
}

fn memory(rounds: &[Round], asked: &Asked) -> Vec<Verdict> {
    let starts = |cold: bool| -> Vec<f64> {
        let all = rounds.iter().flat_map(|r| r.starts);
        all.filter(|start| start.cold == cold).map(|start| start.ready_ms).collect()
    };
    let large = asked.workflows.1;
    let megabytes = super::run::megabytes;
    vec![
        verdict(
            "P5",
            format!("start with {large} workflows, the database in memory"),
            Target::AtMost(200.0),
            "ms",
            &starts(false),
        ),
        verdict(
            "P5",
            format!("start with {large} workflows, the database only on the disk"),
            Target::AtMost(200.0),
            "ms",
            &starts(true),
        ),
        verdict(
            "P5",
            "memory when nobody calls".to_owned(),
            Target::AtMost(40.0),
            "MB",
            &rounds
                .iter()
                .flat_map(|r| r.starts.map(|start| megabytes(start.idle)))
                .collect::<Vec<_>>(),
        ),
        verdict(
            "P5",
            format!("most memory with {} callers", asked.callers),
            Target::AtMost(120.0),
            "MB",
            &rounds.iter().map(|r| megabytes(r.product_many.resident_most)).collect::<Vec<_>>(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Measured, Target, better, verdict};

    #[test]
    fn the_better_engine_is_the_faster_one() {
        let at = |rate: f64| Measured { rate, ..Measured::default() };
        let (slow, fast) = (at(190.0), at(700.0));
        for found in [better(&slow, &fast), better(&fast, &slow)] {
            assert!(found.rate > 200.0);
        }
    }

    #[test]
    fn the_median_decides_and_what_was_not_measured_is_not_reached() {
        let of = |target, values: &[f64]| verdict("P0", String::new(), target, "×", values).reached;
        assert!(of(Target::AtMost(1.5), &[9.0, 1.4, 1.0]));
        assert!(!of(Target::AtMost(1.5), &[1.6, 1.7, 1.0]));
        assert!(of(Target::AtLeast(10.0), &[10.0]));
        assert!(!of(Target::AtLeast(10.0), &[9.9]));
        assert!(!of(Target::AtMost(1.5), &[]));
    }
}
