//! The release archive: the server with its manual pages, completions, licences, documents, examples and the files of an
//! installation, and its checksum.
//!
//! The same sources and compiler give the same archive: names are sorted, owners and times are not those of the machine.

mod licences;

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
use crate::process::{Run, available};

/// Shells whose completions are in the archive, and the names that they look for.
const SHELLS: [(&str, &str); 3] =
    [("bash", "wf-cli.bash"), ("zsh", "_wf-cli"), ("fish", "wf-cli.fish")];

/// What goes in as it is, and where.
const FILES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE", "Containerfile"];
/// Folders that go in whole.
const FOLDERS: [&str; 3] = ["docs", "deploy", "examples/procedures"];
/// Features of a release, beside the defaults.
const FEATURES: &str = "aws";
/// The feature that no release may have.
const FAULTY: &str = "failpoints";
/// In the name of a static platform.
const MUSL: &str = "-musl";

/// For whom to build.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Features of wf-cli beside its own defaults
    #[arg(long, value_name = "FEATURES", default_value = FEATURES)]
    features: String,
    /// The platform, if it is not this one: its standard library and a C compiler must be installed
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// The profile of cargo: `dev` to try the packing without waiting for a release build
    #[arg(long, value_name = "PROFILE", default_value = "release")]
    profile: String,
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
    if options.profile == "release" && options.features.contains(FAULTY) {
        return Err(Fault::parse(
            "--features",
            &format!("{FAULTY} is for tests, never in a release"),
        ));
    }
    if let Some(target) = &options.target {
        can_build_for(root, target)?;
    }
    let mut build = vec!["build", "--locked", "-p", "wf-cli", "--bin", "wf-cli"];
    build.extend(["--profile", &options.profile, "--features", &options.features]);
    // Only when asked for: cargo builds everything anew in another folder for it.
    build.extend(options.target.iter().flat_map(|target| ["--target", target.as_str()]));
    let mut run = Run::cargo(root, &build);
    if triple.contains(MUSL) {
        for (name, value) in musl(triple) {
            run = run.env(&name, &value);
        }
    }
    if !run.succeeds()? {
        return Ok(false);
    }
    let profile = if options.profile == "dev" { "debug" } else { &options.profile };
    let built = options.target.iter().fold(ci::target(root), |folder, target| folder.join(target));
    let program = built.join(profile).join(format!("wf-cli{}", std::env::consts::EXE_SUFFIX));
    let parts = Parts {
        // A static program of this architecture runs here too.
        runs: triple == host || triple == host.replace("-gnu", MUSL),
        features: &options.features,
        target: options.target.as_deref(),
    };
    if !parts.runs {
        println!(
            "LEFT OUT: manual pages and completions: a program for {triple} does not run here"
        );
    }
    let prefix = concat!("checkpoint-", env!("CARGO_PKG_VERSION"));
    let release = Release::gather(root, &program, &format!("{prefix}-{triple}"), parts)?;
    let folder = ci::target(root).join("dist");
    std::fs::create_dir_all(&folder).map_err(|source| Fault::file(&folder, source))?;
    let archive = release.write(&folder, Compression::best())?;
    let sums = checksums(&folder, prefix)?;
    println!("{} ({} files)\n{}", archive.display(), release.files(), sums.display());
    Ok(true)
}

/// What there is besides files of the repository.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts<'a> {
    /// The program runs on this machine: it prints its manual pages and completions.
    runs: bool,
    /// Of the build; the licences are those of what it links.
    features: &'a str,
    target: Option<&'a str>,
}

impl Parts<'_> {
    /// Those of a release for this machine.
    pub(crate) const ALL: Self = Self { runs: true, features: FEATURES, target: None };
}

/// An archive before it is one.
pub(crate) struct Release {
    name: String,
    entries: Vec<Entry>,
}

impl Release {
    /// Everything that goes with `program`.
    pub(crate) fn gather(
        root: &Path,
        program: &Path,
        name: &str,
        parts: Parts<'_>,
    ) -> Result<Self, Fault> {
        let mut entries = vec![read(program, "wf-cli".into(), 0o755)?];
        for file in FILES {
            entries.push(read(&root.join(file), file.into(), 0o644)?);
        }
        for folder in FOLDERS {
            walk(&root.join(folder), Path::new(folder), &mut entries)?;
        }
        let content = licences::document(root, parts.features, parts.target)?;
        entries.push(Entry { name: "licences/THIRD-PARTY.md".into(), content, mode: 0o644 });
        if parts.runs {
            entries.extend(printed(root, program)?);
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { name: name.to_owned(), entries })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn files(&self) -> usize {
        self.entries.len()
    }

    /// Writes the archive into `folder`; its path.
    pub(crate) fn write(&self, folder: &Path, level: Compression) -> Result<PathBuf, Fault> {
        let archive = folder.join(format!("{}.tar.gz", self.name));
        pack(&archive, &self.name, &self.entries, level)
            .map_err(|source| Fault::file(&archive, source))?;
        Ok(archive)
    }
}

/// Writes `SHA256SUMS` beside the archives in `folder` whose names begin so, as `sha256sum --check` reads it; its path.
pub(crate) fn checksums(folder: &Path, prefix: &str) -> Result<PathBuf, Fault> {
    let unreadable = |source| Fault::file(folder, source);
    let mut lines = Vec::new();
    for found in std::fs::read_dir(folder).map_err(unreadable)? {
        let name = found.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
        if name.starts_with(prefix) && name.ends_with(".tar.gz") {
            lines.push((name.clone(), checksum(&folder.join(&name))?));
        }
    }
    lines.sort();
    let text: String = lines.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    let sums = folder.join("SHA256SUMS");
    std::fs::write(&sums, text).map_err(|source| Fault::file(&sums, source))?;
    Ok(sums)
}

/// The platform of this machine's compiler.
fn host(root: &Path) -> Result<String, Fault> {
    let said = Run::new(root, "rustc", &["-vV"]).stdout()?;
    said.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| Fault::parse("rustc -vV", &"names no host"))
}

