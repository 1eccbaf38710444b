//! Domain words of the shipped procedures stay out of the crates that must serve any procedure.
//!
//! The words are read from the procedure files themselves. A word that can only be an identifier (it has a capital,
//! a digit, `_`, `-` or `/`) must not be anywhere in those crates, comments included. A plain lower-case word must
//! not be part of an identifier or a word of a string; in a comment it may be English.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Workspace;
use crate::report::Violation;
use crate::rust::{Kind, Token};
use crate::tree::Tree;

/// Sources that must know no procedure, their tests included.
pub(crate) const NEUTRAL: [&str; 6] = [
    "crates/wf-core/",
    "crates/wf-idempotency/",
    "crates/wf-mcp-http/",
    // Its tests drive a procedure with decisions, whose words are those of the format.
    "crates/wf-console/src/",
    "crates/wf-backend-local/",
    "crates/wf-backend-aws/",
];

/// Folders that ship procedures.
const SHIPPED: [&str; 2] = ["examples/procedures/", "crates/wf-procedure/procedures/"];

/// Words of the procedure files that mean something else in those crates, each with that meaning.
const NOT_OF_A_DOMAIN: [(&str, &str); 8] = [
    ("supervisor", "whoever has the scope workflow:supervise; a word of the core's own scopes"),
    ("continue", "effect of a decision, a word of the procedure format"),
    ("redo", "effect of a decision, a word of the procedure format"),
    ("abort", "effect of a decision, a word of the procedure format"),
    ("overdue", "what a deadline is when its time is past"),
    ("level", "of nesting, or of a log line"),
    ("zero", "the number"),
    ("environment", "of the process"),
];

/// Words shorter than this are units such as `g` and cannot be told from variables.
const WORD_BYTES_MIN: usize = 3;

pub(super) fn domain_neutral(workspace: &Workspace) -> Vec<Violation> {
    let tree = &workspace.tree;
    let (words, mut found) = domain_words(tree);
    if words.is_empty() {
        let fix = "ship a procedure, or name its folder in xtask/src/tidy/neutral.rs";
        found.push(Violation::new(
            SHIPPED[0],
            0,
            "no word of a shipped procedure found, so nothing was checked",
            fix,
        ));
    }
    let (plain, telling): (Vec<_>, Vec<_>) = words.iter().partition(|(word, _)| is_plain(word));
    for path in NEUTRAL.iter().flat_map(|prefix| tree.under(prefix)).filter(|path| is_source(path))
    {
        for (index, line) in tree.text(path).unwrap_or_default().lines().enumerate() {
            for (word, origin) in telling.iter().filter(|(word, _)| has_word(line, word)) {
                found.push(violation(path, index + 1, word, origin));
            }
        }
        if !path.ends_with(".rs") {
            continue;
        }
        let Some(Ok(source)) = tree.rust(path) else { continue };
        for token in source.tokens() {
            for (word, origin) in plain.iter().filter(|(word, _)| names(token, word)) {
                found.push(violation(path, token.line, word, origin));
            }
        }
    }
    found
}

fn violation(path: &str, line: usize, word: &str, origin: &str) -> Violation {
    Violation::new(
        path,
        line,
        format!("`{word}` is a word of {origin}"),
        "this crate serves any procedure: use a neutral name (step-1, asset-a, REASON_ONE)",
    )
}

/// Files a compiler reads: sources, SQL, manifests. Not documents for people.
fn is_source(path: &str) -> bool {
    [".rs", ".sql", ".toml", ".snap", ".json"].iter().any(|end| path.ends_with(end))
}

/// Every id, role, unit, code, recipient and decision of the shipped files, with the file it is from.
pub(crate) fn domain_words(tree: &Tree) -> (BTreeMap<String, String>, Vec<Violation>) {
    let mut words = BTreeMap::new();
    let mut broken = Vec::new();
    let is_procedure =
        |path: &&str| [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end));
    for path in SHIPPED.iter().flat_map(|prefix| tree.under(prefix)).filter(is_procedure) {
        match serde_saphyr::from_str::<Value>(tree.text(path).unwrap_or_default()) {
            Ok(document) => {
                let mut found = Vec::new();
                collect(&document, &mut found);
                for word in found.into_iter().filter(|word| is_domain_word(word)) {
                    words.entry(word).or_insert_with(|| path.to_owned());
                }
            }
            Err(error) => {
                let reason = error.to_string().lines().next().unwrap_or_default().to_owned();
                broken.push(Violation::new(path, 0, reason, "mend the procedure file"));
            }
        }
    }
    (words, broken)
}

fn is_domain_word(word: &str) -> bool {
    word.len() >= WORD_BYTES_MIN
        && word.chars().all(|c| c.is_alphanumeric() || "_-/°%·".contains(c))
        && NOT_OF_A_DOMAIN.iter().all(|(own, _)| own != &word)
}

/// Names under the keys of the format that carry them. Results, inputs and prompts are not names.
fn collect(value: &Value, words: &mut Vec<String>) {
    const SKIPPED: [&str; 4] = ["results", "inputs", "when", "range"];
    let Value::Object(map) = value else {
        if let Value::Array(items) = value {
            items.iter().for_each(|item| collect(item, words));
        }
        return;
    };
    for (key, value) in map.iter().filter(|(key, _)| !SKIPPED.contains(&key.as_str())) {
        match (key.as_str(), value) {
            ("id" | "role" | "unit" | "code" | "to" | "then", Value::String(word)) => {
                words.push(word.clone());
            }
            (
                "accept_units" | "decisions" | "choices" | "block_on" | "roles",
                Value::Array(items),
            ) => {
                words.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
                collect(value, words);
            }
            _ => collect(value, words),
        }
    }
}

/// Lower-case letters only: could be English.
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_lowercase())
}

/// `word` in `line`, not as part of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

/// Is the plain `word` a part of this identifier, or a word of this string?
fn names(token: &Token, word: &str) -> bool {
    match token.kind {
        Kind::Ident => parts(&token.text).any(|part| part == word),
        Kind::Literal => token.string().is_some_and(|text| parts(text).any(|part| part == word)),
        Kind::Punct | Kind::Open | Kind::Close => false,
    }
}

/// Lower-case words of an identifier or a sentence: `SealState`, `seal_state` and "a seal" all have `seal`.
fn parts(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).flat_map(camel)
}

fn camel(word: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut lower_before = false;
    for c in word.chars() {
        let starts = c.is_uppercase() && lower_before || found.is_empty();
        lower_before = c.is_lowercase() || c.is_ascii_digit();
        if starts {
            found.push(String::new());
        }
        if let Some(last) = found.last_mut() {
            last.extend(c.to_lowercase());
        }
    }
    found
}
