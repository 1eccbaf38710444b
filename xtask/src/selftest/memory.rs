//! Mutants that are an edited copy of the files or of the crate graph, judged by the check they are for.
//!
//! A mutant is killed when its check says something that it does not say about the unedited copy, so the result
//! does not depend on the repository being green.

use std::collections::BTreeMap;

use crate::metadata::{Dependency, Edge, EdgeKind, Kind, Metadata, Node, Package};
use crate::report::Violation;
use crate::{Check, Workspace};

use super::{Outcome, all_checks, shape_mutants};

/// A fault that somebody could commit.
pub(super) struct Mutant {
    /// The check that must see it.
    pub(super) check: &'static str,
    /// What is wrong, for the report.
    pub(super) fault: String,
    /// Makes the fault. False if there was nothing to edit, which counts as survived.
    pub(super) edit: Box<dyn Fn(&mut Workspace) -> bool>,
}

impl Mutant {
    /// A mutant for the check named `check`.
    pub(super) fn new(
        check: &'static str,
        fault: impl Into<String>,
        edit: impl Fn(&mut Workspace) -> bool + 'static,
    ) -> Self {
        Self { check, fault: fault.into(), edit: Box::new(edit) }
    }
}

/// Runs all of them.
pub(super) fn run(workspace: &Workspace) -> Vec<Outcome> {
    let checks: BTreeMap<&str, Check> = all_checks().map(|check| (check.name, check)).collect();
    let mut mutants = graph_mutants();
    mutants.extend(failpoint_mutants());
    mutants.extend(cloud_mutants());
    mutants.extend(configuration_mutants());
    mutants.extend(shape_mutants::mutants(workspace));
    let mut before: BTreeMap<&str, Vec<(String, usize)>> = BTreeMap::new();
    let mut outcomes = Vec::new();
    for mutant in mutants {
        let survived = match checks.get(mutant.check) {
            None => Some("there is no such check".to_owned()),
            Some(check) => {
                let known =
                    before.entry(check.name).or_insert_with(|| counted(&(check.run)(workspace)));
                let mut copy = workspace.clone();
                if (mutant.edit)(&mut copy) {
                    let after = counted(&(check.run)(&copy));
                    let says_more = after.iter().any(|(what, times)| {
                        known
                            .iter()
                            .find(|(other, _)| other == what)
                            .is_none_or(|(_, before)| times > before)
                    });
                    (!says_more).then(|| "the check is as quiet as before".to_owned())
                } else {
                    Some("there is nothing to edit".to_owned())
                }
            }
        };
        outcomes.push(Outcome::new(mutant.check, mutant.fault, survived));
    }
    outcomes
}

/// What was said, without line numbers, which an edit may shift, and how often.
fn counted(violations: &[Violation]) -> Vec<(String, usize)> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for violation in violations {
        *found.entry(violation.without_line()).or_default() += 1;
    }
    found.into_iter().collect()
}

