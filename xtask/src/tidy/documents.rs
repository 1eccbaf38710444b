//! What the documents promise must exist: enforcers of invariants, and the command that CI runs.

use crate::Workspace;
use crate::report::Violation;
use crate::rust::Kind;
use crate::tree::Tree;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const MARK: &str = "enforced by:";

pub(super) fn invariants(workspace: &Workspace) -> Vec<Violation> {
    let tree = &workspace.tree;
    let Some(text) = tree.text(ARCHITECTURE) else {
        return vec![Violation::new(
            ARCHITECTURE,
            0,
            "missing",
            "write it, with a section `## Invariants`",
        )];
    };
    let items = items(text);
    if items.is_empty() {
        let fix = "list what is absent under `## Invariants`, one `- … enforced by: `…`` each";
        return vec![Violation::new(
            ARCHITECTURE,
            0,
            "no invariant found, so nothing was checked",
            fix,
        )];
    }
    let mut found = Vec::new();
    for (line, item) in items {
        let Some((_, enforcers)) = item.split_once(MARK) else {
            let fix = "end it with `enforced by:` and the name of a check, lint, test or file";
            found.push(Violation::new(
                ARCHITECTURE,
                line,
                "an invariant that nothing enforces",
                fix,
            ));
            continue;
        };
        let names: Vec<_> = enforcers.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            let fix = "name it in backticks";
            found.push(Violation::new(ARCHITECTURE, line, "no enforcer is named", fix));
        }
        for name in names.iter().filter(|name| !exists(tree, name)) {
            let fix = "name a check of xtask, a lint of Cargo.toml, a file, or a test function that exists";
            found.push(Violation::new(
                ARCHITECTURE,
                line,
                format!("enforcer `{name}` does not exist"),
                fix,
            ));
        }
    }
    found
}

/// List items of the section whose heading contains "Invariants", each joined into one line, with its first line.
fn items(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            inside = line.to_ascii_lowercase().contains("invariants");
            open = false;
        } else if inside && (line.starts_with("- ") || line.starts_with("* ")) {
            found.push((index + 1, line.to_owned()));
            open = true;
        } else if line.trim().is_empty() {
            open = false;
        } else if inside
            && open
            && line.starts_with(' ')
            && let Some((_, item)) = found.last_mut()
        {
            item.push(' ');
            item.push_str(line.trim());
        }
    }
    found
}

/// Is there a check, a subcommand, a lint, a file or a function of this name?
fn exists(tree: &Tree, name: &str) -> bool {
    let name = name.trim();
    let task = name.strip_prefix("cargo ").unwrap_or(name);
    if let Some(words) = task.strip_prefix("xtask ") {
        let word = words.trim_start_matches("tidy --only ").trim_start_matches("tidy ");
        let tasks = ["layering", "deny", "tidy", "selftest", "package", "ci"];
        return tasks.contains(&word) || is_check(word);
    }
    let manifest = tree.text("Cargo.toml").unwrap_or_default();
    let lint = name.split_once("::").map_or(name, |(_, lint)| lint);
    let is_lint = manifest.lines().any(|line| {
        line.split_once('=').is_some_and(|(key, level)| {
            key.trim() == lint && ["deny", "forbid", "warn"].iter().any(|word| level.contains(word))
        })
    });
    is_check(name) || is_lint || name.contains('.') && tree.exists(name) || is_function(tree, name)
}

fn is_check(name: &str) -> bool {
    super::CHECKS.iter().chain(&crate::layering::CHECKS).any(|check| check.name == name)
}

/// A function of this name, with or without the path of its module before it.
fn is_function(tree: &Tree, name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name);
    tree.sources("").any(|(_, source)| {
        source.tokens().iter().enumerate().any(|(index, token)| {
            token.kind == Kind::Ident
                && token.text == name
                && source.at(index.wrapping_sub(1)) == "fn"
        })
    })
}

pub(super) fn ci_entry(workspace: &Workspace) -> Vec<Violation> {
    const COMMAND: &str = "cargo xtask ci";
    let mut found = Vec::new();
    for (path, fix) in [
        ("README.md", "tell a new developer the one command that checks everything"),
        (".ci/run", "call it: CI and a developer run the same thing"),
    ] {
        let named = |line: &str| {
            line.contains(COMMAND) && (path == "README.md" || !line.trim_start().starts_with('#'))
        };
        if !workspace.tree.text(path).is_some_and(|text| text.lines().any(named)) {
            found.push(Violation::new(path, 0, format!("does not name `{COMMAND}`"), fix));
        }
    }
    found
}
