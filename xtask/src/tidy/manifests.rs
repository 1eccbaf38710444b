//! Rules about the manifests and small files of every workspace member.

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
        let inherits = parsed
            .get("lints")
            .and_then(|lints| lints.get("workspace"))
            .and_then(toml::Value::as_bool);
        if inherits != Some(true) {
            let fix = "add `[lints]` with `workspace = true`";
            found.push(Violation::new(path, 0, "does not inherit the workspace lints", fix));
        }
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
fn is_member_manifest(path: &str) -> bool {
    let parts: Vec<_> = path.split('/').collect();
    matches!(parts.as_slice(), ["crates" | "examples", _, "Cargo.toml"] | ["xtask", "Cargo.toml"])
}
