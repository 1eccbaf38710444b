//! Files and names: opening, unlinking, renaming.

use std::ffi::{CStr, c_char, c_int};

use libc::mode_t;

use crate::book::{self, Meeting};
use crate::calls::{errno_of, failed};
use crate::files::{self, File};
use crate::kernel;
use crate::log::{BY_RULE, CREATED, Class, EMPTIED, Op, Record};
use crate::rules::Call;
use crate::setup::{self, Setup};

/// A path that matters: its class and its absolute form.
///
/// # Safety
/// `path` is null or ends with a zero byte.
unsafe fn named(folder: c_int, path: *const c_char) -> Option<(&'static Setup, Class, Vec<u8>)> {
    let setup = setup::get()?;
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let absolute = files::absolute(folder, unsafe { CStr::from_ptr(path) })?;
    let class = setup.class_of(&absolute)?;
    Some((setup, class, absolute))
}

/// # Safety
/// `path` ends with a zero byte.
unsafe fn inode(folder: c_int, path: *const c_char) -> Option<u64> {
    // SAFETY: the caller's promise.
    kernel::status_at(folder, unsafe { CStr::from_ptr(path) }).map(|status| status.st_ino)
}

/// # Safety
/// As `openat`. The mode is read from where a fourth argument would be, as the C library does; it means nothing when no
/// file can be created. So a function of four arguments can stand for the variadic one in the calling conventions
/// of Linux on 64 bit machines.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn openat(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: the caller's arguments.
    let act = || unsafe { kernel::openat(folder, path, flags, mode) };
    // SAFETY: as `openat`.
    let Some((setup, class, absolute)) = (unsafe { named(folder, path) }) else {
        let fd = act();
        // The number may have been that of another file, closed where we do not see it.
        files::forget(fd);
        return fd;
    };
    let name = setup.name_of(&absolute);
    let record = Record { class: Some(class), ..Record::new(Op::Open, name) };
    let mut book = match book::meet(setup, Call::Open, File { class, inode: 0 }) {
        Meeting::Pass(book) | Meeting::Short(book) => book,
        Meeting::Fail(mut book, errno) => {
            book.put(Record { flags: BY_RULE, errno, ..record });
            return failed(errno);
        }
    };
    // SAFETY: as `openat`.
    let before = unsafe { inode(folder, path) };
    let fd = act();
    if fd < 0 {
        book.put(Record { errno: kernel::errno(), ..record });
        return fd;
    }
    let inode = kernel::status(fd).map_or(0, |status| status.st_ino);
    files::opened(fd, File { class, inode });
    let mut what = 0;
    if before.is_none() {
        what |= CREATED;
    } else if flags & libc::O_TRUNC != 0 {
        what |= EMPTIED;
    }
    book.put(Record { flags: what, fd, inode, ..record });
    fd
}

/// # Safety
/// As `openat64` of the C library; see [`openat`] for the mode.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn openat64(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: the same function on a 64 bit machine.
    unsafe { openat(folder, path, flags, mode) }
}

/// # Safety
/// As `open` of the C library; see [`openat`] for the mode.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: what `open` is defined as.
    unsafe { openat(libc::AT_FDCWD, path, flags, mode) }
}

/// # Safety
/// As `open64` of the C library; see [`openat`] for the mode.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the same function on a 64 bit machine.
    unsafe { openat(libc::AT_FDCWD, path, flags, mode) }
}

/// # Safety
/// As `unlinkat` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn unlinkat(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's arguments.
    let act = || unsafe { kernel::unlinkat(folder, path, flags) };
    // SAFETY: as `unlinkat`.
    let Some((setup, class, absolute)) = (unsafe { named(folder, path) }) else { return act() };
    let record = Record { class: Some(class), ..Record::new(Op::Unlink, setup.name_of(&absolute)) };
    match book::meet(setup, Call::Unlink, File { class, inode: 0 }) {
        Meeting::Fail(mut book, errno) => {
            book.put(Record { flags: BY_RULE, errno, ..record });
            failed(errno)
        }
        Meeting::Pass(mut book) | Meeting::Short(mut book) => {
            // SAFETY: as `unlinkat`.
            let inode = unsafe { inode(folder, path) }.unwrap_or(0);
            let done = act();
            book.put(Record { inode, errno: errno_of(done != 0), ..record });
            done
        }
    }
}

/// # Safety
/// As `unlink` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: what `unlink` is defined as.
    unsafe { unlinkat(libc::AT_FDCWD, path, 0) }
}

/// # Safety
/// As `renameat` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn renameat(
    from_folder: c_int,
    from: *const c_char,
    to_folder: c_int,
    to: *const c_char,
) -> c_int {
    // SAFETY: the caller's arguments.
    let act = || unsafe { kernel::renameat(from_folder, from, to_folder, to) };
    // SAFETY: as `renameat`.
    let (old, new) = unsafe { (named(from_folder, from), named(to_folder, to)) };
    let Some((setup, class)) = old.as_ref().or(new.as_ref()).map(|(s, c, _)| (*s, *c)) else {
        return act();
    };
    // The side that does not matter is named too, so that a reader knows where a file went or came from.
    // SAFETY: both paths were readable a moment ago.
    let path = |folder, path| files::absolute(folder, unsafe { CStr::from_ptr(path) });
    let (Some(old), Some(new)) = (path(from_folder, from), path(to_folder, to)) else {
        return act();
    };
    let names = [setup.name_of(&old), setup.name_of(&new)].join(&0);
    let record = Record { class: Some(class), ..Record::new(Op::Rename, &names) };
    match book::meet(setup, Call::Rename, File { class, inode: 0 }) {
        Meeting::Fail(mut book, errno) => {
            book.put(Record { flags: BY_RULE, errno, ..record });
            failed(errno)
        }
        Meeting::Pass(mut book) | Meeting::Short(mut book) => {
            // SAFETY: as `renameat`.
            let inode = unsafe { inode(from_folder, from) }.unwrap_or(0);
            let done = act();
            book.put(Record { inode, errno: errno_of(done != 0), ..record });
            done
        }
    }
}

/// # Safety
/// As `rename` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: what `rename` is defined as.
    unsafe { renameat(libc::AT_FDCWD, from, libc::AT_FDCWD, to) }
}
