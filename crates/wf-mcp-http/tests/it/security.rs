//! The table of docs/security.md against the tests: each one that it names is there.

use std::fs;
use std::path::Path;

/// Every source of tests below this folder, by the name of its file.
fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            // The tests of `guard` are in `guard/tests.rs`.
            let parent = path.parent().and_then(Path::file_name).unwrap_or_default();
            let name = if name == "tests" { parent.to_string_lossy().into_owned() } else { name };
            found.push((name, fs::read_to_string(&path).expect("text")));
        }
    }
}

#[test]
fn every_test_that_the_table_names_is_there() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut found = Vec::new();
    for folder in [
        "crates/wf-core/src",
        "crates/wf-core/tests",
        "crates/wf-testkit/tests",
        "crates/wf-mcp-http/src",
        "crates/wf-mcp-http/tests",
        "crates/wf-notify-webhook/src",
        "crates/wf-console/src",
        "crates/wf-console/tests",
        "crates/wf-cli/src",
        "crates/wf-cli/tests",
    ] {
        sources(&root.join(folder), &mut found);
    }
    let page = fs::read_to_string(root.join("docs/security.md")).expect("the page");
    let words = page.split('`').skip(1).step_by(2);
    let named: Vec<_> = words
        .filter_map(|word| word.split_once("::"))
        // Modules have short names; a test is a sentence.
        .filter(|(_, test)| test.matches('_').count() >= 2)
        .collect();
    assert!(named.len() > 50, "{named:?}");
    for (file, test) in named {
        let begins = format!("fn {test}(");
        let there = found.iter().any(|(name, text)| name == file && text.contains(&begins));
        assert!(there, "docs/security.md names {file}::{test}, which is not there");
    }
}
