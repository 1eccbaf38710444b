//! Draws panes: all of them side by side or below each other, or one alone. Pure but for the frame it draws on.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Row as Cells, Table};

use super::panes::{Pane, Row};
use crate::exit::one_line;
use crate::output::Tone;

/// From this width on panes are side by side.
const WIDE: u16 = 110;
/// A column is not wider than this, but for the last.
const CELL_MAX: usize = 40;
/// Lines below which a pane of the stack shows too little: borders, headings, two rows.
const USEFUL: u16 = 5;
/// What `?` shows.
const HELP: &str = "q, Esc, Ctrl-C   end
tab, → / ←       next pane, the one before
0                all panes
1 to 8           that pane alone
↓ ↑ PgDn PgUp    scroll the pane
space            stop and go on
?                this";

/// What is drawn besides the panes.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    /// The first line: the store, the time, how often.
    pub(super) head: String,
    /// What is wrong, if the last look failed.
    pub(super) trouble: Option<String>,
    /// The pane that is shown alone; none for all.
    pub(super) chosen: Option<usize>,
    /// The first row of that pane that is shown.
    pub(super) scroll: usize,
    /// Keys are explained.
    pub(super) help: bool,
    /// Colours are shown.
    pub(super) colour: bool,
}

impl View {
    fn style(&self, tone: Option<Tone>) -> Style {
        let plain = Style::new();
        let (colour, modifier) = match tone {
            None => return plain,
            Some(Tone::Good) => (Color::Green, Modifier::empty()),
            Some(Tone::Warn) => (Color::Yellow, Modifier::empty()),
            Some(Tone::Bad) => (Color::Red, Modifier::BOLD),
            Some(Tone::Strong) => return plain.add_modifier(Modifier::BOLD),
            Some(Tone::Faint) => return plain.add_modifier(Modifier::DIM),
        };
        let style = plain.add_modifier(modifier);
        if self.colour { style.fg(colour) } else { style }
    }

