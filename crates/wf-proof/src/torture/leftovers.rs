//! What a run that was killed leaves behind: file systems that are mounted below its folder. The next run takes them away,
//! and with them their loop devices, which are made so that they go with the last mount.
//!
//! A run holds a lock on a file in its folder as long as it lives, so that nobody takes away what is in use.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};

use crate::fault::Fault;

/// How the temporary folder of a run begins.
pub(super) const PREFIX: &str = "wf-torture-";
/// The locked file.
const ALIVE: &str = "alive";

/// A run lives as long as it has this.
#[derive(Debug)]
pub(super) struct Alive {
    _lock: File,
}

impl Alive {
    /// Of the run with this folder. What an earlier run left mounted below it is taken away first.
    pub(super) fn begin(folder: &Path) -> Result<Self, Fault> {
        std::fs::create_dir_all(folder).map_err(Fault::io("the folder of the run"))?;
        let path = folder.join(ALIVE);
        let open = OpenOptions::new().create(true).append(true).open(&path);
        let lock = open.map_err(Fault::io(format!("making {}", path.display())))?;
        if !is_locked(&lock) {
            return Err(Fault::Run(format!("another run works in {}", folder.display())));
        }
        unmount(|at| at.starts_with(folder));
        Ok(Self { _lock: lock })
    }
}

/// Takes away what dead runs left mounted in their folders below this one.
pub(super) fn clear(temporary: &Path) {
    unmount(|at| {
        let Ok(below) = at.strip_prefix(temporary) else { return false };
        let Some(run) = below.iter().next().and_then(|name| name.to_str()) else { return false };
        // Without the file it is none of ours, or one that is being made.
        run.starts_with(PREFIX)
            && File::open(temporary.join(run).join(ALIVE)).is_ok_and(|lock| is_locked(&lock))
    });
}

/// Locks it, unless somebody else has.
fn is_locked(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// The newest first: what lies on another one goes before it.
fn unmount(is_left_over: impl Fn(&Path) -> bool) {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for at in points(&mounts).into_iter().rev().filter(|at| is_left_over(at)) {
        // What cannot be unmounted is no reason not to run: it is below a folder of nobody.
        let _ = Command::new("umount").arg("--lazy").arg(at).output();
    }
}

/// The places of mounts, in the form of fstab(5): the second field, blanks and backslashes as octal numbers.
fn points(mounts: &str) -> Vec<PathBuf> {
    let plain = |field: &str| {
        field.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\").into()
    };
    mounts.lines().filter_map(|line| line.split(' ').nth(1).map(plain)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Alive, clear, points};

    #[test]
    fn places_of_mounts_are_read() {
        let mounts =
            "tmpfs /tmp/wf-torture-a/under tmpfs rw 0 0\n/dev/loop0 /tmp/a\\040b ext4 rw 0 0\n";
        let expected = ["/tmp/wf-torture-a/under", "/tmp/a b"].map(PathBuf::from);
        assert_eq!(points(mounts), expected);
    }

    #[test]
    fn a_folder_has_one_run_and_can_be_used_again() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let run = folder.path().join("wf-torture-1");
        let alive = Alive::begin(&run)?;
        assert!(Alive::begin(&run).is_err());
        drop(alive);
        clear(folder.path());
        Alive::begin(&run)?;
        Ok(())
    }
}
