//! The format of the log. Its reader is `wf_proof::harness::disk`; a change here changes [`VERSION`].
//!
//! The file is a sequence of records, each a head of 48 bytes (little endian) and a payload:
//!
//! | bytes | what |
//! |---|---|
//! | 0 | [`Op`] |
//! | 1 | [`Class`], 0 when the record is about no file |
//! | 2 | flags: 1 a rule did it, 2 the file was created, 4 the file was emptied by opening it |
//! | 3 | [`VERSION`] |
//! | 4..8 | `errno`, 0 when the call succeeded |
//! | 8..12 | process |
//! | 12..16 | descriptor |
//! | 16..24 | inode |
//! | 24..32 | a number, see [`Op`] |
//! | 32..40 | nanoseconds of the monotonic clock |
//! | 40..44 | length of the payload |
//! | 44..48 | 0 |

/// Version of the format.
pub(crate) const VERSION: u8 = 1;

/// A rule did it.
pub(crate) const BY_RULE: u8 = 1;
/// The call created the file.
pub(crate) const CREATED: u8 = 2;
/// The call emptied the file.
pub(crate) const EMPTIED: u8 = 4;

/// Length of a head in bytes.
pub(crate) const HEAD: usize = 48;

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Op {
    /// The first record of a process.
    Start = 1,
    /// A file was opened. Payload: its name.
    Open = 2,
    /// Bytes were written. Number: offset. Payload: the bytes that were taken.
    Write = 3,
    /// A file got another length. Number: the length.
    Truncate = 4,
    /// A sync begins. Number: its token.
    SyncBegin = 5,
    /// A sync is over. Number: its token.
    SyncEnd = 6,
    /// A name was removed. Payload: the name.
    Unlink = 7,
    /// A file got another name. Payload: the old name, a zero byte, the new name.
    Rename = 8,
    /// Bytes are about to leave on a TCP socket. Number: a token. Payload: the bytes.
    Leaving = 9,
    /// So many of them were taken. Number: the token. Payload: their count, 8 bytes.
    Left = 10,
    /// A TCP socket was closed.
    Hangup = 11,
    /// A rule made a read fail or fall short. Number: offset.
    Read = 12,
}

/// What a file is to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    /// The database itself.
    Database = 1,
    /// Its write-ahead log.
    Wal = 2,
    /// Its rollback journal.
    Journal = 3,
    /// The shared memory of its users.
    Shm = 4,
    /// The folder that it is in.
    Folder = 5,
    /// Another file beside it whose name begins with its name.
    Other = 6,
}

impl Class {
    /// Of its number.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Database,
            2 => Self::Wal,
            3 => Self::Journal,
            4 => Self::Shm,
            5 => Self::Folder,
            6 => Self::Other,
            _ => return None,
        })
    }
}

/// One record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) op: Op,
    pub(crate) class: Option<Class>,
    pub(crate) flags: u8,
    pub(crate) errno: i32,
    pub(crate) fd: i32,
    pub(crate) inode: u64,
    pub(crate) number: u64,
    pub(crate) payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// With everything else zero.
    pub(crate) fn new(op: Op, payload: &'a [u8]) -> Self {
        Self { op, class: None, flags: 0, errno: 0, fd: 0, inode: 0, number: 0, payload }
    }

    /// The head, given the process and the time.
    pub(crate) fn head(&self, process: u32, now_ns: u64) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            if let Some(place) = head.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
            at += bytes.len();
        };
        put(&[self.op as u8, self.class.map_or(0, |class| class as u8), self.flags, VERSION]);
        put(&self.errno.to_le_bytes());
        put(&process.to_le_bytes());
        put(&self.fd.to_le_bytes());
        put(&self.inode.to_le_bytes());
        put(&self.number.to_le_bytes());
        put(&now_ns.to_le_bytes());
        put(&u32::try_from(self.payload.len()).unwrap_or(u32::MAX).to_le_bytes());
        head
    }
}

#[cfg(test)]
mod tests {
    use super::{BY_RULE, Class, Op, Record};

    #[test]
    fn a_head_has_everything_in_its_place() {
        let record = Record {
            op: Op::SyncEnd,
            class: Some(Class::Wal),
            flags: BY_RULE,
            errno: 5,
            fd: 9,
            inode: 0x0102,
            number: 0x0304,
            payload: b"abc",
        };
        let head = record.head(0x0506, 0x0708);
        assert_eq!(head[..4], [6, 2, 1, 1]);
        assert_eq!(head[4..16], [5, 0, 0, 0, 6, 5, 0, 0, 9, 0, 0, 0]);
        assert_eq!(head[16..32], [2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0]);
        assert_eq!(head[32..48], [8, 7, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn classes_have_numbers() {
        for number in 1..=6 {
            assert_eq!(Class::from_number(number).map(|class| class as u8), Some(number));
        }
        assert_eq!(Class::from_number(0), None);
    }
}
