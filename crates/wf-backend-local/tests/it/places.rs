//! Where a store cannot be: each refusal says what to do, and leaves what is there as it is.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use wf_backend_local::{LocalConfig, LocalStore, migrate};
use wf_core::ports::OpenError;

use crate::cast::{is_there, open, start};
use crate::fixture::{config, meddle};
use wf_core::ports::StorageBackendPort as _;

async fn refusal(path: &Path) -> String {
    match LocalStore::open(config(path)).await {
        Err(error @ (OpenError::Refused { .. } | OpenError::Corrupt { .. })) => error.to_string(),
        Err(error) => panic!("refused in another way: {error:?}"),
        Ok(opened) => panic!("opened: {opened:?}"),
    }
}

#[tokio::test]
async fn missing_directory_is_refused() {
    let dir = TempDir::new().unwrap();
    let said = refusal(&dir.path().join("nowhere/store.db")).await;
    assert!(said.contains("nowhere") && said.contains("create it"), "{said}");
}

#[tokio::test]
async fn directory_as_path_is_refused() {
    let dir = TempDir::new().unwrap();
    let said = refusal(dir.path()).await;
    assert!(said.contains("is a directory: give the path of a file"), "{said}");
    let said = refusal(Path::new("/")).await;
    assert!(said.contains("give the path of a file"), "{said}");
}

#[tokio::test]
async fn device_as_path_is_refused() {
    let said = refusal(Path::new("/dev/null")).await;
    assert!(said.contains("not a regular file"), "{said}");
}

#[tokio::test]
async fn garbage_file_is_refused_and_kept() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("store.db");
    let garbage = b"this is no database, but somebody's letter. ".repeat(100);
    std::fs::write(&path, &garbage).unwrap();
    let said = refusal(&path).await;
    assert!(said.contains("not a SQLite database"), "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), garbage);
}

#[tokio::test]
async fn database_of_another_program_is_refused_and_kept() {
    let dir = TempDir::new().unwrap();
    for (name, sql) in [
        ("id.db", "PRAGMA application_id = 252006674"),
        ("table.db", "CREATE TABLE notes (text)"),
        ("version.db", "PRAGMA user_version = 1"),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, b"").unwrap();
        meddle(&path, sql).unwrap();
        let before = std::fs::read(&path).unwrap();
        let said = refusal(&path).await;
        assert!(said.contains("another program"), "{said}");
        assert_eq!(std::fs::read(&path).unwrap(), before, "{name}");
    }
}

#[tokio::test]
async fn empty_file_becomes_a_store() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("store.db");
    std::fs::write(&path, b"").unwrap();
    assert!(LocalStore::open(config(&path)).await.unwrap().created);
}

#[tokio::test]
async fn store_is_readable_by_its_owner_only() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.commit(start(1).build()).await.unwrap();
    for name in ["store.db", "store.db-wal", "store.db.lock"] {
        let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
    }
}

#[tokio::test]
async fn command_creates_no_file() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("store.db");
    let error = LocalStore::open_existing(config(&path)).await.unwrap_err();
    assert!(error.to_string().contains("there is no database"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn command_and_server_share_a_store() {
    let dir = TempDir::new().unwrap();
    let server = open(&dir).await;
    server.commit(start(1).build()).await.unwrap();
    let command = LocalStore::open_existing(server.config().clone()).await.unwrap();
    assert!(is_there(&command, &start(1).build()).await);
    command.commit(start(2).build()).await.unwrap();
    command.close().await;
    assert!(is_there(&server, &start(2).build()).await);
    assert!(server.is_healthy());
}

#[tokio::test]
async fn relative_path_and_uri_like_name_are_plain_names() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("file:x?mode=memory");
    let store = LocalStore::open(config(&path)).await.unwrap().store;
    store.commit(start(1).build()).await.unwrap();
    assert!(path.exists());
    assert!(store.config().path.is_absolute());
}

#[tokio::test]
async fn migrating_a_new_file_makes_a_store() {
    let dir = TempDir::new().unwrap();
    let config = config(dir.path().join("store.db"));
    let report = migrate(config.clone()).await.unwrap();
    assert_eq!((report.from, report.to, report.backup), (0, 3, None));
    let opened = LocalStore::open(config).await.unwrap();
    assert!(!opened.created);
    assert_eq!(opened.migrated_from, None);
}

/// What an unprivileged user meets. Root may write everywhere, so as root the same is done as nobody.
#[test]
fn read_only_places_are_refused() {
    let dir = TempDir::new().unwrap();
    let open_to_all = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open_to_all(dir.path(), 0o755);
    let exe = dir.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &exe).unwrap();
    open_to_all(&exe, 0o755);
    let run = |case: &str, path: &Path| {
        let mut command = Command::new(&exe);
        command.args(["--exact", "places::as_an_unprivileged_user", "--ignored", "--nocapture"]);
        command.env(PLACE, path).env(CASE, case);
        if rustix::process::geteuid().is_root() {
            use std::os::unix::process::CommandExt as _;
            command.uid(65_534).gid(65_534);
        }
        let done = command.output().unwrap();
        assert!(done.status.success(), "{case}: {}", String::from_utf8_lossy(&done.stdout));
    };
    let locked = dir.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    open_to_all(&locked, 0o555);
    run("directory", &locked.join("store.db"));

    let open_dir = dir.path().join("open");
    std::fs::create_dir(&open_dir).unwrap();
    open_to_all(&open_dir, 0o777);
    let file = open_dir.join("store.db");
    std::fs::write(&file, b"").unwrap();
    open_to_all(&file, 0o444);
    run("file", &file);
}

const PLACE: &str = "WF_LOCAL_TEST_PLACE";
const CASE: &str = "WF_LOCAL_TEST_CASE";

#[test]
#[ignore = "run by read_only_places_are_refused, as another user"]
fn as_an_unprivileged_user() {
    let path = std::env::var(PLACE).expect("only as a part of another test");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let said = refusal(Path::new(&path)).await;
        assert!(said.contains("cannot be written") && said.contains("make it writable"), "{said}");
    });
}

#[test]
fn sqlite_is_the_pinned_one() {
    let version = rusqlite::version();
    let parts: Vec<u32> = version.split('.').map(|p| p.parse().unwrap()).collect();
    assert!(parts >= vec![3, 51, 3], "SQLite {version} has the WAL-reset bug");
}

#[tokio::test]
async fn closed_store_leaves_one_file_and_answers() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    store.commit(start(1).build()).await.unwrap();
    let other = store.clone();
    store.close().await;
    let error = other.commit(start(2).build()).await.unwrap_err();
    assert!(matches!(error, wf_core::ports::CommitError::Unavailable { .. }), "{error:?}");
    assert!(!other.is_healthy());
    let mut left: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["store.db", "store.db.lock"]);
    let again = LocalStore::open_existing(LocalConfig::new(dir.path().join("store.db"))).await;
    assert!(is_there(&again.unwrap(), &start(1).build()).await);
}
