//! The stages of CI and how each runs. Cheap ones first, so that a small slip is known in seconds.

use std::path::{Path, PathBuf};

use crate::fault::Fault;
use crate::process::{Run, available};
use crate::tree::Tree;
use crate::{alerts, aws, bench, deny, deploy, layering, package, selftest, tidy, torture};

use super::Stage;

/// In order.
pub(super) const STAGES: &[Stage] = &[
    Stage {
        name: "lock",
        what: "Cargo.lock is what the manifests ask for",
        slow: false,
        run: lock,
    },
    Stage { name: "fmt", what: "sources are formatted", slow: false, run: fmt },
    Stage { name: "layering", what: "who may import whom", slow: false, run: layering },
    Stage {
        name: "tidy",
        what: "shape of sources, manifests and documents",
        slow: false,
        run: tidy,
    },
    Stage {
        name: "deny",
        what: "bans, licences, sources, closure of the core",
        slow: true,
        run: deny::task,
    },
    Stage {
        name: "clippy",
        what: "no warning in any target with every feature, and in the binary as others build it",
        slow: false,
        run: clippy,
    },
    Stage {
        name: "selftest",
        what: "every check above sees a fault",
        slow: true,
        run: whole_selftest,
    },
    Stage { name: "docs", what: "documentation builds without a warning", slow: true, run: docs },
    Stage { name: "tests", what: "unit and integration tests", slow: false, run: tests },
    Stage {
        name: "aws",
        what: "the AWS backend obeys the storage contract on an emulator",
        slow: true,
        run: on_emulator,
    },
    Stage { name: "doctests", what: "examples in the documentation", slow: true, run: doctests },
    Stage {
        name: "build",
        what: "every binary, as tests and clients use them",
        slow: false,
        run: build,
    },
    Stage {
        name: "examples",
        what: "examples print what their golden files say",
        slow: false,
        run: examples,
    },
    Stage {
        name: "package",
        what: "each crate packs alone, and programs outside of the workspace are built from the packages",
        slow: false,
        run: packages,
    },
    Stage {
        name: "generated",
        what: "generated files are up to date",
        slow: false,
        run: generated,
    },
    Stage {
        name: "deploy",
        what: "what an operator installs is good, and the built server takes it",
        slow: false,
        run: installed,
    },
    Stage {
        name: "tour",
        what: "the commands of the README print what it shows",
        slow: false,
        run: tour,
    },
    Stage {
        name: "outside",
        what: "official Python and TypeScript clients drive the binary; the comparison counts right",
        slow: true,
        run: outside,
    },
    Stage {
        name: "torture",
        what: "kills, power cuts and faults lose nothing that was acknowledged",
        slow: true,
        run: short_torture,
    },
    Stage {
        name: "bench",
        what: "the figures can be measured (smallest sizes; no time is judged)",
        slow: true,
        run: bench::smoke,
    },
];

/// Committed files that the binary prints: path, arguments of wf-cli.
const GENERATED: &[(&str, &[&str])] = &[
    ("docs/procedure.schema.json", &["procedure", "schema"]),
    ("deploy/cloudformation.json", &["aws", "template"]),
];

/// What an example prints, beside its manifest.
const GOLDEN: &str = "golden.txt";

/// Entry point of the tests with foreign clients; gets the path of the binary.
const OUTSIDE: &str = "tests/outside/run.sh";

/// Seed of the torture here, so that one commit gets the same cases each time; a run by hand draws its own.
const CI_SEED: u64 = 20_261_130;

/// Entry point of the README's tour; gets the path of the binary.
const TOUR: &str = "tests/tour/run.sh";

fn lock(root: &Path) -> Result<bool, Fault> {
    Run::cargo(root, &["metadata", "--locked", "--format-version", "1", "--all-features"])
        .stdout()?;
    Ok(true)
}

fn fmt(root: &Path) -> Result<bool, Fault> {
    Run::cargo(root, &["fmt", "--all", "--", "--check"]).succeeds()
}

fn layering(root: &Path) -> Result<bool, Fault> {
    Ok(layering::task(root)?.print())
}

fn tidy(root: &Path) -> Result<bool, Fault> {
    Ok(tidy::task(root, &[])?.print())
}

fn clippy(root: &Path) -> Result<bool, Fault> {
    let all = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    Ok(Run::cargo(root, &all).succeeds()? && as_others_build(root)?)
}

/// What the binary is built with elsewhere, as arguments of cargo. With every feature at once nobody sees what a part needs
/// of another one, nor what stands in for one that is left out: the defaults are what `cargo install` takes (no table), and
/// a build for a table only has neither file nor terminal nor collector.
const BUILDS: [&[&str]; 2] = [&[], &["--no-default-features", "--features", "aws"]];

