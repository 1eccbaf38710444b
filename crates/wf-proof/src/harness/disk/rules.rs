//! What can be disturbed, in the words of the library's rule file (crates/wf-diskfault/README.md).

use std::fmt;

/// One rule: "the third fsync of the log fails with EIO".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Which call.
    pub call: Call,
    /// Of which file.
    pub file: File,
    /// What happens to it.
    pub action: Action,
    /// The how manieth, counted per process from 1 since the rules were written.
    pub when: When,
}

/// A call, or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Any of them.
    Any,
    /// `open`, `openat`.
    Open,
    /// `pread`.
    Pread,
    /// `pwrite`, `write`.
    Pwrite,
    /// `ftruncate`.
    Ftruncate,
    /// `fsync`, `fdatasync`.
    Fsync,
    /// `unlink`.
    Unlink,
    /// `rename`.
    Rename,
}

/// A file, or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum File {
    /// Any of them.
    Any,
    /// The database.
    Database,
    /// Its write-ahead log.
    Wal,
    /// Its rollback journal.
    Journal,
    /// The shared memory.
    Shm,
    /// The folder.
    Folder,
    /// Another file beside it whose name begins with its name.
    Other,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It fails: the name of the error, for example `EIO`.
    Fail(&'static str),
    /// It reads or writes half of the bytes.
    Short,
    /// It takes so many milliseconds longer.
    DelayMs(u32),
}

/// The how manieth call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Every one.
    Always,
    /// This one only.
    Nth(u32),
    /// This one and all after it.
    From(u32),
    /// Each whose number is a multiple.
    Every(u32),
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = match self.call {
            Call::Any => "*",
            Call::Open => "open",
            Call::Pread => "pread",
            Call::Pwrite => "pwrite",
            Call::Ftruncate => "ftruncate",
            Call::Fsync => "fsync",
            Call::Unlink => "unlink",
            Call::Rename => "rename",
        };
        let file = match self.file {
            File::Any => "*",
            File::Database => "db",
            File::Wal => "wal",
            File::Journal => "journal",
            File::Shm => "shm",
            File::Folder => "folder",
            File::Other => "other",
        };
        write!(f, "{call} {file} ")?;
        match self.action {
            Action::Fail(error) => f.write_str(error)?,
            Action::Short => f.write_str("short")?,
            Action::DelayMs(ms) => write!(f, "delay={ms}")?,
        }
        match self.when {
            When::Always => f.write_str(" always"),
            When::Nth(n) => write!(f, " nth={n}"),
            When::From(n) => write!(f, " from={n}"),
            When::Every(n) => write!(f, " every={n}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, Call, File, Rule, When};

    #[test]
    fn rules_are_spelt_as_the_library_reads_them() {
        let rule = |call, file, action, when| Rule { call, file, action, when }.to_string();
        let eio = Action::Fail("EIO");
        assert_eq!(rule(Call::Fsync, File::Wal, eio, When::Nth(3)), "fsync wal EIO nth=3");
        assert_eq!(rule(Call::Any, File::Any, Action::Short, When::Always), "* * short always");
        let slow = Action::DelayMs(20);
        assert_eq!(
            rule(Call::Pread, File::Database, slow, When::From(2)),
            "pread db delay=20 from=2"
        );
    }
}
