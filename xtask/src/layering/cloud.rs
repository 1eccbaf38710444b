//! A build of the binary that did not ask for the feature `aws` has no crate of the AWS API in it.
//!
//! The graph that is read has every feature on. So the one arrow that the feature stands for is taken out of it, and what
//! is still reached must be free of AWS: the same as `cargo tree -p wf-cli -e normal,build` prints, or more.

use crate::Workspace;
use crate::metadata::{Metadata, Package};
use crate::report::Violation;

use super::failpoints::by_default;
use super::table::CLOUD;
use super::{first_match, manifest};

/// The binary.
const BINARY: &str = "wf-cli";
/// The only way from it to AWS.
const BACKEND: &str = "wf-backend-aws";
/// The feature that opens it.
const FEATURE: &str = "aws";

const HELP: &str =
    "only who asks for the feature `aws` may get the AWS SDK: it takes minutes to compile";

pub(super) fn optional_in_the_binary(workspace: &Workspace) -> Vec<Violation> {
    let metadata = &workspace.metadata;
    let Some(binary) = metadata.member(BINARY) else {
        return vec![Violation::new("Cargo.toml", 0, format!("`{BINARY}` is no member"), HELP)];
    };
    let path = manifest(binary);
    let say = |what: String| {
        Violation::new(path.clone(), workspace.tree.line_of(&path, BACKEND), what, HELP)
    };
    let mut found = Vec::new();
    let lines = binary.dependencies.iter().filter(|dependency| dependency.name == BACKEND);
    if lines.clone().count() == 0 {
        found.push(say(format!("{BINARY} has no {BACKEND}, so nothing was checked")));
    }
    found.extend(
        lines.filter(|line| !line.optional).map(|_| say(format!("{BINARY} always has {BACKEND}"))),
    );
    found.extend(turned_on(metadata).map(|(package, by)| {
        say(format!("{} turns `{FEATURE}` of {BINARY} on by default, by `{by}`", package.name))
    }));
    for (reached, path) in without_the_arrow(metadata).closure(BINARY) {
        if reached.name == BACKEND || first_match(&[CLOUD], &reached.name).is_some() {
            let path = path.join(" → ");
            found.push(say(format!(
                "{BINARY} reaches `{}` without `{FEATURE}`, by {path}",
                reached.name
            )));
        }
    }
    found
}

/// Members whose default features bring the backend into the binary, and by which feature.
fn turned_on(metadata: &Metadata) -> impl Iterator<Item = (&Package, &str)> {
    let is_it = |package: &Package, feature: &str| {
        let own = feature.strip_prefix("dep:").unwrap_or(feature);
        let of_binary = package.name == BINARY;
        let of_other = feature.split_once('/').is_some_and(|(to, what)| {
            let to = to.trim_end_matches('?');
            to == BINARY && what == FEATURE || of_binary && to == BACKEND
        });
        of_binary && (own == BACKEND || own == FEATURE) || of_other
    };
    metadata.members().filter_map(move |package| {
        Some((package, by_default(package, |feature| is_it(package, feature))?))
    })
}

/// The graph without the arrow that the feature stands for.
fn without_the_arrow(metadata: &Metadata) -> Metadata {
    let id = |name: &str| metadata.member(name).map(|package| package.id.clone());
    let (from, to) = (id(BINARY), id(BACKEND));
    let mut graph = metadata.clone();
    for node in graph.resolve.nodes.iter_mut().filter(|node| Some(&node.id) == from.as_ref()) {
        node.deps.retain(|edge| Some(&edge.pkg) != to.as_ref());
    }
    graph
}
