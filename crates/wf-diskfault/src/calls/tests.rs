//! Calls the functions as Rust functions: what they do to files and sockets, what they write down, how rules meet them.
//!
//! One test, because the setup and the log belong to the process.

use std::ffi::{CString, OsString, c_int, c_void};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use libc::iovec;

use super::{answer, data, open};
use crate::kernel::errno;
use crate::log::{BY_RULE, CREATED, EMPTIED, HEAD};
use crate::setup::{self, Setup};

/// What a record says, as far as a test can know it.
#[derive(Debug, PartialEq)]
struct Said {
    op: u8,
    class: u8,
    flags: u8,
    errno: i32,
    number: u64,
    payload: Vec<u8>,
}

/// The records of a log from an offset on, and its length.
fn said(log: &Path, from: usize) -> (Vec<Said>, usize) {
    let bytes = std::fs::read(log).expect("the log");
    let word = |at: usize, count: usize| {
        bytes[at..at + count].iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let mut all = Vec::new();
    let mut at = from;
    while at < bytes.len() {
        let length = usize::try_from(word(at + 40, 4)).expect("a length");
        all.push(Said {
            op: bytes[at],
            class: bytes[at + 1],
            flags: bytes[at + 2],
            errno: i32::try_from(word(at + 4, 4)).expect("an error number"),
            number: word(at + 24, 8),
            payload: bytes[at + HEAD..at + HEAD + length].to_vec(),
        });
        at += HEAD + length;
    }
    (all, at)
}

fn about(op: u8, class: u8, number: u64, payload: &[u8]) -> Said {
    Said { op, class, flags: 0, errno: 0, number, payload: payload.to_vec() }
}

struct Bench {
    folder: PathBuf,
    read: usize,
}

impl Bench {
    fn path(&self, name: &str) -> CString {
        CString::new(self.folder.join(name).into_os_string().into_encoded_bytes()).expect("a path")
    }

    fn open(&self, name: &str, flags: c_int) -> c_int {
        // SAFETY: the path ends with a zero byte.
        unsafe { open::open64(self.path(name).as_ptr(), flags, 0o600) }
    }

    fn rules(&self, text: &str) {
        let new = self.folder.join("rules.new");
        std::fs::write(&new, text).expect("rules");
        std::fs::rename(new, self.folder.join("rules")).expect("rules");
    }

    /// What was written down since the last time.
    fn said(&mut self) -> Vec<Said> {
        let (all, end) = said(&self.folder.join("log"), self.read);
        self.read = end;
        all
    }

    #[track_caller]
    fn says(&mut self, expected: &[Said]) {
        assert_eq!(self.said(), expected);
    }
}

fn put(fd: c_int, text: &[u8], offset: i64) -> isize {
    // SAFETY: the slice can be read.
    unsafe { data::pwrite64(fd, text.as_ptr().cast::<c_void>(), text.len(), offset) }
}

fn get(fd: c_int, room: &mut [u8]) -> isize {
    // SAFETY: the slice can be written.
    unsafe { data::pread64(fd, room.as_mut_ptr().cast::<c_void>(), room.len(), 0) }
}

#[test]
fn calls_are_done_disturbed_and_written_down() {
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = temporary.path().canonicalize().expect("a folder");
    let file = |name: &str| Some(OsString::from(folder.join(name)));
    setup::set(Setup::read(|variable| match variable {
        "DISKFAULT_DATABASE" => file("x.db"),
        "DISKFAULT_LOG" => file("log"),
        "DISKFAULT_RULES" => file("rules"),
        _ => None,
    }));
    let mut bench = Bench { folder: folder.clone(), read: 0 };
    let fd = files_are_written_down(&mut bench);
    rules_are_kept(&mut bench, fd);
    names_are_written_down(&mut bench, fd);
    answers_are_written_down(&mut bench);
}

fn files_are_written_down(bench: &mut Bench) -> c_int {
    let fd = bench.open("x.db", libc::O_RDWR | libc::O_CREAT);
    assert!(fd > 2);
    let start = about(1, 0, 0, b"");
    bench.says(&[start, Said { flags: CREATED, ..about(2, 1, 0, b"x.db") }]);
    assert_eq!(put(fd, b"abcdef", 3), 6);
    assert_eq!(data::fsync(fd), 0);
    assert_eq!(data::ftruncate64(fd, 4), 0);
    // SAFETY: four bytes can be read.
    assert_eq!(unsafe { data::write(fd, b"0123".as_ptr().cast::<c_void>(), 4) }, 4);
    assert_eq!(data::fdatasync(fd), 0);
    bench.says(&[
        about(3, 1, 3, b"abcdef"),
        about(5, 1, 1, b""),
        about(6, 1, 1, b""),
        about(4, 1, 4, b""),
        about(3, 1, 0, b"0123"),
        about(5, 1, 2, b""),
        about(6, 1, 2, b""),
    ]);
    assert_eq!(std::fs::read(bench.folder.join("x.db")).expect("x.db"), b"0123");
    // A descriptor that came from elsewhere is found out by its path; files that do not matter stay unmentioned.
    // SAFETY: takes and answers numbers only.
    let copy = unsafe { libc::dup(fd) };
    assert_eq!(put(copy, b"x", 0), 1);
    assert_eq!(data::close(copy), 0);
    // SAFETY: the path ends with a zero byte.
    let other =
        unsafe { open::open(bench.path("y").as_ptr(), libc::O_RDWR | libc::O_CREAT, 0o600) };
    assert_eq!((put(other, b"x", 0), data::fsync(other), data::close(other)), (1, 0, 0));
    bench.says(&[about(3, 1, 0, b"x")]);
    fd
}

fn rules_are_kept(bench: &mut Bench, fd: c_int) {
    let failed = |said: Said, errno| Said { errno, flags: BY_RULE, ..said };
    bench.rules("fsync db EIO nth=2\npwrite db ENOSPC once\npread db EIO once\n");
    let mut room = [0; 4];
    assert_eq!((put(fd, b"yz", 0), errno()), (-1, libc::ENOSPC));
    assert_eq!(put(fd, b"yz", 0), 2);
    assert_eq!((get(fd, &mut room), errno()), (-1, libc::EIO));
    assert_eq!(get(fd, &mut room), 4);
    assert_eq!(&room, b"yz23");
    assert_eq!(data::fsync(fd), 0);
    assert_eq!((data::fsync(fd), errno()), (-1, libc::EIO));
    assert_eq!(data::fsync(fd), 0);
    bench.says(&[
        failed(about(3, 1, 0, b""), libc::ENOSPC),
        about(3, 1, 0, b"yz"),
        failed(about(12, 1, 0, b""), libc::EIO),
        about(5, 1, 3, b""),
        about(6, 1, 3, b""),
        about(5, 1, 4, b""),
        failed(about(6, 1, 4, b""), libc::EIO),
        about(5, 1, 5, b""),
        about(6, 1, 5, b""),
    ]);
    // New rules count from one again.
    bench.rules("pwrite db short once\nftruncate * EIO once\nopen wal EMFILE\n");
    assert_eq!(put(fd, b"abc", 0), 2);
    assert_eq!((data::ftruncate64(fd, 0), errno()), (-1, libc::EIO));
    assert_eq!((bench.open("x.db-wal", libc::O_RDWR | libc::O_CREAT), errno()), (-1, libc::EMFILE));
    bench.says(&[
        Said { flags: BY_RULE, ..about(3, 1, 0, b"ab") },
        failed(about(4, 1, 0, b""), libc::EIO),
        failed(about(2, 2, 0, b"x.db-wal"), libc::EMFILE),
    ]);
    std::fs::remove_file(bench.folder.join("rules")).expect("rules");
    assert_eq!((put(fd, b"abc", 0), data::ftruncate64(fd, 0)), (3, 0));
    bench.says(&[about(3, 1, 0, b"abc"), about(4, 1, 0, b"")]);
}

fn names_are_written_down(bench: &mut Bench, fd: c_int) {
    let wal = bench.open("x.db-wal", libc::O_RDWR | libc::O_CREAT);
    let folder = bench.open("", libc::O_RDONLY | libc::O_DIRECTORY);
    let emptied = libc::O_RDWR | libc::O_TRUNC;
    // SAFETY: the path ends with a zero byte.
    let again = unsafe { open::openat64(folder, c"x.db-wal".as_ptr(), emptied, 0) };
    assert_eq!((data::fsync(folder), data::close(folder)), (0, 0));
    assert_eq!((data::close(again), data::close(wal)), (0, 0));
    let (old, new) = (bench.path("x.db-wal"), bench.path("x.db-wal.gone"));
    // SAFETY: paths end with a zero byte.
    let done = unsafe { (open::rename(old.as_ptr(), new.as_ptr()), open::unlink(new.as_ptr())) };
    assert_eq!((done, data::close(fd)), ((0, 0), 0));
    let renamed = b"x.db-wal\0x.db-wal.gone";
    bench.says(&[
        Said { flags: CREATED, ..about(2, 2, 0, b"x.db-wal") },
        about(2, 5, 0, b""),
        Said { flags: EMPTIED, ..about(2, 2, 0, b"x.db-wal") },
        about(5, 5, 6, b""),
        about(6, 5, 6, b""),
        about(8, 2, 0, renamed),
        about(7, 6, 0, b"x.db-wal.gone"),
    ]);
}

fn answers_are_written_down(bench: &mut Bench) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut caller = TcpStream::connect(listener.local_addr().expect("a port")).expect("connected");
    let (server, _) = listener.accept().expect("a caller");
    let fd = server.as_raw_fd();
    let part = |bytes: &'static [u8]| iovec {
        iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(),
        iov_len: bytes.len(),
    };
    let parts = [part(b"two "), part(b"parts")];
    // SAFETY: the slices can be read.
    let sent = unsafe {
        (
            answer::send(fd, b"one ".as_ptr().cast::<c_void>(), 4, 0),
            data::writev(fd, parts.as_ptr(), 2),
        )
    };
    assert_eq!(sent, (4, 9));
    drop(server);
    // `drop` closes past us, because these functions have no C names here.
    data::close(fd);
    let mut text = String::new();
    caller.read_to_string(&mut text).expect("text");
    assert_eq!(text, "one two parts");
    bench.says(&[
        about(9, 0, 7, b"one "),
        about(10, 0, 7, &4_u64.to_le_bytes()),
        about(9, 0, 8, b"two parts"),
        about(10, 0, 8, &9_u64.to_le_bytes()),
        about(11, 0, 0, b""),
    ]);
    // Other sockets and pipes are none of ours.
    let (mut one, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
    one.write_all(b"x").expect("a byte");
    // SAFETY: the slice can be read.
    assert_eq!(unsafe { data::write(one.as_raw_fd(), b"x".as_ptr().cast::<c_void>(), 1) }, 1);
    bench.says(&[]);
}
