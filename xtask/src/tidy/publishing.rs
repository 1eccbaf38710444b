//! What a crate needs before it can be published; a member that is not published says so.
//!
//! Neighbours: [`super::manifests`] has what every member needs; [`crate::package`] packs the crates that [`published`]
//! names and looks at what is in the packages.

use crate::Workspace;
use crate::report::Violation;
use crate::tree::Tree;

use super::manifests::is_member_manifest;

/// Names that the registry knows. It says nothing about a category that it does not know, and leaves it out.
const CATEGORIES: [&str; 9] = [
    "command-line-utilities",
    "config",
    "data-structures",
    "database",
    "development-tools::testing",
    "encoding",
    "network-programming",
    "rust-patterns",
    "science",
];

/// The same, of one family.
const WEB_CATEGORIES: [&str; 2] = ["web-programming::http-client", "web-programming::http-server"];

/// What every package has, whatever else it has.
const INCLUDED: [&str; 3] = ["/src/**", "/README.md", "/LICENSE"];

/// A member that is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Published {
    /// Of the package.
    pub(crate) name: String,
    /// Its folder from the root, with a slash at the end.
    pub(crate) folder: String,
}

impl Published {
    /// Is there something to depend on?
    pub(crate) fn is_library(&self, tree: &Tree) -> bool {
        tree.exists(&format!("{}src/lib.rs", self.folder))
    }
}

/// Every member whose manifest does not say `publish = false`.
pub(crate) fn published(tree: &Tree) -> Vec<Published> {
    let manifests = tree.paths().filter(|path| is_member_manifest(path));
    let named = manifests.filter_map(|path| {
        let package = package(&manifest(tree, path))?;
        let name = package.get("name")?.as_str()?.to_owned();
        let folder = path.strip_suffix("Cargo.toml")?.to_owned();
        is_published(&package).then_some(Published { name, folder })
    });
    named.collect()
}

pub(super) fn publishable(workspace: &Workspace) -> Vec<Violation> {
    let tree = &workspace.tree;
    let mut found = Vec::new();
    for path in tree.paths().filter(|path| is_member_manifest(path)) {
        let parsed = manifest(tree, path);
        let Some(package) = package(&parsed) else { continue };
        if !is_published(&package) {
            continue;
        }
        let mut say = |what: String, fix: &str| {
            found.push(Violation::new(path, tree.line_of(path, "[package]"), what, fix));
        };
        if !path.starts_with("crates/") {
            say("would be published".to_owned(), "write `publish = false`");
            continue;
        }
        described(&package, &mut say);
        documented(tree, path, &parsed, &mut say);
        dependencies(tree, &parsed, &mut say);
    }
    found
}

/// What stands in `[package]`.
fn described(package: &toml::Table, say: &mut impl FnMut(String, &str)) {
    for key in ["version", "edition", "rust-version", "license"] {
        let inherits = package.get(key).and_then(|value| value.get("workspace"));
        if inherits.and_then(toml::Value::as_bool) != Some(true) {
            say(
                format!("`{key}` is its own"),
                "all crates share one: write `KEY.workspace = true`",
            );
        }
    }
    if package.get("readme").and_then(toml::Value::as_str) != Some("README.md") {
        say("no readme".to_owned(), "write `readme = \"README.md\"`");
    }
    let keywords = strings(package, "keywords");
    let lawful = |word: &String| {
        (1..=20).contains(&word.len())
            && word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-+".contains(c))
    };
    if !(1..=5).contains(&keywords.len()) || !keywords.iter().all(lawful) {
        say(
            format!("keywords are {keywords:?}"),
            "the registry takes one to five, each of at most 20 letters, digits, `-`, `_` or `+`",
        );
    }
    let categories = strings(package, "categories");
    let known =
        |name: &String| CATEGORIES.iter().chain(&WEB_CATEGORIES).any(|category| category == name);
    if !(1..=5).contains(&categories.len()) || !categories.iter().all(known) {
        say(
            format!("categories are {categories:?}"),
            "one to five slugs of crates.io; a new one goes into CATEGORIES in xtask/src/tidy/publishing.rs",
        );
    }
    let included = strings(package, "include");
    for pattern in INCLUDED.iter().filter(|pattern| !included.iter().any(|one| one == *pattern)) {
        say(format!("`{pattern}` is not in the package"), "add it to `include`");
    }
    let docs_rs = package.get("metadata").and_then(|metadata| metadata.get("docs"));
    if docs_rs.and_then(|docs| docs.get("rs")).is_none() {
        say(
            "docs.rs is not told what to build".to_owned(),
            "add `[package.metadata.docs.rs]` with features and targets",
        );
    }
}

