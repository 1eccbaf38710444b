//! `wf-bench`: see `wf_proof::bench::run`.

use std::process::ExitCode;

use clap::Parser as _;
use wf_proof::bench::run::{Arguments, run};

#[expect(clippy::print_stderr, reason = "a command line tool reports on its standard streams")]
fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("error: {}", fault.chain());
            ExitCode::FAILURE
        }
    }
}
