//! Rules about the manifests and small files of every workspace member.

use std::collections::BTreeSet;

use crate::Workspace;
use crate::layering::PURE;
use crate::report::Violation;

pub(super) fn members(workspace: &Workspace) -> Vec<Violation> {
    let tree = &workspace.tree;
    let mut found = Vec::new();
    let mut seen = 0_usize;
    for path in tree.paths().filter(|path| is_member_manifest(path)) {
        seen += 1;
        let folder = path.strip_suffix("Cargo.toml").unwrap_or(path);
        let parsed: toml::Table = match tree.text(path).unwrap_or_default().parse() {
            Ok(parsed) => parsed,
            Err(error) => {
                let error: toml::de::Error = error;
                found.push(Violation::new(
                    path,
                    0,
                    error.message().to_owned(),
                    "mend the manifest",
                ));
                continue;
            }
        };
        found.extend(lints(workspace, path, &parsed));
        let description = parsed
            .get("package")
            .and_then(|package| package.get("description"))
            .and_then(toml::Value::as_str);
        if description
            .is_none_or(|text| text.len() < 12 || text.eq_ignore_ascii_case("placeholder"))
        {
            let line = tree.line_of(path, "description");
            found.push(Violation::new(
                path,
                line,
                "no description",
                "say in one line what the crate is for",
            ));
        }
        let readme = format!("{folder}README.md");
        let words = tree.text(&readme).map_or(0, |text| text.split_whitespace().count());
        if words < 20 {
            let fix = "say what the crate is for, what belongs into it and what does not";
            found.push(Violation::new(readme, 0, "missing or empty", fix));
        }
    }
    if seen == 0 {
        found.push(Violation::new(
            "Cargo.toml",
            0,
            "no member manifest found",
            "members are under crates/, examples/ and xtask/",
        ));
    }
    found
}

/// The one member that may write `unsafe`, the lint of the workspace that it therefore lifts, and those that it has
/// besides. It replaces functions of the C library in a process under test; docs/adr/0008 has the reasons.
const UNSAFE: Unsafe = Unsafe {
    manifest: "crates/wf-diskfault/Cargo.toml",
    lifted: ("rust", "unsafe_code", "allow"),
    besides: [
        ("rust", "unsafe_op_in_unsafe_fn", "deny"),
        ("clippy", "undocumented_unsafe_blocks", "deny"),
    ],
};

/// A table of lints that is not the workspace's: tool, lint, level.
struct Unsafe {
    manifest: &'static str,
    lifted: (&'static str, &'static str, &'static str),
    besides: [(&'static str, &'static str, &'static str); 2],
}

/// Does the member have the lints of the workspace? It inherits them, or is the one exception and repeats them.
fn lints(workspace: &Workspace, path: &str, manifest: &toml::Table) -> Vec<Violation> {
    let own = manifest.get("lints");
    let inherits = own.and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool);
    if inherits == Some(true) {
        return Vec::new();
    }
    if path != UNSAFE.manifest {
        let fix = "add `[lints]` with `workspace = true`";
        return vec![Violation::new(path, 0, "does not inherit the workspace lints", fix)];
    }
    let own = own.and_then(toml::Value::as_table).cloned().unwrap_or_default();
    let expected = repeated(workspace);
    let mut found = Vec::new();
    let tools: BTreeSet<_> = own.keys().chain(expected.keys()).collect();
    for tool in tools {
        let level = |table: &toml::Table, lint: &str| {
            table.get(tool).and_then(|lints| lints.get(lint)).map(ToString::to_string)
        };
        let names = |table: &toml::Table| {
            let lints = table.get(tool).and_then(toml::Value::as_table);
            lints.map(|lints| lints.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
        };
        let all: BTreeSet<_> = names(&own).into_iter().chain(names(&expected)).collect();
        for lint in all {
            let (is, ought) = (level(&own, &lint), level(&expected, &lint));
            if is != ought {
                let shown = |level: Option<String>| level.unwrap_or_else(|| "nothing".to_owned());
                let what = format!("{tool}::{lint} is {}, not {}", shown(is), shown(ought));
                let line = workspace.tree.line_of(path, &lint);
                let fix =
                    "repeat the lints of the workspace; only the exceptions of this check differ";
                found.push(Violation::new(path, line, what, fix));
            }
        }
    }
    found
}

/// The lints of the workspace with the exceptions of [`UNSAFE`].
fn repeated(workspace: &Workspace) -> toml::Table {
    let root = workspace.tree.text("Cargo.toml").unwrap_or_default();
    let root: toml::Table = root.parse().unwrap_or_default();
    let mut all = root
        .get("workspace")
        .and_then(|workspace| workspace.get("lints"))
        .and_then(toml::Value::as_table)
        .cloned()
        .unwrap_or_default();
    for (tool, lint, level) in UNSAFE.besides.iter().chain([&UNSAFE.lifted]) {
        if let Some(lints) = all.get_mut(*tool).and_then(toml::Value::as_table_mut) {
            lints.insert((*lint).to_owned(), (*level).into());
        }
    }
    all
}

pub(super) fn pure_clippy(workspace: &Workspace) -> Vec<Violation> {
    /// What must be banned at least; the selftest proves with clippy that the bans bite.
    const BANNED: [&str; 7] = [
        "std::time::SystemTime::now",
        "std::time::Instant::now",
        "std::env::var",
        "std::fs::File",
        "std::fs::read",
        "std::net::TcpStream",
        "std::process::Command",
    ];
    let mut found = Vec::new();
    for name in PURE {
        let path = format!("crates/{name}/clippy.toml");
        let text = workspace.tree.text(&path).unwrap_or_default();
        let paths = banned_paths(text);
        for missing in BANNED.iter().filter(|banned| !paths.iter().any(|path| path == *banned)) {
            let fix = "add it to disallowed-methods or disallowed-types with a reason";
            found.push(Violation::new(path.clone(), 0, format!("`{missing}` is not banned"), fix));
        }
    }
    for name in PURE {
        let sources = workspace.tree.sources(&format!("crates/{name}/src/")).collect::<Vec<_>>();
        for (path, source) in sources {
            let lifted = source.product().find(|(_, token)| token.text.starts_with("disallowed_"));
            if let Some((_, token)) = lifted {
                let fix =
                    "there is no lawful exception here: pass the value in, or go through a port";
                found.push(Violation::new(path, token.line, format!("lifts {}", token.text), fix));
            }
        }
    }
    found
}

/// Paths under `disallowed-methods` and `disallowed-types` of a clippy.toml.
pub(crate) fn banned_paths(text: &str) -> Vec<String> {
    let parsed: toml::Table = text.parse().unwrap_or_default();
    ["disallowed-methods", "disallowed-types"]
        .iter()
        .filter_map(|key| parsed.get(*key).and_then(toml::Value::as_array))
        .flatten()
        .filter_map(|entry| {
            entry.as_str().or_else(|| entry.get("path").and_then(toml::Value::as_str))
        })
        .map(str::to_owned)
        .collect()
}

/// `crates/x/Cargo.toml`, `examples/x/Cargo.toml`, `xtask/Cargo.toml`.
pub(super) fn is_member_manifest(path: &str) -> bool {
    let parts: Vec<_> = path.split('/').collect();
    matches!(parts.as_slice(), ["crates" | "examples", _, "Cargo.toml"] | ["xtask", "Cargo.toml"])
}
