//! How long files and functions may be. Exceptions: [`super::allowance`].

use crate::Workspace;
use crate::report::Violation;
use crate::tree::{Tree, is_test_path};

use super::allowance::{Measured, judge};

/// Product lines in a file.
const FILE_LINES_MAX: usize = 400;
/// Lines in a file with its unit tests, and the most that an allowance may grant.
const FILE_LINES_HARD: usize = 500;
/// Lines in a function, signature included.
const FUNCTION_LINES_MAX: usize = 70;
/// The most that an allowance may grant to a function.
const FUNCTION_LINES_HARD: usize = 120;

pub(super) fn file_length(workspace: &Workspace) -> Vec<Violation> {
    let tree = &workspace.tree;
    let measured: Vec<_> = product_files(tree)
        .map(|(path, source)| Measured {
            path,
            function: None,
            line: 0,
            lines: source.product_lines(),
        })
        .collect();
    let mut found = judge(tree, &measured, FILE_LINES_MAX, FILE_LINES_HARD);
    for (path, _) in product_files(tree) {
        let lines = tree.text(path).map_or(0, |text| text.lines().count());
        if lines > FILE_LINES_HARD {
            found.push(Violation::new(
                path,
                0,
                format!("{lines} lines with unit tests, limit {FILE_LINES_HARD}"),
                "move the tests to a `tests.rs` beside it",
            ));
        }
    }
    found
}

pub(super) fn function_length(workspace: &Workspace) -> Vec<Violation> {
    let tree = &workspace.tree;
    let measured: Vec<_> = product_files(tree)
        .flat_map(|(path, source)| {
            source.functions().into_iter().map(move |function| Measured {
                path,
                function: Some(function.name),
                line: function.line,
                lines: function.lines,
            })
        })
        .collect();
    judge(tree, &measured, FUNCTION_LINES_MAX, FUNCTION_LINES_HARD)
}

fn product_files(tree: &Tree) -> impl Iterator<Item = (&str, &crate::rust::Source)> {
    tree.sources("").filter(|(path, _)| !is_test_path(path))
}