/// Compiles each of [`BUILDS`] without a warning. Only the program: its tests may need more.
fn as_others_build(root: &Path) -> Result<bool, Fault> {
    for build in BUILDS {
        let arguments = [&["clippy", "-p", "wf-cli"], build, &["--", "-D", "warnings"]].concat();
        if !Run::cargo(root, &arguments).succeeds()? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn whole_selftest(root: &Path) -> Result<bool, Fault> {
    selftest::task(root, false)
}

fn docs(root: &Path) -> Result<bool, Fault> {
    let arguments = ["doc", "--workspace", "--no-deps", "--all-features"];
    Run::cargo(root, &arguments).env("RUSTDOCFLAGS", "-D warnings").succeeds()
}

fn tests(root: &Path) -> Result<bool, Fault> {
    if available(root, "cargo-nextest", &["nextest", "--version"]) {
        return Run::cargo(
            root,
            &["nextest", "run", "--workspace", "--all-features", "--profile", "ci"],
        )
        .succeeds();
    }
    println!("cargo-nextest is not installed: cargo test instead, without its time limits");
    let arguments =
        ["test", "--workspace", "--all-features", "--lib", "--bins", "--tests", "--no-fail-fast"];
    Run::cargo(root, &arguments).succeeds()
}

fn doctests(root: &Path) -> Result<bool, Fault> {
    Run::cargo(root, &["test", "--doc", "--workspace", "--all-features"]).succeeds()
}

/// Builds every binary, with every feature.
pub(crate) fn build(root: &Path) -> Result<bool, Fault> {
    Run::cargo(root, &["build", "--workspace", "--all-features", "--bins"]).succeeds()
}

fn examples(root: &Path) -> Result<bool, Fault> {
    // Each stage that runs a binary builds it first: nothing to do in a whole run, and right when run alone.
    if !build(root)? {
        return Ok(false);
    }
    let tree = Tree::read(root)?;
    let folders = tree.under("examples/").filter_map(|path| path.strip_suffix("/Cargo.toml"));
    let mut green = true;
    for folder in folders {
        let name = folder.rsplit('/').next().unwrap_or(folder);
        let golden = format!("{folder}/{GOLDEN}");
        let printed = Run::new(root, &binary(root, name).to_string_lossy(), &[]).stdout()?;
        green &= same(&tree, &golden, &printed, &format!("{}", binary(root, name).display()));
    }
    Ok(green)
}

fn generated(root: &Path) -> Result<bool, Fault> {
    if !build(root)? {
        return Ok(false);
    }
    let tree = Tree::read(root)?;
    let program = binary(root, "wf-cli");
    let mut green = true;
    for (path, arguments) in GENERATED {
        let printed = Run::new(root, &program.to_string_lossy(), arguments).stdout()?;
        let command =
            format!("cargo run -p wf-cli --all-features -- {} > {path}", arguments.join(" "));
        green &= same(&tree, path, &printed, &command);
    }
    Ok(green)
}

/// Compares a committed file with what a program printed, and says where they part.
pub(crate) fn same(tree: &Tree, path: &str, printed: &str, command: &str) -> bool {
    let committed = tree.text(path);
    if committed == Some(printed) {
        println!("{path} is up to date");
        return true;
    }
    match committed {
        None => println!("{path} is missing; write it with: {command}"),
        Some(text) => {
            let line =
                text.lines().zip(printed.lines()).take_while(|(old, new)| old == new).count();
            println!("{path}:{} differs from what is printed", line + 1);
            println!("  committed: {}", text.lines().nth(line).unwrap_or("(end)"));
            println!("  printed:   {}", printed.lines().nth(line).unwrap_or("(end)"));
            println!("  write it with: {command}");
        }
    }
    false
}

fn installed(root: &Path) -> Result<bool, Fault> {
    Ok(alerts::task(root)? & deploy::task(root, &deploy::Options::default())?)
}

fn packages(root: &Path) -> Result<bool, Fault> {
    package::task(root, &package::Options::default())
}

fn tour(root: &Path) -> Result<bool, Fault> {
    with_the_binary(root, TOUR)
}

fn outside(root: &Path) -> Result<bool, Fault> {
    with_the_binary(root, OUTSIDE)
}

/// Runs a script with the path of the binary.
fn with_the_binary(root: &Path, script: &str) -> Result<bool, Fault> {
    if !build(root)? {
        return Ok(false);
    }
    let program = binary(root, "wf-cli");
    Run::new(root, "bash", &[script, &program.to_string_lossy()]).succeeds()
}

fn on_emulator(root: &Path) -> Result<bool, Fault> {
    aws::task(root, &aws::Options::default())
}

fn short_torture(root: &Path) -> Result<bool, Fault> {
    torture::task(root, &torture::Options::of_seed(CI_SEED))
}

/// Where cargo puts a binary of the dev profile.
pub(crate) fn binary(root: &Path, name: &str) -> PathBuf {
    binary_of(root, "debug", name)
}

/// Where cargo puts a binary of the profile with this folder.
pub(crate) fn binary_of(root: &Path, profile: &str, name: &str) -> PathBuf {
    target(root).join(profile).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// Where cargo puts a dynamic library of the dev profile.
pub(crate) fn library(root: &Path, name: &str) -> PathBuf {
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    target(root).join("debug").join(format!("{prefix}{name}{suffix}"))
}

/// Where cargo builds.
pub(crate) fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |own| root.join(own))
}

#[cfg(test)]
mod tests {
    use crate::tree::Tree;

    use super::same;

    #[test]
    fn a_golden_file_must_be_there_and_equal() {
        let mut tree = Tree::default();
        tree.insert("golden.txt", "a\nb\n");
        assert!(same(&tree, "golden.txt", "a\nb\n", "run"));
        assert!(!same(&tree, "golden.txt", "a\nc\n", "run"));
        assert!(!same(&tree, "golden.txt", "a\nb", "run"));
        assert!(!same(&tree, "none.txt", "", "run"));
    }
}
