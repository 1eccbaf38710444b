//! Linters that others keep, over the files that an operator installs, and over broken ones, which each must refuse.
//!
//! To add one: a row of [`LINTS`]. Programs from PyPI have their pins in `xtask/pins/`; one of the operating system is left
//! out where it is not there, and says so. That the CloudFormation template is what `wf-cli aws template` prints, the stage
//! `generated` looks after.

use std::path::{Path, PathBuf};

use crate::fault::Fault;
use crate::process::{Run, both};
use crate::python::Program;

/// A linter, what it reads, and what it must find.
struct Lint {
    tool: Tool,
    /// Before the file.
    arguments: &'static [&'static str],
    files: &'static [&'static str],
    broken: &'static [Broken],
}

/// Where a linter comes from.
enum Tool {
    /// PyPI, in an environment of its own.
    Pinned(Program),
    /// The operating system; its first number in `--version` must be at least this.
    Found { name: &'static str, least: u32 },
}

/// A fault that a change could bring.
struct Broken {
    file: &'static str,
    /// What is replaced, once.
    what: &'static str,
    by: &'static str,
    /// What the linter must say of it.
    says: &'static str,
}

const fn broken(
    file: &'static str,
    what: &'static str,
    by: &'static str,
    says: &'static str,
) -> Broken {
    Broken { file, what, by, says }
}

const CONTAINERFILE: &str = "Containerfile";
const UNIT: &str = "deploy/checkpoint.service";
const TEMPLATE: &str = "deploy/cloudformation.json";
const SQLITE: &str = "deploy/kubernetes/sqlite.yaml";
const DYNAMODB: &str = "deploy/kubernetes/dynamodb.yaml";

/// Where the unit has the program; the built one stands in for it.
pub(super) const INSTALLED: &str = "/usr/local/bin/wf-cli";

const SYSTEMD: Tool = Tool::Found { name: "systemd-analyze", least: 250 };

/// Each.
const LINTS: &[Lint] = &[
    Lint {
        tool: Tool::Pinned(Program {
            name: "hadolint",
            folder: "hadolint",
            pins: "xtask/pins/hadolint.txt",
        }),
        arguments: &["--no-color"],
        files: &[CONTAINERFILE],
        broken: &[
            broken(CONTAINERFILE, "USER 10001", "USER root", "DL3002"),
            broken(CONTAINERFILE, "debian:bookworm-slim", "debian:latest", "DL3007"),
            broken(CONTAINERFILE, "cmake=3.25.*", "cmake", "DL3008"),
            broken(CONTAINERFILE, "CMD [\"wf-cli\", \"serve\"]", "CMD wf-cli serve", "DL3025"),
        ],
    },
    Lint {
        tool: Tool::Pinned(Program {
            name: "kubernetes-validate",
            folder: "kubernetes-validate",
            pins: "xtask/pins/kubernetes-validate.txt",
        }),
        arguments: &["--strict"],
        files: &[SQLITE, DYNAMODB],
        broken: &[
            broken(
                SQLITE,
                "readOnlyRootFilesystem",
                "readOnlyRootFileSystem",
                "readOnlyRootFileSystem",
            ),
            broken(SQLITE, "volumeClaimTemplates:", "volumeClaims:", "volumeClaims"),
            broken(DYNAMODB, "replicas: 3", "replicas: three", "three"),
            broken(DYNAMODB, "path: /readyz", "url: /readyz", "url"),
        ],
    },
    Lint {
        tool: SYSTEMD,
        arguments: &["verify", "--man=no", "--recursive-errors=yes"],
        files: &[UNIT],
        broken: &[
            broken(UNIT, "ProtectSystem=", "ProtectSystm=", "ProtectSystm"),
            broken(UNIT, "Restart=on-failure", "Restart=sometimes", "sometimes"),
            broken(UNIT, "wf-cli serve", "wf-server serve", "not executable"),
        ],
    },
    Lint {
        tool: SYSTEMD,
        // Of 100, at most.
        arguments: &["security", "--no-pager", "--offline=true", "--threshold=15"],
        files: &[UNIT],
        broken: &[
            broken(UNIT, "CapabilityBoundingSet=\n", "", "exposure level"),
            broken(UNIT, "SystemCallFilter=@system-service\n", "", "exposure level"),
        ],
    },
    Lint {
        tool: Tool::Pinned(Program {
            name: "cfn-lint",
            folder: "cfn-lint",
            pins: "xtask/pins/cfn-lint.txt",
        }),
        arguments: &["--"],
        files: &[TEMPLATE],
        broken: &[
            broken(TEMPLATE, r#""KEYS_ONLY""#, r#""KEYS""#, "E3030"),
            broken(
                TEMPLATE,
                "\"AttributeName\": \"id_sk\",\n            \"AttributeType\"",
                "\"AttributeName\": \"id\",\n            \"AttributeType\"",
                "E3039",
            ),
            broken(TEMPLATE, r#""Ref": "ServerRole""#, r#""Ref": "Server""#, "E1020"),
            broken(TEMPLATE, r#""dynamodb:Query""#, r#""dynamodb:Querry""#, "W3037"),
            broken(TEMPLATE, ",\n      \"UpdateReplacePolicy\": \"Retain\"", "", "W3011"),
        ],
    },
];

/// Runs every linter, with copies in `folder` and `program` as what the unit starts. True if all is good and nothing broken is.
pub(super) fn all(root: &Path, folder: &Path, program: &Path) -> Result<bool, Fault> {
    let mut green = true;
    for lint in LINTS {
        let tool = match &lint.tool {
            Tool::Pinned(program) => program.install(root)?,
            Tool::Found { name, least } => match version(root, name) {
                Some(found) if found >= *least => PathBuf::from(name),
                found => {
                    let found = found.map_or("none".to_owned(), |number| number.to_string());
                    let what = lint.files.join(", ");
                    println!(
                        "LEFT OUT: {name} {} over {what}: it needs version {least}, here is {found}",
                        lint.arguments.join(" ")
                    );
                    continue;
                }
            },
        };
        green &= lint.holds(root, folder, &tool, program)?;
    }
    Ok(green)
}

impl Lint {
    fn holds(
        &self,
        root: &Path,
        folder: &Path,
        tool: &Path,
        program: &Path,
    ) -> Result<bool, Fault> {
        let shown = [&[&*tool.to_string_lossy()], self.arguments, self.files].concat().join(" ");
        let look = |file: &str, text: &str| {
            let name = Path::new(file).file_name().unwrap_or_default();
            let copy = folder.join(name);
            let text = text.replace(INSTALLED, &program.to_string_lossy());
            std::fs::write(&copy, text).map_err(|source| Fault::file(&copy, source))?;
            let copy = copy.to_string_lossy();
            let arguments = [self.arguments, &[&*copy]].concat();
            Run::new(root, &tool.to_string_lossy(), &arguments).output()
        };
        let mut green = true;
        for file in self.files {
            let output = look(file, &text(root, file)?)?;
            if !output.status.success() {
                println!("{shown}:\n{}", both(&output));
                green = false;
            }
        }
        for Broken { file, what, by, says } in self.broken {
            let good = text(root, file)?;
            if !good.contains(what) {
                return Err(Fault::parse(*file, &format!("it has no `{what}` to break")));
            }
            let output = look(file, &good.replacen(what, by, 1))?;
            if output.status.success() || !both(&output).contains(says) {
                println!(
                    "{shown} does not refuse `{by}` in the place of `{what}` in {file} by `{says}`:"
                );
                println!("{}", both(&output));
                green = false;
            }
        }
        if green {
            println!("{shown}: good, and {} broken ones are not", self.broken.len());
        }
        Ok(green)
    }
}

fn text(root: &Path, file: &str) -> Result<String, Fault> {
    let path = root.join(file);
    std::fs::read_to_string(&path).map_err(|source| Fault::file(&path, source))
}

/// The first number that a program says of itself, if it is there.
fn version(root: &Path, name: &str) -> Option<u32> {
    first_number(&Run::new(root, name, &["--version"]).stdout().ok()?)
}

fn first_number(said: &str) -> Option<u32> {
    said.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty())?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{LINTS, Tool, first_number};

    #[test]
    fn each_has_a_fault_to_find_in_every_file_and_pins() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for lint in LINTS {
            for file in lint.files {
                assert!(lint.broken.iter().any(|broken| broken.file == *file), "{file}");
            }
            if let Tool::Pinned(program) = lint.tool {
                let pins = std::fs::read_to_string(root.join(program.pins)).expect("pins");
                assert!(pins.lines().all(|line| line.contains("==")), "{pins}");
            }
        }
    }

    #[test]
    fn the_version_is_the_first_number() {
        assert_eq!(first_number("systemd 252 (252.38-1~deb12u1)\n+PAM"), Some(252));
        assert_eq!(first_number("promtool, version 2.42.0"), Some(2));
        assert_eq!(first_number("none"), None);
    }
}
