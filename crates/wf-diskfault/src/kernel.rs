//! The system calls themselves, past the C library's functions that this library replaces.
//!
//! Everything here leaves `errno` as the C library would.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::mem::MaybeUninit;

use libc::{iovec, mode_t, off_t, size_t, sockaddr, socklen_t, ssize_t};

/// A result of `syscall` as the type that the replaced function answers: both are 64 bits or the value fits.
fn int(result: c_long) -> c_int {
    c_int::try_from(result).unwrap_or(-1)
}

/// Does what a call of the C library would: `syscall` with these arguments.
macro_rules! syscall {
    ($number:expr $(, $argument:expr)*) => {
        // SAFETY: the arguments are those of this system call, in its order and of its types; pointers are the caller's,
        // who answers for them as for those of the C library's function.
        unsafe { libc::syscall($number $(, $argument)*) }
    };
}

/// # Safety
/// As `openat`: `path` ends with a zero byte.
pub(crate) unsafe fn openat(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    int(syscall!(libc::SYS_openat, folder, path, flags, c_uint::from(mode)))
}

/// # Safety
/// As `pread`: `count` bytes at `bytes` can be written.
pub(crate) unsafe fn pread(fd: c_int, bytes: *mut c_void, count: size_t, offset: off_t) -> ssize_t {
    word(syscall!(libc::SYS_pread64, fd, bytes, count, offset))
}

/// # Safety
/// As `pwrite`: `count` bytes at `bytes` can be read.
pub(crate) unsafe fn pwrite(
    fd: c_int,
    bytes: *const c_void,
    count: size_t,
    offset: off_t,
) -> ssize_t {
    word(syscall!(libc::SYS_pwrite64, fd, bytes, count, offset))
}

/// # Safety
/// As `write`: `count` bytes at `bytes` can be read.
pub(crate) unsafe fn write(fd: c_int, bytes: *const c_void, count: size_t) -> ssize_t {
    word(syscall!(libc::SYS_write, fd, bytes, count))
}

/// # Safety
/// As `writev`: `count` parts at `parts`, each readable.
pub(crate) unsafe fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    word(syscall!(libc::SYS_writev, fd, parts, count))
}

/// # Safety
/// As `sendto`.
pub(crate) unsafe fn sendto(
    fd: c_int,
    bytes: *const c_void,
    count: size_t,
    flags: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> ssize_t {
    word(syscall!(libc::SYS_sendto, fd, bytes, count, flags, address, length))
}

/// # Safety
/// As `unlinkat`: `path` ends with a zero byte.
pub(crate) unsafe fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    int(syscall!(libc::SYS_unlinkat, folder, path, flags))
}

/// # Safety
/// As `renameat`: both paths end with a zero byte.
pub(crate) unsafe fn renameat(
    from_folder: c_int,
    from: *const c_char,
    to_folder: c_int,
    to: *const c_char,
) -> c_int {
    int(syscall!(libc::SYS_renameat2, from_folder, from, to_folder, to, 0 as c_uint))
}

pub(crate) fn ftruncate(fd: c_int, length: off_t) -> c_int {
    int(syscall!(libc::SYS_ftruncate, fd, length))
}

pub(crate) fn fsync(fd: c_int) -> c_int {
    int(syscall!(libc::SYS_fsync, fd))
}

pub(crate) fn fdatasync(fd: c_int) -> c_int {
    int(syscall!(libc::SYS_fdatasync, fd))
}

pub(crate) fn close(fd: c_int) -> c_int {
    int(syscall!(libc::SYS_close, fd))
}

fn word(result: c_long) -> ssize_t {
    ssize_t::try_from(result).unwrap_or(-1)
}

/// The error of the last call of this thread.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library answers the address of this thread's errno, which lives as long as the thread.
    unsafe { *libc::__errno_location() }
}

/// Sets the error of the last call of this thread.
pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: as above, and nobody else writes to this thread's errno.
    unsafe { *libc::__errno_location() = errno };
}

/// What the system knows of an open descriptor.
pub(crate) fn status(fd: c_int) -> Option<libc::stat> {
    let mut status = MaybeUninit::uninit();
    // SAFETY: fstat writes a whole `stat` when it succeeds, and only then it is read.
    unsafe { (libc::fstat(fd, status.as_mut_ptr()) == 0).then(|| status.assume_init()) }
}

