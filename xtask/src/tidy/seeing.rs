//! What a server tells is written down: each metric and each warning in the sources has its row, and each row its source.
//!
//! Neighbour: [`super::alerts`], which asks that alerts and dashboard name only what has a row.

use std::collections::{BTreeMap, BTreeSet};

use crate::Workspace;
use crate::report::Violation;
use crate::rust::{Kind, Source};
use crate::tree::Tree;

const METRICS: &str = "docs/observability.md";
const LOGS: &str = "docs/logs.md";
/// Where every metric is described, by names that are data.
const CATALOGUE: &str = "crates/wf-cli/src/telemetry/catalogue.rs";
/// Crates that are in no product.
const NO_PRODUCT: [&str; 3] = ["crates/wf-testkit/", "crates/wf-proof/", "crates/wf-diskfault/"];

/// Metrics of the table: name and type.
pub(super) fn rows(tree: &Tree) -> BTreeMap<String, String> {
    let text = tree.text(METRICS).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let cells = cells(line)?;
            let name = cells.first()?.strip_prefix('`')?.strip_suffix('`')?;
            name.starts_with("checkpoint_").then(|| (name.to_owned(), cells[1].clone()))
        })
        .collect()
}

/// The cells of a row of a table, trimmed; `\|` is a bar that separates nothing.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let kept = inner.replace("\\|", "\u{0}");
    let cells: Vec<String> =
        kept.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect();
    (cells.len() >= 5).then_some(cells)
}

fn product(tree: &Tree) -> impl Iterator<Item = (&str, &Source)> {
    tree.sources("crates/").filter(|(path, _)| {
        path.contains("/src/") && !NO_PRODUCT.iter().any(|crate_| path.starts_with(crate_))
    })
}

pub(super) fn metrics_table(workspace: &Workspace) -> Vec<Violation> {
    let tree = &workspace.tree;
    let rows = rows(tree);
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for (path, source) in product(tree) {
        for (index, token) in source.product() {
            let kind = token.text.as_str();
            let is_use = ["counter", "gauge", "histogram"].contains(&kind)
                && source.at(index + 1) == "!"
                && source.at(index.wrapping_sub(3)) == "metrics";
            if !is_use {
                continue;
            }
            let name = source.tokens().get(index + 3).and_then(|token| token.string());
            let Some(name) = name else {
                if path == CATALOGUE {
                    continue;
                }
                let fix = "name a metric by a literal, so that it can be found";
                found.push(Violation::new(path, token.line, "a metric without a name", fix));
                continue;
            };
            used.insert(name.to_owned());
            if rows.get(name).map(String::as_str) != Some(kind) {
                let fix = format!("write its row in {METRICS}, and its entry in {CATALOGUE}");
                let problem = format!("the {kind} {name} has no row");
                found.push(Violation::new(path, token.line, problem, fix));
            }
        }
    }
    if used.is_empty() {
        let fix = "look for the macros of the crate `metrics` here again";
        found.push(Violation::new(METRICS, 0, "no metric found, so nothing was checked", fix));
    }
    for name in rows.keys().filter(|name| !used.contains(*name)) {
        let line = tree.line_of(METRICS, &format!("| `{name}` |"));
        let fix = "take the row out, or count it somewhere";
        found.push(Violation::new(METRICS, line, format!("nobody tells {name}"), fix));
    }
    found
}

/// A warning or an error as it is logged: its level, its words, the names of its fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    level: String,
    words: String,
    fields: BTreeSet<String>,
}

pub(super) fn log_table(workspace: &Workspace) -> Vec<Violation> {
    let tree = &workspace.tree;
    let text = tree.text(LOGS).unwrap_or_default();
    let rows: BTreeSet<Told> = text.lines().filter_map(log_row).collect();
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for (path, source) in product(tree) {
        for (index, token) in source.product() {
            let level = token.text.as_str();
            let is_use = ["warn", "error"].contains(&level)
                && source.at(index + 1) == "!"
                && source.at(index.wrapping_sub(3)) == "tracing";
            if !is_use {
                continue;
            }
            let Some(told) = told(source, level, index + 2) else {
                let fix = "end it with the words as one literal, and put what varies into fields";
                found.push(Violation::new(path, token.line, "a log line without words", fix));
                continue;
            };
            if !rows.contains(&told) {
                let fix = format!("write its row in {LOGS}: {}", shown(&told));
                let problem = format!("`{}` has no row with its level and fields", told.words);
                found.push(Violation::new(path, token.line, problem, fix));
            }
            used.insert(told);
        }
    }
    if used.is_empty() {
        let fix = "look for the macros of the crate `tracing` here again";
        found.push(Violation::new(LOGS, 0, "no log line found, so nothing was checked", fix));
    }
    for row in rows.difference(&used) {
        let line = tree.line_of(LOGS, &row.words);
        let fix = "take the row out, or make it what is logged";
        found.push(Violation::new(LOGS, line, format!("nobody logs {}", shown(row)), fix));
    }
    found
}