/// README, licence, and what is said about features.
fn documented(tree: &Tree, path: &str, manifest: &toml::Table, say: &mut impl FnMut(String, &str)) {
    let folder = path.strip_suffix("Cargo.toml").unwrap_or(path);
    let of = |name: &str| tree.text(&format!("{folder}{name}"));
    if of("LICENSE").is_none() || of("LICENSE") != tree.text("LICENSE") {
        say("no LICENSE, or another one".to_owned(), "link it: `ln -s ../../LICENSE LICENSE`");
    }
    let readme = of("README.md").unwrap_or_default();
    if !readme.contains("\n## Features\n") {
        say("its README does not speak of features".to_owned(), "add `## Features`, also if none");
    }
    let features = manifest.get("features").and_then(toml::Value::as_table);
    let named = features.into_iter().flat_map(toml::Table::keys).filter(|name| *name != "default");
    for feature in named {
        if !readme.contains(&format!("`{feature}`")) {
            say(format!("its README does not name the feature `{feature}`"), "say what it does");
        }
    }
    let Some(library) = of("src/lib.rs") else { return };
    if !readme.contains("\n```rust") || readme.contains("\n```rust,ignore") {
        say("its README has no example that compiles".to_owned(), "write one, as ```rust");
    }
    if !library.contains("#[doc = include_str!(\"../README.md\")]") {
        say(
            "the code of its README is not compiled by a test".to_owned(),
            "include it in src/lib.rs as the other crates do",
        );
    }
}

/// A dependency on another member is one that the registry will have too.
fn dependencies(tree: &Tree, parsed: &toml::Table, say: &mut impl FnMut(String, &str)) {
    let root = manifest(tree, "Cargo.toml");
    let workspace = root.get("workspace");
    let shared = workspace.and_then(|all| all.get("dependencies"));
    let version = workspace.and_then(|all| all.get("package")).and_then(|all| all.get("version"));
    let published = published(tree);
    let own = parsed.get("dependencies").and_then(toml::Value::as_table);
    for (name, line) in own.into_iter().flatten() {
        let inherits = line.get("workspace").and_then(toml::Value::as_bool) == Some(true);
        let line = if inherits { shared.and_then(|all| all.get(name)) } else { Some(line) };
        let Some(line) = line.filter(|line| line.get("path").is_some()) else { continue };
        if line.get("version").is_none() || line.get("version") != version {
            say(
                format!("`{name}` is a path without the version of this workspace"),
                "name path and version in the root's [workspace.dependencies]",
            );
        }
        if !published.iter().any(|one| one.name == *name) {
            say(format!("needs `{name}`, which is not published"), "publish both or neither");
        }
    }
}

fn manifest(tree: &Tree, path: &str) -> toml::Table {
    // One that cannot be read is what `manifests` speaks of.
    tree.text(path).unwrap_or_default().parse().unwrap_or_default()
}

fn package(manifest: &toml::Table) -> Option<toml::Table> {
    manifest.get("package")?.as_table().cloned()
}

fn is_published(package: &toml::Table) -> bool {
    package.get("publish").and_then(toml::Value::as_bool) != Some(false)
}

