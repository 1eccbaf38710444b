//! The functions that stand in front of the C library's: find out what a descriptor is, ask the rules, do it, write it
//! down. [`open`] for files and names, [`data`] for their bytes, [`answer`] for sockets.
//!
//! Each has the C name of what it replaces, except in a test build.

mod answer;
mod data;
mod open;

use std::ffi::c_int;

use crate::kernel;

fn failed(errno: c_int) -> c_int {
    kernel::set_errno(errno);
    -1
}

/// The error of a call that answered this; 0 when it succeeded.
fn errno_of(failed: bool) -> c_int {
    if failed { kernel::errno() } else { 0 }
}

#[cfg(test)]
mod tests;
