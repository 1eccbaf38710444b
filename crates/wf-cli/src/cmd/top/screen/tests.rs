//! What is drawn, as text, narrow and wide; and the picture of the documentation.

use std::fmt::Write as _;
use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};

use super::*;
use crate::cmd::top::look::{Looker, Server};
use crate::cmd::top::panes;
use crate::compose;

fn drawn(view: &View, panes: &[Pane], (width, height): (u16, u16)) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame, panes)).unwrap();
    terminal
}

fn view() -> View {
    View { head: "checkpoint.db  12:00:00Z  3 open".to_owned(), colour: true, ..View::default() }
}

fn panes() -> Vec<Pane> {
    panes::all(&sample::look(), Some(&sample::before()))
}

#[test]
fn all_panes_fit_on_a_wide_and_on_a_narrow_terminal() {
    insta::assert_snapshot!("wide", drawn(&view(), &panes(), (150, 40)).backend());
    insta::assert_snapshot!("narrow", drawn(&view(), &panes(), (80, 48)).backend());
}

#[test]
fn one_pane_alone_is_scrolled_and_keys_are_explained() {
    let alone = View { chosen: Some(3), scroll: 1, ..view() };
    insta::assert_snapshot!("alone", drawn(&alone, &panes(), (80, 12)).backend());
    let help = View { help: true, trouble: Some("the store did not answer".to_owned()), ..view() };
    insta::assert_snapshot!("help", drawn(&help, &panes(), (80, 24)).backend());
}

#[test]
fn no_size_is_too_small() {
    for width in [0, 1, 7, 40] {
        for height in 0..8 {
            drawn(&view(), &panes(), (width, height));
            drawn(&View { help: true, chosen: Some(1), ..view() }, &panes(), (width, height));
        }
    }
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted() {
    let colours = |view: &View| {
        let terminal = drawn(view, &panes(), (150, 40));
        let cells = &terminal.backend().buffer().content;
        cells.iter().filter(|cell| cell.fg != Color::Reset).count()
    };
    assert!(colours(&view()) > 0);
    assert_eq!(colours(&View { colour: false, ..view() }), 0);
}

#[test]
fn text_of_outside_cannot_act_on_the_terminal() {
    let mut look = sample::look();
    look.stored.callers[0].label = "a\u{1b}[2Jb\nc".to_owned();
    look.servers[1].1 = Err("no\u{9b}2J".to_owned());
    let terminal = drawn(&view(), &panes::all(&look, None), (150, 40));
    let text = terminal.backend().to_string();
    assert!(!text.contains(['\u{1b}', '\u{9b}']) && text.contains("[2Jb; c"), "{text}");
}

#[test]
fn the_highest_pane_gives_up_lines_first() {
    assert_eq!(shared(&[3, 20, 5], 18), [3, 10, 5]);
    assert_eq!(shared(&[3, 3], 100), [3, 3]);
    assert_eq!(shared(&[3, 3], 0), [0, 0]);
}

/// Writes docs/images/top.svg from a look at a real store and its server, given in WF_TOP_DATABASE and WF_TOP_METRICS.
#[tokio::test]
#[ignore = "writes docs/images/top.svg; needs a server with something to see"]
async fn picture() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let database = variable("WF_TOP_DATABASE");
    let opened = compose::local::open_existing(Path::new(&database)).await.unwrap();
    let backend = compose::Backend::Local(opened);
    let server = Server::parse(&variable("WF_TOP_METRICS")).unwrap();
    let looker = Looker::new(backend.store(), "checkpoint.db".to_owned(), vec![server]);
    let before = looker.look().await.unwrap();
    let mut ticks = tokio::time::interval(std::time::Duration::from_secs(2));
    ticks.tick().await;
    ticks.tick().await;
    let look = looker.look().await.unwrap();
    backend.close().await;
    let head = format!("{}  {}  {} open  every 1 s", look.store, look.at, look.stored.open);
    let view = View { head, ..view() };
    let terminal = drawn(&view, &panes::all(&look, Some(&before)), (150, 40));
    let svg = svg(terminal.backend().buffer());
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    std::fs::create_dir_all(&images).unwrap();
    std::fs::write(images.join("top.svg"), svg).unwrap();
}

/// Width and height of a character, in pixels of the picture.
const CHARACTER: (f32, f32) = (8.0, 17.0);

fn svg(buffer: &Buffer) -> String {
    let (width, height) = (f32::from(buffer.area.width), f32::from(buffer.area.height));
    let (across, down) = CHARACTER;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
         aria-label=\"A screen of wf-cli top\" font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#16181d\"/>\n",
        w = width * across + 16.0,
        h = height * down + 16.0,
    );
    for y in 0..buffer.area.height {
        let mut x = 0;
        while x < buffer.area.width {
            let first = &buffer[(x, y)];
            let mut text = String::new();
            let from = x;
            while x < buffer.area.width && same_look(&buffer[(x, y)], first) {
                text.push_str(buffer[(x, y)].symbol());
                x += 1;
            }
            run(&mut svg, (from, y), &text, first);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn same_look(a: &Cell, b: &Cell) -> bool {
    a.fg == b.fg && a.modifier == b.modifier
}

/// One run of characters that look alike.
fn run(svg: &mut String, (x, y): (u16, u16), text: &str, cell: &Cell) {
    let reversed = cell.modifier.contains(Modifier::REVERSED);
    if text.trim().is_empty() && !reversed {
        return;
    }
    let (across, down) = CHARACTER;
    // Blanks at the beginning are no part of a text in SVG, whatever is asked.
    let blanks = if reversed { 0 } else { text.len() - text.trim_start().len() };
    let text = text[blanks..].trim_end_matches(|c| c == ' ' && !reversed);
    let left = 8.0 + (f32::from(x) + f32::from(u16::try_from(blanks).unwrap())) * across;
    let top = 8.0 + f32::from(y) * down;
    let length = f32::from(u16::try_from(text.chars().count()).unwrap()) * across;
    let colours = [(Color::Red, "#ff6b6b"), (Color::Yellow, "#e5c07b"), (Color::Green, "#7ec98f")];
    let plain = if cell.modifier.contains(Modifier::DIM) { "#8a90a0" } else { "#d7dae0" };
    let fill =
        colours.iter().find(|(colour, _)| *colour == cell.fg).map_or(plain, |(_, fill)| fill);
    let (fill, weight) = if reversed { ("#16181d", "") } else { (fill, "") };
    let bold =
        if cell.modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { weight };
    if reversed {
        let _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{length}\" height=\"{down}\" fill=\"#d7dae0\"/>"
        );
    }
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let base = top + 13.0;
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"{base}\" textLength=\"{length}\" fill=\"{fill}\"{bold} xml:space=\"preserve\">{text}</text>"
    );
}
