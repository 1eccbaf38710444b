//! cargo-deny, pinned, over `deny.toml` (whole graph) and `deny-core.toml` (allow-list of the pure crates).
//!
//! cargo-deny is silent about a ban whose crate is not in the graph, so a misspelt ban would pass for ever. The
//! check [`CHECKS`] here closes that: every banned name is in the graph or in [`NOT_IN_GRAPH`], and never in both.
//! Neighbours: [`crate::layering`] reads the same allow-list from `cargo metadata`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::fault::Fault;
use crate::layering::{ALLOW_LIST, PURE};
use crate::process::Run;
use crate::report::{Report, Violation};
use crate::tools::Tool;
use crate::tree::Tree;
use crate::{Check, Workspace};

const TOOL: Tool = Tool { name: "cargo-deny", version: "0.20.2", options: &[] };

/// The configuration over the whole graph.
const CONFIG: &str = "deny.toml";

/// Banned crates that are not in the graph today, spelt a second time (checked against crates.io when added).
const NOT_IN_GRAPH: [&str; 7] = [
    "aws-sdk-lambda",
    "aws-sdk-s3",
    "aws-sdk-sns",
    "aws-sdk-sqs",
    "native-tls",
    "openssl-sys",
    "serde_yaml",
];

/// What is checked about the configuration before cargo-deny runs.
pub(crate) const CHECKS: [Check; 1] = [Check {
    name: "ban-names",
    rule: "every name in deny.toml is spelt like a crate of the graph or like one known to be absent, each version requirement is one",
    run: ban_names,
}];

/// Checks the names, installs cargo-deny if it is missing, and runs it. False if anything is red.
pub(crate) fn task(root: &Path) -> Result<bool, Fault> {
    let workspace = Workspace::read(root)?;
    let mut report = Report::default();
    for check in CHECKS {
        check.into_report(&workspace, &mut report);
    }
    let mut green = report.print();
    let program = installed(root)?;
    for (name, run) in runs(&program, root, &[]) {
        println!("… {name}: {}", run.shown());
        green &= run.succeeds()?;
    }
    Ok(green)
}

/// Every invocation, by name. `more` are global options, such as `--offline`.
pub(crate) fn runs(program: &Path, directory: &Path, more: &[&str]) -> Vec<(&'static str, Run)> {
    let program = program.to_string_lossy();
    let run = |arguments: &[&str]| {
        let mut all = more.to_vec();
        all.extend(["--all-features"]);
        all.extend(arguments);
        Run::new(directory, &program, &all)
    };
    let check = ["check", "-D", "warnings"];
    let mut found = vec![
        ("bans", run(&[&["--exclude-dev", "--config", CONFIG], &check[..], &["bans"]].concat())),
        (
            "licences-and-sources",
            run(&[&["--config", CONFIG], &check[..], &["licenses", "sources"]].concat()),
        ),
    ];
    for (name, member) in [("closure-of-wf-idempotency", PURE[0]), ("closure-of-wf-core", PURE[1])]
    {
        let manifest = format!("crates/{member}/Cargo.toml");
        let options = ["--manifest-path", &manifest, "--exclude-dev", "--config", ALLOW_LIST];
        found.push((name, run(&[&options[..], &check[..], &["bans"]].concat())));
    }
    found
}

/// The pinned cargo-deny.
pub(crate) fn installed(root: &Path) -> Result<PathBuf, Fault> {
    TOOL.installed(root)
}

fn ban_names(workspace: &Workspace) -> Vec<Violation> {
    let tree = &workspace.tree;
    let broken = |what: String| vec![Violation::new(CONFIG, 0, what, "see the head of the file")];
    let Some(text) = tree.text(CONFIG) else { return broken("missing".to_owned()) };
    let parsed: toml::Table = match text.parse() {
        Ok(parsed) => parsed,
        Err(error) => {
            let error: toml::de::Error = error;
            return broken(error.message().to_owned());
        }
    };
    let specs = specs(&parsed);
    let in_graph: BTreeSet<&str> =
        workspace.metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let mut found = Vec::new();
    let mut named = BTreeSet::new();
    for spec in &specs {
        let name = spec.split(['@', ':']).next().unwrap_or(spec);
        named.insert(name);
        let line = tree.line_of(CONFIG, &format!("\"{spec}\""));
        if spec
            .split_once('@')
            .is_some_and(|(_, version)| !version.starts_with(|c: char| c.is_ascii_digit()))
        {
            let fix = "write `name:requirement`; after `@` cargo-deny reads an exact version and drops the operator";
            found.push(Violation::new(
                CONFIG,
                line,
                format!("`{spec}` bans one exact version"),
                fix,
            ));
        }
        if !in_graph.contains(name) && !NOT_IN_GRAPH.contains(&name) {
            let fix =
                "mend the spelling; if it is right, add it to NOT_IN_GRAPH in xtask/src/deny.rs";
            found.push(Violation::new(
                CONFIG,
                line,
                format!("`{name}` is no crate of the graph"),
                fix,
            ));
        }
    }
    for name in NOT_IN_GRAPH {
        if in_graph.contains(name) {
            let fix =
                "take it out of NOT_IN_GRAPH, and give its ban the wrappers that it needs now";
            found.push(Violation::new(
                "xtask/src/deny.rs",
                0,
                format!("`{name}` is in the graph now"),
                fix,
            ));
        }
        if !named.contains(name) {
            let fix = "take it out of NOT_IN_GRAPH, or ban it again";
            found.push(Violation::new(
                "xtask/src/deny.rs",
                0,
                format!("`{name}` is not banned in {CONFIG}"),
                fix,
            ));
        }
    }
    found
}