/// Faults in the crate graph.
fn graph_mutants() -> Vec<Mutant> {
    let arrow = |from: &'static str, to: &'static str, kind: Kind, optional: bool| {
        let word = if optional { "optional " } else { "" };
        Mutant::new(
            "edges",
            format!("{word}{} edge {from} → {to}", kind.name()),
            move |workspace| add_edge(&mut workspace.metadata, from, to, kind, optional),
        )
    };
    let import = |check: &'static str, from: &'static str, to: &'static str| {
        Mutant::new(check, format!("{from} imports {to}"), move |workspace| {
            add_edge(&mut workspace.metadata, from, to, Kind::Normal, false)
        })
    };
    let deep = |check: &'static str, from: &'static str, to: &'static str, kind: Kind| {
        Mutant::new(check, format!("{from} reaches {to} through another crate"), move |workspace| {
            add_edge(&mut workspace.metadata, from, "innocent", Kind::Normal, false)
                && add_edge(&mut workspace.metadata, "innocent", to, kind, false)
        })
    };
    vec![
        arrow("wf-mcp-http", "wf-backend-local", Kind::Normal, false),
        arrow("wf-mcp-http", "wf-backend-aws", Kind::Normal, true),
        arrow("wf-backend-local", "wf-backend-aws", Kind::Build, false),
        arrow("wf-backend-aws", "wf-mcp-http", Kind::Normal, false),
        arrow("wf-core", "wf-testkit", Kind::Dev, false),
        arrow("wf-idempotency", "wf-core", Kind::Dev, false),
        arrow("wf-procedure", "wf-cli", Kind::Normal, false),
        arrow("xtask", "wf-core", Kind::Normal, false),
        Mutant::new("edges", "a member that is not in the table", |workspace| {
            let package = stub_package("wf-unheard");
            workspace.metadata.workspace_members.push(package.id.clone());
            workspace.metadata.packages.push(package);
            true
        }),
        Mutant::new("edges", "a row of the table without a member", |workspace| {
            let id = workspace.metadata.member("wf-testkit").map(|package| package.id.clone());
            let before = workspace.metadata.workspace_members.len();
            workspace.metadata.workspace_members.retain(|member| Some(member) != id.as_ref());
            workspace.metadata.workspace_members.len() < before
        }),
        import("vendor-imports", "wf-core", "tokio"),
        import("vendor-imports", "wf-idempotency", "http"),
        import("vendor-imports", "wf-mcp-http", "rusqlite"),
        import("vendor-imports", "wf-backend-local", "rmcp"),
        import("vendor-imports", "wf-backend-aws", "hyper"),
        import("vendor-imports", "wf-testkit", "rusqlite"),
        import("vendor-imports", "wf-cli", "aws-sdk-dynamodb"),
        import("vendor-imports", "industrial_pump_inspection", "rusqlite"),
        deep("vendor-closure", "wf-core", "tokio", Kind::Normal),
        deep("vendor-closure", "wf-mcp-http", "aws-sdk-s3", Kind::Normal),
        deep("vendor-closure", "wf-backend-local", "hyper", Kind::Build),
        deep("core-closure", "wf-core", "aws-sdk-unheard", Kind::Normal),
        deep("core-closure", "wf-idempotency", "telemetry", Kind::Build),
        import("failpoints-off", "wf-mcp-http", "fail"),
        import("aws-on-request", "wf-cli", "aws-config"),
        deep("aws-on-request", "wf-notify-webhook", "aws-sdk-sns", Kind::Normal),
        import("aws-on-request", "wf-mcp-http", "wf-backend-aws"),
    ]
}

/// Builds that can be made to fail without having asked for it.
fn failpoint_mutants() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "failpoints-off",
            "the default features of wf-cli have failpoints",
            |workspace| {
                let found = of_member(&mut workspace.metadata, "wf-cli");
                found.is_some_and(|package| {
                    let on = vec!["failpoints".to_owned()];
                    package.features.insert("default".to_owned(), on);
                    true
                })
            },
        ),
        Mutant::new("failpoints-off", "wf-cli always asks its store for failpoints", |workspace| {
            let found = of_member(&mut workspace.metadata, "wf-cli");
            let line = found.and_then(|package| {
                package.dependencies.iter_mut().find(|line| line.name == "wf-backend-local")
            });
            line.is_some_and(|line| {
                line.features.push("failpoints".to_owned());
                true
            })
        }),
    ]
}

/// Builds that have the AWS SDK without having asked for it.
fn cloud_mutants() -> Vec<Mutant> {
    let default_on = |name: &'static str, feature: &'static str| {
        let fault = format!("the default features of {name} have {feature}");
        Mutant::new("aws-on-request", fault, move |workspace| {
            let found = of_member(&mut workspace.metadata, name);
            found.is_some_and(|package| {
                package.features.insert("default".to_owned(), vec![feature.to_owned()]);
                true
            })
        })
    };
    vec![
        default_on("wf-cli", "aws"),
        default_on("wf-proof", "wf-cli/aws"),
        Mutant::new("aws-on-request", "wf-cli always has its backend for AWS", |workspace| {
            let found = of_member(&mut workspace.metadata, "wf-cli");
            let line = found.and_then(|package| {
                package.dependencies.iter_mut().find(|line| line.name == "wf-backend-aws")
            });
            line.is_some_and(|line| {
                line.optional = false;
                true
            })
        }),
    ]
}

