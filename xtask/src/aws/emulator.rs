//! Emulators that run while tests do. Each is faithful in something else; which tests run on which stands in
//! `crates/wf-backend-aws/tests/it/differences.rs`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::background::{Background, free_address, listens, post};
use crate::fault::Fault;
use crate::python::Program;

/// How long one may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// An emulator, and how it is started.
pub(super) struct Kind {
    program: Program,
    /// Where tests look for it.
    variable: &'static str,
    /// Tells it where to listen: on 127.0.0.1 only.
    listens: fn(&mut Command, u16),
    /// A path and a JSON body that switch on what is off by default.
    settings: Option<(&'static str, &'static str)>,
}

/// DynamoDB, and Step Functions but for time-outs.
pub(super) const MINISTACK: Kind = Kind {
    program: Program {
        name: "ministack",
        folder: "aws-emulator",
        pins: "crates/wf-backend-aws/tests/emulator.txt",
    },
    variable: "WF_AWS_ENDPOINT",
    listens: |command, port| {
        command
            .env("BIND_HOST", "127.0.0.1")
            .env("MINISTACK_HOST", "127.0.0.1")
            .env("GATEWAY_PORT", port.to_string())
            .env("SERVICES", "dynamodb,stepfunctions")
            .env("LOG_LEVEL", "WARNING");
    },
    settings: None,
};

/// Step Functions with time-outs of tasks; nothing else is asked of it.
pub(super) const MOTO: Kind = Kind {
    program: Program {
        name: "moto_server",
        folder: "aws-moto",
        pins: "crates/wf-backend-aws/tests/moto.txt",
    },
    variable: "WF_MOTO_ENDPOINT",
    listens: |command, port| {
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    },
    settings: Some(("/moto-api/config", r#"{"stepfunctions":{"execute_state_machine":true}}"#)),
};

/// A running emulator; it ends with this value.
#[derive(Debug)]
pub(super) struct Emulator {
    _process: Background,
    pub(super) url: String,
    pub(super) variable: &'static str,
}

impl Emulator {
    pub(super) fn start(root: &Path, kind: &Kind) -> Result<Self, Fault> {
        let program = kind.program.install(root)?;
        let shown = program.to_string_lossy();
        let address = free_address()?;
        let mut command = Command::new(&program);
        (kind.listens)(&mut command, address.port());
        let log = program.with_file_name("emulator.log");
        let mut process = Background::start(&mut command, &shown, &log)?;
        // It listens once it can answer.
        process.until(START_TIMEOUT, || listens(address).then_some(()))?;
        if let Some((path, body)) = kind.settings {
            let answer = post(address, path, body);
            let answer = answer.map_err(|error| Fault::parse(path, &error))?;
            if !answer.contains(" 20") {
                return Err(Fault::Failed { command: shown.into_owned(), output: answer });
            }
        }
        let url = format!("http://{address}");
        Ok(Self { _process: process, url, variable: kind.variable })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{MINISTACK, MOTO};

    #[test]
    fn each_has_pins_a_folder_and_a_variable_of_its_own() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for kind in [MINISTACK, MOTO] {
            let pins = std::fs::read_to_string(root.join(kind.program.pins)).expect("pins");
            assert!(pins.lines().all(|line| line.contains("==")), "{pins}");
        }
        assert_ne!(MINISTACK.program.folder, MOTO.program.folder);
        assert_ne!(MINISTACK.variable, MOTO.variable);
    }
}
