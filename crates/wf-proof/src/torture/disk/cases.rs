//! The table: the rows of the fault matrix that concern the local backend, each with what is expected.

use super::case::{Case, Expect, Group, How, Reads, Ready, Writes};
use super::ground::Ground;
use super::own::{calls, damage, flood, others, process};
use super::trouble::{Part, Trouble};
use crate::harness::disk::rules::{Action, Call, File, Rule, When};

/// The disk cannot be written: nothing is acknowledged, what is there can be read.
const UNWRITABLE: Expect =
    Expect { writes: Writes::Stop, reads: Reads::GoOn, ready: Ready::No, after_ms: false };

/// As before, but what fits into blocks that are there already is really done.
const SCARCE: Expect = Expect { writes: Writes::Some, ..UNWRITABLE };

/// As before, and one batch or another may go through, so that it is ready at times.
const FORGETTING: Expect = Expect { ready: Ready::Either, ..SCARCE };

/// Somebody else writes: a question of time, not of the disk.
const BUSY: Expect = Expect { after_ms: true, ready: Ready::Either, ..UNWRITABLE };

/// The name stands for another file than the open one: nothing of either may be told or changed.
const ANOTHER: Expect = Expect { reads: Reads::Stop, ..UNWRITABLE };

const fn fault(name: &'static str, ground: Ground, trouble: Trouble, expect: Expect) -> Case {
    Case { name, ground, env: &[], how: How::Fault(trouble, expect), only_soak: None }
}

const fn own(name: &'static str, run: super::case::Own) -> Case {
    Case { name, ground: Ground::Folder, env: &[], how: How::Own(run), only_soak: None }
}

const ANYWHERE: Ground = Ground::Folder;

const ERRORS: &[Action] = &[Action::Fail("EIO"), Action::Fail("ENOSPC")];
const WRITE_ERRORS: &[Action] =
    &[Action::Fail("EIO"), Action::Fail("ENOSPC"), Action::Fail("EDQUOT"), Action::Short];
const READ_ERRORS: &[Action] = &[Action::Fail("EIO"), Action::Short];
const OPEN_ERRORS: &[Action] =
    &[Action::Fail("EIO"), Action::Fail("EMFILE"), Action::Fail("EACCES")];

/// Makes the writer open its files anew.
const LOSE_CONNECTION: Rule =
    Rule { call: Call::Fsync, file: File::Wal, action: Action::Fail("EIO"), when: When::Nth(1) };

const fn calls(
    name: &'static str,
    call: Call,
    file: File,
    actions: &'static [Action],
    reach: u32,
) -> Case {
    let with = if let Call::Open = call { Some(LOSE_CONNECTION) } else { None };
    // The others wait for the checkpointer, which comes once a second.
    let points = if let (File::Wal, Call::Fsync | Call::Pwrite | Call::Pread) = (file, call) {
        7
    } else {
        3
    };
    let how = How::Calls(Group { call, file, actions, reach, points, with });
    Case { name, ground: Ground::Folder, env: &[], how, only_soak: None }
}

/// What a failed COMMIT is made of; also what the negative control runs.
pub(super) const SYNC_OF_LOG: Case = calls("sync-of-log", Call::Fsync, File::Wal, ERRORS, 10);

/// Every case. The longest come first, so that two at a time end together.
pub(super) const CASES: &[Case] = &[
    fault("foreign-writer", ANYWHERE, Trouble::Locked, BUSY),
    own("stopped-process", process::stopped),
    Case {
        env: &[("WF_SERVER_MAX_IN_FLIGHT", "256")],
        ..own("flood-of-requests", flood::of_requests)
    },
    Case {
        // So many places that the queue of the store is what runs full.
        env: &[("WF_SERVER_MAX_IN_FLIGHT", "20000"), ("WF_SERVER_MAX_CONNECTIONS", "20000")],
        only_soak: Some(
            "within two seconds 1,152 calls must come to wait: needs a machine of its own",
        ),
        ..own("flood-of-commits", flood::of_commits)
    },
    own("damaged-pages", damage::damaged),
    own("no-descriptors", process::no_descriptors),
    own("pinned-log", others::pinned_log),
    fault("full-disk", Ground::Memory(24), Trouble::Full, SCARCE),
    fault("full-medium", Ground::Thin(24), Trouble::MediumFull, SCARCE),
    fault("lost-write-back", Ground::Plain, Trouble::WriteBack, FORGETTING),
    fault("read-only-disk", Ground::Image, Trouble::Aborted, UNWRITABLE),
    fault("file-size-limit", ANYWHERE, Trouble::FileLimit, SCARCE),
    fault("database-replaced", ANYWHERE, Trouble::Replaced(Part::Database), ANOTHER),
    fault("database-renamed", ANYWHERE, Trouble::Renamed(Part::Database), ANOTHER),
    fault("log-replaced", ANYWHERE, Trouble::Replaced(Part::Log), ANOTHER),
    fault("log-renamed", ANYWHERE, Trouble::Renamed(Part::Log), ANOTHER),
    fault("log-deleted", ANYWHERE, Trouble::Deleted(Part::Log), ANOTHER),
    fault("index-replaced", ANYWHERE, Trouble::Replaced(Part::Index), ANOTHER),
    fault("index-renamed", ANYWHERE, Trouble::Renamed(Part::Index), ANOTHER),
    fault("index-deleted", ANYWHERE, Trouble::Deleted(Part::Index), ANOTHER),
    SYNC_OF_LOG,
    calls("write-of-log", Call::Pwrite, File::Wal, WRITE_ERRORS, 150),
    calls("read-of-log", Call::Pread, File::Wal, READ_ERRORS, 20),
    calls("cut-of-log", Call::Ftruncate, File::Wal, ERRORS, 1),
    calls("sync-of-database", Call::Fsync, File::Database, ERRORS, 1),
    calls("write-of-database", Call::Pwrite, File::Database, WRITE_ERRORS, 40),
    calls("read-of-database", Call::Pread, File::Database, READ_ERRORS, 20),
    calls("open-of-log", Call::Open, File::Wal, OPEN_ERRORS, 2),
    calls("open-of-database", Call::Open, File::Database, OPEN_ERRORS, 2),
    own("short-foreign-writer", others::short_writer),
    own("hang-up", calls::hang_up),
    own("one-key", calls::one_key),
];
