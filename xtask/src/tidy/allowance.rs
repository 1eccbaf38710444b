//! The shrinking allow-list of files and functions that are longer than the limits, `xtask/tidy-allow.toml`.
//!
//! An entry states the exact length. One that is too high must be lowered, one for something that is short
//! enough again must go, so the list only shrinks.

use serde::Deserialize;

use crate::report::Violation;
use crate::tree::Tree;

/// Where the list is.
pub(super) const FILE: &str = "xtask/tidy-allow.toml";

/// One thing that is longer than its limit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Allowance {
    /// The file.
    pub(super) path: String,
    /// The function; the file as a whole if absent.
    #[serde(default)]
    pub(super) function: Option<String>,
    /// Its length today.
    pub(super) lines: usize,
    /// Why it is long.
    pub(super) reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    long: Vec<Allowance>,
}

/// Something measured: its place, its length and the limit.
#[derive(Debug)]
pub(super) struct Measured<'a> {
    pub(super) path: &'a str,
    pub(super) function: Option<&'a str>,
    pub(super) line: usize,
    pub(super) lines: usize,
}

/// Judges what was measured against `limit`, `hard` (beyond which no allowance counts) and the allow-list.
pub(super) fn judge(
    tree: &Tree,
    measured: &[Measured<'_>],
    limit: usize,
    hard: usize,
) -> Vec<Violation> {
    let functions = measured.iter().any(|one| one.function.is_some());
    let allowed = match read(tree) {
        Ok(all) => {
            all.into_iter().filter(|one| one.function.is_some() == functions).collect::<Vec<_>>()
        }
        Err(violation) => return vec![violation],
    };
    let is_for = |one: &Measured<'_>, allowance: &Allowance| {
        one.path == allowance.path && one.function == allowance.function.as_deref()
    };
    let mut found = Vec::new();
    for one in measured.iter().filter(|one| one.lines > limit) {
        let name =
            one.function.map_or_else(|| "product code".to_owned(), |name| format!("fn {name}"));
        let what = format!("{} lines of {name}, limit {limit}", one.lines);
        match allowed.iter().find(|allowance| is_for(one, allowance)) {
            None => found.push(Violation::new(one.path, one.line, what, "split it by meaning")),
            Some(_) if one.lines > hard => {
                let what = format!("{what}, and no allowance reaches beyond {hard}");
                found.push(Violation::new(one.path, one.line, what, "split it by meaning"));
            }
            Some(allowance) if one.lines > allowance.lines => {
                let what = format!("{what}, allowed {} and grown", allowance.lines);
                found.push(Violation::new(
                    one.path,
                    one.line,
                    what,
                    "the list only shrinks: split it",
                ));
            }
            Some(allowance) if one.lines < allowance.lines => {
                found.push(stale(tree, allowance, &format!("lower the entry to {}", one.lines)));
            }
            Some(_) => {}
        }
    }
    for allowance in &allowed {
        if !measured.iter().any(|one| is_for(one, allowance) && one.lines > limit) {
            found.push(stale(tree, allowance, "take the entry out"));
        }
        if allowance.reason.trim().is_empty() {
            found.push(stale(tree, allowance, "say why in `reason`"));
        }
    }
    found
}

fn stale(tree: &Tree, allowance: &Allowance, fix: &str) -> Violation {
    let line = tree.line_of(FILE, &allowance.path);
    let name = allowance.function.as_deref().unwrap_or("the file");
    Violation::new(
        FILE,
        line,
        format!("the entry for {name} of {} is not what is", allowance.path),
        fix,
    )
}

fn read(tree: &Tree) -> Result<Vec<Allowance>, Violation> {
    let Some(text) = tree.text(FILE) else { return Ok(Vec::new()) };
    toml::from_str::<List>(text).map(|list| list.long).map_err(|error| {
        Violation::new(
            FILE,
            0,
            error.message().to_owned(),
            "write [[long]] with path, function, lines, reason",
        )
    })
}
