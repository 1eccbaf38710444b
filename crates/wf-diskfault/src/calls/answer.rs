//! Answers on TCP sockets, logged before their first byte leaves. They are never disturbed.

use std::ffi::{c_int, c_void};

use libc::{iovec, size_t, sockaddr, socklen_t, ssize_t};

use crate::book;
use crate::calls::errno_of;
use crate::files::{self, Descriptor};
use crate::kernel;
use crate::log::{Op, Record};
use crate::setup::{self, Setup};

/// # Safety
/// `count` parts can be read at `parts`, for as long as the call lasts that got them.
pub(super) unsafe fn parts<'a>(parts: *const iovec, count: usize) -> &'a [iovec] {
    if count == 0 || parts.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(parts, count) }
}

/// Writes down what is about to leave, lets it leave, and writes down how much was taken.
///
/// # Safety
/// Each part can be read.
pub(super) unsafe fn leave(
    setup: &Setup,
    fd: c_int,
    parts: &[iovec],
    act: impl FnOnce() -> ssize_t,
) -> ssize_t {
    if setup.log.is_none() {
        return act();
    }
    let mut payload = Vec::new();
    for part in parts.iter().filter(|part| part.iov_len > 0) {
        // SAFETY: the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len) };
        payload.extend_from_slice(bytes);
    }
    let number = {
        let mut book = book::open(setup);
        let number = book.token();
        book.put(Record { fd, number, ..Record::new(Op::Leaving, &payload) });
        number
    };
    let taken = act();
    let errno = errno_of(taken < 0);
    let count = u64::try_from(taken).unwrap_or(0).to_le_bytes();
    book::open(setup).put(Record { fd, number, errno, ..Record::new(Op::Left, &count) });
    kernel::set_errno(errno);
    taken
}

fn socket(fd: c_int) -> Option<&'static Setup> {
    let setup = setup::get()?;
    (files::get(setup, fd) == Descriptor::Socket).then_some(setup)
}

/// # Safety
/// As `sendto` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn sendto(
    fd: c_int,
    bytes: *const c_void,
    count: size_t,
    flags: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> ssize_t {
    // SAFETY: the caller's arguments.
    let act = || unsafe { kernel::sendto(fd, bytes, count, flags, address, length) };
    match socket(fd) {
        None => act(),
        Some(setup) => {
            let part = iovec { iov_base: bytes.cast_mut(), iov_len: count };
            // SAFETY: the caller's bytes.
            unsafe { leave(setup, fd, &[part], act) }
        }
    }
}

/// # Safety
/// As `send` of the C library.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn send(
    fd: c_int,
    bytes: *const c_void,
    count: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: what `send` is defined as.
    unsafe { sendto(fd, bytes, count, flags, std::ptr::null(), 0) }
}
