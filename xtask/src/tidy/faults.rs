//! Core errors become HTTP statuses and JSON-RPC codes in one file of wf-mcp-http, by one exhaustive match.

use crate::Workspace;
use crate::report::Violation;
use crate::rust::Source;

const SOURCES: &str = "crates/wf-mcp-http/src/";

pub(super) fn one_fault_map(workspace: &Workspace) -> Vec<Violation> {
    let fix = "move the mapping to crates/wf-mcp-http/src/fault.rs";
    let mut found = Vec::new();
    let mut mapped = false;
    for (path, source) in workspace.tree.sources(SOURCES) {
        let arms = code_arms(source);
        if path == format!("{SOURCES}fault.rs") || path.starts_with(&format!("{SOURCES}fault/")) {
            mapped = true;
            continue;
        }
        for line in arms {
            found.push(Violation::new(path, line, "a match arm over the core's ErrorCode", fix));
        }
        let names = |word: &str| {
            source.product().find(|(_, token)| token.text == word).map(|(_, token)| token.line)
        };
        if let (Some(line), Some(_)) = (names("ErrorCode"), names("StatusCode")) {
            found.push(Violation::new(
                path,
                line,
                "names both the core's ErrorCode and HTTP's StatusCode",
                fix,
            ));
        }
    }
    if !mapped {
        found.push(Violation::new(
            format!("{SOURCES}fault.rs"),
            0,
            "missing",
            "write the one map from core errors outward",
        ));
    }
    found
}

/// Lines with `ErrorCode::Variant` as (part of) a pattern: before `=>`, `|` or `if`.
fn code_arms(source: &Source) -> Vec<usize> {
    source
        .product()
        .filter(|(index, token)| {
            let variant = token.text == "ErrorCode" && source.reads(index + 1, &[":", ":"]);
            let after = index + 4;
            variant
                && (source.reads(after, &["=", ">"])
                    || ["|", "if"].contains(&source.at(after)) && source.at(after + 1) != "|")
        })
        .map(|(_, token)| token.line)
        .collect()
}
