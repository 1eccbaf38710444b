//! The list of clauses is complete: a clause that was written is a clause that runs.

use std::collections::BTreeSet;
use std::path::Path;

use wf_testkit::contract::CLAUSES;

fn written(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            written(&path, found);
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let name = line.strip_prefix("pub async fn ").and_then(|rest| rest.split('(').next());
            found.extend(name.map(str::to_owned));
        }
    }
}

#[test]
fn every_clause_that_is_written_is_listed_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/contract");
    let mut found = BTreeSet::new();
    written(&folder, &mut found);
    let listed: BTreeSet<String> = CLAUSES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(listed, found);
    assert_eq!(listed.len(), CLAUSES.len(), "a clause is listed twice");
}

#[test]
fn every_law_has_a_clause() {
    for law in 1..=14 {
        let prefix = format!("s{law:02}_");
        assert!(CLAUSES.iter().any(|name| name.starts_with(&prefix)), "no clause of S{law}");
    }
}

#[test]
fn a_clause_that_does_not_exist_is_no_pass() {
    let verdict = wf_testkit::contract::run("s99_nothing", async || {
        wf_testkit::model::ModelFixture::default()
    });
    assert!(verdict.is_err());
}
