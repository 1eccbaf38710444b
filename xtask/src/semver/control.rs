//! What the tool must see before it is believed: a small repository with one crate and one tag, changed in four ways.

use std::path::{Path, PathBuf};

use crate::fault::Fault;
use crate::process::Run;

use super::{comparison, libraries, newest, said};

/// The crate at its tag.
const BEFORE: &str =
    "//! A crate.\n\n/// Stays.\npub fn stays() {}\n\n/// Goes.\npub fn goes() {}\n";
/// The lint that a function which is gone breaks.
const LINT: &str = "function_missing";

/// A change after the tag, and what is to be said about it.
struct Change {
    what: &'static str,
    /// The version now.
    version: &'static str,
    source: &'static str,
    passes: bool,
}

const CHANGES: [Change; 4] = [
    Change { what: "nothing changed", version: "0.1.0", source: BEFORE, passes: true },
    Change {
        what: "a function was added",
        version: "0.1.1",
        source: "//! A crate.\n\n/// Stays.\npub fn stays() {}\n\n/// Goes.\npub fn goes() {}\n\n/// Comes.\npub fn comes() {}\n",
        passes: true,
    },
    Change {
        what: "a function was taken away in a patch",
        version: "0.1.1",
        source: "//! A crate.\n\n/// Stays.\npub fn stays() {}\n",
        passes: false,
    },
    Change {
        what: "a function was taken away in a minor version of 0",
        version: "0.2.0",
        source: "//! A crate.\n\n/// Stays.\npub fn stays() {}\n",
        passes: true,
    },
];

/// True if the tool says of each change what it must.
pub(super) fn task(root: &Path, program: &Path) -> Result<bool, Fault> {
    let folder = root.join("target/selftest/semver");
    let _ = std::fs::remove_dir_all(&folder);
    let repository = Repository(folder);
    repository.write("0.1.0", BEFORE)?;
    repository.git(&["init", "--quiet"])?;
    repository.git(&["add", "."])?;
    repository.git(&["commit", "--quiet", "--message", "A crate"])?;
    repository.git(&["tag", "v0.1.0"])?;
    let tags = repository.git(&["tag", "--list", "v*"])?;
    let Some(tag) = newest(&tags) else {
        return Err(Fault::parse("git tag", &"does not list the tag that was just made"));
    };
    let mut right = true;
    for change in CHANGES {
        repository.write(change.version, change.source)?;
        let crates = libraries(&repository.0, &tag)?;
        let output = comparison(program, &repository.0, &tag, &crates)
            .env("CARGO_TARGET_DIR", "target")
            .output()?;
        let passed = output.status.success();
        let said = said(&output);
        let seen = passed == change.passes && (passed || said.contains(LINT));
        println!("control: {}: {}", change.what, if passed { "passed" } else { "refused" });
        if !seen {
            println!("cargo-semver-checks cannot be believed; it said:\n{said}");
        }
        right &= seen;
    }
    let _ = std::fs::remove_dir_all(&repository.0);
    Ok(right)
}

/// The small repository.
struct Repository(PathBuf);

impl Repository {
    /// Writes the crate, and the files that its manifest wants.
    fn write(&self, version: &str, source: &str) -> Result<(), Fault> {
        let manifest = format!(
            "[package]\nname = \"small\"\nversion = \"{version}\"\nedition = \"2024\"\nlicense = \"Apache-2.0\"\n"
        );
        let root = "[workspace]\nresolver = \"3\"\nmembers = [\"crates/small\"]\n";
        for (name, text) in [
            ("Cargo.toml", root),
            (".gitignore", "/target\nCargo.lock\n"),
            ("crates/small/Cargo.toml", &manifest),
            ("crates/small/src/lib.rs", source),
        ] {
            let path = self.0.join(name);
            let parent = path.parent().unwrap_or(&self.0);
            std::fs::create_dir_all(parent)
                .and_then(|()| std::fs::write(&path, text))
                .map_err(|source| Fault::file(&path, source))?;
        }
        Ok(())
    }

    fn git(&self, arguments: &[&str]) -> Result<String, Fault> {
        let who = ["-c", "user.name=control", "-c", "user.email=control@localhost"];
        Run::new(&self.0, "git", &[&who[..], arguments].concat()).stdout()
    }
}
