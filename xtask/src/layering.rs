//! Who may import whom, over the resolved crate graph. The table is in [`table`], the rules are here.
//!
//! Six rules: every edge between workspace members is in the table, by kind and whether optional or not;
//! no member imports a vendor crate that its room forbids; nothing forbidden is in the closure of the members
//! that must stay free of it; the closures of the pure crates are the allow-list of `deny-core.toml`; nothing
//! has [`failpoints`] by default; and the [`cloud`] is in no binary that did not ask for it.
//! Why not cargo-deny alone: it sees direct parents only, and a ban list cannot see a crate nobody listed.

mod cloud;
mod failpoints;
mod table;

use std::collections::BTreeSet;
use std::path::Path;

use crate::fault::Fault;
use crate::metadata::{Dependency, Kind, Package};
use crate::report::{Report, Violation};
use crate::tree::Tree;
use crate::{Check, Workspace};

pub(crate) use table::{CLOUD, IMPURE, STORES, Vendors, WEB};
use table::{Member, TABLE};

/// The allow-list over the closure of the pure crates; cargo-deny reads the same file.
pub(crate) const ALLOW_LIST: &str = "deny-core.toml";

/// Crates whose whole normal and build closure must be on the allow-list.
pub(crate) const PURE: [&str; 2] = ["wf-idempotency", "wf-core"];

/// Every rule of this module.
pub(crate) const CHECKS: [Check; 6] = [
    Check {
        name: "edges",
        rule: "every edge between workspace members (normal, build, dev, optional) is in the table, and every member is",
        run: edges,
    },
    Check {
        name: "vendor-imports",
        rule: "no member names a vendor crate that its room forbids",
        run: vendor_imports,
    },
    Check {
        name: "vendor-closure",
        rule: "no forbidden vendor crate is anywhere in what a member is built from",
        run: vendor_closure,
    },
    Check {
        name: "core-closure",
        rule: "everything that wf-core and wf-idempotency are built from is on the allow-list of deny-core.toml",
        run: core_closure,
    },
    Check {
        name: "failpoints-off",
        rule: "no build has failpoints unless the feature `failpoints` is asked for",
        run: failpoints::off_by_default,
    },
    Check {
        name: "aws-on-request",
        rule: "a build of wf-cli without the feature `aws` contains no AWS crate",
        run: cloud::optional_in_the_binary,
    },
];

/// Runs every rule over the repository at `root`.
pub(crate) fn task(root: &Path) -> Result<Report, Fault> {
    let workspace = Workspace::read(root)?;
    let mut report = Report::default();
    for check in CHECKS {
        check.into_report(&workspace, &mut report);
    }
    Ok(report)
}

fn edges(workspace: &Workspace) -> Vec<Violation> {
    let metadata = &workspace.metadata;
    let members: BTreeSet<&str> = metadata.members().map(|package| package.name.as_str()).collect();
    let mut found = Vec::new();
    for package in metadata.members() {
        let manifest = manifest(package);
        let Some(row) = row(package) else {
            found.push(Violation::new(
                manifest,
                0,
                format!("workspace member `{}` is not in the table", package.name),
                "add it to xtask/src/layering/table.rs with what it may import, and to ARCHITECTURE.md",
            ));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|d| members.contains(d.name.as_str()))
        {
            if !row.may_import(&dependency.name, dependency.kind) {
                let optional = if dependency.optional { "optional " } else { "" };
                found.push(Violation::new(
                    manifest.clone(),
                    workspace.tree.line_of(&manifest, &dependency.name),
                    format!("{optional}{} edge {} → {}", dependency.kind.name(), package.name, dependency.name),
                    "this arrow does not exist in ARCHITECTURE.md: take it out, or move the code to the room it belongs to",
                ));
            }
        }
    }
    for row in TABLE.iter().filter(|row| !row.is_pattern() && !members.contains(row.name)) {
        found.push(Violation::new(
            "xtask/src/layering/table.rs",
            0,
            format!("`{}` is in the table but is no workspace member", row.name),
            "take the row out, or add the crate",
        ));
    }
    found
}

fn vendor_imports(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in workspace.metadata.members() {
        let Some(row) = row(package) else { continue };
        let built = |dependency: &&Dependency| dependency.kind != Kind::Dev;
        for dependency in package.dependencies.iter().filter(built) {
            if let Some(pattern) = first_match(row.never_direct, &dependency.name) {
                let manifest = manifest(package);
                found.push(Violation::new(
                    manifest.clone(),
                    workspace.tree.line_of(&manifest, &dependency.name),
                    format!(
                        "{} imports `{}` (forbidden: {pattern})",
                        package.name, dependency.name
                    ),
                    "move the code that needs it to the crate whose room names this vendor",
                ));
            }
        }
    }
    found
}

