//! The release archive: the server with its manual pages, completions, examples and unit files, and its checksum.
//!
//! The same sources and compiler give the same archive: names are sorted, owners and times are not those of the machine.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tar::{Builder, Header};

use crate::ci;
use crate::fault::Fault;
use crate::process::Run;

/// Shells whose completions are in the archive, and the names that they look for.
const SHELLS: [(&str, &str); 3] =
    [("bash", "wf-cli.bash"), ("zsh", "_wf-cli"), ("fish", "wf-cli.fish")];

/// What goes in as it is, and where.
const FILES: [&str; 3] = ["README.md", "CHANGELOG.md", "LICENSE"];
/// Folders that go in whole.
const FOLDERS: [&str; 3] = ["docs", "deploy", "examples/procedures"];

/// For whom to build.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Features of wf-cli beside its own defaults
    #[arg(long, value_name = "FEATURES", default_value = "aws")]
    features: String,
    /// The platform, if it is not this one: its standard library and a linker must be installed
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
}

/// A file of the archive.
struct Entry {
    /// Under which name, below the folder of the archive.
    name: PathBuf,
    content: Vec<u8>,
    mode: u32,
}

/// Builds the server and packs it. Prints what it made.
pub(crate) fn task(root: &Path, options: &Options) -> Result<bool, Fault> {
    let host = host(root)?;
    let triple = options.target.as_deref().unwrap_or(&host);
    let mut build = vec!["build", "--release", "--locked", "-p", "wf-cli", "--bin", "wf-cli"];
    build.extend(["--features", &options.features, "--target", triple]);
    if !Run::cargo(root, &build).succeeds()? {
        return Ok(false);
    }
    let program = ci::target(root).join(triple).join("release/wf-cli");
    if triple != host {
        println!("{triple} is not this machine: the program is packed without having run");
    }
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("checkpoint-{version}-{triple}");
    let entries = entries(root, &program, triple == host)?;
    let folder = ci::target(root).join("dist");
    std::fs::create_dir_all(&folder).map_err(|source| Fault::file(&folder, source))?;
    let archive = folder.join(format!("{name}.tar.gz"));
    pack(&archive, &name, &entries).map_err(|source| Fault::file(&archive, source))?;
    let sum = checksum(&archive)?;
    let sums = folder.join(format!("{name}.tar.gz.sha256"));
    std::fs::write(&sums, format!("{sum}  {name}.tar.gz\n"))
        .map_err(|source| Fault::file(&sums, source))?;
    println!("{} ({} files)\n{}", archive.display(), entries.len(), sums.display());
    Ok(true)
}

/// The platform of this machine's compiler.
fn host(root: &Path) -> Result<String, Fault> {
    let said = Run::new(root, "rustc", &["-vV"]).stdout()?;
    said.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| Fault::parse("rustc -vV", &"names no host"))
}

fn entries(root: &Path, program: &Path, runs: bool) -> Result<Vec<Entry>, Fault> {
    let mut entries = vec![read(program, "wf-cli".into(), 0o755)?];
    for file in FILES {
        entries.push(read(&root.join(file), file.into(), 0o644)?);
    }
    for folder in FOLDERS {
        walk(&root.join(folder), Path::new(folder), &mut entries)?;
    }
    if runs {
        let command = program.to_string_lossy();
        for (shell, name) in SHELLS {
            let script = Run::new(root, &command, &["completions", shell]).stdout()?;
            let name = Path::new("completions").join(name);
            entries.push(Entry { name, content: script.into_bytes(), mode: 0o644 });
        }
        let pages = ci::target(root).join("dist/man");
        let _ = std::fs::remove_dir_all(&pages);
        Run::new(root, &command, &["man", "--dir", &pages.to_string_lossy()]).stdout()?;
        walk(&pages, Path::new("man/man1"), &mut entries)?;
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

fn read(path: &Path, name: PathBuf, mode: u32) -> Result<Entry, Fault> {
    let content = std::fs::read(path).map_err(|source| Fault::file(path, source))?;
    Ok(Entry { name, content, mode })
}

fn walk(folder: &Path, below: &Path, entries: &mut Vec<Entry>) -> Result<(), Fault> {
    let unreadable = |source| Fault::file(folder, source);
    for found in std::fs::read_dir(folder).map_err(unreadable)? {
        let found = found.map_err(unreadable)?;
        let name = below.join(found.file_name());
        if found.file_type().map_err(unreadable)?.is_dir() {
            walk(&found.path(), &name, entries)?;
        } else {
            entries.push(read(&found.path(), name, 0o644)?);
        }
    }
    Ok(())
}

fn pack(archive: &Path, folder: &str, entries: &[Entry]) -> io::Result<()> {
    let file = BufWriter::new(File::create(archive)?);
    let mut tar = Builder::new(GzEncoder::new(file, Compression::best()));
    for entry in entries {
        let mut header = Header::new_gnu();
        header.set_size(u64::try_from(entry.content.len()).map_err(io::Error::other)?);
        header.set_mode(entry.mode);
        header.set_mtime(0);
        tar.append_data(&mut header, Path::new(folder).join(&entry.name), &*entry.content)?;
    }
    tar.into_inner()?.finish()?.flush()
}

fn checksum(path: &Path) -> Result<String, Fault> {
    let content = std::fs::read(path).map_err(|source| Fault::file(path, source))?;
    Ok(Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_files_give_the_same_archive() {
        let folder = std::env::temp_dir().join(format!("xtask-dist-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let entry = |name: &str, mode| Entry { name: name.into(), content: b"x".to_vec(), mode };
        let sum = |archive: &str, entries: &[Entry]| {
            let path = folder.join(archive);
            pack(&path, "checkpoint", entries).unwrap();
            checksum(&path).unwrap()
        };
        let one = sum("one.tar.gz", &[entry("a", 0o755), entry("b", 0o644)]);
        assert_eq!(one, sum("two.tar.gz", &[entry("a", 0o755), entry("b", 0o644)]));
        assert_ne!(one, sum("three.tar.gz", &[entry("a", 0o644), entry("b", 0o644)]));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
