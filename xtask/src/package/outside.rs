//! The programs of `tests/embedding`: built from the packages, outside of the workspace, and run.

use std::path::Path;

use crate::ci;
use crate::fault::Fault;
use crate::layering::{self, Vendors};
use crate::metadata::Metadata;
use crate::process::Run;
use crate::tree::Tree;

/// Their workspace.
const FOLDER: &str = "tests/embedding";

/// One of them.
struct Program {
    /// The package.
    name: &'static str,
    /// What it prints, as committed.
    golden: &'static str,
    /// The crates that it must be built from.
    uses: &'static [&'static str],
    /// What it must not be built from.
    never: &'static [Vendors],
}

const PROGRAMS: [Program; 2] = [
    Program {
        name: "retry",
        golden: "tests/embedding/retry/golden.txt",
        uses: &["wf-idempotency"],
        never: &[
            layering::IMPURE,
            layering::STORES,
            layering::CLOUD,
            layering::WEB,
            &["wf-core", "wf-backend-local"],
        ],
    },
    Program {
        name: "inspection",
        golden: "examples/industrial_pump_inspection/golden.txt",
        uses: &["wf-core", "wf-backend-local", "wf-idempotency"],
        never: &[
            layering::CLOUD,
            layering::WEB,
            &["clap*", "metrics-exporter*", "tracing-subscriber", "async-std", "smol"],
        ],
    },
];

/// The crates that are taken from their packages.
const PATCHED: [&str; 3] = ["wf-backend-local", "wf-core", "wf-idempotency"];

/// Looks at what each is built from, builds and runs it. `packages` has the unpacked packages.
pub(super) fn task(root: &Path, tree: &Tree, packages: &Path) -> Result<bool, Fault> {
    let patches = patches(packages);
    let cargo = |command: &str, more: &[&str]| {
        let manifest = format!("{FOLDER}/Cargo.toml");
        let mut all = vec![command, "--locked", "--manifest-path", &manifest];
        all.extend(more);
        for patch in &patches {
            all.extend(["--config", patch]);
        }
        // Where the workspace is built too: most of what these programs need is there.
        let target = ci::target(root);
        Run::cargo(root, &all).env("CARGO_TARGET_DIR", &target.to_string_lossy())
    };
    let text = cargo("metadata", &["--format-version", "1"]).stdout()?;
    let metadata = Metadata::parse(&text)?;
    let mut green = true;
    for program in PROGRAMS {
        for fault in faults(&program, &metadata, packages) {
            println!("{}: {fault}", program.name);
            green = false;
        }
        let run = cargo("run", &["--quiet", "--package", program.name]);
        let command = run.shown().to_owned();
        let printed = run.stdout()?;
        green &= ci::same(tree, program.golden, &printed, &command);
    }
    Ok(green)
}

/// Which package stands for which crate, as `--config` takes it.
fn patches(packages: &Path) -> Vec<String> {
    let version = env!("CARGO_PKG_VERSION");
    let patch = |name: &&str| {
        let path = packages.join(format!("{name}-{version}"));
        format!("patch.crates-io.{name}.path={}", toml::Value::from(path.display().to_string()))
    };
    PATCHED.iter().map(patch).collect()
}

/// What is wrong in what a program is built from.
fn faults(program: &Program, metadata: &Metadata, packages: &Path) -> Vec<String> {
    let closure = metadata.closure(program.name);
    let mut found = Vec::new();
    for name in program.uses {
        let used = closure.iter().find(|(package, _)| package.name == *name);
        match used {
            None => found.push(format!("is not built from {name}")),
            Some((package, _)) if !Path::new(&package.manifest_path).starts_with(packages) => {
                found.push(format!("is built from {}", package.manifest_path));
            }
            Some(_) => {}
        }
    }
    for (package, path) in &closure {
        if let Some(pattern) = layering::first_match(program.never, &package.name) {
            let path = path.join(" → ");
            found.push(format!("reaches `{}` (forbidden: {pattern}) by {path}", package.name));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{PROGRAMS, faults};
    use crate::metadata::Kind::Normal;
    use crate::metadata::tests::graph;

    /// What is said about a program with these edges, its crates being at `/x/`.
    fn said(name: &str, packages: &str, edges: &[(&str, &str)]) -> usize {
        let edges: Vec<_> = edges.iter().map(|(from, to)| (*from, *to, Normal)).collect();
        let metadata = graph(&["retry", "inspection"], &edges);
        let program = PROGRAMS.into_iter().find(|program| program.name == name);
        program.map_or(usize::MAX, |it| faults(&it, &metadata, Path::new(packages)).len())
    }

    #[test]
    fn a_program_is_built_from_its_packages_and_nothing_that_is_forbidden() {
        let retry = ("retry", "wf-idempotency");
        assert_eq!(said("retry", "/x", &[retry, ("wf-idempotency", "sha2")]), 0);
        assert_eq!(said("retry", "/x", &[]), 1);
        assert_eq!(said("retry", "/packages", &[retry]), 1);
        assert_eq!(said("retry", "/x", &[retry, ("wf-idempotency", "tokio")]), 1);
        assert_eq!(said("retry", "/x", &[retry, ("retry", "wf-core")]), 1);
        let inspection = [
            ("inspection", "wf-core"),
            ("inspection", "wf-backend-local"),
            ("wf-core", "wf-idempotency"),
            ("wf-backend-local", "tokio"),
            ("wf-backend-local", "rusqlite"),
        ];
        assert_eq!(said("inspection", "/x", &inspection), 0);
        for other in ["hyper", "rmcp", "aws-config", "http-body", "clap"] {
            let more = [&inspection[..], &[("wf-core", other)]].concat();
            assert_eq!(said("inspection", "/x", &more), 1, "{other}");
        }
    }
}
