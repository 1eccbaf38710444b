//! What was measured as docs/cost.md shows it.

use std::fmt::Write as _;

use super::units::Units;
use super::{Measured, Meter, STEPS};

const MONTH_SECONDS: u64 = 2_629_800;

/// Whole units, or one decimal.
pub(super) fn shown(halves: u64) -> String {
    if halves.is_multiple_of(2) { (halves / 2).to_string() } else { format!("{}.5", halves / 2) }
}

/// The mean of `count`, to a tenth.
fn mean(sum: u64, count: u64, parts: u64) -> String {
    let tenths = (sum * 10).div_ceil(count * parts);
    let (whole, tenth) = (tenths / 10, tenths % 10);
    if tenth == 0 { whole.to_string() } else { format!("{whole}.{tenth}") }
}

/// `2 × GetItem, Query`
fn counted(requests: &[String]) -> String {
    let mut counts: Vec<(u32, &str)> = Vec::new();
    for name in requests {
        match counts.iter_mut().find(|(_, other)| other == name) {
            Some((count, _)) => *count += 1,
            None => counts.push((1, name)),
        }
    }
    let one = |(count, name): &(u32, &str)| match count {
        1 => format!("`{name}`"),
        more => format!("{more} × `{name}`"),
    };
    counts.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// One line for each kind of call, in the order in which they came first.
pub(super) fn calls(meter: &Meter) -> String {
    let mut text = String::from(
        "| call | requests | read units | write units | of these for indexes |\n|---|---|---|---|---|\n",
    );
    let mut seen: Vec<&str> = Vec::new();
    for (name, _) in &meter.lines {
        if seen.contains(&name.as_str()) {
            continue;
        }
        seen.push(name);
        let (count, Measured { requests, units }) = meter.sum(name);
        let (read, write) = (mean(units.read_halves, count, 2), mean(units.write, count, 1));
        let (requests, index) = (counted(&requests), mean(units.index, count, 1));
        let _ = writeln!(text, "| {name} | {requests} | {read} | {write} | {index} |");
    }
    text
}

/// Millions, to a hundredth.
fn millions(number: u64) -> String {
    let hundredths = number.div_ceil(10_000);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Of kilobytes, to a tenth.
fn gigabytes(kilobytes: u64) -> String {
    let tenths = kilobytes.div_ceil(100_000);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Lines for so many steps a month.
pub(super) fn months(whole: Units, [kept, keys]: [u64; 2], idle: Units) -> String {
    let mut text = String::from(
        "| in a month | workflows | million read units | million write units | GB that stay | GB of keys |\n|---|---|---|---|---|---|\n",
    );
    for (name, steps) in [("1,000 steps a day", 30_438), ("10 million steps", 10_000_000)] {
        let work: u64 = steps / STEPS;
        let (read, write) = (work * whole.read_halves / 2, work * whole.write);
        let (read, write) = (millions(read), millions(write));
        let (kept, keys) = (gigabytes(work * kept), gigabytes(work * keys));
        let _ = writeln!(text, "| {name} | {work} | {read} | {write} | {kept} | {keys} |");
    }
    let read = millions(MONTH_SECONDS * idle.read_halves / 2);
    let _ = writeln!(text, "| each server, for looking what is due | | {read} | 0 | | |");
    text
}

/// Holds what was measured against the page, between the mark of this name and the next end.
pub(super) fn is_on_the_page(mark: &str, measured: &str) {
    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cost.md");
    let page = std::fs::read_to_string(PAGE).expect("docs/cost.md");
    let block = page.split(&format!("<!-- {mark} -->\n")).nth(1);
    let block = block.and_then(|rest| rest.split("<!-- end -->").next()).unwrap_or_default();
    let same = block.trim() == measured.trim();
    assert!(same, "docs/cost.md says something else between its marks than\n\n{measured}");
}

/// Whole ones, rounded up, so that not every byte more is another page.
pub(super) fn kilobytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000)
}