/// Says what is missing to build for a platform, before cargo says it in the middle of something else.
fn can_build_for(root: &Path, triple: &str) -> Result<(), Fault> {
    let printed =
        Run::new(root, "rustc", &["--print", "target-libdir", "--target", triple]).stdout()?;
    let library = Path::new(printed.trim());
    let installed = std::fs::read_dir(library).is_ok_and(|mut files| files.next().is_some());
    if !installed {
        let what = format!("its standard library is not here: rustup target add {triple}");
        return Err(Fault::parse(triple, &what));
    }
    if triple.contains(MUSL) && !available(root, MUSL_COMPILER, &["--version"]) {
        let what = format!("{MUSL_COMPILER} is not here: apt-get install musl-tools");
        return Err(Fault::parse(triple, &what));
    }
    Ok(())
}

/// What Debian's musl-tools call their C compiler.
const MUSL_COMPILER: &str = "musl-gcc";

/// What a static build needs: SQLite and aws-lc are C, and are compiled for musl. Linux's own headers, which aws-lc asks for
/// random numbers by, are not in musl's folder.
fn musl(triple: &str) -> [(String, String); 2] {
    let name = triple.replace('-', "_");
    let architecture = triple.split('-').next().unwrap_or_default();
    let headers =
        format!("-idirafter /usr/include -idirafter /usr/include/{architecture}-linux-gnu");
    [(format!("CC_{name}"), MUSL_COMPILER.to_owned()), (format!("CFLAGS_{name}"), headers)]
}

/// What the program prints about itself.
fn printed(root: &Path, program: &Path) -> Result<Vec<Entry>, Fault> {
    let mut entries = Vec::new();
    let command = program.to_string_lossy();
    for (shell, name) in SHELLS {
        let script = Run::new(root, &command, &["completions", shell]).stdout()?;
        let name = Path::new("completions").join(name);
        entries.push(Entry { name, content: script.into_bytes(), mode: 0o644 });
    }
    let pages = ci::target(root).join("dist/man");
    let _ = std::fs::remove_dir_all(&pages);
    std::fs::create_dir_all(&pages).map_err(|source| Fault::file(&pages, source))?;
    Run::new(root, &command, &["man", "--dir", &pages.to_string_lossy()]).stdout()?;
    walk(&pages, Path::new("man/man1"), &mut entries)?;
    Ok(entries)
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

fn read(path: &Path, name: PathBuf, mode: u32) -> Result<Entry, Fault> {
    let content = std::fs::read(path).map_err(|source| Fault::file(path, source))?;
    Ok(Entry { name, content, mode })
}

fn pack(archive: &Path, folder: &str, entries: &[Entry], level: Compression) -> io::Result<()> {
    let file = BufWriter::new(File::create(archive)?);
    let mut tar = Builder::new(GzEncoder::new(file, level));
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
            pack(&path, "checkpoint", entries, Compression::fast()).unwrap();
            checksum(&path).unwrap()
        };
        let one = sum("one.tar.gz", &[entry("a", 0o755), entry("b", 0o644)]);
        assert_eq!(one, sum("two.tar.gz", &[entry("a", 0o755), entry("b", 0o644)]));
        assert_ne!(one, sum("three.tar.gz", &[entry("a", 0o644), entry("b", 0o644)]));
        let sums = std::fs::read_to_string(checksums(&folder, "t").unwrap()).unwrap();
        let lines: Vec<&str> = sums.lines().collect();
        assert!(
            matches!(*lines, [three, two] if three.ends_with("  three.tar.gz") && two.ends_with("  two.tar.gz"))
        );
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_static_build_compiles_its_c_for_musl() {
        let [(compiler, name), (flags, headers)] = musl("x86_64-unknown-linux-musl");
        assert_eq!(
            (compiler.as_str(), name.as_str()),
            ("CC_x86_64_unknown_linux_musl", "musl-gcc")
        );
        assert_eq!(flags, "CFLAGS_x86_64_unknown_linux_musl");
        assert!(headers.ends_with("/usr/include/x86_64-linux-gnu"), "{headers}");
    }
}
