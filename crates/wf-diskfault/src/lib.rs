//! A preload library that logs and disturbs what a server does to its database files.
//!
//! What it is for and how it is asked for is in README.md. Reading order: `setup` (what the environment asks for),
//! `files` (which descriptor is which file), `rules` (which call is disturbed), `log` (the format of the log), `book` (the
//! one lock under which things happen and are written down), `kernel` (the system calls themselves), `calls` (the
//! functions that stand in front of the C library's).
//!
//! It must not use what it replaces: no `std::fs`, no `std::io`, no printing. In a test build the functions have no C
//! names, so that the test runner itself is not disturbed, and tests call them as Rust functions.

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod book;
mod calls;
mod files;
mod kernel;
mod log;
mod rules;
mod setup;
