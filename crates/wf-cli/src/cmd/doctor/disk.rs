//! The folder of the database: its file system, whether it can be written, how much room is left.

use std::path::Path;

use rustix::fs::Access;

use super::{Check, State};

/// Less room than this is worth a warning, in bytes.
const ROOM_SCARCE: u64 = 512 * 1024 * 1024;
/// Less room than this and commits will fail soon, in bytes.
const ROOM_GONE: u64 = 16 * 1024 * 1024;

/// Looks at the folder of `database`.
pub(super) fn checks(database: &Path) -> Vec<Check> {
    let folder = database.parent().unwrap_or(Path::new("/"));
    if !folder.is_dir() {
        return vec![
            Check::new("folder", State::Fail, format!("{} is no folder", folder.display()))
                .advise("make it, or name another database with backend.local.path"),
        ];
    }
    let mut all = vec![writable(folder, database)];
    all.extend(file_system(folder));
    all.extend(room(folder));
    all
}

fn writable(folder: &Path, database: &Path) -> Check {
    let denied = [
        (folder, Access::WRITE_OK | Access::EXEC_OK),
        (database, Access::READ_OK | Access::WRITE_OK),
    ]
    .into_iter()
    .filter(|(path, _)| path.exists())
    .find(|(path, how)| rustix::fs::access(*path, *how).is_err());
    match denied {
        None => Check::ok("folder", format!("{} can be written", folder.display())),
        Some((path, _)) => Check::new(
            "folder",
            State::Fail,
            format!("{} cannot be written", path.display()),
        )
        .advise("give this user the right to write there; SQLite makes files beside the database"),
    }
}

/// How a file system by the `f_type` of statfs(2) suits a database.
fn suits(f_type: u32) -> (&'static str, State) {
    match f_type {
        0x0000_ef53 => ("ext4", State::Ok),
        0x5846_5342 => ("xfs", State::Ok),
        0x9123_683e => ("btrfs", State::Ok),
        0x2fc1_2fc1 => ("zfs", State::Ok),
        0xf2f5_2010 => ("f2fs", State::Ok),
        0x794c_7630 => ("overlayfs", State::Ok),
        0x0102_1994 => ("tmpfs", State::Warn),
        0x0000_6969 => ("NFS", State::Fail),
        0xff53_4d42 | 0xfe53_4d42 | 0x0000_517b => ("SMB", State::Fail),
        0x0102_1997 => ("9p", State::Fail),
        0x6573_5546 => ("FUSE", State::Fail),
        0x00c3_6400 => ("Ceph", State::Fail),
        _ => ("of another kind", State::Ok),
    }
}

fn file_system(folder: &Path) -> Option<Check> {
    let stat = rustix::fs::statfs(folder).ok()?;
    // The word is signed on some machines; only its low 32 bits carry the number.
    let f_type = u32::try_from(i128::from(stat.f_type) & 0xffff_ffff).ok()?;
    let (name, state) = suits(f_type);
    let check = Check::new("file system", state, name);
    Some(match state {
        State::Ok => check,
        State::Warn => check.advise("it is gone after a restart of the machine: use a disk"),
        State::Fail => check.advise(
            "SQLite needs a local disk: locks and shared memory do not work reliably over a network",
        ),
    })
}

fn room(folder: &Path) -> Option<Check> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let check = |state| {
        let says = format!("{} MB free", free / (1024 * 1024));
        Check::new("disk space", state, says)
    };
    Some(if free < ROOM_GONE {
        check(State::Fail).advise("free some space: the next commits will be refused")
    } else if free < ROOM_SCARCE {
        check(State::Warn).advise("free some space, or watch it")
    } else {
        check(State::Ok)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_fail_and_memory_is_a_warning() {
        assert_eq!(suits(0x6969).1, State::Fail);
        assert_eq!(suits(0x0102_1994).1, State::Warn);
        assert_eq!(suits(0xef53).1, State::Ok);
    }

    #[test]
    fn a_folder_that_is_not_there_fails_and_one_that_is_passes() {
        let folder = tempfile::tempdir().unwrap();
        let good = checks(&folder.path().join("a.db"));
        assert!(good.iter().any(|check| check.name == "folder" && check.state == State::Ok));
        let bad = checks(&folder.path().join("absent/a.db"));
        assert_eq!(bad.len(), 1);
        assert_eq!(bad[0].state, State::Fail);
    }
}
