//! Folders of good and bad files: what is read, what is refused, and with which words.
//!
//! `good/x.yaml` has its summary in `good/x.expected.json`; `bad/x.yaml` has its messages in `bad/x.txt`.
//! `UPDATE_EXPECT=1` writes both.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use wf_core::policy::DomainPolicyPort;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

/// The procedure files of a folder, by name.
pub(crate) fn sources(name: &str) -> Vec<(PathBuf, String)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder(name))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| {
            let file = p.file_name().unwrap().to_string_lossy().into_owned();
            (file.ends_with(".yaml") || file.ends_with(".json"))
                && !file.ends_with(".expected.json")
        })
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no files in {name}");
    paths
        .into_iter()
        .map(|p| {
            let source = std::fs::read_to_string(&p).unwrap();
            (p, source)
        })
        .collect()
}

fn compare(expected: &Path, found: &str, failures: &mut String) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(expected, found).unwrap();
    }
    let known = std::fs::read_to_string(expected).unwrap_or_default();
    if known != found {
        writeln!(failures, "{}:\n--- expected\n{known}--- found\n{found}", expected.display())
            .unwrap();
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn good_files_are_read() {
    let mut failures = String::new();
    for (path, source) in sources("good") {
        match wf_procedure::parse(&source, &file_name(&path)) {
            Ok(procedure) => {
                let found = serde_json::to_string_pretty(&procedure.summary()).unwrap() + "\n";
                compare(&path.with_extension("expected.json"), &found, &mut failures);
            }
            Err(problems) => {
                for problem in problems {
                    writeln!(failures, "{problem}").unwrap();
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn bad_files_are_refused_with_place_and_advice() {
    let mut failures = String::new();
    for (path, source) in sources("bad") {
        let problems = match wf_procedure::parse(&source, &file_name(&path)) {
            Ok(procedure) => {
                let id = &procedure.definition().id;
                writeln!(failures, "{} was read as {id}", path.display()).unwrap();
                continue;
            }
            Err(problems) => problems,
        };
        let lines = source.lines().count();
        for problem in &problems {
            assert!(problem.line >= 1 && problem.line <= lines + 1, "no place: {problem}");
            assert!(!problem.hint.is_empty(), "no advice: {problem}");
            assert!(!problem.to_string().contains(char::is_control), "not one line: {problem}");
        }
        let found: String = problems.iter().map(|p| format!("{p}\n")).collect();
        compare(&path.with_extension("txt"), &found, &mut failures);
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn a_good_file_is_valid_by_the_schema_and_a_misspelt_one_is_not() {
    let schema = jsonschema::validator_for(&wf_procedure::json_schema()).unwrap();
    for (path, source) in sources("good") {
        let procedure = wf_procedure::parse(&source, &file_name(&path)).unwrap();
        let document = &procedure.definition().document;
        let errors: Vec<String> =
            schema.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
        for step in 0..document["steps"].as_array().unwrap().len() {
            let mut misspelt = document.clone();
            misspelt["steps"][step]["promt"] = "x".into();
            assert!(!schema.is_valid(&misspelt), "{} step {step}", path.display());
        }
    }
}

#[test]
fn the_guide_says_what_is_so() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/writing-procedures.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let whole: Vec<&str> = guide
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .filter(|block| block.starts_with("schema:"))
        .collect();
    assert!(!whole.is_empty());
    for source in whole {
        let problems =
            wf_procedure::parse(source, "writing-procedures.md").err().unwrap_or_default();
        assert!(problems.is_empty(), "{problems:?}");
    }
    // Every message of the table is one that a bad file gets.
    let messages: String = std::fs::read_dir(folder("bad"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "txt"))
        .map(|p| std::fs::read_to_string(p).unwrap())
        .collect();
    let table = guide.split("## Common refusals").nth(1).unwrap();
    let named: Vec<&str> =
        table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert!(named.len() > 5);
    for message in named {
        let message = message.trim_start_matches("… ").replace("\"x\"", "\"later\"");
        assert!(messages.contains(&message), "no bad file gets: {message}");
    }
}
