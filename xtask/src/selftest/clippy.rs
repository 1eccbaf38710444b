//! Mutants of the workspace lints and of the clippy.toml of the pure crates, judged by clippy and rustdoc.
//!
//! A workspace of two small crates under `target/selftest/clippy` has the real lint tables and the real clippy.toml
//! files, and one faulty item per mutant, each in its own range of lines. It has no dependencies, so one run takes
//! seconds and does not need the product to compile.

use std::ops::Range;
use std::path::Path;

use crate::Workspace;
use crate::fault::Fault;
use crate::layering::PURE;
use crate::process::Run;
use crate::tidy::manifests::banned_paths;

use super::Outcome;
use super::clippy_faults::{BANNED, LINTED};

/// One faulty item: where it is and which lint must see it.
struct Placed {
    fault: String,
    lint: String,
    lines: Range<usize>,
}

/// An error that the compiler reported.
struct Reported {
    lint: String,
    line: usize,
    text: String,
}

/// Runs clippy over the faulty crates, rustdoc over a broken link, and both over a clean crate.
pub(super) fn run(root: &Path, workspace: &Workspace) -> Result<Vec<Outcome>, Fault> {
    let home = root.join("target").join("selftest").join("clippy");
    let target = root.join("target").join("selftest-target");
    write_workspace(&home, workspace)?;
    let mut outcomes = Vec::new();
    for member in PURE {
        let check = format!("clippy {member}");
        let path = home.join("crates").join(member).join("src").join("lib.rs");
        write(&path, "//! Nothing to complain about.\n")?;
        let clean = clippy(&home, &target, member)?;
        let complaint = clean.first().map(|reported| format!("it said: {}", reported.text));
        outcomes.push(Outcome::new(&check, "control: a clean crate is green", complaint));
        let (text, placed) = faulty_source();
        write(&path, &text)?;
        let reported = clippy(&home, &target, member)?;
        for one in placed {
            let seen = reported
                .iter()
                .any(|error| error.lint == one.lint && one.lines.contains(&error.line));
            let survived = (!seen).then(|| format!("{} did not object", one.lint));
            outcomes.push(Outcome::new(&check, one.fault, survived));
        }
        outcomes.extend(untested_bans(workspace, member));
        outcomes.push(misspelt_ban(&home, &target, member, &check)?);
        write(&path, "//! A broken link to [`nothing_of_this_name`].\n")?;
        let broken = rustdoc(&home, &target, member)?;
        let survived = broken.then(|| "cargo doc succeeded".to_owned());
        let check = format!("rustdoc {member}");
        outcomes.push(Outcome::new(check, "a broken intra-doc link", survived));
    }
    Ok(outcomes)
}

/// Root manifest with the real lints, members with their real lint table and clippy.toml.
fn write_workspace(home: &Path, workspace: &Workspace) -> Result<(), Fault> {
    let tree = &workspace.tree;
    let parse = |path: &str| -> Result<toml::Table, Fault> {
        let text = tree.text(path).ok_or_else(|| Fault::parse(path, &"missing"))?;
        text.parse().map_err(|error: toml::de::Error| Fault::parse(path, &error))
    };
    let root = parse("Cargo.toml")?;
    let lints = root.get("workspace").and_then(|workspace| workspace.get("lints")).cloned();
    let lints = lints.ok_or_else(|| Fault::parse("Cargo.toml", &"no [workspace.lints]"))?;
    let mut section = toml::Table::new();
    section.insert("resolver".to_owned(), "3".into());
    section.insert("members".to_owned(), vec!["crates/*"].into());
    section.insert("lints".to_owned(), lints);
    let mut manifest = toml::Table::new();
    manifest.insert("workspace".to_owned(), section.into());
    write(&home.join("Cargo.toml"), &manifest.to_string())?;
    for member in PURE {
        let folder = home.join("crates").join(member);
        let own = parse(&format!("crates/{member}/Cargo.toml"))?;
        let mut package = toml::Table::new();
        package.insert("name".to_owned(), member.into());
        package.insert("edition".to_owned(), "2024".into());
        let mut manifest = toml::Table::new();
        manifest.insert("package".to_owned(), package.into());
        if let Some(lints) = own.get("lints") {
            manifest.insert("lints".to_owned(), lints.clone());
        }
        write(&folder.join("Cargo.toml"), &manifest.to_string())?;
        write(
            &folder.join("clippy.toml"),
            tree.text(&format!("crates/{member}/clippy.toml")).unwrap_or_default(),
        )?;
        // Cargo refuses the whole workspace while one member has no target.
        write(&folder.join("src").join("lib.rs"), "//! Nothing to complain about.\n")?;
    }
    Ok(())
}