/// What the system knows of a path, without following a link at its end.
pub(crate) fn status_at(folder: c_int, path: &CStr) -> Option<libc::stat> {
    let mut status = MaybeUninit::uninit();
    let at = status.as_mut_ptr();
    // SAFETY: the path ends with a zero byte; fstatat writes a whole `stat` when it succeeds, and only then it is read.
    unsafe {
        (libc::fstatat(folder, path.as_ptr(), at, libc::AT_SYMLINK_NOFOLLOW) == 0)
            .then(|| status.assume_init())
    }
}

/// Is it a TCP socket?
pub(crate) fn is_tcp(fd: c_int) -> bool {
    let option = |name| {
        let mut value: c_int = 0;
        let mut length = socklen_t::try_from(size_of::<c_int>()).unwrap_or(0);
        let at = (&raw mut value).cast::<c_void>();
        // SAFETY: `value` has `length` bytes, which is what getsockopt may write.
        let done = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, at, &raw mut length) };
        (done == 0).then_some(value)
    };
    option(libc::SO_TYPE) == Some(libc::SOCK_STREAM)
        && matches!(option(libc::SO_DOMAIN), Some(libc::AF_INET | libc::AF_INET6))
}

/// The path of an open descriptor.
pub(crate) fn path_of(fd: c_int) -> Option<Vec<u8>> {
    let mut link = Vec::from(b"/proc/self/fd/");
    let mut digits = [0; 10];
    let mut at = digits.len();
    let mut rest = u32::try_from(fd).ok()?;
    loop {
        at -= 1;
        *digits.get_mut(at)? = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    link.extend_from_slice(digits.get(at..)?);
    link.push(0);
    read_link(CStr::from_bytes_with_nul(&link).ok()?)
}

/// The working folder.
pub(crate) fn current_folder() -> Option<Vec<u8>> {
    read_link(c"/proc/self/cwd")
}

fn read_link(link: &CStr) -> Option<Vec<u8>> {
    let mut path = vec![0_u8; 4096];
    // SAFETY: `link` ends with a zero byte and `path` has as many bytes as are said.
    let length =
        unsafe { libc::readlink(link.as_ptr(), path.as_mut_ptr().cast::<c_char>(), path.len()) };
    path.truncate(usize::try_from(length).ok()?);
    Some(path)
}

/// The whole file, by calls that this library does not replace.
pub(crate) fn read_file(path: &CStr) -> Option<Vec<u8>> {
    // SAFETY: the path ends with a zero byte.
    let fd = unsafe { openat(libc::AT_FDCWD, path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC, 0) };
    if fd < 0 {
        return None;
    }
    let mut bytes = Vec::new();
    let mut part = [0_u8; 1024];
    let whole = loop {
        let at = off_t::try_from(bytes.len()).unwrap_or(off_t::MAX);
        // SAFETY: `part` has as many bytes as are said.
        let count = unsafe { pread(fd, part.as_mut_ptr().cast::<c_void>(), part.len(), at) };
        match usize::try_from(count) {
            Ok(0) => break Some(bytes),
            Ok(count) => bytes.extend_from_slice(part.get(..count).unwrap_or_default()),
            Err(_) => break None,
        }
    };
    close(fd);
    whole
}

/// Where the next `write` to a descriptor goes.
pub(crate) fn position(fd: c_int) -> Option<u64> {
    // SAFETY: takes and changes numbers only.
    u64::try_from(unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) }).ok()
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a whole timespec that the call may write.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// Waits.
pub(crate) fn sleep_ms(ms: u32) {
    let nanoseconds = c_long::from(ms % 1_000).saturating_mul(1_000_000);
    let time = libc::timespec { tv_sec: libc::time_t::from(ms / 1_000), tv_nsec: nanoseconds };
    // SAFETY: reads one timespec; no remainder is asked for.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

/// The process.
pub(crate) fn process() -> u32 {
    u32::try_from(syscall!(libc::SYS_getpid)).unwrap_or(0)
}

/// Ends the process with a message: a bench must not go on with a log or with rules that are not what it asked for.
pub(crate) fn stop(message: &str, detail: &[u8]) -> ! {
    for part in [b"diskfault: ".as_slice(), message.as_bytes(), b": ", detail, b"\n"] {
        // SAFETY: the part has as many bytes as are said.
        unsafe { write(2, part.as_ptr().cast::<c_void>(), part.len()) };
    }
    // SAFETY: never returns and needs nothing.
    unsafe { libc::abort() }
}
