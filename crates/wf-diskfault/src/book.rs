//! The one lock under which changes happen and are written down, so that the order of the log is that of the effects.
//!
//! Used by `calls`. Rules are read again when their file was replaced.

use std::ffi::{CStr, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::iovec;

use crate::files::File;
use crate::kernel;
use crate::log::{BY_RULE, HEAD, Op, Record};
use crate::rules::{Action, Call, Rules};
use crate::setup::Setup;

/// The log that is open and the rules that count.
#[derive(Debug)]
pub(crate) struct Book {
    begun: bool,
    log: Option<c_int>,
    rules: Rules,
    /// Which rule file was read: device, inode, length, time of change.
    read: Option<[i128; 4]>,
    tokens: u64,
}

static BOOK: Mutex<Book> =
    Mutex::new(Book { begun: false, log: None, rules: Rules::none(), read: None, tokens: 0 });

/// The book, locked.
pub(crate) type Open = MutexGuard<'static, Book>;

/// How a call is met that a rule may disturb.
#[derive(Debug)]
pub(crate) enum Meeting {
    /// It is done as asked.
    Pass(Open),
    /// It is done with half of the bytes.
    Short(Open),
    /// It fails with this error and is not done.
    Fail(Open, c_int),
}

/// Opens the book.
pub(crate) fn open(setup: &Setup) -> Open {
    let mut book = BOOK.lock().unwrap_or_else(PoisonError::into_inner);
    if !book.begun {
        book.begun = true;
        book.begin(setup);
    }
    book
}

/// Asks the rules about a call. Waits here, with the book closed, when a rule says so.
pub(crate) fn meet(setup: &Setup, call: Call, file: File) -> Meeting {
    let mut book = open(setup);
    book.refresh(setup);
    match book.rules.judge(call, file.class) {
        None => Meeting::Pass(book),
        Some(Action::Short) => Meeting::Short(book),
        Some(Action::Fail(errno)) => Meeting::Fail(book, errno),
        Some(Action::Delay(ms)) => {
            drop(book);
            kernel::sleep_ms(ms);
            Meeting::Pass(open(setup))
        }
    }
}

impl Book {
    fn begin(&mut self, setup: &Setup) {
        let Some(path) = &setup.log else { return };
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero byte.
        let fd = unsafe { kernel::openat(libc::AT_FDCWD, path.as_ptr(), flags, 0o600) };
        if fd < 0 {
            kernel::stop("the log cannot be opened", path.to_bytes());
        }
        self.log = Some(fd);
        self.put(Record::new(Op::Start, &[]));
    }

    fn refresh(&mut self, setup: &Setup) {
        let Some(path) = &setup.rules else { return };
        let stamp = kernel::status_at(libc::AT_FDCWD, path).map(|status| {
            let changed = i128::from(status.st_mtime) * 1_000_000_000;
            [
                i128::from(status.st_dev),
                i128::from(status.st_ino),
                i128::from(status.st_size),
                changed + i128::from(status.st_mtime_nsec),
            ]
        });
        if stamp != self.read {
            self.read = stamp;
            self.rules = stamp.map_or(Rules::none(), |_| read(path));
        }
    }

    /// A number that no other record of this process has.
    pub(crate) fn token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }

    /// Writes a record, in one piece. Keeps errno.
    pub(crate) fn put(&mut self, record: Record<'_>) {
        let Some(log) = self.log else { return };
        let errno = kernel::errno();
        let head = record.head(kernel::process(), kernel::now_ns());
        let parts = [part(&head), part(record.payload)];
        // SAFETY: two parts, each with as many bytes as it says; the kernel only reads them.
        let written = unsafe { kernel::writev(log, parts.as_ptr(), 2) };
        if usize::try_from(written) != Ok(HEAD + record.payload.len()) {
            kernel::stop("the log cannot be written", &[]);
        }
        kernel::set_errno(errno);
    }

    /// Writes that a rule made a call fail or fall short.
    pub(crate) fn put_by_rule(&mut self, op: Op, fd: c_int, file: File, number: u64, errno: c_int) {
        let record = Record::new(op, &[]);
        self.put(Record { flags: BY_RULE, errno, number, ..of(record, fd, file) });
    }
}

/// A record about an open file.
pub(crate) fn of(record: Record<'_>, fd: c_int, file: File) -> Record<'_> {
    Record { fd, class: Some(file.class), inode: file.inode, ..record }
}

fn part(bytes: &[u8]) -> iovec {
    iovec { iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(), iov_len: bytes.len() }
}

fn read(path: &CStr) -> Rules {
    // A file that is gone again is no rules; the next call looks again.
    let Some(bytes) = kernel::read_file(path) else { return Rules::none() };
    match std::str::from_utf8(&bytes).map(Rules::parse) {
        Ok(Ok(rules)) => rules,
        Ok(Err(line)) => kernel::stop("this is no rule", line.as_bytes()),
        Err(_) => kernel::stop("the rules are not text", path.to_bytes()),
    }
}