/// Faults in the configurations of cargo-deny.
fn configuration_mutants() -> Vec<Mutant> {
    let edit = |check: &'static str,
                fault: &str,
                path: &'static str,
                from: &'static str,
                to: &'static str| {
        Mutant::new(check, fault, move |workspace| replace(workspace, path, from, to))
    };
    let core = "deny-core.toml";
    vec![
        edit(
            "core-closure",
            "an allowed name that nothing needs",
            core,
            "{ crate = \"sha2\"",
            "\"left-pad\", { crate = \"sha2\"",
        ),
        edit("core-closure", "a misspelt allowed name", core, "\"sha2\"", "\"sha22\""),
        Mutant::new("core-closure", "no allow-list", move |workspace| workspace.tree.remove(core)),
        edit("ban-names", "a misspelt ban", "deny.toml", "\"aws-sdk-sfn\"", "\"aws-sdk-snf\""),
        edit("ban-names", "a misspelt wrapper", "deny.toml", "[\"wf-cli\"]", "[\"wf-cil\"]"),
        edit(
            "ban-names",
            "a ban that was dropped",
            "deny.toml",
            "{ crate = \"aws-sdk-s3\",",
            "{ crate = \"rusqlite\",",
        ),
        edit("ban-names", "a requirement that bans one exact version", "deny.toml", "h2:<", "h2@<"),
        Mutant::new("ban-names", "no deny.toml", |workspace| workspace.tree.remove("deny.toml")),
        Mutant::new("ban-names", "a crate that came into the graph", |workspace| {
            add_edge(&mut workspace.metadata, "wf-backend-aws", "aws-sdk-s3", Kind::Normal, false)
        }),
        Mutant::new("serde-json-features", "a crate turns raw_value on", |workspace| {
            turn_on(&mut workspace.metadata, "raw_value")
        }),
        Mutant::new("serde-json-features", "a crate turns arbitrary_precision on", |workspace| {
            turn_on(&mut workspace.metadata, "arbitrary_precision")
        }),
    ]
}

/// Replaces the first `from` in a file. False if there is none.
pub(super) fn replace(workspace: &mut Workspace, path: &str, from: &str, to: &str) -> bool {
    let Some(text) = workspace.tree.text(path).filter(|text| text.contains(from)) else {
        return false;
    };
    let edited = text.replacen(from, to, 1);
    workspace.tree.insert(path, edited);
    true
}

/// A crate that wf-cli is built from asks for a feature of serde_json.
fn turn_on(metadata: &mut Metadata, feature: &str) -> bool {
    let added = add_edge(metadata, "wf-cli", "innocent", Kind::Normal, false)
        && add_edge(metadata, "innocent", "serde_json", Kind::Normal, false);
    let innocent = metadata.packages.iter_mut().filter(|package| package.name == "innocent");
    for dependency in innocent.flat_map(|package| &mut package.dependencies) {
        dependency.features.push(feature.to_owned());
    }
    let target = metadata.packages.iter().find(|package| package.name == "serde_json");
    let target = target.map(|package| package.id.clone()).unwrap_or_default();
    for node in metadata.resolve.nodes.iter_mut().filter(|node| node.id == target) {
        node.features.push(feature.to_owned());
    }
    added
}

/// A member, to be edited.
fn of_member<'graph>(metadata: &'graph mut Metadata, name: &str) -> Option<&'graph mut Package> {
    let id = metadata.member(name)?.id.clone();
    metadata.packages.iter_mut().find(|package| package.id == id)
}

/// Adds an edge to the manifest of `from` and to the resolved graph; `to` is added as a stub if it is new.
fn add_edge(metadata: &mut Metadata, from: &str, to: &str, kind: Kind, optional: bool) -> bool {
    let id_of = |metadata: &Metadata, name: &str| {
        metadata
            .packages
            .iter()
            .find(|package| package.name == name)
            .map(|package| package.id.clone())
    };
    if id_of(metadata, to).is_none() {
        let package = stub_package(to);
        metadata.resolve.nodes.push(Node {
            id: package.id.clone(),
            deps: Vec::new(),
            features: Vec::new(),
        });
        metadata.packages.push(package);
    }
    let (Some(source), Some(target)) = (id_of(metadata, from), id_of(metadata, to)) else {
        return false;
    };
    for package in metadata.packages.iter_mut().filter(|package| package.id == source) {
        package.dependencies.push(Dependency {
            name: to.to_owned(),
            kind,
            optional,
            features: Vec::new(),
        });
    }
    for node in metadata.resolve.nodes.iter_mut().filter(|node| node.id == source) {
        node.deps.push(Edge { pkg: target.clone(), dep_kinds: vec![EdgeKind { kind }] });
    }
    true
}

fn stub_package(name: &str) -> Package {
    Package {
        id: format!("stub+{name}"),
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        dependencies: Vec::new(),
        features: BTreeMap::new(),
        manifest_path: format!("crates/{name}/Cargo.toml"),
    }
}