fn strings(table: &toml::Table, key: &str) -> Vec<String> {
    let all = table.get(key).and_then(toml::Value::as_array).into_iter().flatten();
    all.filter_map(toml::Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{Published, publishable, published};
    use crate::Workspace;
    use crate::metadata::Metadata;
    use crate::tree::Tree;

    const ROOT: &str = "[workspace.package]\nversion = \"1.0.0\"\n[workspace.dependencies]\n\
        b = { path = \"crates/b\", version = \"1.0.0\" }\nc = { path = \"crates/c\" }\nd = \"2\"\n";
    const MANIFEST: &str = "[package]\nname = \"a\"\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\nreadme = \"README.md\"\n\
        keywords = [\"retry\"]\ncategories = [\"database\"]\n\
        include = [\"/src/**\", \"/README.md\", \"/LICENSE\"]\n[package.metadata.docs.rs]\ntargets = []\n\
        [features]\nslow = []\n[dependencies]\nb = { workspace = true }\nd = { workspace = true }\n";
    const README: &str = "# a\n\n```rust\na();\n```\n\n## Features\n\n`slow`\n";
    const LIBRARY: &str = "#[doc = include_str!(\"../README.md\")]\nstruct Readme;\n";

    fn tree(manifest: &str, readme: &str, library: &str) -> Workspace {
        let mut tree = Tree::default();
        tree.insert("Cargo.toml", ROOT);
        tree.insert("LICENSE", "the licence");
        for name in ["a", "b"] {
            let manifest = manifest.replace("name = \"a\"", &format!("name = \"{name}\""));
            tree.insert(format!("crates/{name}/Cargo.toml"), manifest);
            tree.insert(format!("crates/{name}/README.md"), readme);
            tree.insert(format!("crates/{name}/LICENSE"), "the licence");
            tree.insert(format!("crates/{name}/src/lib.rs"), library);
        }
        tree.insert("crates/c/Cargo.toml", "[package]\nname = \"c\"\npublish = false\n");
        Workspace { tree, metadata: Metadata::default() }
    }

    /// Violations of the two crates that are published, which have the same fault.
    #[track_caller]
    fn both(workspace: &Workspace, expected: usize) {
        let found: Vec<_> = publishable(workspace).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected * 2, "{found:#?}");
    }

    #[test]
    fn a_crate_has_all_of_it_or_is_not_published() {
        both(&tree(MANIFEST, README, LIBRARY), 0);
        for (part, instead) in [
            ("version.workspace = true", "version = \"3.0.0\""),
            ("license.workspace = true", "license = \"MIT\""),
            ("readme = \"README.md\"\n", ""),
            ("[\"retry\"]", "[]"),
            ("[\"retry\"]", "[\"two words\"]"),
            ("[\"database\"]", "[\"databases\"]"),
            (", \"/LICENSE\"", ""),
            ("metadata.docs.rs", "metadata.other"),
            ("slow = []", "slow = []\ndefault = [\"slow\"]\nunsaid = []"),
            ("b = { workspace = true }", "b = { path = \"../b\" }"),
            ("b = { workspace = true }", "b = { path = \"../b\", version = \"0.9.0\" }"),
        ] {
            assert!(MANIFEST.contains(part), "{part}");
            both(&tree(&MANIFEST.replacen(part, instead, 1), README, LIBRARY), 1);
        }
        // No version, and not published either.
        let needs_c = MANIFEST.replace("b = { w", "c = { w");
        both(&tree(&needs_c, README, LIBRARY), 2);
        both(&tree(MANIFEST, &README.replace("```rust", "```rust,ignore"), LIBRARY), 1);
        both(&tree(MANIFEST, &README.replace("## Features", "## Switches"), LIBRARY), 1);
        both(&tree(MANIFEST, README, "//! Nothing.\n"), 1);
        let mut other = tree(MANIFEST, README, LIBRARY);
        other.tree.insert("LICENSE", "another licence");
        both(&other, 1);
    }

    #[test]
    fn only_what_is_under_crates_is_published() {
        let mut workspace = tree(MANIFEST, README, LIBRARY);
        assert_eq!(
            published(&workspace.tree).iter().map(|one| one.folder.as_str()).collect::<Vec<_>>(),
            ["crates/a/", "crates/b/"]
        );
        workspace.tree.insert("examples/e/Cargo.toml", "[package]\nname = \"e\"\n");
        assert_eq!(publishable(&workspace).len(), 1);
        let e = Published { name: "e".to_owned(), folder: "examples/e/".to_owned() };
        assert!(published(&workspace.tree).contains(&e));
        assert!(!e.is_library(&workspace.tree));
    }
}