fn vendor_closure(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in workspace.metadata.members() {
        let Some(row) = row(package) else { continue };
        for (reached, path) in workspace.metadata.closure(&package.name) {
            if let Some(pattern) = first_match(row.never_reached, &reached.name) {
                let manifest = manifest(package);
                let via = path.get(1).copied().unwrap_or_default();
                found.push(Violation::new(
                    manifest.clone(),
                    workspace.tree.line_of(&manifest, via),
                    format!(
                        "{} reaches `{}` (forbidden: {pattern}) by {}",
                        package.name,
                        reached.name,
                        path.join(" → ")
                    ),
                    "turn the feature off that brings it, or take the dependency out",
                ));
            }
        }
    }
    found
}

fn core_closure(workspace: &Workspace) -> Vec<Violation> {
    let allowed = match allow_list(&workspace.tree) {
        Ok(allowed) => allowed,
        Err(violation) => return vec![violation],
    };
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for name in PURE {
        if workspace.metadata.member(name).is_none() {
            found.push(Violation::new(
                "Cargo.toml",
                0,
                format!("`{name}` is no workspace member"),
                "add the crate",
            ));
        }
        for (package, path) in workspace.metadata.closure(name) {
            if allowed.contains(package.name.as_str()) {
                used.insert(package.name.clone());
            } else {
                let member = workspace.metadata.member(name).map_or_else(String::new, manifest);
                let via = path.get(1).copied().unwrap_or_default();
                found.push(Violation::new(
                    member.clone(),
                    workspace.tree.line_of(&member, via),
                    format!("`{}` {} is not on the allow-list; it comes by {}", package.name, package.version, path.join(" → ")),
                    "take it out; only a pure crate (no clock, files, sockets, runtime) may be added to deny-core.toml",
                ));
            }
        }
    }
    for name in allowed.iter().filter(|name| !used.contains(*name)) {
        found.push(Violation::new(
            ALLOW_LIST,
            workspace.tree.line_of(ALLOW_LIST, &format!("\"{name}\"")),
            format!("`{name}` is allowed but nothing needs it"),
            "take the line out, so that the list stays what is true",
        ));
    }
    found
}

/// Names under `[bans] allow` of the allow-list file.
pub(crate) fn allow_list(tree: &Tree) -> Result<BTreeSet<String>, Violation> {
    let broken = |what: String| {
        Violation::new(ALLOW_LIST, 0, what, "write `[bans] allow = [{ crate = \"…\" }, …]`")
    };
    let text = tree.text(ALLOW_LIST).ok_or_else(|| broken("the file is missing".to_owned()))?;
    let parsed: toml::Table =
        text.parse().map_err(|error: toml::de::Error| broken(error.message().to_owned()))?;
    let entries =
        parsed.get("bans").and_then(|bans| bans.get("allow")).and_then(toml::Value::as_array);
    let names: BTreeSet<String> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            entry.as_str().or_else(|| entry.get("crate").and_then(toml::Value::as_str))
        })
        .map(|spec| spec.split(['@', ':']).next().unwrap_or(spec).to_owned())
        .collect();
    if names.is_empty() { Err(broken("the allow-list is empty".to_owned())) } else { Ok(names) }
}

/// The row of a member: its own, or the pattern for its folder.
fn row(package: &Package) -> Option<&'static Member> {
    TABLE.iter().find(|row| row.matches(&package.name, &package.manifest_path))
}

/// Path of a member's manifest from the root of the repository.
pub(crate) fn manifest(package: &Package) -> String {
    let parts: Vec<&str> = package.manifest_path.split('/').collect();
    let folder = |back: usize| {
        parts.len().checked_sub(back).and_then(|at| parts.get(at)).copied().unwrap_or_default()
    };
    match folder(3) {
        parent @ ("crates" | "examples") => format!("{parent}/{}/Cargo.toml", folder(2)),
        _ => format!("{}/Cargo.toml", folder(2)),
    }
}

/// The first pattern that `name` matches. `x*` matches every name that starts with `x`.
pub(crate) fn first_match(groups: &[Vendors], name: &str) -> Option<&'static str> {
    // Cryptography, not the AWS API: TLS and JWT libraries use it.
    if name.starts_with("aws-lc-") {
        return None;
    }
    groups.iter().copied().flatten().copied().find(|pattern| {
        pattern.strip_suffix('*').map_or(*pattern == name, |prefix| name.starts_with(prefix))
    })
}

#[cfg(test)]
mod tests;
