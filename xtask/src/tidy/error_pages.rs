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
    for (code, (path, line)) in &codes {
        let page = format!("{PAGES}{code}.md");
        match tree.text(&page) {
            None => {
                let fix =
                    format!("write {page}: meaning, who acts, what to do, retry, details, example");
                found.push(Violation::new(*path, *line, format!("{code} has no page"), fix));
            }
            Some(text) => found.extend(sections(&page, code, text)),
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

/// Codes, as the SCREAMING_SNAKE literals of the core's error module, with their place.
fn codes(tree: &Tree) -> BTreeMap<String, (&str, usize)> {
    let mut found = BTreeMap::new();
    for (path, source) in tree.sources(ERRORS) {
        for (_, token) in source.product() {
            if let Some(code) = token.string().filter(|text| is_code(text)) {
                found.insert(code.to_owned(), (path, token.line));
            }
        }
    }
    found
}

fn is_code(text: &str) -> bool {
    text.len() >= 3 && text.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}
