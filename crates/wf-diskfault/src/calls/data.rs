//! Bytes of files: reading, writing, their length, syncing, closing.

use std::ffi::{c_int, c_void};

use libc::{iovec, off_t, off64_t, size_t, ssize_t};

use crate::book::{self, Meeting, Open};
use crate::calls::{answer, errno_of, failed};
use crate::files::{self, Descriptor, File};
use crate::kernel;
use crate::log::{Op, Record};
use crate::rules::Call;
use crate::setup::{self, Setup};

/// The setup and the file, when the descriptor is one of a file that matters.
fn file(fd: c_int) -> Option<(&'static Setup, File)> {
    let setup = setup::get()?;
    match files::get(setup, fd) {
        Descriptor::File(file) => Some((setup, file)),
        Descriptor::Socket | Descriptor::Nothing => None,
    }
}

fn number(offset: off_t) -> u64 {
    u64::try_from(offset).unwrap_or(0)
}

/// # Safety
/// As `pread` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pread(
    fd: c_int,
    bytes: *mut c_void,
    count: size_t,
    offset: off_t,
) -> ssize_t {
    let mut count = count;
    // Reads are not logged, so without rules there is nothing to ask.
    if let Some((setup, file)) = file(fd).filter(|(setup, _)| setup.rules.is_some()) {
        match book::meet(setup, Call::Pread, file) {
            Meeting::Pass(_) => {}
            Meeting::Short(mut book) => {
                count = count.div_ceil(2);
                book.put_by_rule(Op::Read, fd, file, number(offset), 0);
            }
            Meeting::Fail(mut book, errno) => {
                book.put_by_rule(Op::Read, fd, file, number(offset), errno);
                kernel::set_errno(errno);
                return -1;
            }
        }
    }
    // SAFETY: the caller's arguments, with at most as many bytes as it gave.
    unsafe { kernel::pread(fd, bytes, count, offset) }
}

/// # Safety
/// As `pread64` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pread64(
    fd: c_int,
    bytes: *mut c_void,
    count: size_t,
    offset: off64_t,
) -> ssize_t {
    // SAFETY: the same function on a 64 bit machine.
    unsafe { pread(fd, bytes, count, offset) }
}

/// A write to a file that matters: `act` does it with at most so many bytes, `offset` says afterwards where it went.
///
/// # Safety
/// `count` bytes at `bytes` can be read, and `act` takes no more than it is told.
unsafe fn write_to(
    (setup, file): (&Setup, File),
    fd: c_int,
    (bytes, count): (*const c_void, size_t),
    act: impl FnOnce(size_t) -> ssize_t,
    offset: impl FnOnce(usize) -> u64,
) -> ssize_t {
    let (mut book, by_rule, count) = match book::meet(setup, Call::Pwrite, file) {
        Meeting::Pass(book) => (book, 0, count),
        Meeting::Short(book) => (book, crate::log::BY_RULE, count.div_ceil(2)),
        Meeting::Fail(mut book, errno) => {
            book.put_by_rule(Op::Write, fd, file, offset(0), errno);
            kernel::set_errno(errno);
            return -1;
        }
    };
    let done = act(count);
    let errno = errno_of(done < 0);
    let taken = usize::try_from(done).unwrap_or(0);
    // SAFETY: no more bytes than the caller said can be read.
    let payload = unsafe { slice(bytes, taken) };
    let record = Record { number: offset(taken), ..Record::new(Op::Write, payload) };
    book.put(Record { errno, flags: by_rule, ..book::of(record, fd, file) });
    kernel::set_errno(errno);
    done
}

/// # Safety
/// `count` bytes at `bytes` can be read, if there are any.
unsafe fn slice<'a>(bytes: *const c_void, count: usize) -> &'a [u8] {
    if count == 0 || bytes.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise; the bytes are only read before the call that got them returns.
    unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), count) }
}

/// # Safety
/// As `pwrite` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pwrite(
    fd: c_int,
    bytes: *const c_void,
    count: size_t,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the caller's arguments, with at most as many bytes as it gave.
    let act = |count| unsafe { kernel::pwrite(fd, bytes, count, offset) };
    match file(fd) {
        None => act(count),
        // SAFETY: as promised by the caller of `pwrite`.
        Some(file) => unsafe { write_to(file, fd, (bytes, count), act, |_| number(offset)) },
    }
}

/// # Safety
/// As `pwrite64` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pwrite64(
    fd: c_int,
    bytes: *const c_void,
    count: size_t,
    offset: off64_t,
) -> ssize_t {
    // SAFETY: the same function on a 64 bit machine.
    unsafe { pwrite(fd, bytes, count, offset) }
}

