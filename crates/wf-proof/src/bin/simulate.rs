//! `wf-simulate`: see `wf_proof::simulate::run`.

use std::process::ExitCode;

use clap::Parser as _;
use wf_proof::simulate::{Arguments, run};

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