/// A source with every faulty item, and where each is.
fn faulty_source() -> (String, Vec<Placed>) {
    let mut text = String::from("//! Faults of the selftest, one item each.\n");
    let mut placed = Vec::new();
    let mut place = |fault: String, lint: &str, item: &str| {
        let first = text.lines().count() + 1;
        text.push_str(item);
        text.push('\n');
        placed.push(Placed {
            fault,
            lint: lint.to_owned(),
            lines: first..text.lines().count() + 1,
        });
    };
    for (number, (path, lint, expression)) in BANNED.iter().enumerate() {
        let item = if lint.ends_with("types") {
            format!("fn banned_{number}(_: &{expression}) {{}}")
        } else {
            format!("fn banned_{number}() {{ let _ = {expression}; }}")
        };
        place(format!("{path} is used"), lint, &item);
    }
    for (fault, lint, item) in LINTED {
        place(fault.to_owned(), lint, item);
    }
    (text, placed)
}

/// Is a misspelt path in clippy.toml noticed? clippy itself only warns, and succeeds.
fn misspelt_ban(home: &Path, target: &Path, member: &str, check: &str) -> Result<Outcome, Fault> {
    let folder = home.join("crates").join(member);
    let configuration = folder.join("clippy.toml");
    let lawful = std::fs::read_to_string(&configuration)
        .map_err(|error| Fault::file(&configuration, error))?;
    write(&configuration, &lawful.replace("\"std::env::vars_os\"", "\"std::env::vars_so\""))?;
    write(&folder.join("src").join("lib.rs"), "//! Nothing to complain about.\n")?;
    let reported = clippy(home, target, member)?;
    write(&configuration, &lawful)?;
    let seen = reported.iter().any(|one| one.text.contains("std::env::vars_so"));
    let survived = (!seen).then(|| "nobody objected".to_owned());
    Ok(Outcome::new(check, "a ban of a path that does not exist", survived))
}

/// A survivor for each path that the selftest knows as forbidden and this clippy.toml does not name.
fn untested_bans(workspace: &Workspace, member: &str) -> Vec<Outcome> {
    let path = format!("crates/{member}/clippy.toml");
    let named = banned_paths(workspace.tree.text(&path).unwrap_or_default());
    BANNED
        .iter()
        .filter(|(banned, ..)| !named.iter().any(|name| name == banned))
        .map(|(banned, ..)| {
            Outcome::new(
                format!("clippy {member}"),
                format!("{banned} is banned"),
                Some(format!("{path} does not name it")),
            )
        })
        .collect()
}

/// Every error of `cargo clippy -- -D warnings`, and every complaint about the configuration itself.
fn clippy(home: &Path, target: &Path, member: &str) -> Result<Vec<Reported>, Fault> {
    let arguments = [
        "clippy",
        "--quiet",
        "--offline",
        "-p",
        member,
        "--message-format=json",
        "--",
        "-D",
        "warnings",
    ];
    forget(target, member)?;
    let run = Run::cargo(home, &arguments).env("CARGO_TARGET_DIR", &target.to_string_lossy());
    let output = run.output()?;
    let lines = String::from_utf8_lossy(&output.stdout);
    let found: Vec<Reported> = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|line| reported(&line))
        .collect();
    // Silence counts only from a run that got as far as compiling.
    if found.is_empty() && !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(Fault::parse(format!("cargo clippy -p {member}"), &why));
    }
    Ok(found)
}

/// Makes cargo compile the member again. It compares times of files, and ours are rewritten within milliseconds.
fn forget(target: &Path, member: &str) -> Result<(), Fault> {
    let folder = target.join("debug").join(".fingerprint");
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Fault::file(folder, error)),
    };
    for entry in entries {
        let path = entry.map_err(|error| Fault::file(&folder, error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&format!("{member}-")) {
            std::fs::remove_dir_all(&path).map_err(|error| Fault::file(path, error))?;
        }
    }
    Ok(())
}

fn reported(line: &serde_json::Value) -> Option<Reported> {
    let message = line.get("message")?;
    let level = message.get("level")?.as_str()?;
    let text = message.get("message")?.as_str()?.to_owned();
    let span = message
        .get("spans")?
        .as_array()?
        .iter()
        .find(|span| span.get("is_primary").is_some_and(|yes| yes == true));
    let in_configuration = span
        .and_then(|span| span.get("file_name"))
        .and_then(serde_json::Value::as_str)
        .is_some_and(|name| name.ends_with("clippy.toml"));
    let counts = level == "error" || in_configuration;
    let line = span
        .and_then(|span| span.get("line_start"))
        .and_then(serde_json::Value::as_u64)
        .unwrap_or_default();
    let lint = message
        .get("code")
        .and_then(|code| code.get("code"))
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default();
    let line = usize::try_from(line).ok()?;
    (counts && span.is_some()).then(|| Reported { lint: lint.to_owned(), line, text })
}

/// Does the documentation of this member build without a warning?
fn rustdoc(home: &Path, target: &Path, member: &str) -> Result<bool, Fault> {
    let run = Run::cargo(home, &["doc", "--quiet", "--offline", "--no-deps", "-p", member])
        .env("CARGO_TARGET_DIR", &target.to_string_lossy());
    Ok(run.output()?.status.success())
}

fn write(path: &Path, text: &str) -> Result<(), Fault> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| Fault::file(folder, error))?;
    }
    std::fs::write(path, text).map_err(|error| Fault::file(path, error))
}
