//! The log of `wf-diskfault`, read. Its format is in crates/wf-diskfault/src/log.rs.

use bytes::{Buf as _, Bytes};

use crate::fault::Fault;

/// Version of the format that is read here.
const VERSION: u8 = 1;
const HEAD: usize = 48;

const BY_RULE: u8 = 1;
const CREATED: u8 = 2;
const EMPTIED: u8 = 4;

/// What a process did, in the order of the effects over all threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What.
    pub what: What,
    /// What the file is to the database; `None` when it is about no file.
    pub class: Option<Class>,
    /// A rule made it fail or fall short.
    pub by_rule: bool,
    /// The error of the call; 0 when it succeeded. A call that failed had no effect.
    pub errno: i32,
    /// The process.
    pub process: u32,
    /// The descriptor; 0 when there is none.
    pub fd: i32,
    /// The file, whatever its name is by now; 0 when unknown.
    pub inode: u64,
    /// Nanoseconds of the monotonic clock.
    pub at_ns: u64,
}

/// What a file is to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The database itself.
    Database,
    /// Its write-ahead log.
    Wal,
    /// Its rollback journal.
    Journal,
    /// The shared memory of its users.
    Shm,
    /// The folder that it is in.
    Folder,
    /// Another file beside it whose name begins with its name.
    Other,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The first of a process.
    Start,
    /// A file was opened.
    Open {
        /// Its name in the folder; empty for the folder itself.
        name: String,
        /// It was not there before.
        created: bool,
        /// It lost its content by being opened.
        emptied: bool,
    },
    /// Bytes were written.
    Write {
        /// Where.
        offset: u64,
        /// Which.
        bytes: Bytes,
    },
    /// A file got another length.
    Truncate {
        /// The length.
        length: u64,
    },
    /// A sync begins: what was written before this is covered by it.
    SyncBegin {
        /// Its number within the process.
        token: u64,
    },
    /// A sync is over.
    SyncEnd {
        /// Its number within the process.
        token: u64,
    },
    /// A name was removed.
    Unlink {
        /// The name.
        name: String,
    },
    /// A file got another name.
    Rename {
        /// The old name.
        from: String,
        /// The new name.
        to: String,
    },
    /// Bytes are about to leave on a TCP socket.
    Leaving {
        /// Its number within the process.
        token: u64,
        /// The bytes.
        bytes: Bytes,
    },
    /// The system took some of them.
    Left {
        /// The number of the leaving.
        token: u64,
        /// How many.
        count: u64,
    },
    /// A TCP socket was closed.
    Hangup,
    /// A rule made a read fail or fall short.
    Read {
        /// Where.
        offset: u64,
    },
}

/// The records of a log. A record at its end that is not whole is left out.
///
/// # Errors
/// When it is no log of this version.
pub fn records(mut log: Bytes) -> Result<Vec<Record>, Fault> {
    let mut all = Vec::new();
    while log.len() >= HEAD {
        let mut head = log.slice(..HEAD);
        let length = usize::try_from((&head[40..44]).get_u32_le()).unwrap_or(usize::MAX);
        let Some(end) = HEAD.checked_add(length).filter(|end| *end <= log.len()) else { break };
        let payload = log.slice(HEAD..end);
        log.advance(end);
        let record = record(&mut head, payload).ok_or_else(|| {
            Fault::Run(format!("record {} of the log of the disk cannot be read", all.len()))
        })?;
        all.push(record);
    }
    Ok(all)
}

fn record(head: &mut Bytes, payload: Bytes) -> Option<Record> {
    let (op, class, flags, version) = (head.get_u8(), head.get_u8(), head.get_u8(), head.get_u8());
    if version != VERSION {
        return None;
    }
    let (errno, process, fd) = (head.get_i32_le(), head.get_u32_le(), head.get_i32_le());
    let (inode, number, at_ns) = (head.get_u64_le(), head.get_u64_le(), head.get_u64_le());
    let class = match class {
        0 => None,
        1 => Some(Class::Database),
        2 => Some(Class::Wal),
        3 => Some(Class::Journal),
        4 => Some(Class::Shm),
        5 => Some(Class::Folder),
        6 => Some(Class::Other),
        _ => return None,
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let what = match op {
        1 => What::Start,
        2 => What::Open {
            name: text(&payload),
            created: flags & CREATED != 0,
            emptied: flags & EMPTIED != 0,
        },
        3 => What::Write { offset: number, bytes: payload },
        4 => What::Truncate { length: number },
        5 => What::SyncBegin { token: number },
        6 => What::SyncEnd { token: number },
        7 => What::Unlink { name: text(&payload) },
        8 => {
            let zero = payload.iter().position(|byte| *byte == 0)?;
            What::Rename { from: text(&payload[..zero]), to: text(&payload[zero + 1..]) }
        }
        9 => What::Leaving { token: number, bytes: payload },
        10 => What::Left { token: number, count: payload.get(..8)?.get_u64_le() },
        11 => What::Hangup,
        12 => What::Read { offset: number },
        _ => return None,
    };
    let by_rule = flags & BY_RULE != 0;
    Some(Record { what, class, by_rule, errno, process, fd, inode, at_ns })
}

#[cfg(test)]
mod tests {
    use super::{Class, Record, What, records};

    /// A record as the library writes it: a write of "ab" at 7 to the log, half of what was asked for.
    fn written() -> Vec<u8> {
        let mut bytes = vec![3, 2, 1, 1];
        bytes.extend([0, 0, 0, 0, 9, 0, 0, 0, 4, 0, 0, 0]);
        bytes.extend([5_u64, 7, 11].iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend([2, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(b"ab");
        bytes
    }

    #[test]
    fn what_the_library_writes_is_read() {
        let expected = Record {
            what: What::Write { offset: 7, bytes: b"ab".as_slice().into() },
            class: Some(Class::Wal),
            by_rule: true,
            errno: 0,
            process: 9,
            fd: 4,
            inode: 5,
            at_ns: 11,
        };
        let mut log = written();
        log.extend(written());
        assert_eq!(records(log.into()).unwrap(), [expected.clone(), expected.clone()]);
        // The server is in the middle of writing the next one.
        for end in 50..99 {
            let mut log = written();
            log.extend(written());
            log.truncate(end);
            assert_eq!(records(log.into()).unwrap(), std::slice::from_ref(&expected), "{end}");
        }
    }

    #[test]
    fn another_version_is_not_read() {
        let mut log = written();
        log[3] = 2;
        assert!(records(log.into()).is_err());
    }
}
