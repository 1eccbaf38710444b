//! Public interfaces of the libraries, held against the last release with cargo-semver-checks.
//!
//! Before it is believed, the tool is shown a small repository with a tag ([`control`]): it must pass what was left alone
//! and what was added, and refuse what was taken away. Not in CI: installing it takes minutes, and so does the
//! documentation of all crates, twice. It sees Rust interfaces only; docs/releasing.md has what else is public.

mod control;

use std::path::Path;
use std::process::Output;

use clap::Args;

use crate::fault::Fault;
use crate::process::Run;
use crate::tidy::publishing::published;
use crate::tools::Tool;
use crate::tree::Tree;

/// Built for what it does, which is a second's work for each crate.
const TOOL: Tool = Tool {
    name: "cargo-semver-checks",
    version: "0.51.0",
    options: &[
        "--config",
        "profile.release.lto=false",
        "--config",
        "profile.release.codegen-units=16",
        "--config",
        "profile.release.opt-level=1",
    ],
};

/// What to compare with.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Another tag or commit than the newest tag `vX.Y.Z`
    #[arg(long, value_name = "REV")]
    baseline: Option<String>,
    /// Only this library (repeatable)
    #[arg(long = "crate", value_name = "NAME")]
    only: Vec<String>,
    /// Only show that the tool sees a breaking change
    #[arg(long)]
    control: bool,
}

/// Compares every published library that was there at the baseline. False if one breaks what its version promises.
pub(crate) fn task(root: &Path, options: &Options) -> Result<bool, Fault> {
    let baseline = match &options.baseline {
        Some(named) => Some(named.clone()),
        None => newest(&Run::new(root, "git", &["tag", "--list", "v*"]).stdout()?),
    };
    if baseline.is_none() && !options.control {
        println!(
            "there is no tag vX.Y.Z yet: nothing was released, so there is nothing to compare with"
        );
        return Ok(true);
    }
    let program = TOOL.installed(root)?;
    if !control::task(root, &program)? {
        return Ok(false);
    }
    let Some(baseline) = baseline.filter(|_| !options.control) else { return Ok(true) };
    let mut compared = libraries(root, &baseline)?;
    if !options.only.is_empty() {
        compared.retain(|name| options.only.contains(name));
    }
    if compared.is_empty() {
        println!("no library of today, or none of those named, was in {baseline}");
        return Ok(true);
    }
    println!("… {} against {baseline}", compared.join(", "));
    comparison(&program, root, &baseline, &compared).succeeds()
}

/// The greatest tag `vX.Y.Z`; a pre-release is nothing that somebody depends on.
fn newest(tags: &str) -> Option<String> {
    let version = |tag: &str| -> Option<[u64; 3]> {
        let mut parts = tag.strip_prefix('v')?.split('.').map(|part| part.parse().ok());
        let version = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(version)
    };
    tags.lines()
        .filter(|tag| version(tag).is_some())
        .max_by_key(|tag| version(tag))
        .map(str::to_owned)
}

/// The published libraries that the baseline has too. Says which are new.
fn libraries(root: &Path, baseline: &str) -> Result<Vec<String>, Fault> {
    let tree = Tree::read(root)?;
    let mut found = Vec::new();
    for one in published(&tree).into_iter().filter(|one| one.is_library(&tree)) {
        let then = format!("{baseline}:{}src/lib.rs", one.folder);
        if Run::new(root, "git", &["cat-file", "-e", &then]).output()?.status.success() {
            found.push(one.name);
        } else {
            println!("{}: new since {baseline}", one.name);
        }
    }
    Ok(found)
}

/// The run of the tool. Features that are on by default only: the others are for tests, or change nothing public.
fn comparison(program: &Path, root: &Path, baseline: &str, crates: &[String]) -> Run {
    let mut arguments = vec!["semver-checks", "--default-features", "--baseline-rev", baseline];
    for name in crates {
        arguments.extend(["--package", name]);
    }
    Run::new(root, &program.to_string_lossy(), &arguments)
}

/// All that a run said.
fn said(output: &Output) -> String {
    crate::process::both(output)
}

#[cfg(test)]
mod tests {
    use super::newest;

    #[test]
    fn the_newest_tag_is_the_greatest_version() {
        let tags = "v0.1.0\nv0.10.0\nv0.9.3\nv1.0.0-rc.1\nv2\nvx.y.z\nv0.2.0.1\n";
        assert_eq!(newest(tags).as_deref(), Some("v0.10.0"));
        assert_eq!(newest("v1.0.0-rc.1\nnightly\n"), None);
        assert_eq!(newest(""), None);
    }
}
