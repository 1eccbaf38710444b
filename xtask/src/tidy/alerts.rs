//! Alerts and the dashboard name only metrics that exist, and an alert says what to do where somebody will look.
//!
//! That the expressions mean something is for promtool to say: [`crate::alerts`]. [`super::seeing`] reads the table.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::seeing;
use crate::Workspace;
use crate::report::Violation;
use crate::tree::Tree;

pub(crate) const ALERTS: &str = "deploy/prometheus/alerts.yaml";
pub(crate) const TESTS: &str = "deploy/prometheus/alerts.test.yaml";
pub(crate) const DASHBOARD: &str = "deploy/grafana/checkpoint.json";
/// Where the runbooks are.
const RUNBOOKS: &str = "docs/operations.md";
/// What an alert says besides its expression.
const ANNOTATIONS: [&str; 3] = ["summary", "description", "runbook_url"];

/// An expression, and what it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expression {
    pub(crate) of: String,
    pub(crate) text: String,
}

pub(super) fn known_metrics(workspace: &Workspace) -> Vec<Violation> {
    let tree = &workspace.tree;
    let rows = seeing::rows(tree);
    let mut found = Vec::new();
    let alerts = alerts(tree).unwrap_or_default();
    let panels = panels(tree).unwrap_or_default();
    for (path, all) in [(ALERTS, expressions(&alerts)), (DASHBOARD, panels)] {
        if all.is_empty() {
            let fix = "keep it there, and readable";
            found.push(Violation::new(path, 0, "no expression found in it", fix));
        }
        for expression in all {
            found.extend(unknown(path, &expression, &rows));
        }
    }
    found.extend(alerts.iter().flat_map(|alert| incomplete(tree, alert)));
    found
}

/// Every rule of the file; nothing when it is none.
fn alerts(tree: &Tree) -> Option<Vec<Value>> {
    let file: Value = serde_saphyr::from_str(tree.text(ALERTS)?).ok()?;
    let groups = file.get("groups")?.as_array()?;
    let rules = groups.iter().filter_map(|group| group.get("rules")?.as_array());
    Some(rules.flatten().cloned().collect())
}

fn word<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn expressions(alerts: &[Value]) -> Vec<Expression> {
    let of = |alert: &Value| Expression {
        of: word(alert, "/alert").to_owned(),
        text: word(alert, "/expr").to_owned(),
    };
    alerts.iter().map(of).collect()
}

/// Every expression of the dashboard; nothing when it is no dashboard.
pub(crate) fn panels(tree: &Tree) -> Option<Vec<Expression>> {
    let file: Value = serde_json::from_str(tree.text(DASHBOARD)?).ok()?;
    let panels = file.get("panels")?.as_array()?;
    let mut all = Vec::new();
    for panel in panels {
        for target in panel.get("targets").and_then(Value::as_array).into_iter().flatten() {
            let of = word(panel, "/title").to_owned();
            all.push(Expression { of, text: word(target, "/expr").to_owned() });
        }
    }
    Some(all)
}

/// Names in an expression that are no metric; a histogram has three series.
fn unknown(path: &str, expression: &Expression, rows: &BTreeMap<String, String>) -> Vec<Violation> {
    let is_known = |name: &str| {
        let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        match rows.get(name).map(String::as_str) {
            Some(kind) => kind != "histogram",
            None => {
                histogram.and_then(|base| rows.get(base)).is_some_and(|kind| kind == "histogram")
            }
        }
    };
    let names: BTreeSet<&str> = expression
        .text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("checkpoint_"))
        .collect();
    let fix = "name one that docs/observability.md has";
    let mut found: Vec<Violation> = names
        .iter()
        .filter(|name| !is_known(name))
        .map(|name| Violation::new(path, 0, format!("{}: no metric {name}", expression.of), fix))
        .collect();
    // `up` is what Prometheus itself says of a target.
    if names.is_empty() && !expression.text.starts_with("up{") {
        found.push(Violation::new(path, 0, format!("{}: no metric of ours", expression.of), fix));
    }
    found
}

/// What an alert lacks: its severity, its words, a runbook that exists, a test of each kind.
fn incomplete(tree: &Tree, alert: &Value) -> Vec<Violation> {
    let name = word(alert, "/alert");
    let wrong = |what: String, fix: &str| Violation::new(ALERTS, 0, format!("{name}: {what}"), fix);
    let mut found = Vec::new();
    if !["critical", "warning"].contains(&word(alert, "/labels/severity")) {
        found.push(wrong("no severity".to_owned(), "label it critical or warning"));
    }
    for annotation in ANNOTATIONS {
        if word(alert, &format!("/annotations/{annotation}")).is_empty() {
            found.push(wrong(format!("no {annotation}"), "annotate it"));
        }
    }
    let anchor = word(alert, "/annotations/runbook_url")
        .strip_prefix(RUNBOOKS)
        .and_then(|rest| rest.strip_prefix('#'))
        .unwrap_or_default();
    let runbooks = tree.text(RUNBOOKS).unwrap_or_default();
    let has = runbooks.lines().filter(|line| line.starts_with('#')).any(|line| {
        let heading = line.trim_start_matches('#').trim();
        heading.to_ascii_lowercase().replace(' ', "-") == anchor
    });
    if !has {
        let fix = "write the heading in docs/operations.md, and name it in runbook_url";
        found.push(wrong(format!("no heading #{anchor} in {RUNBOOKS}"), fix));
    }
    let tests = tree.text(TESTS).unwrap_or_default();
    for kind in ["fires", "does not fire"] {
        if !tests.lines().any(|line| line.trim() == format!("- name: {name} {kind}")) {
            found.push(wrong(format!("no test `{name} {kind}`"), "write it in alerts.test.yaml"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_known_by_its_series_and_a_counter_by_its_name() {
        let rows = [("checkpoint_a_seconds", "histogram"), ("checkpoint_b_total", "counter")];
        let rows = rows.map(|(name, kind)| (name.to_owned(), kind.to_owned())).into();
        let problems = |text: &str| {
            let expression = Expression { of: "x".to_owned(), text: text.to_owned() };
            unknown(ALERTS, &expression, &rows).len()
        };
        assert_eq!(problems("rate(checkpoint_a_seconds_bucket{le=\"1\"}[5m])"), 0);
        assert_eq!(problems("rate(checkpoint_b_total[5m])"), 0);
        assert_eq!(problems("up{job=\"x\"} == 0"), 0);
        assert_eq!(problems("checkpoint_a_seconds"), 1);
        assert_eq!(problems("checkpoint_b_total_bucket"), 1);
        assert_eq!(problems("checkpoint_c + checkpoint_b_total"), 1);
        assert_eq!(problems("vector(1)"), 1);
    }
}
