//! Mutants of deny.toml and deny-core.toml, judged by cargo-deny itself.
//!
//! A copy of the manifests and sources under `target/selftest/deny` gets stub crates of the forbidden names as path
//! dependencies. A mutant is killed when cargo-deny names it, and did not before: the copy need not be green.

use std::path::{Path, PathBuf};

use crate::Workspace;
use crate::deny;
use crate::fault::Fault;
use crate::process::{Run, both};

use super::Outcome;

/// One edit of the copy, the run that must object, and what it must say.
struct Scenario {
    /// Dependencies to add: the member's folder, and the line for its `[dependencies]`.
    dependencies: Vec<(&'static str, String)>,
    /// Texts to replace: file, from, to.
    edits: Vec<(&'static str, &'static str, &'static str)>,
    /// Name of the run, see [`deny::runs`].
    run: &'static str,
    /// Fault, and the words with which cargo-deny reports it.
    mutants: Vec<(String, String)>,
}

/// The copy of the repository that mutants edit.
struct Copy<'run> {
    root: PathBuf,
    stubs: PathBuf,
    workspace: &'run Workspace,
    program: &'run Path,
}

/// Runs every scenario.
pub(super) fn run(
    root: &Path,
    workspace: &Workspace,
    program: &Path,
) -> Result<Vec<Outcome>, Fault> {
    let home = root.join("target").join("selftest").join("deny");
    let copy = Copy { root: home.join("tree"), stubs: home.join("stubs"), workspace, program };
    copy.write_all()?;
    let mut outcomes = Vec::new();
    for scenario in scenarios(&copy)? {
        let before = copy.report(scenario.run)?;
        copy.apply(&scenario)?;
        let after = copy.report(scenario.run)?;
        copy.restore(&scenario)?;
        for (fault, words) in scenario.mutants {
            let survived = if after.matches(&words).count() > before.matches(&words).count() {
                None
            } else {
                Some(format!("`{words}` was not reported: {}", last_lines(&after)))
            };
            outcomes.push(Outcome::new(format!("deny {}", scenario.run), fault, survived));
        }
    }
    Ok(outcomes)
}

fn scenarios(copy: &Copy<'_>) -> Result<Vec<Scenario>, Fault> {
    let mut all = vec![bans(copy)?, backends()];
    all.extend(closures(copy)?);
    all.extend(configuration(copy)?);
    Ok(all)
}

/// AWS and SQLite reached through our own backends, which a ban on the vendors alone does not see.
fn backends() -> Scenario {
    let backend = |name: &str| format!("{name} = {{ workspace = true }}");
    let banned = |name: &str| format!("crate '{name} = 0.1.0' is explicitly banned");
    Scenario {
        dependencies: vec![
            ("crates/wf-mcp-http", backend("wf-backend-local")),
            ("crates/wf-procedure", backend("wf-backend-aws")),
        ],
        edits: Vec::new(),
        run: "bans",
        mutants: vec![
            (
                "wf-mcp-http reaches SQLite through our backend".to_owned(),
                banned("wf-backend-local"),
            ),
            ("wf-procedure reaches AWS through our backend".to_owned(), banned("wf-backend-aws")),
        ],
    }
}

/// Crates that no ban list names, in the closure of the pure crates.
fn closures(copy: &Copy<'_>) -> Result<Vec<Scenario>, Fault> {
    let unheard = copy.stub("aws-sdk-unheard", "1.0.0", "MIT", "")?;
    let optional = unheard.replace(" }", ", optional = true }");
    let runtime = copy.stub("runtime-stub", "1.0.0", "MIT", "tokio = \"1\"")?;
    let not_allowed = |name: &str| format!("crate '{name} = 1.0.0' is not explicitly allowed");
    let scenario = |folder, run, line: &str, fault: &str, words: String| Scenario {
        dependencies: vec![(folder, line.to_owned())],
        edits: Vec::new(),
        run,
        mutants: vec![(fault.to_owned(), words)],
    };
    let (core, core_run) = ("crates/wf-core", "closure-of-wf-core");
    let (low, low_run) = ("crates/wf-idempotency", "closure-of-wf-idempotency");
    let words = not_allowed("aws-sdk-unheard");
    Ok(vec![
        scenario(core, core_run, &unheard, "an AWS crate that no ban names", words.clone()),
        scenario(core, core_run, &optional, "an optional one", words.clone()),
        scenario(low, low_run, &unheard, "an AWS crate that no ban names", words),
        scenario(
            core,
            core_run,
            &runtime,
            "tokio, one crate further",
            "crate 'tokio = ".to_owned(),
        ),
    ])
}

/// Features, licences, sources, and slips in the configuration itself.
fn configuration(copy: &Copy<'_>) -> Result<Vec<Scenario>, Fault> {
    let raw_value = "serde_json = { version = \"1\", features = [\"raw_value\"] }";
    Ok(vec![
        Scenario {
            dependencies: vec![(
                "crates/wf-cli",
                copy.stub("raw-stub", "1.0.0", "MIT", raw_value)?,
            )],
            edits: Vec::new(),
            run: "bans",
            mutants: vec![(
                "a crate that turns raw_value of serde_json on".to_owned(),
                "feature 'raw_value' for crate 'serde_json".to_owned(),
            )],
        },
        Scenario {
            dependencies: vec![
                ("crates/wf-cli", copy.stub("copyleft-stub", "1.0.0", "GPL-3.0-only", "")?),
                ("crates/wf-core", copy.git_stub("git-stub")?),
            ],
            edits: vec![("deny.toml", "    \"MIT-0\",\n", "    \"MIT-0\",\n    \"MPL-2.0\",\n")],
            run: "licences-and-sources",
            mutants: vec![
                ("a copyleft licence".to_owned(), "copyleft-stub".to_owned()),
                ("a crate from a git repository".to_owned(), "git-stub".to_owned()),
                ("a licence in the list that no crate has".to_owned(), "MPL-2.0".to_owned()),
            ],
        },
        Scenario {
            dependencies: Vec::new(),
            edits: vec![(
                "deny.toml",
                "wrappers = [\"wf-cli\"]",
                "wrappers = [\"wf-cli\", \"wf-cil\"]",
            )],
            run: "bans",
            mutants: vec![("a misspelt wrapper".to_owned(), "error[unused-wrapper]".to_owned())],
        },
    ])
}

/// A stub of every banned crate, in a version that the ban covers, all under a member that may import none of them.
fn bans(copy: &Copy<'_>) -> Result<Scenario, Fault> {
    let mut scenario =
        Scenario { dependencies: Vec::new(), edits: Vec::new(), run: "bans", mutants: Vec::new() };
    for spec in deny::banned(&copy.workspace.tree) {
        let (name, version) = match spec.split_once(':') {
            Some((name, _)) => (name, "0.0.1"),
            None => (spec.as_str(), "1.0.0"),
        };
        if copy.workspace.metadata.member(name).is_none() {
            scenario
                .dependencies
                .push(("crates/wf-mcp-http", copy.stub(name, version, "MIT", "")?));
            let words = format!("crate '{name} = {version}' is explicitly banned");
            scenario.mutants.push((format!("{name} {version} under wf-mcp-http"), words));
        }
    }
    Ok(scenario)
}

impl Copy<'_> {
    /// Writes every file that cargo looks at.
    fn write_all(&self) -> Result<(), Fault> {
        for folder in [&self.root, &self.stubs] {
            match std::fs::remove_dir_all(folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Fault::file(folder, error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        let top = ["Cargo.toml", "Cargo.lock", "deny.toml", "deny-core.toml"];
        for (path, text) in self.workspace.tree.files() {
            let member =
                ["crates/", "examples/", "xtask/"].iter().any(|folder| path.starts_with(folder));
            if member || top.contains(&path) {
                write(&self.root.join(path), text)?;
            }
        }
        Ok(())
    }

    fn apply(&self, scenario: &Scenario) -> Result<(), Fault> {
        let mut tree = self.workspace.tree.clone();
        for (folder, line) in &scenario.dependencies {
            let path = format!("{folder}/Cargo.toml");
            let text = tree.text(&path).unwrap_or_default();
            let edited = text.replacen("[dependencies]\n", &format!("[dependencies]\n{line}\n"), 1);
            tree.insert(path, edited);
        }
        for (path, from, to) in &scenario.edits {
            let edited = tree.text(path).unwrap_or_default().replacen(from, to, 1);
            tree.insert(*path, edited);
        }
        for path in scenario.touched() {
            write(&self.root.join(&path), tree.text(&path).unwrap_or_default())?;
        }
        Ok(())
    }

    fn restore(&self, scenario: &Scenario) -> Result<(), Fault> {
        let lock = "Cargo.lock".to_owned();
        for path in scenario.touched().into_iter().chain([lock]) {
            write(&self.root.join(&path), self.workspace.tree.text(&path).unwrap_or_default())?;
        }
        Ok(())
    }

    /// What cargo-deny says about the copy as it is now.
    fn report(&self, name: &str) -> Result<String, Fault> {
        let run = deny::runs(self.program, &self.root, &["--color", "never"])
            .into_iter()
            .find_map(|(other, run)| (other == name).then_some(run))
            .ok_or_else(|| Fault::parse(name, &"no such run of cargo-deny"))?;
        Ok(both(&run.output()?))
    }

    /// Writes a crate of this name and returns the line that depends on it.
    fn stub(
        &self,
        name: &str,
        version: &str,
        licence: &str,
        dependencies: &str,
    ) -> Result<String, Fault> {
        let folder = self.stubs.join(format!("{name}-{version}"));
        write(&folder.join("Cargo.toml"), &manifest(name, version, licence, dependencies))?;
        write(&folder.join("src/lib.rs"), "//! A stub of the selftest.\n")?;
        Ok(format!("stub-{name} = {{ package = \"{name}\", path = '{}' }}", folder.display()))
    }

    /// A crate in a git repository of its own.
    fn git_stub(&self, name: &str) -> Result<String, Fault> {
        self.stub(name, "1.0.0", "MIT", "")?;
        let folder = self.stubs.join(format!("{name}-1.0.0"));
        let identity = ["-c", "user.name=selftest", "-c", "user.email=selftest@localhost"];
        for arguments in
            [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "Stub"]]
        {
            Run::new(&folder, "git", &[&identity[..], arguments].concat()).stdout()?;
        }
        Ok(format!("{name} = {{ git = 'file://{}' }}", folder.display()))
    }
}

impl Scenario {
    /// Files that it edits.
    fn touched(&self) -> Vec<String> {
        let manifests = self.dependencies.iter().map(|(folder, _)| format!("{folder}/Cargo.toml"));
        manifests.chain(self.edits.iter().map(|(path, ..)| (*path).to_owned())).collect()
    }
}

fn manifest(name: &str, version: &str, licence: &str, dependencies: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2024\"\nlicense = \"{licence}\"\n\n\
         [dependencies]\n{dependencies}\n\n[workspace]\n"
    )
}

fn write(path: &Path, text: &str) -> Result<(), Fault> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| Fault::file(folder, error))?;
    }
    std::fs::write(path, text).map_err(|error| Fault::file(path, error))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.iter().rev().take(3).rev().map(|line| line.trim()).collect::<Vec<_>>().join(" / ")
}
