//! What commands print on stdout: tables for people, JSON for programs, progress bars on stderr for long work.
//!
//! Colours and bars appear only on a terminal; `NO_COLOR` switches colours off.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::exit::{Exit, Failure, one_line};

/// So many of something, whose plural has an `s`.
pub(crate) fn counted(count: impl Display, one: &str) -> String {
    let count = count.to_string();
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} {one}{plural}")
}

/// A colour with a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it should be.
    Good,
    /// Worth a look.
    Warn,
    /// Wrong.
    Bad,
    /// A heading.
    Strong,
    /// Beside the point.
    Faint,
}

/// Where a command prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    colour: bool,
    bars: bool,
}

impl Output {
    /// Output for this process.
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            colour: !json && colours(std::io::stdout().is_terminal()),
            bars: !json && std::io::stderr().is_terminal(),
        }
    }

    /// True when programs read.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Prints `text` and a line end.
    pub(crate) fn line(self, text: &str) -> Result<(), Failure> {
        self.raw(format!("{text}\n").as_bytes())
    }

    /// Says something on stderr that is not the answer.
    pub(crate) fn note(self, text: &str) {
        // Nobody can be told that stderr is closed.
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    /// Prints bytes as they are.
    pub(crate) fn raw(self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| {
            if error.kind() == std::io::ErrorKind::BrokenPipe {
                // The reader (`| head`) has seen enough.
                Failure::quiet(Exit::Ok)
            } else {
                Failure::failed("cannot write to the standard output").because(error)
            }
        })
    }

    /// Prints a JSON document.
    pub(crate) fn document(self, value: &Value) -> Result<(), Failure> {
        // The alternate form of `Display` is the indented one.
        self.line(&format!("{value:#}"))
    }

    /// Prints rows under headings, in columns as wide as needed. Cells are made safe for a terminal.
    pub(crate) fn table(self, headings: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
        let widths: Vec<usize> = headings
            .iter()
            .enumerate()
            .map(|(column, heading)| {
                rows.iter()
                    .filter_map(|row| row.get(column))
                    .map(|cell| cell.chars().count())
                    .chain([heading.chars().count()])
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let headings: Vec<String> = headings.iter().map(|h| (*h).to_owned()).collect();
        self.line(&self.paint(Tone::Strong, &aligned(&headings, &widths)))?;
        for row in &rows {
            self.line(&aligned(row, &widths))?;
        }
        Ok(())
    }

    /// `text` in the colour of `tone`, where colours are shown.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "31",
            Tone::Strong => "1",
            Tone::Faint => "2",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// A bar for long work, with how much of it is done; invisible unless stderr is a terminal.
    pub(crate) fn progress(self, what: &'static str) -> ProgressBar {
        self.bar(what, "{spinner} {msg}  {human_pos}  {elapsed}")
    }

    /// A bar for waiting; invisible unless stderr is a terminal.
    pub(crate) fn waiting(self, what: &'static str) -> ProgressBar {
        self.bar(what, "{spinner} {msg}  {elapsed}")
    }

    fn bar(self, what: &'static str, template: &str) -> ProgressBar {
        if !self.bars {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new_spinner().with_message(what);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }
}

/// Colours belong to a terminal whose user did not ask for none (<https://no-color.org>).
pub(crate) fn colours(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn aligned(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        if !line.is_empty() {
            line.push_str("  ");
        }
        line.push_str(cell);
        line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_end_without_blanks() {
        let widths = [4, 3];
        let row = |a: &str, b: &str| aligned(&[a.to_owned(), b.to_owned()], &widths);
        assert_eq!(row("ab", "c"), "ab    c");
        assert_eq!(row("äöü1", ""), "äöü1");
    }

    #[test]
    fn nothing_is_painted_without_a_terminal() {
        let plain = Output { json: false, colour: false, bars: false };
        assert_eq!(plain.paint(Tone::Bad, "x"), "x");
        let colourful = Output { colour: true, ..plain };
        assert_eq!(colourful.paint(Tone::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
