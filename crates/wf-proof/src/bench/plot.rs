//! The figures as a picture: bars of medians with the least and the most of the rounds.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figures::{Figures, Round};
use super::samples::Spread;
use super::verdicts::{floor_many, floor_one};
use crate::fault::Fault;

const WIDTH: i32 = 900;
const HEIGHT: i32 = 582;
/// Where bars begin and where the longest ends.
const LEFT: i32 = 250;
const RIGHT: i32 = 760;
const ROW: i32 = 28;

/// A bar: its name, its length, and whether it is the product.
type Bar = (String, Spread, bool);

/// The picture, as SVG.
///
/// # Errors
/// When it cannot be drawn.
pub fn svg(figures: &Figures) -> Result<String, Fault> {
    let mut text = String::new();
    draw(figures, &mut text).map_err(|error| Fault::Run(format!("drawing the plot: {error}")))?;
    Ok(text)
}

fn draw(figures: &Figures, into: &mut String) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let size =
        (u32::try_from(WIDTH).unwrap_or_default(), u32::try_from(HEIGHT).unwrap_or_default());
    let area = SVGBackend::with_string(into, size).into_drawing_area();
    area.fill(&WHITE)?;
    let rounds = &figures.rounds;
    let callers = figures.callers;
    let end = bars(
        &area,
        40,
        &format!("Durable steps a second, {callers} callers (more is better)"),
        &many(rounds),
        "/s",
    )?;
    bars(
        &area,
        end + 50,
        "Time of a durable step, one caller, p50 (less is better)",
        &one(rounds),
        " µs",
    )?;
    area.present()
}

fn many(rounds: &[Round]) -> Vec<Bar> {
    let of = |name: &str, product: bool, value: &dyn Fn(&Round) -> Option<f64>| {
        let values: Vec<f64> = rounds.iter().filter_map(value).collect();
        (!values.is_empty()).then(|| (name.to_owned(), Spread::of(&values), product))
    };
    [
        of("DBOS", false, &|r| Some(r.dbos_many.as_ref()?.rate)),
        of("Restate", false, &|r| Some(r.restate_many.as_ref()?.rate)),
        of("Python peer", false, &|r| Some(r.peer_many.as_ref()?.rate)),
        of("Checkpoint", true, &|r| Some(r.product_many.rate)),
        of("floor: both below in turns", false, &|r| Some(floor_many(r))),
        of("raw SQLite, 64 a commit", false, &|r| Some(r.raw_many.rate)),
        of("bare HTTP echo", false, &|r| Some(r.echo_many.rate)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn one(rounds: &[Round]) -> Vec<Bar> {
    let of = |name: &str, product: bool, value: &dyn Fn(&Round) -> Option<f64>| {
        let values: Vec<f64> = rounds.iter().filter_map(value).collect();
        (!values.is_empty()).then(|| (name.to_owned(), Spread::of(&values), product))
    };
    [
        of("DBOS", false, &|r| Some(r.dbos_one.as_ref()?.times.p50_us)),
        of("Restate", false, &|r| Some(r.restate_one.as_ref()?.times.p50_us)),
        of("Python peer", false, &|r| Some(r.peer_one.as_ref()?.times.p50_us)),
        of("Checkpoint", true, &|r| Some(r.product_one.times.p50_us)),
        of("floor: sum of both below", false, &|r| Some(floor_one(r))),
        of("raw SQLite commit", false, &|r| Some(r.raw_one.times.p50_us)),
        of("bare HTTP echo", false, &|r| Some(r.echo_one.times.p50_us)),
        of("Checkpoint, replay of a known key", true, &|r| Some(r.product_one.replays?.p50_us)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Draws a heading and bars below it; answers where they end.
fn bars<D: DrawingBackend>(
    area: &DrawingArea<D, plotters::coord::Shift>,
    top: i32,
    heading: &str,
    bars: &[Bar],
    unit: &str,
) -> Result<i32, DrawingAreaErrorKind<D::ErrorType>> {
    let heading_style = ("sans-serif", 17).into_font().color(&BLACK);
    area.draw(&Text::new(heading.to_owned(), (20, top - 22), heading_style))?;
    let longest = bars.iter().map(|(_, spread, _)| spread.max).fold(1.0, f64::max);
    let along = |value: f64| -> i32 {
        #[expect(clippy::cast_possible_truncation, reason = "a place within the picture")]
        let reach = (value / longest * f64::from(RIGHT - LEFT)).round() as i32;
        LEFT + reach
    };
    let right = Pos::new(HPos::Right, VPos::Center);
    let left = Pos::new(HPos::Left, VPos::Center);
    let named = ("sans-serif", 14).into_font().color(&BLACK);
    let mut y = top + 10;
    for (name, spread, product) in bars {
        let colour = if *product { RGBColor(31, 119, 180) } else { RGBColor(170, 178, 186) };
        let middle = y + ROW / 2 - 3;
        area.draw(&Rectangle::new(
            [(LEFT, y), (along(spread.median), y + ROW - 8)],
            colour.filled(),
        ))?;
        area.draw(&PathElement::new(
            vec![(along(spread.min), middle), (along(spread.max), middle)],
            BLACK.stroke_width(1),
        ))?;
        area.draw(&Text::new(name.clone(), (LEFT - 10, middle), named.clone().pos(right)))?;
        let said = format!("{:.0}{unit}", spread.median);
        let at = (along(spread.max) + 8, middle);
        area.draw(&Text::new(said, at, named.clone().pos(left)))?;
        y += ROW;
    }
    Ok(y)
}
