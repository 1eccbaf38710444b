//! Paths and words of a developer's own machine, which mean nothing to a reader of the repository.
//!
//! The words are put together from halves, so that this file does not contain what it looks for.

use crate::Workspace;
use crate::report::Violation;

/// Halves of each forbidden text.
const FORBIDDEN: [(&str, &str); 8] = [
    ("/wo", "rk/"),
    ("/fa", "rm/"),
    ("fa", "rm-"),
    (".libr", "ary"),
    ("/tmp/", "brief"),
    ("DEVELOP", "ERS.md"),
    ("/ro", "ot/"),
    ("artif", "actory"),
];

pub(super) fn workplace_words(workspace: &Workspace) -> Vec<Violation> {
    let words = forbidden();
    let mut found = Vec::new();
    for (path, text) in workspace.tree.files() {
        for (index, line) in text.lines().enumerate() {
            for word in words.iter().filter(|word| contains_at_word_start(line, word)) {
                let fix = "write what is true on every machine";
                found.push(Violation::new(path, index + 1, format!("`{word}`"), fix));
            }
        }
    }
    found
}

/// Every forbidden text, put together.
pub(crate) fn forbidden() -> Vec<String> {
    FORBIDDEN.iter().map(|(first, second)| format!("{first}{second}")).collect()
}

/// `needle` in `line`, and not as the tail of a longer path segment or word (`net/work/` is no machine path).
fn contains_at_word_start(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(at, _)| {
        line.get(..at)
            .and_then(|before| before.chars().next_back())
            .is_none_or(|before| !before.is_ascii_alphanumeric())
    })
}
