//! Rules about any Rust file: header, placeholders, lint attributes, ignored tests, names of modules.

use crate::Workspace;
use crate::report::Violation;
use crate::rust::Kind;

pub(super) fn sources_lex(workspace: &Workspace) -> Vec<Violation> {
    let tree = &workspace.tree;
    rust_paths(workspace)
        .filter_map(|path| {
            let error = tree.rust(path)?.as_ref().err()?;
            let fix = "mend the syntax; no other check can read this file";
            Some(Violation::new(path, error.line, error.reason.clone(), fix))
        })
        .collect()
}

pub(super) fn headers(workspace: &Workspace) -> Vec<Violation> {
    rust_paths(workspace)
        .filter(|path| {
            let first =
                workspace.tree.text(path).and_then(|text| text.lines().next()).unwrap_or_default();
            first.strip_prefix("//!").is_none_or(|header| is_filler(header.trim()))
        })
        .map(|path| {
            let fix = "say in one line what the file is for and who its neighbours are";
            Violation::new(path, 1, "does not start with a `//!` header", fix)
        })
        .collect()
}

/// A header that says nothing.
fn is_filler(header: &str) -> bool {
    header.len() < 12 || header.eq_ignore_ascii_case("placeholder")
}

pub(super) fn no_placeholders(workspace: &Workspace) -> Vec<Violation> {
    const FORBIDDEN: [&str; 3] = ["todo", "unimplemented", "dbg"];
    let mut found = Vec::new();
    for (path, source) in workspace.tree.sources("") {
        for (index, token) in source.tokens().iter().enumerate() {
            let called = token.kind == Kind::Ident && source.at(index + 1) == "!";
            if called && FORBIDDEN.contains(&token.text.as_str()) && source.at(index + 2) != "=" {
                found.push(Violation::new(
                    path,
                    token.line,
                    format!("{}!", token.text),
                    "finish it, or take it out",
                ));
            }
        }
    }
    found
}

pub(super) fn no_allow(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in workspace.tree.sources("") {
        for (index, token) in
            source.tokens().iter().enumerate().filter(|(_, token)| token.text == "[")
        {
            let hash = source.at(index.wrapping_sub(1));
            let attribute = hash == "#" || hash == "!" && source.at(index.wrapping_sub(2)) == "#";
            let inside = index..source.mate(index);
            if attribute && inside.clone().any(|at| source.reads(at, &["allow", "("])) {
                found.push(Violation::new(
                    path,
                    token.line,
                    "`allow` attribute",
                    "`#[expect(lint, reason = \"…\")]`, which complains when it is no longer needed",
                ));
            }
        }
    }
    found
}

pub(super) fn ignore_reason(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in workspace.tree.sources("") {
        for (index, token) in source.tokens().iter().enumerate() {
            if source.reads(index, &["#", "[", "ignore", "]"]) {
                let fix = "`#[ignore = \"needs …\"]`: what is absent, and how to have it";
                found.push(Violation::new(path, token.line, "ignored test without a reason", fix));
            }
        }
    }
    found
}

pub(super) fn no_drawers(workspace: &Workspace) -> Vec<Violation> {
    const DRAWERS: [&str; 5] = ["util", "utils", "common", "helpers", "helper"];
    let is_drawer = |name: &str| DRAWERS.contains(&name);
    let fix = "name it after what it is about; a helper wanted by two rooms goes to the lower one";
    let mut found = Vec::new();
    for (path, source) in workspace.tree.sources("") {
        if path.split('/').any(|part| is_drawer(part.strip_suffix(".rs").unwrap_or(part))) {
            found.push(Violation::new(path, 0, "a module that could hold anything", fix));
        }
        for (index, token) in source.tokens().iter().enumerate() {
            if token.text == "mod" && token.kind == Kind::Ident && is_drawer(source.at(index + 1)) {
                found.push(Violation::new(
                    path,
                    token.line,
                    format!("mod {}", source.at(index + 1)),
                    fix,
                ));
            }
        }
    }
    found
}

pub(super) fn one_test_binary(workspace: &Workspace) -> Vec<Violation> {
    rust_paths(workspace)
        .filter(|path| {
            let parts: Vec<_> = path.split('/').collect();
            match parts.as_slice() {
                ["crates" | "examples", _, "tests", file] => file.ends_with(".rs"),
                ["crates" | "examples", _, "tests", folder, "main.rs"] => *folder != "it",
                _ => false,
            }
        })
        .map(|path| {
            let fix = "move it under tests/it/ as a module of main.rs: one binary links once";
            Violation::new(path, 0, "a second integration test binary", fix)
        })
        .collect()
}

fn rust_paths(workspace: &Workspace) -> impl Iterator<Item = &str> {
    workspace.tree.paths().filter(|path| path.ends_with(".rs"))
}
