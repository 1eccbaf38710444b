//! `cargo xtask alerts`: promtool of Prometheus over the alert rules, their tests, and the expressions of the dashboard.
//!
//! promtool is the one on the path, or that of Debian's package `prometheus`, unpacked under the target directory. That the
//! names exist and that each alert has a runbook and tests is checked without it: `metrics-known` of [`crate::tidy`].

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::ci::target;
use crate::fault::Fault;
use crate::process::{Run, available};
use crate::tidy::alerts::{ALERTS, DASHBOARD, Expression, TESTS, panels};
use crate::tree::Tree;

/// A rule of [`ALERTS`] as it is, and so that it never fires: the tests must see that.
const BROKEN: (&str, &str) = ("checkpoint_store_ready == 0", "checkpoint_store_ready == 2");
/// An expression of [`ALERTS`] as it is, and as none: the check must see that.
const UNREADABLE: (&str, &str) =
    ("increase(checkpoint_writer_panics[1h])", "increase(checkpoint_writer_panics[1h]");

/// Runs promtool over everything. True if all is well, and if it is not when a rule is broken.
pub(crate) fn task(root: &Path) -> Result<bool, Fault> {
    let Some(promtool) = promtool(root)? else {
        println!(
            "NOT CHECKED: there is no promtool, and apt-get cannot bring Debian's package prometheus"
        );
        return Ok(true);
    };
    let tree = Tree::read(root)?;
    let folder = target(root).join("alerts");
    std::fs::create_dir_all(&folder)
        .map_err(|error| Fault::file(folder.display().to_string(), error))?;
    let dashboard = folder.join("dashboard.yaml");
    write(&dashboard, &as_rules(&panels(&tree).unwrap_or_default()))?;
    let dashboard = dashboard.to_string_lossy().into_owned();
    let said = [
        run(root, &promtool, &["check", "rules", ALERTS])?,
        run(root, &promtool, &["test", "rules", TESTS])?,
        run(root, &promtool, &["check", "rules", &dashboard])?,
    ];
    println!(
        "{} expressions of {DASHBOARD} were read too",
        panels(&tree).unwrap_or_default().len()
    );
    Ok(said.iter().all(|green| *green) && sees_what_is_broken(root, &promtool, &tree, &folder)?)
}

/// The same on copies with a fault: true if both are seen.
fn sees_what_is_broken(
    root: &Path,
    promtool: &str,
    tree: &Tree,
    folder: &Path,
) -> Result<bool, Fault> {
    let text = |path: &str| tree.text(path).unwrap_or_default();
    let mut seen = true;
    for ((from, to), asked) in [(UNREADABLE, "check"), (BROKEN, "test")] {
        let broken = text(ALERTS).replacen(from, to, 1);
        if broken == text(ALERTS) {
            println!("{ALERTS} has no `{from}` to break: name another in xtask/src/alerts.rs");
            seen = false;
        }
        write(&folder.join("alerts.yaml"), &broken)?;
        write(&folder.join("alerts.test.yaml"), text(TESTS))?;
        let file = if asked == "check" { "alerts.yaml" } else { "alerts.test.yaml" };
        let file = folder.join(file).to_string_lossy().into_owned();
        let output = Run::new(root, promtool, &[asked, "rules", &file]).output()?;
        println!("with `{to}` promtool {asked} says: {}", output.status);
        seen &= !output.status.success();
    }
    Ok(seen)
}

fn run(root: &Path, promtool: &str, arguments: &[&str]) -> Result<bool, Fault> {
    Run::new(root, promtool, arguments).succeeds()
}

/// The expressions as recording rules, which promtool can read; JSON is YAML. Variables of Grafana get a value.
fn as_rules(expressions: &[Expression]) -> String {
    let rule = |(number, expression): (usize, &Expression)| {
        let text = expression.text.replace("$__rate_interval", "5m");
        let text = text.replace("$job", ".*").replace("$instance", ".*");
        json!({ "record": format!("dashboard:expression:{number}"), "expr": text })
    };
    let rules: Vec<_> = expressions.iter().enumerate().map(rule).collect();
    json!({ "groups": [{ "name": "dashboard", "rules": rules }] }).to_string()
}

fn write(path: &Path, text: &str) -> Result<(), Fault> {
    std::fs::write(path, text).map_err(|error| Fault::file(path.display().to_string(), error))
}

/// The program; none when it is nowhere to be had.
fn promtool(root: &Path) -> Result<Option<String>, Fault> {
    if available(root, "promtool", &["--version"]) {
        return Ok(Some("promtool".to_owned()));
    }
    let home = target(root).join("tools").join("prometheus");
    let program = home.join("usr/bin/promtool");
    if !program.exists() && !unpack(root, &home)? {
        return Ok(None);
    }
    let program = program.to_string_lossy().into_owned();
    Ok(available(root, &program, &["--version"]).then_some(program))
}

/// Downloads Debian's package (19 MB) and keeps nothing but promtool of it. False when it cannot be had.
fn unpack(root: &Path, home: &Path) -> Result<bool, Fault> {
    if !available(root, "apt-get", &["--version"]) {
        return Ok(false);
    }
    std::fs::create_dir_all(home)
        .map_err(|error| Fault::file(home.display().to_string(), error))?;
    if !Run::new(home, "apt-get", &["download", "prometheus"]).succeeds()? {
        return Ok(false);
    }
    let Some(package) = package_in(home)? else { return Ok(false) };
    let name = package.to_string_lossy().into_owned();
    let unpacked = Run::new(home, "dpkg-deb", &["-x", &name, "."]).succeeds()?;
    let of = |path: &Path, error| Fault::file(path.display().to_string(), error);
    std::fs::remove_file(&package).map_err(|error| of(&package, error))?;
    let server = home.join("usr/bin/prometheus");
    if server.exists() {
        std::fs::remove_file(&server).map_err(|error| of(&server, error))?;
    }
    Ok(unpacked)
}

fn package_in(home: &Path) -> Result<Option<PathBuf>, Fault> {
    let entries =
        std::fs::read_dir(home).map_err(|error| Fault::file(home.display().to_string(), error))?;
    let is_package = |path: &PathBuf| path.extension().is_some_and(|end| end == "deb");
    Ok(entries.filter_map(Result::ok).map(|entry| entry.path()).find(is_package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_grafana_become_values() {
        let text = "rate(a{job=~\"$job\", instance=~\"$instance\"}[$__rate_interval])".to_owned();
        let rules = as_rules(&[Expression { of: "x".to_owned(), text }]);
        assert!(rules.contains(r#"rate(a{job=~\".*\", instance=~\".*\"}[5m])"#), "{rules}");
    }
}