    /// Draws everything.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, panes: &[Pane]) {
        let rows = [
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(0),
            Constraint::Length(1),
        ];
        let [head, tabs, body, foot] = Layout::vertical(rows).areas(frame.area());
        let bold = self.style(Some(Tone::Strong));
        let name = Span::styled("checkpoint top  ", bold);
        frame.render_widget(Line::from(vec![name, Span::raw(one_line(&self.head))]), head);
        frame.render_widget(self.tabs(panes), tabs);
        match self.chosen.and_then(|chosen| panes.get(chosen)) {
            Some(pane) => self.pane(frame, body, pane, self.scroll),
            None if body.width >= WIDE => self.grid(frame, body, panes),
            None => self.stack(frame, body, panes),
        }
        let foot_line = match &self.trouble {
            Some(trouble) => Line::styled(one_line(trouble), self.style(Some(Tone::Bad))),
            None => {
                Line::styled("q end   ←→ pane   ↑↓ scroll   ? keys", self.style(Some(Tone::Faint)))
            }
        };
        frame.render_widget(foot_line, foot);
        if self.help {
            self.explain(frame);
        }
    }

    fn tabs(&self, panes: &[Pane]) -> Line<'static> {
        let names = std::iter::once("All").chain(panes.iter().map(|pane| pane.title));
        let spans = names.enumerate().map(|(number, title)| {
            let here = number == self.chosen.map_or(0, |chosen| chosen + 1);
            let style =
                if here { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
            Span::styled(format!(" {number} {title} "), style)
        });
        Line::from(spans.collect::<Vec<_>>())
    }

    /// Two columns, four panes each: what the store says, and what servers say.
    fn grid(&self, frame: &mut Frame<'_>, area: Rect, panes: &[Pane]) {
        let (left, right) = panes.split_at(panes.len().div_ceil(2));
        let halves = Layout::horizontal([Constraint::Percentage(58), Constraint::Percentage(42)]);
        let [at_left, at_right] = halves.areas(area);
        self.stack(frame, at_left, left);
        self.stack(frame, at_right, right);
    }

    /// Below each other, each as high as it needs to be while there is room. Those for which there is none are left to their
    /// keys.
    fn stack(&self, frame: &mut Frame<'_>, area: Rect, panes: &[Pane]) {
        let mut room = area.height;
        let fits = |pane: &&Pane| {
            let left = room.checked_sub(wanted(pane).min(USEFUL));
            room = left.unwrap_or(0);
            left.is_some()
        };
        let panes: Vec<&Pane> = panes.iter().take_while(fits).collect();
        let heights: Vec<u16> = panes.iter().map(|pane| wanted(pane)).collect();
        let heights = shared(&heights, area.height);
        let areas = Layout::vertical(heights.into_iter().map(Constraint::Length)).split(area);
        for (pane, area) in panes.iter().zip(areas.iter()) {
            self.pane(frame, *area, pane, 0);
        }
    }

    fn pane(&self, frame: &mut Frame<'_>, area: Rect, pane: &Pane, scroll: usize) {
        if area.height == 0 {
            return;
        }
        let count =
            if pane.rows.is_empty() { String::new() } else { format!(" {}", pane.rows.len()) };
        let block = Block::bordered().title(format!(" {}{count} ", pane.title));
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let notes = u16::try_from(pane.notes.len()).unwrap_or(u16::MAX).min(inner.height);
        let [table, below] =
            Layout::vertical([Constraint::Min(0), Constraint::Length(notes)]).areas(inner);
        if pane.rows.is_empty() {
            let notes = pane.notes.iter().map(|note| Line::raw(one_line(note)));
            frame.render_widget(Paragraph::new(notes.collect::<Vec<_>>()), inner);
            return;
        }
        frame.render_widget(self.table(pane, scroll), table);
        let notes = pane.notes.iter().map(|note| Line::raw(one_line(note)));
        frame.render_widget(
            Paragraph::new(notes.collect::<Vec<_>>()).style(self.style(Some(Tone::Faint))),
            below,
        );
    }

    fn table(&self, pane: &Pane, scroll: usize) -> Table<'static> {
        let from = scroll.min(pane.rows.len().saturating_sub(1));
        let shown = pane.rows.get(from..).unwrap_or_default();
        let headings: Vec<String> = pane.headings.iter().map(|h| (*h).to_owned()).collect();
        let rows =
            shown.iter().map(|row| Cells::new(row.cells.clone()).style(self.style(row.tone)));
        Table::new(rows, widths(pane))
            .header(Cells::new(headings).style(self.style(Some(Tone::Strong))))
            .column_spacing(2)
    }

    fn explain(&self, frame: &mut Frame<'_>) {
        let lines = u16::try_from(HELP.lines().count()).unwrap_or(u16::MAX);
        let widest = HELP.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let (width, height) =
            (u16::try_from(widest).unwrap_or(u16::MAX).saturating_add(4), lines + 2);
        let whole = frame.area();
        let area = Rect {
            x: whole.width.saturating_sub(width) / 2,
            y: whole.height.saturating_sub(height) / 2,
            width: width.min(whole.width),
            height: height.min(whole.height),
        };
        frame.render_widget(Clear, area);
        frame.render_widget(Paragraph::new(HELP).block(Block::bordered().title(" Keys ")), area);
    }
}

/// Borders, headings, rows, notes.
fn wanted(pane: &Pane) -> u16 {
    let lines = pane.rows.len() + pane.notes.len() + usize::from(!pane.rows.is_empty());
    u16::try_from(lines).unwrap_or(u16::MAX).saturating_add(2)
}

/// Heights that fit: the highest gives up lines first, and what is left over goes to the last.
fn shared(wanted: &[u16], room: u16) -> Vec<u16> {
    let mut heights = wanted.to_vec();
    let total = |heights: &[u16]| heights.iter().map(|height| u32::from(*height)).sum::<u32>();
    while total(&heights) > u32::from(room) {
        let Some(highest) = heights.iter_mut().rev().max_by_key(|height| **height) else { break };
        if *highest == 0 {
            break;
        }
        *highest -= 1;
    }
    heights
}

/// As wide as their widest cell, but for the last, which takes what is left.
fn widths(pane: &Pane) -> Vec<Constraint> {
    let last = pane.headings.len().saturating_sub(1);
    let widest = |column: usize| {
        let cells =
            pane.rows.iter().filter(|row: &&Row| row.cells.len() > column + 1 || column == last);
        let cells = cells.filter_map(|row| row.cells.get(column)).map(|cell| cell.chars().count());
        cells.chain(pane.headings.get(column).map(|h| h.len())).max().unwrap_or(0).min(CELL_MAX)
    };
    let column = |column: usize| {
        if column == last {
            Constraint::Min(u16::try_from(widest(column).min(8)).unwrap_or(u16::MAX))
        } else {
            Constraint::Length(u16::try_from(widest(column)).unwrap_or(u16::MAX))
        }
    };
    (0..pane.headings.len()).map(column).collect()
}

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
