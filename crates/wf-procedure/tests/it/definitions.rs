//! Definitions: digests for ever, stored documents, directories.

use std::path::Path;

use serde_json::json;
use wf_core::policy::{DomainPolicyPort, PolicyCompilerPort};
use wf_procedure::{Compiler, LoadError};

use crate::files::sources;
use crate::fixture::{procedure, workflow};

const SOURCE: &str = "schema: checkpoint/procedure/v1\nid: golden\nversion: 1\ntitle: Gölden\nsteps:\n  - { id: a, kind: number, prompt: x, range: { accept: [1.50, 7.1] } }\n";

/// These digests are pinned by stored workflows: a change here is a change of the format, never of a test.
#[test]
fn digests_never_change() {
    assert_eq!(
        procedure(SOURCE).definition().digest.as_str(),
        GOLDEN,
        "of {}",
        procedure(SOURCE).definition().document
    );
    assert_eq!(
        wf_core::idempotency::canonical_string(&procedure(SOURCE).definition().document).unwrap(),
        r#"{"id":"golden","schema":"checkpoint/procedure/v1","steps":[{"id":"a","kind":"number","prompt":"x","range":{"accept":[1.5,7.1]}}],"title":"Gölden","version":1}"#
    );
}

const GOLDEN: &str = "ed91ca693519eee3ec874beaa5dd6835270dd79b9b4d14ebcc3c938a1864010b";

#[test]
fn the_digest_is_of_what_is_written_not_of_how() {
    let other = "# A comment.\nversion: 1\n\"id\": 'golden'\nschema: \"checkpoint/procedure/v1\"\ntitle: &x Gölden\nsteps:\n- id: a\n  prompt: x\n  kind: number\n  range:\n    accept:\n    - 1.5\n    - 7.10\n";
    let json = r#"{"schema":"checkpoint/procedure/v1","id":"golden","version":1,"title":"G\u00f6lden","steps":[{"id":"a","kind":"number","prompt":"x","range":{"accept":[1.5,7.1]}}]}"#;
    let digest = |source: &str| procedure(source).definition().digest.clone();
    assert_eq!(digest(SOURCE), digest(other));
    assert_eq!(digest(SOURCE), digest(json));
    // A default that is written out is part of what is written.
    let spelled = SOURCE.replace("prompt: x", "prompt: x, required: true");
    assert_ne!(digest(SOURCE), digest(&spelled));
    let quoted = SOURCE.replace("7.1", "'7.1'");
    assert_ne!(digest(SOURCE), digest(&quoted));
}

#[test]
fn a_stored_document_says_the_same_as_the_file() {
    for (path, source) in sources("good") {
        let file = procedure(&source);
        let definition = file.definition();
        // Through the text that a store keeps.
        let text = wf_core::idempotency::canonical_string(&definition.document).unwrap();
        let mut stored = definition.clone();
        stored.document = serde_json::from_str(&text).unwrap();
        let compiled = Compiler.compile(&stored).unwrap_or_else(|| panic!("{}", path.display()));
        assert_eq!(compiled.definition().digest, definition.digest);
        assert_eq!(compiled.needs(), file.needs());
        let state = workflow(&file);
        assert_eq!(compiled.plan(&state), file.plan(&state));
        assert_eq!(compiled.results(&state), file.results(&state));
        for step in file.plan(&state).steps {
            assert_eq!(compiled.describe(&state, &step.id), file.describe(&state, &step.id));
            assert_eq!(compiled.dependants(&step.id), file.dependants(&step.id));
        }
    }
}

#[test]
fn a_document_that_is_not_what_its_digest_says_is_not_compiled() {
    let mut definition = procedure(SOURCE).definition().clone();
    definition.document["version"] = json!(2);
    assert!(Compiler.compile(&definition).is_none());
    definition.document = json!(["nonsense"]);
    assert!(Compiler.compile(&definition).is_none());
}

#[test]
fn small_numbers_survive_storage() {
    let source = SOURCE.replace("7.1", "0.0000001").replace("1.50", "-0.0000001");
    let file = procedure(&source);
    let compiled = Compiler.compile(file.definition()).unwrap();
    let state = workflow(&file);
    let step = crate::fixture::id("a");
    let described = compiled.describe(&state, &step).unwrap();
    assert_eq!(described.max.as_deref(), Some("0.0000001"));
    assert_eq!(Some(described), file.describe(&state, &step));
}

fn write(dir: &Path, name: &str, text: &[u8]) {
    std::fs::write(dir.join(name), text).unwrap();
}

#[test]
fn a_directory_is_read_whole_and_reports_everything() {
    let dir = tempfile::tempdir().unwrap();
    let named = |id: &str| SOURCE.replace("golden", id);
    write(dir.path(), "b.yml", named("b").as_bytes());
    write(dir.path(), "a.yaml", named("a").as_bytes());
    write(
        dir.path(),
        "c.JSON",
        procedure(&named("c")).definition().document.to_string().as_bytes(),
    );
    write(dir.path(), "notes.txt", b"not a procedure");
    std::fs::create_dir(dir.path().join("more.yaml")).unwrap();
    let loaded = wf_procedure::load_dir(dir.path()).unwrap();
    let ids: Vec<String> =
        loaded.into_procedures().iter().map(|p| p.definition().id.to_string()).collect();
    assert_eq!(ids, ["a", "b", "c"]);

    write(dir.path(), "d.yaml", named("b").as_bytes());
    write(dir.path(), "e.yaml", b"schema: x");
    write(dir.path(), "f.yaml", b"\xff\xfe\x00");
    let error = wf_procedure::load_dir(dir.path()).unwrap_err();
    let LoadError::Problems(problems) = &error else {
        panic!("{error}");
    };
    let files: std::collections::BTreeSet<&str> =
        problems.iter().map(|p| p.file.rsplit('/').next().unwrap()).collect();
    assert_eq!(files.into_iter().collect::<Vec<_>>(), ["d.yaml", "e.yaml", "f.yaml"]);
    assert!(
        error.to_string().contains("d.yaml:2:5: the procedure \"b\" is also defined in"),
        "{error}"
    );
    assert!(error.to_string().contains("f.yaml: not UTF-8; save the file as UTF-8"), "{error}");

    let missing = dir.path().join("nowhere");
    assert!(matches!(wf_procedure::load_dir(&missing), Err(LoadError::List { .. })));
}

#[test]
fn files_of_other_tools_are_read_the_same() {
    let digest = |source: &str| procedure(source).definition().digest.clone();
    let expected = digest(SOURCE);
    assert_eq!(digest(&SOURCE.replace('\n', "\r\n")), expected, "CRLF");
    assert_eq!(digest(&format!("\u{feff}{SOURCE}")), expected, "byte order mark");
    let json = procedure(SOURCE).definition().document.clone();
    let tabs = serde_json::to_string_pretty(&json).unwrap().replace("  ", "\t");
    assert_eq!(digest(&tabs), expected, "JSON indented with tabs");
    // What JSON writers that stick to ASCII make of a character beyond the basic plane.
    let plain = SOURCE.replace("Gölden", "\u{1F600} ok");
    let escaped =
        procedure(&plain).definition().document.to_string().replace('\u{1F600}', "\\ud83d\\ude00");
    assert!(escaped.contains("\\ud83d\\ude00"));
    assert_eq!(digest(&escaped), digest(&plain), "surrogate pairs");
}