/// # Safety
/// As `write` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: the caller's arguments, with at most as many bytes as it gave.
    let act = |count| unsafe { kernel::write(fd, bytes, count) };
    let Some(setup) = setup::get() else { return act(count) };
    let before = |taken: usize| {
        let taken = u64::try_from(taken).unwrap_or(0);
        kernel::position(fd).unwrap_or(0).saturating_sub(taken)
    };
    match files::get(setup, fd) {
        Descriptor::Nothing => act(count),
        // SAFETY: as promised by the caller of `write`.
        Descriptor::File(file) => unsafe {
            write_to((setup, file), fd, (bytes, count), act, before)
        },
        Descriptor::Socket => {
            let part = iovec { iov_base: bytes.cast_mut(), iov_len: count };
            // SAFETY: one part, the caller's.
            unsafe { answer::leave(setup, fd, &[part], || act(count)) }
        }
    }
}

/// # Safety
/// As `writev` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's arguments.
    let act = || unsafe { kernel::writev(fd, parts, count) };
    let Some(setup) = setup::get() else { return act() };
    match files::get(setup, fd) {
        Descriptor::Nothing => act(),
        Descriptor::Socket => {
            // SAFETY: the caller's parts, as many as it said.
            let parts = unsafe { answer::parts(parts, usize::try_from(count).unwrap_or(0)) };
            // SAFETY: as above.
            unsafe { answer::leave(setup, fd, parts, act) }
        }
        // One part at a time: fewer bytes than asked for are a lawful answer.
        Descriptor::File(_) => {
            // SAFETY: the caller's parts, as many as it said.
            let parts = unsafe { answer::parts(parts, usize::try_from(count).unwrap_or(0)) };
            match parts.iter().find(|part| part.iov_len > 0) {
                // SAFETY: the caller's part.
                Some(part) => unsafe { write(fd, part.iov_base, part.iov_len) },
                None => 0,
            }
        }
    }
}

/// As `ftruncate` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn ftruncate(fd: c_int, length: off_t) -> c_int {
    let Some((setup, file)) = file(fd) else { return kernel::ftruncate(fd, length) };
    match book::meet(setup, Call::Ftruncate, file) {
        Meeting::Fail(mut book, errno) => {
            book.put_by_rule(Op::Truncate, fd, file, number(length), errno);
            failed(errno)
        }
        Meeting::Pass(mut book) | Meeting::Short(mut book) => {
            let done = kernel::ftruncate(fd, length);
            let record = Record { number: number(length), ..Record::new(Op::Truncate, &[]) };
            let errno = errno_of(done != 0);
            book.put(Record { errno, ..book::of(record, fd, file) });
            done
        }
    }
}

/// As `ftruncate64` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn ftruncate64(fd: c_int, length: off64_t) -> c_int {
    ftruncate(fd, length)
}

/// A sync: its beginning and its end are two records, and others may come between.
fn sync(fd: c_int, act: impl FnOnce() -> c_int) -> c_int {
    let Some((setup, file)) = file(fd) else { return act() };
    let begin = |book: &mut Open| {
        let number = book.token();
        let record = Record { number, ..Record::new(Op::SyncBegin, &[]) };
        book.put(book::of(record, fd, file));
        number
    };
    let number = match book::meet(setup, Call::Fsync, file) {
        Meeting::Pass(mut book) | Meeting::Short(mut book) => begin(&mut book),
        Meeting::Fail(mut book, errno) => {
            let number = begin(&mut book);
            book.put_by_rule(Op::SyncEnd, fd, file, number, errno);
            return failed(errno);
        }
    };
    let done = act();
    let errno = errno_of(done != 0);
    let record = Record { number, errno, ..Record::new(Op::SyncEnd, &[]) };
    book::open(setup).put(book::of(record, fd, file));
    kernel::set_errno(errno);
    done
}

/// As `fsync` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn fsync(fd: c_int) -> c_int {
    sync(fd, || kernel::fsync(fd))
}

/// As `fdatasync` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn fdatasync(fd: c_int) -> c_int {
    sync(fd, || kernel::fdatasync(fd))
}

/// As `close` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn close(fd: c_int) -> c_int {
    // Before the number is free: another thread may get it at once.
    if files::forget(fd) == Descriptor::Socket
        && let Some(setup) = setup::get()
    {
        book::open(setup).put(Record { fd, ..Record::new(Op::Hangup, &[]) });
    }
    kernel::close(fd)
}
