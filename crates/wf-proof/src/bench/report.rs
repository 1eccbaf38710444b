//! Writes what was measured: all of it as JSON, the figures into the page between two marks, the plot beside it.

use std::fmt::Write as _;
use std::path::Path;

use super::figures::{Figures, Round};
use super::load::Measured;
use super::plot;
use super::run::megabytes;
use super::samples::Spread;
use super::verdicts::{Verdict, floor_many, floor_one};
use crate::fault::Fault;

const BEGIN: &str = "<!-- figures: written by wf-bench, do not edit -->";
const END: &str = "<!-- end of figures -->";

/// Writes `benchmarks.json`, `benchmarks.svg`, and the part of `benchmarks.md` between the marks, into this folder.
///
/// # Errors
/// When a file cannot be written, or the page has no marks.
pub fn write(figures: &Figures, folder: &Path) -> Result<(), Fault> {
    let wrong = |path: &Path| Fault::io(format!("writing {}", path.display()));
    let json = folder.join("benchmarks.json");
    let mut text = serde_json::to_string_pretty(figures)
        .map_err(|error| Fault::Run(format!("the figures as JSON: {error}")))?;
    text.push('\n');
    std::fs::write(&json, text).map_err(wrong(&json))?;
    let picture = folder.join("benchmarks.svg");
    std::fs::write(&picture, plot::svg(figures)?).map_err(wrong(&picture))?;
    let page = folder.join("benchmarks.md");
    let before = if page.exists() {
        std::fs::read_to_string(&page).map_err(Fault::io(format!("reading {}", page.display())))?
    } else {
        format!("{BEGIN}\n{END}\n")
    };
    let after = put(&before, &markdown(figures)).ok_or_else(|| {
        Fault::Run(format!("{} has no line {BEGIN:?} with {END:?} below it", page.display()))
    })?;
    std::fs::write(&page, after).map_err(wrong(&page))
}

/// The page with this between its marks.
fn put(page: &str, figures: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{figures}\n{END}{after}"))
}

fn markdown(figures: &Figures) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(text, "{}\n", machine(figures));
    text.push_str("| | figure | target | median (least – most) | |\n|---|---|---|---|---|\n");
    for said in &figures.verdicts {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            said.name,
            said.what,
            said.target,
            value(said),
            if said.reached { "reached" } else { "**not reached**" }
        );
    }
    let _ = write!(text, "\n{}\n{}", absolute(figures), settings(figures));
    text
}

/// What the engines ran with, in their own words; that one is missing must be seen.
fn settings(figures: &Figures) -> String {
    let mut text = "What the engines ran with, in their own words:\n\n".to_owned();
    for name in ["Restate", "DBOS"] {
        let found = figures.settings.iter().find(|peer| peer.name == name);
        let said = found.map_or("not measured: it was not installed", |peer| &peer.settings);
        let _ = writeln!(text, "- {name}: {said}");
    }
    text
}

fn machine(figures: &Figures) -> String {
    let machine = &figures.machine;
    format!(
        "{}, {} rounds of {} s a measurement. Machine: {}, {} processors, {:.0} GB of memory, {}, databases on {} \
         (fsync p50 {:.0} µs, p99 {:.0} µs), load before the run {:.2}. The large database has {} workflows in {:.1} GB.",
        figures.version,
        figures.rounds.len(),
        figures.seconds,
        machine.processor,
        machine.cores,
        megabytes(machine.memory) / 1e3,
        machine.kernel,
        machine.file_system,
        machine.fsync.p50_us,
        machine.fsync.p99_us,
        machine.load_before,
        figures.workflows.1,
        megabytes(figures.large_bytes) / 1e3,
    )
}

fn value(said: &Verdict) -> String {
    let Verdict { value, unit, .. } = said;
    if value.median <= 0.0 {
        return "not measured".to_owned();
    }
    let digits = if value.median < 20.0 { 2 } else { 0 };
    format!("{:.digits$} ({:.digits$} – {:.digits$}) {unit}", value.median, value.min, value.max)
}

/// One cell of the table of times and rates.
type Cell<'a> = &'a dyn Fn(&Round) -> Option<f64>;

/// A server's loads under one caller and under many.
type Pair = fn(&Round) -> Option<[&Measured; 2]>;

