//! doctor over a DynamoDB table, on an emulator: what it says, and that it leaves the table as it is.

use serde_json::Value;

use crate::binary::{Ran, command};
use crate::emulator::endpoint;

/// The binary with a table of its own; tests share the emulator.
fn wf(table: &str, arguments: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let sets = [
        "backend.kind=aws".to_owned(),
        format!("backend.aws.table={table}-{}", std::process::id()),
        format!("backend.aws.endpoint_url={}", endpoint()),
        "server.listen=127.0.0.1:0".to_owned(),
    ];
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let mut command = command(folder.path());
    command.args(arguments).args(sets).output().expect("the binary runs").into()
}

/// The states of the checks with this name.
fn states(report: &Value, name: &str) -> Vec<String> {
    let checks = report["checks"].as_array().expect("checks");
    let named = checks.iter().filter(|check| check["check"] == name);
    named.map(|check| check["state"].as_str().expect("a state").to_owned()).collect()
}

#[test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
fn a_table_that_is_not_there_is_a_failure_with_what_to_do() {
    let report = wf("doctor-none", &["doctor", "--json"]).exits(1).json();
    assert_eq!(states(&report, "table"), ["fail"]);
    assert!(report.to_string().contains("wf-cli aws init"), "{report:#}");
    assert!(states(&report, "permissions").is_empty(), "nothing else can be looked at");
}

#[test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
fn an_empty_table_is_fine_and_stays_empty() {
    wf("doctor-empty", &["aws", "init"]).exits(0);
    for _ in 0..2 {
        let report = wf("doctor-empty", &["doctor", "--json"]).exits(0).json();
        for name in ["table", "clock skew", "table shape", "TTL", "permissions", "store"] {
            assert_eq!(states(&report, name), ["ok"], "{name}: {report:#}");
        }
        // What `aws init` leaves to the template.
        for name in ["deletion", "recovery"] {
            assert_eq!(states(&report, name), ["warn"], "{name}");
        }
        assert!(report.to_string().contains("none is in the table yet"), "{report:#}");
        assert!(states(&report, "folder").is_empty(), "no file is looked at");
    }
    let text = wf("doctor-empty", &["doctor"]).exits(0).out;
    assert!(text.contains("→ one call could delete all histories"), "{text}");
}
