//! A release archive, from the built server as it is: packed, compared with its checksum, unpacked, and started by the one
//! command that is promised for it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use flate2::Compression;

use crate::background::{Background, free_address};
use crate::dist;
use crate::fault::Fault;
use crate::process::{Run, available, both};

/// What must be in it, beside the program.
const HOLDS: [&str; 12] = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "licences/THIRD-PARTY.md",
    "completions/wf-cli.bash",
    "completions/_wf-cli",
    "completions/wf-cli.fish",
    "man/man1/wf-cli.1",
    "man/man1/wf-cli-serve.1",
    "deploy/checkpoint.service",
    "deploy/checkpoint.toml",
    "docs/operations.md",
];
/// How long a debug build may take to answer.
const START: Duration = Duration::from_secs(60);

/// Packs `program` into `folder`, unpacks it there and starts a procedure with it. True if that works.
pub(super) fn serves(root: &Path, folder: &Path, program: &Path) -> Result<bool, Fault> {
    // A debug build is ten times a release, and its symbols are most of it.
    let small = folder.join("wf-cli");
    let (from, to) = (program.to_string_lossy(), small.to_string_lossy());
    if !(available(root, "strip", &["--version"])
        && Run::new(root, "strip", &["-o", &to, &from]).succeeds()?)
    {
        std::fs::copy(program, &small).map_err(|source| Fault::file(&small, source))?;
    }
    let release = dist::Release::gather(root, &small, "checkpoint-here", dist::Parts::ALL)?;
    let archive = release.write(folder, Compression::fast())?;
    let sums = dist::checksums(folder, "checkpoint-here")?;
    let run = |program: &str, arguments: &[&str]| {
        let output = Run::new(folder, program, arguments).output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(Fault::Failed {
            command: format!("{program} {}", arguments.join(" ")),
            output: both(&output),
        })
    };
    if available(root, "sha256sum", &["--version"]) {
        run("sha256sum", &["--check", "--strict", &sums.to_string_lossy()])?;
    } else {
        println!("LEFT OUT: sha256sum is not here to check the archive with");
    }
    run("tar", &["xzf", &archive.to_string_lossy()])?;
    let unpacked = folder.join("checkpoint-here");
    let missing: Vec<&str> =
        HOLDS.into_iter().filter(|name| !unpacked.join(name).is_file()).collect();
    if !missing.is_empty() {
        println!("the archive lacks {}", missing.join(", "));
        return Ok(false);
    }
    let address = free_address()?;
    let own = unpacked.join("wf-cli");
    let mut serves = Command::new(&own);
    serves.arg("serve").current_dir(&unpacked).env("WF_SERVER_LISTEN", address.to_string());
    let log = folder.join("archive.log");
    let mut server = Background::start(&mut serves, "./wf-cli serve", &log)?;
    let url = format!("http://{address}/mcp");
    let say = |tool: &str, more: &[&str]| {
        let arguments = [&["call", tool, "--url", &url], more].concat();
        Run::new(&unpacked, &own.to_string_lossy(), &arguments).stdout().ok()
    };
    server.until(START, || say("find_work", &[]))?;
    let start = [
        "--arg",
        "procedure_id=pump-inspection",
        "--arg",
        "assets.pump=PUMP-204",
        "--arg",
        "inputs.work_order=WO-7",
        "--arg",
        "idempotency_key=first",
    ];
    let said = say("start_workflow", &start).unwrap_or_default();
    let ended = server.terminate(Duration::from_secs(25))?;
    if !said.contains("Next:") || ended.code() != Some(0) {
        println!("the unpacked server said `{said}` and ended with {ended}");
        return Ok(false);
    }
    println!(
        "{}: {} files; unpacked, `./wf-cli serve` serves a procedure",
        release.name(),
        release.files()
    );
    Ok(true)
}
