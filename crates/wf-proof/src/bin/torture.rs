//! `wf-torture`: see `wf_proof::torture::run`.

use std::process::ExitCode;

use clap::Parser as _;
use wf_proof::torture::run::{Arguments, run};

#[expect(clippy::print_stderr, reason = "a command line tool reports on its standard streams")]
fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            eprintln!("error: {}", fault.chain());
            ExitCode::from(2)
        }
    }
}