/// A line of the table: a cell that nothing was measured for is empty.
fn medians(rounds: &[Round], name: &str, cells: [Cell<'_>; 8]) -> String {
    let mut text = format!("| {name} ");
    for cell in cells {
        let values: Vec<f64> = rounds.iter().filter_map(cell).collect();
        let _ = match values.as_slice() {
            [] => write!(text, "| "),
            some => write!(text, "| {:.0} ", Spread::of(some).median),
        };
    }
    text.push_str("|\n");
    text
}

/// The times and rates behind the ratios.
fn absolute(figures: &Figures) -> String {
    let mut text = format!(
        "| medians | one caller: steps/s | p50 µs | p99 µs | {callers} callers: steps/s | p50 µs | p99 µs | server CPU µs a call | most memory MB |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        callers = figures.callers
    );
    let mut row =
        |name: &str, cells: [Cell<'_>; 8]| text.push_str(&medians(&figures.rounds, name, cells));
    let none: Cell<'_> = &|_| None;
    let servers: [(&str, Pair); 5] = [
        ("Checkpoint", |r| Some([&r.product_one, &r.product_many])),
        ("Python peer", |r| Some([r.peer_one.as_ref()?, r.peer_many.as_ref()?])),
        ("Restate", |r| Some([r.restate_one.as_ref()?, r.restate_many.as_ref()?])),
        ("DBOS", |r| Some([r.dbos_one.as_ref()?, r.dbos_many.as_ref()?])),
        ("bare echo", |r| Some([&r.echo_one, &r.echo_many])),
    ];
    for (name, of) in servers {
        row(
            name,
            [
                &|r| of(r).map(|[one, _]| one.rate),
                &|r| of(r).map(|[one, _]| one.times.p50_us),
                &|r| of(r).map(|[one, _]| one.times.p99_us),
                &|r| of(r).map(|[_, many]| many.rate),
                &|r| of(r).map(|[_, many]| many.times.p50_us),
                &|r| of(r).map(|[_, many]| many.times.p99_us),
                &|r| of(r).map(|[_, many]| many.server_cpu_us),
                &|r| of(r).map(|[_, many]| megabytes(many.resident_most)),
            ],
        );
    }
    row(
        "raw SQLite (times of a commit)",
        [
            &|r| Some(r.raw_one.rate),
            &|r| Some(r.raw_one.times.p50_us),
            &|r| Some(r.raw_one.times.p99_us),
            &|r| Some(r.raw_many.rate),
            &|r| Some(r.raw_many.times.p50_us),
            &|r| Some(r.raw_many.times.p99_us),
            none,
            none,
        ],
    );
    row(
        "floor",
        [none, &|r| Some(floor_one(r)), none, &|r| Some(floor_many(r)), none, none, none, none],
    );
    row(
        "Checkpoint, replay",
        [
            none,
            &|r| Some(r.product_one.replays?.p50_us),
            &|r| Some(r.product_one.replays?.p99_us),
            none,
            none,
            none,
            none,
            none,
        ],
    );
    text.push('\n');
    text.push_str(&beside_the_echo(figures));
    text.push('\n');
    text.push_str(&growth(figures));
    text
}

/// Calls that write nothing, beside a server that does nothing with calls of the same sizes.
fn beside_the_echo(figures: &Figures) -> String {
    let median = |of: &dyn Fn(&Round) -> f64| {
        Spread::of(&figures.rounds.iter().map(of).collect::<Vec<_>>()).median
    };
    let row = |name: &str, ours: fn(&Round) -> f64, echo: fn(&Round) -> f64| {
        let (times, ours, echo) = (median(&|r| ours(r) / echo(r)), median(&ours), median(&echo));
        format!("| {name} | {ours:.0} | {echo:.0} | {times:.1} |\n")
    };
    let mut text = "| p50 µs, one caller | Checkpoint | bare echo of the same sizes | × |\n|---|---|---|---|\n".to_owned();
    text.push_str(&row(
        "tools/list",
        |r| r.list_one.times.p50_us,
        |r| r.list_echo_one.times.p50_us,
    ));
    let replay = |r: &Round| r.product_one.replays.map_or(0.0, |q| q.p50_us);
    text.push_str(&row("replay of a step", replay, |r| r.echo_one.times.p50_us));
    text
}

fn growth(figures: &Figures) -> String {
    let pair = |name: &str, of: fn(&Round) -> (f64, f64)| {
        let (first, second): (Vec<f64>, Vec<f64>) = figures.rounds.iter().map(of).unzip();
        let (first, second) = (Spread::of(&first).median, Spread::of(&second).median);
        format!("| {name} | {first:.0} | {second:.0} |\n")
    };
    let (small, large) = figures.workflows;
    let mut text =
        format!("| p50 µs, one caller | {small} workflows | {large} workflows |\n|---|---|---|\n");
    text.push_str(&pair("submit_step", |r| r.growth.step));
    text.push_str(&pair("find_work", |r| r.growth.find_work));
    text.push_str(&pair("get_status", |r| r.growth.get_status));
    let events = figures.history;
    let _ = write!(text, "\n| p50 µs, one caller | 10 events | {events} events |\n|---|---|---|\n");
    text.push_str(&pair("correct_step", |r| r.growth.history));
    text.push_str(&pair("get_status", |r| r.growth.history_status));
    text
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, put};

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = format!("above\n{BEGIN}\nold\n{END}\nbelow\n");
        let after = put(&page, "new").expect("the marks are there");
        assert!(after.starts_with("above\n") && after.ends_with("\nbelow\n"));
        assert!(after.contains("new") && !after.contains("old"));
        assert_eq!(put(&after, "new").as_deref(), Some(after.as_str()));
        assert_eq!(put("no marks", "new"), None);
    }
}
