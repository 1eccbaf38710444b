//! Error codes and their pages are one to one: the closed list in wf-core, a page each, and the index.

use std::collections::BTreeMap;

use crate::Workspace;
use crate::report::Violation;
use crate::tree::Tree;

const PAGES: &str = "docs/errors/";
const INDEX: &str = "docs/errors/README.md";
const ERRORS: &str = "crates/wf-core/src/errors";

pub(super) fn one_to_one(workspace: &Workspace) -> Vec<Violation> {
    let tree = &workspace.tree;
    let codes = codes(tree);
    if codes.is_empty() {
        let fix = "keep the closed list there, one SCREAMING_SNAKE literal for each code";
        return vec![Violation::new(
            format!("{ERRORS}.rs"),
            0,
            "no error code found, so no page was checked",
            fix,
        )];
    }
    let mut found = Vec::new();
    let index = tree.text(INDEX).unwrap_or_default();
    for (code, entry) in &codes {
        let page = format!("{PAGES}{code}.md");
        match tree.text(&page) {
            None => {
                let fix =
                    format!("write {page}: meaning, who acts, what to do, retry, details, example");
                found.push(Violation::new(
                    entry.path,
                    entry.line,
                    format!("{code} has no page"),
                    fix,
                ));
            }
            Some(text) => {
                found.extend(sections(&page, code, text));
                found.extend(retry_word(&page, text, entry.retry.as_deref()));
            }
        }
        if !index.contains(&format!("({code}.md)")) {
            found.push(Violation::new(
                INDEX,
                0,
                format!("does not link {code}"),
                "add it to the index",
            ));
        }
    }
    for page in tree.under(PAGES).filter(|page| *page != INDEX) {
        let name =
            page.strip_prefix(PAGES).and_then(|name| name.strip_suffix(".md")).unwrap_or_default();
        if !codes.contains_key(name) {
            let fix = "take the page out, or add the code to ErrorCode";
            found.push(Violation::new(page, 0, "a page for a code that does not exist", fix));
        }
    }
    found
}

/// A page that lacks a section somebody would look for.
fn sections(page: &str, code: &str, text: &str) -> Vec<Violation> {
    let title = format!("# {code}");
    let mut wanted = vec![title.as_str()];
    wanted.extend([
        "## Meaning",
        "## Who acts",
        "## What to do",
        "## Retry",
        "## Details",
        "## Example",
    ]);
    wanted
        .into_iter()
        .filter(|heading| !text.lines().any(|line| line.trim_end() == *heading))
        .map(|heading| Violation::new(page, 0, format!("no `{heading}`"), "write that section"))
        .collect()
}

/// A page whose retry section does not begin with the word that the code has.
fn retry_word(page: &str, text: &str, word: Option<&str>) -> Option<Violation> {
    let word = word?;
    let section = text.split("## Retry").nth(1).unwrap_or_default().trim_start();
    (!section.starts_with(&format!("`{word}`"))).then(|| {
        let fix = format!("begin the section with `{word}`, or change the code");
        Violation::new(page, 0, "its retry is not the retry of the code", fix)
    })
}

/// Where a code is written, and whether calling again helps.
struct Entry<'tree> {
    path: &'tree str,
    line: usize,
    retry: Option<String>,
}

/// Codes, as the SCREAMING_SNAKE literals of the core's error module; `"CODE" => ChangedCall` says the retry too.
fn codes(tree: &Tree) -> BTreeMap<String, Entry<'_>> {
    let mut found = BTreeMap::new();
    for (path, source) in tree.sources(ERRORS) {
        for (index, token) in source.product() {
            if let Some(code) = token.string().filter(|text| is_code(text)) {
                let retry = match source.at(index + 3) {
                    "SameCall" => Some("same_call".to_owned()),
                    "ChangedCall" => Some("changed_call".to_owned()),
                    "No" => Some("no".to_owned()),
                    _ => None,
                };
                found.insert(code.to_owned(), Entry { path, line: token.line, retry });
            }
        }
    }
    found
}

fn is_code(text: &str) -> bool {
    text.len() >= 3 && text.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}