/// Every banned crate of `deny.toml`, as written there.
pub(crate) fn banned(tree: &Tree) -> Vec<String> {
    let parsed: toml::Table = tree.text(CONFIG).unwrap_or_default().parse().unwrap_or_default();
    let entries =
        parsed.get("bans").and_then(|bans| bans.get("deny")).and_then(toml::Value::as_array);
    let spec = |entry: &toml::Value| {
        entry
            .as_str()
            .or_else(|| entry.get("crate").and_then(toml::Value::as_str))
            .map(str::to_owned)
    };
    entries.into_iter().flatten().filter_map(spec).collect()
}

/// Every crate spec of the configuration: bans, their wrappers, features.
fn specs(parsed: &toml::Table) -> Vec<String> {
    let Some(bans) = parsed.get("bans") else { return Vec::new() };
    let list = |key: &str| bans.get(key).and_then(toml::Value::as_array).into_iter().flatten();
    let spec = |entry: &toml::Value| {
        entry
            .as_str()
            .or_else(|| entry.get("crate").and_then(toml::Value::as_str))
            .map(str::to_owned)
    };
    let wrappers = |entry: &toml::Value| {
        let names = entry.get("wrappers").and_then(toml::Value::as_array);
        names
            .into_iter()
            .flatten()
            .filter_map(toml::Value::as_str)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut found: Vec<String> = list("deny").flat_map(wrappers).collect();
    found.extend(["deny", "features"].into_iter().flat_map(list).filter_map(spec));
    found
}

#[cfg(test)]
mod tests {
    use crate::Workspace;
    use crate::metadata::Kind;
    use crate::metadata::tests::graph;
    use crate::tree::Tree;

    use super::{CONFIG, NOT_IN_GRAPH, ban_names};

    /// Violations for a configuration with the known absent crates and `more`.
    fn check(more: &str, edges: &[(&str, &str, Kind)]) -> Vec<String> {
        let absent: Vec<_> = NOT_IN_GRAPH.iter().map(|name| format!("\"{name}\"")).collect();
        let mut tree = Tree::default();
        tree.insert(CONFIG, format!("[bans]\ndeny = [{}, {more}]\n", absent.join(", ")));
        let workspace = Workspace { tree, metadata: graph(&["app"], edges) };
        ban_names(&workspace).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn known_names_are_green_and_misspelt_ones_are_red() {
        let edges = [("app", "rusqlite", Kind::Normal)];
        assert_eq!(
            check("{ crate = \"rusqlite\", wrappers = [\"app\"] }", &edges),
            Vec::<String>::new()
        );
        assert_eq!(check("{ crate = \"rusqlitee\" }", &edges).len(), 1);
        assert_eq!(check("{ crate = \"rusqlite\", wrappers = [\"ap\"] }", &edges).len(), 1);
    }

    #[test]
    fn a_requirement_after_an_at_sign_is_red() {
        let edges = [("app", "rusqlite", Kind::Normal)];
        assert_eq!(check("{ crate = \"rusqlite:<0.39\" }", &edges).len(), 0);
        assert_eq!(check("{ crate = \"rusqlite@0.39.0\" }", &edges).len(), 0);
        assert_eq!(check("{ crate = \"rusqlite@<0.39\" }", &edges).len(), 1);
    }

    #[test]
    fn an_absent_crate_that_came_into_the_graph_is_red() {
        assert_eq!(check("", &[("app", "aws-sdk-sqs", Kind::Normal)]).len(), 1);
    }

    #[test]
    fn a_ban_that_was_dropped_is_red() {
        let mut tree = Tree::default();
        tree.insert(CONFIG, "[bans]\ndeny = []\n");
        let workspace = Workspace { tree, metadata: graph(&["app"], &[]) };
        assert_eq!(ban_names(&workspace).len(), NOT_IN_GRAPH.len());
    }
}
