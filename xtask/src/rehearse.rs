//! `cargo xtask rehearse`: the two ways to a served procedure that the README promises, as somebody new takes them, timed.
//!
//! From the sources: `git clone` and `cargo run --release`, in a clone with a target folder of its own, and with an empty
//! cargo home when that is asked for. From a release archive: `tar` and `./wf-cli serve`. A procedure is served when
//! `find_work` is answered. The figures are of the machine, so this is no stage of CI.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;

use crate::background::{Background, free_address};
use crate::ci::target;
use crate::fault::Fault;
use crate::process::Run;

/// The longest build that is waited for.
const BUILD: Duration = Duration::from_secs(60 * 60);
/// The longest start of a program that is there.
const START: Duration = Duration::from_secs(60);
/// In which a server ends.
const END: Duration = Duration::from_secs(30);

/// What to rehearse.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// This archive of `cargo xtask dist` too
    #[arg(long, value_name = "FILE")]
    archive: Option<PathBuf>,
    /// Not from the sources
    #[arg(long, requires = "archive")]
    no_clone: bool,
    /// With an empty cargo home, so that every crate is downloaded; the registries of the present one are kept
    #[arg(long)]
    clean_home: bool,
}

/// Rehearses, and prints how long each command took. True if a procedure was served each time.
pub(crate) fn task(root: &Path, options: &Options) -> Result<bool, Fault> {
    let folder = target(root).join("tmp/rehearsal");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|source| Fault::file(&folder, source))?;
    let mut times = Vec::new();
    if !options.no_clone {
        times.extend(from_the_sources(root, &folder, options.clean_home)?);
    }
    if let Some(archive) = &options.archive {
        times.extend(from_the_archive(&folder, archive)?);
    }
    println!("| command | seconds |\n|---|---|");
    for (command, took) in times {
        println!("| `{command}` | {:.2} |", took.as_secs_f64());
    }
    std::fs::remove_dir_all(&folder).map_err(|source| Fault::file(&folder, source))?;
    Ok(true)
}

fn from_the_sources(
    root: &Path,
    folder: &Path,
    clean: bool,
) -> Result<Vec<(String, Duration)>, Fault> {
    // By its address, so that files are copied and not linked.
    let source = format!("file://{}", root.display());
    let clone = folder.join("checkpoint");
    let began = Instant::now();
    Run::new(folder, "git", &["clone", "--quiet", &source, &clone.to_string_lossy()]).stdout()?;
    let cloned = began.elapsed();

    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut serves = Command::new(program);
    serves.args(["run", "--release", "-p", "wf-cli", "--", "serve"]).current_dir(&clone);
    serves.env_remove("CARGO_TARGET_DIR");
    if clean {
        serves.env("CARGO_HOME", empty_home(folder)?);
    }
    let own = clone.join("target/release/wf-cli");
    let shown = "cargo run --release -p wf-cli -- serve";
    let served = serve(serves, shown, &own, folder, BUILD)?;
    Ok(vec![("git clone".to_owned(), cloned), (shown.to_owned(), served)])
}

fn from_the_archive(folder: &Path, archive: &Path) -> Result<Vec<(String, Duration)>, Fault> {
    let archive = std::path::absolute(archive).map_err(|source| Fault::file(archive, source))?;
    let unpacked = folder.join("unpacked");
    std::fs::create_dir_all(&unpacked).map_err(|source| Fault::file(&unpacked, source))?;
    let began = Instant::now();
    let how = ["xzf", &archive.to_string_lossy(), "--strip-components=1"];
    Run::new(&unpacked, "tar", &how).stdout()?;
    let untarred = began.elapsed();
    let own = unpacked.join("wf-cli");
    let mut serves = Command::new(&own);
    serves.arg("serve").current_dir(&unpacked);
    let served = serve(serves, "./wf-cli serve", &own, folder, START)?;
    Ok(vec![("tar xzf".to_owned(), untarred), ("./wf-cli serve".to_owned(), served)])
}

/// Starts a server, asks it for work with the program `own` until it answers, and ends it. How long the answer took.
fn serve(
    mut serves: Command,
    shown: &str,
    own: &Path,
    folder: &Path,
    wait: Duration,
) -> Result<Duration, Fault> {
    let address = free_address()?;
    serves.env("WF_SERVER_LISTEN", address.to_string());
    println!("{shown} …");
    let began = Instant::now();
    let mut server = Background::start(&mut serves, shown, &folder.join("server.log"))?;
    let url = format!("http://{address}/mcp");
    let asks = || {
        let asked = Run::new(folder, &own.to_string_lossy(), &["call", "find_work", "--url", &url]);
        asked.stdout().ok()
    };
    let said = server.until(wait, asks)?;
    let took = began.elapsed();
    println!("{}", said.trim());
    let ended = server.terminate(END)?;
    if ended.code() != Some(0) {
        return Err(Fault::Failed { command: shown.to_owned(), output: ended.to_string() });
    }
    Ok(took)
}

/// A cargo home with nothing in it but where the registries are.
fn empty_home(folder: &Path) -> Result<PathBuf, Fault> {
    let home = folder.join("cargo-home");
    std::fs::create_dir_all(&home).map_err(|source| Fault::file(&home, source))?;
    let present = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    for name in ["config.toml", "config"] {
        let Some(from) = present.as_ref().map(|present| present.join(name)) else { continue };
        if from.is_file() {
            let to = home.join(name);
            std::fs::copy(&from, &to).map_err(|source| Fault::file(&from, source))?;
        }
    }
    Ok(home)
}
