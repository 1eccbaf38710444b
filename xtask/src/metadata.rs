//! The resolved crate graph as data, as `cargo metadata` prints it. Only the fields that checks read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use crate::fault::Fault;
use crate::process::Run;

/// `cargo metadata --all-features`.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Metadata {
    /// Every package of the graph.
    pub(crate) packages: Vec<Package>,
    /// Ids of the workspace members.
    pub(crate) workspace_members: Vec<String>,
    /// The resolved edges.
    pub(crate) resolve: Resolve,
}

/// One package.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) manifest_path: String,
}

/// One line of a `[dependencies]` table, whether a feature turns it on or not.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) kind: Kind,
    #[serde(default)]
    pub(crate) optional: bool,
    #[serde(default)]
    pub(crate) features: Vec<String>,
}

/// The table that a dependency stands in. `null` in the output of cargo means normal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Normal,
    Build,
    Dev,
}

impl Kind {
    /// As it is written in a message.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Build => "build",
            Self::Dev => "dev",
        }
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kind = Option::<String>::deserialize(deserializer)?;
        match kind.as_deref() {
            None => Ok(Self::Normal),
            Some("build") => Ok(Self::Build),
            Some("dev") => Ok(Self::Dev),
            Some(other) => {
                Err(serde::de::Error::custom(format!("unknown dependency kind {other}")))
            }
        }
    }
}

/// The resolved edges.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

/// The resolved edges and features of one package.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) deps: Vec<Edge>,
    #[serde(default)]
    pub(crate) features: Vec<String>,
}

/// One resolved edge; several kinds when a crate is both a normal and a dev dependency.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Edge {
    pub(crate) pkg: String,
    pub(crate) dep_kinds: Vec<EdgeKind>,
}

/// The kind of one resolved edge.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct EdgeKind {
    #[serde(default)]
    pub(crate) kind: Kind,
}

impl Metadata {
    /// Asks cargo, with every feature on, so that optional edges are in the graph.
    pub(crate) fn read(root: &Path) -> Result<Self, Fault> {
        let text =
            Run::cargo(root, &["metadata", "--format-version", "1", "--all-features"]).stdout()?;
        Self::parse(&text)
    }

    /// Reads the JSON that cargo printed.
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        serde_json::from_str(text).map_err(|error| Fault::parse("cargo metadata", &error))
    }

    /// The workspace members.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// One workspace member by name.
    pub(crate) fn member(&self, name: &str) -> Option<&Package> {
        self.members().find(|package| package.name == name)
    }

    /// The package with this id.
    pub(crate) fn package(&self, id: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.id == id)
    }

    /// Everything that `name` is built from: normal and build edges from it, dev edges not followed.
    /// Each package comes with the names on one path that leads to it, `name` first.
    pub(crate) fn closure<'graph>(
        &'graph self,
        name: &str,
    ) -> Vec<(&'graph Package, Vec<&'graph str>)> {
        let Some(start) = self.member(name) else { return Vec::new() };
        let nodes: BTreeMap<&str, &Node> =
            self.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let packages: BTreeMap<&str, &Package> =
            self.packages.iter().map(|package| (package.id.as_str(), package)).collect();
        let mut seen = BTreeSet::from([start.id.as_str()]);
        let mut found = Vec::new();
        let mut waiting = vec![(start, vec![start.name.as_str()])];
        while let Some((package, path)) = waiting.pop() {
            let edges = nodes.get(package.id.as_str()).map_or(&[][..], |node| &node.deps);
            for edge in edges.iter().filter(|edge| edge.is_built()) {
                let Some(target) = packages.get(edge.pkg.as_str()) else { continue };
                if seen.insert(&target.id) {
                    let mut longer = path.clone();
                    longer.push(&target.name);
                    waiting.push((target, longer));
                }
            }
            found.push((package, path));
        }
        found
    }
}

impl Edge {
    /// Does this edge lead to code that is in the built product (normal or build)?
    fn is_built(&self) -> bool {
        self.dep_kinds.iter().any(|kind| kind.kind != Kind::Dev)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Dependency, Edge, EdgeKind, Kind, Metadata, Node, Package};

    /// A graph from lines `from → to` with a kind; every `from` and every name in `members` is a member.
    pub(crate) fn graph(members: &[&str], edges: &[(&str, &str, Kind)]) -> Metadata {
        let mut metadata = Metadata::default();
        let names = members.iter().chain(edges.iter().flat_map(|(from, to, _)| [from, to]));
        for name in names {
            if metadata.package(name).is_none() {
                metadata.packages.push(Package {
                    id: (*name).to_owned(),
                    name: (*name).to_owned(),
                    version: "1.0.0".to_owned(),
                    dependencies: Vec::new(),
                    features: Default::default(),
                    manifest_path: format!("/x/{name}/Cargo.toml"),
                });
                metadata.resolve.nodes.push(Node {
                    id: (*name).to_owned(),
                    deps: Vec::new(),
                    features: Vec::new(),
                });
            }
        }
        metadata.workspace_members = members.iter().map(|name| (*name).to_owned()).collect();
        for (from, to, kind) in edges {
            for package in metadata.packages.iter_mut().filter(|package| package.name == *from) {
                package.dependencies.push(Dependency {
                    name: (*to).to_owned(),
                    kind: *kind,
                    optional: false,
                    features: Vec::new(),
                });
            }
            for node in metadata.resolve.nodes.iter_mut().filter(|node| node.id == *from) {
                node.deps.push(Edge {
                    pkg: (*to).to_owned(),
                    dep_kinds: vec![EdgeKind { kind: *kind }],
                });
            }
        }
        metadata
    }

    #[test]
    fn the_closure_follows_normal_and_build_edges_only() {
        let metadata = graph(
            &["core"],
            &[
                ("core", "a", Kind::Normal),
                ("a", "b", Kind::Build),
                ("core", "probe", Kind::Dev),
                ("b", "a", Kind::Normal),
            ],
        );
        let mut names: Vec<_> = metadata
            .closure("core")
            .iter()
            .map(|(package, path)| (package.name.clone(), path.len()))
            .collect();
        names.sort();
        assert_eq!(names, [("a".to_owned(), 2), ("b".to_owned(), 3), ("core".to_owned(), 1)]);
    }

    #[test]
    fn the_output_of_cargo_is_understood() {
        let text = r#"{"packages":[{"id":"p","name":"p","version":"0.1.0","dependencies":[
            {"name":"q","kind":null,"optional":true,"features":["x"]},{"name":"r","kind":"dev"}],
            "features":{},"manifest_path":"/p/Cargo.toml","license":"MIT"}],
            "workspace_members":["p"],"resolve":{"nodes":[{"id":"p","deps":[{"name":"q","pkg":"q",
            "dep_kinds":[{"kind":null,"target":null}]}],"features":["default"]}],"root":null}}"#;
        let parsed = Metadata::parse(text).map_err(|fault| fault.chain());
        let kinds: Vec<_> = parsed
            .iter()
            .flat_map(Metadata::members)
            .flat_map(|package| package.dependencies.iter().map(|dependency| dependency.kind))
            .collect();
        assert_eq!(kinds, [Kind::Normal, Kind::Dev]);
    }
}
