//! Failpoints are in builds for tests only: the crate `fail` is optional everywhere, and nothing turns it on by default.
//!
//! The graph that is read has every feature on, so the manifests are what is checked.

use std::collections::BTreeSet;

use crate::Workspace;
use crate::metadata::{Dependency, Package};
use crate::report::Violation;

use super::manifest;

/// The crate behind failpoints.
const CRATE: &str = "fail";
/// The feature that members turn it on with.
const FEATURE: &str = "failpoints";

pub(super) fn off_by_default(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut seen = false;
    for package in workspace.metadata.members() {
        let mut say = |needle: &str, what: String| {
            let manifest = manifest(package);
            let line = workspace.tree.line_of(&manifest, needle);
            let help = "only somebody who asks for the feature `failpoints` may get it: a release must not be made to fail from outside";
            found.push(Violation::new(manifest, line, what, help));
        };
        for dependency in &package.dependencies {
            seen |= dependency.name == CRATE;
            if dependency.name == CRATE && !dependency.optional {
                say(CRATE, format!("{} always has `{CRATE}`", package.name));
            }
            if asks(dependency) {
                say(
                    FEATURE,
                    format!(
                        "{} always asks for {} with `{FEATURE}`",
                        package.name, dependency.name
                    ),
                );
            }
        }
        if let Some(culprit) = by_default(package, is_it) {
            say(
                "default",
                format!("{} turns failpoints on by default, by `{culprit}`", package.name),
            );
        }
    }
    if !seen {
        found.push(Violation::new(
            "Cargo.toml",
            0,
            format!("no member has `{CRATE}`, so nothing was checked"),
            "check the crate that took its place, or take this rule out",
        ));
    }
    found
}

/// A dependency line that turns the feature of another member on.
fn asks(dependency: &Dependency) -> bool {
    dependency.name != CRATE && dependency.features.iter().any(|feature| feature == FEATURE)
}

/// This feature is failpoints, or turns them on elsewhere.
fn is_it(feature: &str) -> bool {
    let own = feature.strip_prefix("dep:").unwrap_or(feature);
    own == CRATE
        || own == FEATURE
        || own
            .split_once('/')
            .is_some_and(|(to, what)| to.trim_end_matches('?') == CRATE || what == FEATURE)
}

/// What `is_it` of the features that a build has which asked for none.
pub(super) fn by_default(package: &Package, is_it: impl Fn(&str) -> bool) -> Option<&str> {
    let mut waiting = vec!["default"];
    let mut seen = BTreeSet::new();
    while let Some(feature) = waiting.pop() {
        if !seen.insert(feature) {
            continue;
        }
        if is_it(feature) {
            return Some(feature);
        }
        waiting.extend(package.features.get(feature).into_iter().flatten().map(String::as_str));
    }
    None
}
