//! Features of shared crates that change what our own code means.
//!
//! With `raw_value` a client's object with a private key is parsed as raw JSON; with `arbitrary_precision`
//! numbers become strings of digits. Both would change what is hashed, and any crate of the graph can turn them on.
//! Only what the product is built from counts: a test may turn one on to show that the product resists it.

use std::collections::BTreeSet;

use crate::Workspace;
use crate::metadata::{Kind, Metadata, Node};
use crate::report::Violation;

const FORBIDDEN: [&str; 2] = ["arbitrary_precision", "raw_value"];

pub(super) fn serde_json(workspace: &Workspace) -> Vec<Violation> {
    let metadata = &workspace.metadata;
    let built = built(metadata);
    let mut found = Vec::new();
    let mut seen = false;
    for node in metadata.resolve.nodes.iter().filter(|node| built.contains(node.id.as_str())) {
        let Some(package) =
            metadata.package(&node.id).filter(|package| package.name == "serde_json")
        else {
            continue;
        };
        seen = true;
        for feature in
            FORBIDDEN.iter().filter(|feature| node.features.iter().any(|on| on == *feature))
        {
            let culprits = who_turns_on(metadata, &built, &node.id, feature);
            // Without one a test asked for it: resolution counts dev edges, a build of the product does not.
            if !culprits.is_empty() {
                found.push(Violation::new(
                    "Cargo.toml",
                    0,
                    format!(
                        "serde_json {} is built with `{feature}`; asked for by: {}",
                        package.version,
                        culprits.join(", ")
                    ),
                    "turn that crate's feature off, or replace the crate: it changes what our hashes cover",
                ));
            }
        }
    }
    if !seen {
        found.push(Violation::new(
            "Cargo.lock",
            0,
            "serde_json is not in the graph, so nothing was checked",
            "check the crate that took its place",
        ));
    }
    found
}

/// Ids of everything that some member is built from.
fn built(metadata: &Metadata) -> BTreeSet<&str> {
    metadata
        .members()
        .flat_map(|member| metadata.closure(&member.name))
        .map(|(package, _)| package.id.as_str())
        .collect()
}

/// Built crates with an edge to `target` that ask for `feature`, in the edge itself or by a feature of their own.
fn who_turns_on<'graph>(
    metadata: &'graph Metadata,
    built: &BTreeSet<&str>,
    target: &str,
    feature: &str,
) -> Vec<&'graph str> {
    let asks = |node: &&Node| {
        let Some(package) = metadata.package(&node.id) else { return false };
        let in_edge = package.dependencies.iter().any(|dependency| {
            dependency.name == "serde_json"
                && dependency.kind != Kind::Dev
                && dependency.features.iter().any(|on| on == feature)
        });
        let wanted = [format!("serde_json/{feature}"), format!("serde_json?/{feature}")];
        let in_feature = node
            .features
            .iter()
            .filter_map(|on| package.features.get(on))
            .flatten()
            .any(|enables| wanted.contains(enables));
        in_edge || in_feature
    };
    metadata
        .resolve
        .nodes
        .iter()
        .filter(|node| built.contains(node.id.as_str()))
        .filter(|node| node.deps.iter().any(|edge| edge.pkg == target))
        .filter(asks)
        .filter_map(|node| metadata.package(&node.id).map(|package| package.name.as_str()))
        .collect()
}
