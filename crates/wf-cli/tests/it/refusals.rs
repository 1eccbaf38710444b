//! What `serve` and the commands refuse, with which exit code and which words.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use crate::binary::{Ran, command, run};
use crate::life::small;
use crate::server::Server;

/// A folder with a database that a server made and closed.
fn with_database() -> tempfile::TempDir {
    Server::start(&[]).stop()
}

fn overwrite(database: &Path, offset: u64, bytes: &[u8]) {
    let mut file = std::fs::OpenOptions::new().write(true).open(database).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn a_broken_procedure_is_named_with_file_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let procedures = folder.path().join("procedures");
    std::fs::create_dir(&procedures).unwrap();
    let text = small(1, "one").replace("kind: confirm", "kind: conform");
    std::fs::write(procedures.join("small.yaml"), text).unwrap();
    for arguments in [
        &["serve", "--procedures", "procedures", "--listen", "127.0.0.1:0"][..],
        &["procedure", "list", "--procedures", "procedures"],
    ] {
        let ran = run(folder.path(), arguments).exits(1);
        assert!(ran.err.contains("procedures/small.yaml:7:"), "{}", ran.err);
    }
    assert!(!folder.path().join("checkpoint.db").exists(), "nothing was made");
}

#[test]
fn a_changed_definition_under_its_version_is_refused_with_both_digests() {
    let folder = tempfile::tempdir().unwrap();
    let procedures = folder.path().join("procedures");
    std::fs::create_dir(&procedures).unwrap();
    std::fs::write(procedures.join("small.yaml"), small(1, "one")).unwrap();
    let arguments = ["--procedures", "procedures"];
    let folder = Server::start_in(folder, &arguments).stop();
    let digest = |folder: &Path| {
        let listed = run(folder, &["procedure", "list", "--json", "--procedures", "procedures"]);
        listed.exits(0).json()["procedures"][0]["digest"].as_str().unwrap().to_owned()
    };
    let old = digest(folder.path());
    std::fs::write(procedures.join("small.yaml"), small(1, "other")).unwrap();
    let new = digest(folder.path());
    let ran =
        run(folder.path(), &["serve", "--procedures", "procedures", "--listen", "127.0.0.1:0"])
            .exits(1);
    assert_ne!(old, new);
    for part in [old.as_str(), new.as_str(), "small version 1", "new version"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let folder = with_database();
    let database = folder.path().join("checkpoint.db");
    // The user version is the big-endian word at offset 60 (SQLite file format, section 1.3).
    overwrite(&database, 60, &999_u32.to_be_bytes());
    let before = std::fs::read(&database).unwrap();
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["migrate"],
        &["workflow", "list"],
        &["doctor"],
    ] {
        let ran = run(folder.path(), arguments).exits(1);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains("schema version 999"), "{arguments:?}: {said}");
        assert!(said.contains("newer build"), "{arguments:?}: {said}");
    }
    assert_eq!(std::fs::read(&database).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_damage_and_left_alone() {
    let folder = with_database();
    let database = folder.path().join("checkpoint.db");
    overwrite(&database, 0, b"This is no database file");
    let ran = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]).exits(4);
    assert!(ran.err.contains("restore"), "{}", ran.err);
    run(folder.path(), &["workflow", "verify"]).exits(4);
    run(folder.path(), &["doctor"]).exits(4);
    assert!(std::fs::read(&database).unwrap().starts_with(b"This is no database"));
}

/// Runs as a user whom permissions bind: this one, or nobody when this one is root.
fn run_bound(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = command(folder);
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    command.args(arguments).output().unwrap().into()
}

#[test]
fn a_database_that_cannot_be_written_is_refused() {
    let folder = with_database();
    let database = folder.path().join("checkpoint.db");
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&database, 0o444);
    mode(folder.path(), 0o555);
    let ran = run_bound(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let doctor = run_bound(folder.path(), &["doctor", "--json"]);
    mode(folder.path(), 0o755);
    let ran = ran.exits(1);
    assert!(ran.err.contains("cannot be written"), "{}", ran.err);
    let checks = doctor.exits(1).json();
    assert!(checks.to_string().contains("cannot be written"), "{checks:#}");
}

#[test]
fn a_folder_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ran =
        run(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--database", "absent/a.db"])
            .exits(1);
    assert!(ran.err.contains("absent"), "{}", ran.err);
}

#[test]
fn a_taken_address_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = run(folder.path(), &["serve", "--listen", &address]).exits(1);
    assert!(ran.err.contains(&format!("cannot listen on {address}")), "{}", ran.err);
    assert!(ran.err.contains("another process listens there"), "{}", ran.err);
}

#[test]
fn commands_do_not_make_a_database() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["workflow", "list"][..],
        &["workflow", "verify"],
        &["locks", "list"],
        &["outbox", "list"],
        &["backup", "b.db"],
        &["restored"],
    ] {
        let ran = run(folder.path(), arguments).exits(1);
        assert!(ran.err.contains("checkpoint.db"), "{arguments:?}: {}", ran.err);
        assert!(!folder.path().join("checkpoint.db").exists(), "{arguments:?}");
    }
}