/// The arguments of a macro call whose delimiter opens at `open`.
fn told(source: &Source, level: &str, open: usize) -> Option<Told> {
    let close = source.mate(open);
    let (mut words, mut fields) = (None, BTreeSet::new());
    let mut index = open + 1;
    while index < close {
        let first = source.tokens().get(index)?;
        // `%value` and `?value` name the field as they name the value.
        let sigil = matches!(first.text.as_str(), "%" | "?");
        let named = source.tokens().get(if sigil { index + 1 } else { index })?;
        match (named.kind, named.string()) {
            (Kind::Literal, Some(text)) => {
                words = Some(unescaped(text));
                // What comes behind is put into the words.
                break;
            }
            (Kind::Ident, _) if named.text != "target" => {
                fields.insert(named.text.clone());
            }
            _ => {}
        }
        while index < close && source.at(index) != "," {
            index = source.mate(index) + 1;
        }
        index += 1;
    }
    let words = words.map(|words| without_values(&words))?;
    if !words.contains(char::is_alphabetic) {
        return None;
    }
    Some(Told { level: level.to_owned(), words, fields })
}

/// The words with an ellipsis where a value is put in.
fn without_values(words: &str) -> String {
    let mut parts = words.split('{');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push('…');
        kept.push_str(part.split_once('}').map_or("", |(_, rest)| rest));
    }
    kept
}

/// A literal that goes on in the next line, joined; no other escape is expected in words.
fn unescaped(text: &str) -> String {
    let mut joined = String::new();
    for (number, line) in text.lines().enumerate() {
        let line = if number == 0 { line } else { line.trim_start() };
        joined.push_str(line.strip_suffix('\\').unwrap_or(line));
    }
    joined
}

/// `| level | words | fields | means | do |`
fn log_row(line: &str) -> Option<Told> {
    let cells = cells(line)?;
    let level = cells[0].clone();
    ["warn", "error"].contains(&level.as_str()).then(|| Told {
        level,
        words: cells[1].clone(),
        fields: cells[2].split('`').skip(1).step_by(2).map(str::to_owned).collect(),
    })
}

fn shown(told: &Told) -> String {
    let fields: Vec<String> = told.fields.iter().map(|field| format!("`{field}`")).collect();
    format!("| {} | {} | {} | … | … |", told.level, told.words, fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_has_a_level_words_and_fields() {
        let text = "fn a() { tracing::warn!(%error, ?wait, status = s.as_u16(x, y), n, \"it is \\\n        slow\"); }";
        let source = Source::lex("crates/a/src/a.rs", text).unwrap();
        let at = source.tokens().iter().position(|token| token.text == "warn").unwrap();
        let told = told(&source, "warn", at + 2).unwrap();
        assert_eq!(shown(&told), "| warn | it is slow | `error`, `n`, `status`, `wait` | … | … |");
        assert_eq!(log_row(&shown(&told)), Some(told));
        assert_eq!(log_row("| info | it is slow | `n` | … | … |"), None);
    }

    #[test]
    fn values_within_the_words_are_no_words() {
        let of = |call: &str| {
            let text = format!("fn a() {{ tracing::error!({call}); }}");
            let source = Source::lex("crates/a/src/a.rs", &text).unwrap();
            let at = source.tokens().iter().position(|token| token.text == "error").unwrap();
            told(&source, "error", at + 2).as_ref().map(shown)
        };
        assert_eq!(of("\"{}\", b"), None);
        let said = of("n, \"the {} of {x:?} failed\", self.what").unwrap();
        assert_eq!(said, "| error | the … of … failed | `n` | … | … |");
    }
}
