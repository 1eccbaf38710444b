//! `wf-cli`: the binary. The composition root is `compose`, the only file that names a backend.
//!
//! Reading order: [`args`] and [`cmd`] (what can be asked), [`config`] (how it is set), [`compose`] (what the parts
//! are), [`exit`] and [`output`] (how it ends and looks).

mod ambient;
mod args;
mod client;
mod cmd;
mod compose;
mod config;
mod dev_key;
mod exit;
mod failpoint;
mod gate;
mod orchestrator;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(not(feature = "otlp"))]
#[path = "without_otlp.rs"]
mod otlp;
mod output;
mod procedures;
mod runtime;
mod signing_keys;
mod sink;
mod telemetry;
mod trust;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use exit::Exit;

/// A call allocates on one thread and frees on another (runtime, writer, readers), which the allocator of the C library
/// is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    #[cfg(feature = "failpoints")]
    let _asked = fail::FailScenario::setup();
    let cli = args::Cli::parse();
    let done = runtime::build(&cli.config).and_then(|runtime| {
        let done = runtime.block_on(cmd::run(&cli));
        // Whatever matters is over. A read of the standard input may not be, and would be waited for.
        runtime.shutdown_background();
        done
    });
    let exit = match done {
        Ok(()) => Exit::Ok,
        Err(failure) => {
            // Nobody can be told that stderr is closed.
            let _ = write!(std::io::stderr(), "{}", failure.text());
            failure.exit()
        }
    };
    exit.into()
}
