//! The audit of a database file: clean, wrong, damaged, absent, in use; as a library and as a command.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use wf_backend_local::{LocalConfig, LocalStore};
use wf_core::idempotency::canonical_string;
use wf_core::ports::StorageBackendPort as _;
use wf_core::state_machine::evolve;
use wf_proof::harness::audit::{audit, audit_live};
use wf_proof::harness::record;
use wf_testkit::audit::history::{Attempt, Outcome};
use wf_testkit::build::{
    CommitBuilder, asset, at, definition, procedure, tenant, user, workflow_id,
};

const KEY: &str = "k-1";

/// The result of the only commit, as the store keeps it.
fn result() -> Value {
    json!({
        "duplicate": false, "ok": true, "outcome": "started", "speech": "It is started.",
        "workflow": {
            "id": "w-1", "revision": 1, "state": "CREATED",
            "procedure": procedure(), "assets": [{"id": "PUMP-1"}],
        },
    })
}

/// What its caller saw. The payload is the one that commits of the test kit have.
fn history() -> Vec<Attempt> {
    let arguments = Map::from_iter(
        [("about", KEY), ("idempotency_key", KEY)].map(|(k, v)| (k.to_owned(), v.into())),
    );
    vec![Attempt {
        call: 0,
        caller: 0,
        tenant: "plant".to_owned(),
        actor: "user:ann".to_owned(),
        tool: "test".to_owned(),
        arguments,
        sent_ns: 10,
        over_ns: 20,
        outcome: Outcome::Answered { text: canonical_string(&result()).unwrap() },
    }]
}

/// A store with one workflow, open.
async fn store(folder: &Path) -> LocalStore {
    let config = LocalConfig::new(folder.join("checkpoint.db"));
    let store = LocalStore::open(config).await.unwrap().store;
    store.put_definition(&definition("test.procedure", 1, "nothing")).await.unwrap();
    let (tenant, id) = (tenant("plant"), workflow_id("w-1"));
    let start = CommitBuilder::start(&tenant, &id, &user("ann"), at(0)).key(KEY).result(result());
    let mut commit = start.acquire(&asset("PUMP-1"), 1).build();
    // As the engine writes it: the state is the fold of the events.
    commit.next = evolve(None, &commit.events[0]).unwrap();
    store.commit(commit).await.unwrap();
    store
}

async fn closed() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    store(folder.path()).await.close().await;
    let database = folder.path().join("checkpoint.db");
    (folder, database)
}

#[tokio::test]
async fn a_closed_database_is_clean_and_stays_as_it_is() {
    let (folder, database) = closed().await;
    let before = std::fs::read(&database).unwrap();
    assert_eq!(audit(&database, &history()).unwrap(), Vec::<String>::new());
    assert_eq!(std::fs::read(&database).unwrap(), before);
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(names.len() <= 2, "{names:?}");
}

/// The newest commits are in the log beside the database, as a killed server leaves them.
#[tokio::test]
async fn the_log_belongs_to_the_database() {
    let folder = TempDir::new().unwrap();
    let store = store(folder.path()).await;
    let (image, database) = (TempDir::new().unwrap(), folder.path().join("checkpoint.db"));
    for suffix in ["", "-wal"] {
        let name = format!("checkpoint.db{suffix}");
        std::fs::copy(folder.path().join(&name), image.path().join(&name)).unwrap();
    }
    let copied = image.path().join("checkpoint.db");
    assert_eq!(audit(&copied, &history()).unwrap(), Vec::<String>::new());
    assert_eq!(audit_live(&database, &history()).unwrap(), Vec::<String>::new());
    store.close().await;
}

#[tokio::test]
async fn what_was_acknowledged_is_missed_in_a_database_that_is_gone() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("checkpoint.db");
    assert_eq!(audit(&database, &[]).unwrap(), Vec::<String>::new());
    let lines = audit(&database, &history()).unwrap();
    assert!(lines.iter().any(|line| line.starts_with("I1: ")), "{lines:?}");
    assert!(!database.exists());
}

#[tokio::test]
async fn a_damaged_database_is_a_finding_and_no_fault_of_the_run() {
    let (_folder, database) = closed().await;
    let mut bytes = std::fs::read(&database).unwrap();
    let pages = bytes.len() / 4096;
    let mut found = 0;
    for page in 0..pages {
        let whole = bytes.clone();
        bytes[page * 4096..page * 4096 + 12].fill(0xa5);
        std::fs::write(&database, &bytes).unwrap();
        let lines = audit(&database, &history()).unwrap();
        assert!(!lines.is_empty(), "page {page}");
        found += usize::from(lines.iter().any(|line| line.starts_with("Readable: ")));
        bytes = whole;
    }
    assert!(found > pages / 2, "{found} of {pages}");
}

#[tokio::test]
async fn the_command_says_what_holds_and_what_does_not() {
    let (folder, database) = closed().await;
    let file = folder.path().join("history.jsonl");
    let run = |history: &[Attempt]| {
        record::write(&file, history).unwrap();
        let ran = Command::new(env!("CARGO_BIN_EXE_wf-torture"))
            .arg("audit")
            .arg("--history")
            .arg(&file)
            .arg("--store")
            .arg(&database)
            .output()
            .unwrap();
        (ran.status.code(), String::from_utf8(ran.stdout).unwrap())
    };
    let (code, said) = run(&history());
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("every invariant holds: 1 attempts with 1 keys against 1 workflows"),
        "{said}"
    );
    let mut lost = history();
    lost[0].arguments.insert("about".to_owned(), json!("something else"));
    let (code, said) = run(&lost);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("I2: k-1: what is committed with it is another payload"), "{said}");
}
