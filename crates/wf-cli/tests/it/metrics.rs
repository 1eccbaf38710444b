//! What a running server exposes is what docs/observability.md says: both ways, with types, labels and help.

use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = include_str!("../../../../docs/observability.md");

/// A row of the table.
#[derive(Debug)]
struct Row {
    kind: &'static str,
    labels: BTreeSet<&'static str>,
    place: &'static str,
    help: String,
}

fn rows() -> BTreeMap<&'static str, Row> {
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, kind, labels, unit, place, says, ..] = cells[..] else {
            panic!("no row: {line}");
        };
        let help = if unit == "–" { says.to_owned() } else { format!("{says} [{unit}]") };
        let labels = labels.split('`').skip(1).step_by(2).collect();
        (name.trim_matches('`'), Row { kind, labels, place, help })
    };
    PAGE.lines().filter(|line| line.starts_with("| `checkpoint_")).map(row).collect()
}

/// The first place at which an exposition of a server that these places describe differs from the document; `None` when
/// it does not. Metrics whose labels only life tells are wanted when they are in `happened`.
pub(crate) fn difference(exposed: &str, places: &[&str], happened: &[&str]) -> Option<String> {
    let rows = rows();
    assert!(rows.len() > 40, "the table cannot be read");
    let mut seen = BTreeSet::new();
    for line in exposed.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ')?;
        let Some(row) = rows.get(name) else { return Some(format!("{name} has no row")) };
        seen.insert(name);
        if row.kind != kind {
            return Some(format!("{name} is a {kind}"));
        }
        if !places.contains(&row.place) {
            return Some(format!("{name} is told by {}", row.place));
        }
        if !exposed.contains(&format!("# HELP {name} {}\n", row.help)) {
            return Some(format!("the help of {name} is not: {}", row.help));
        }
    }
    for line in exposed.lines().filter(|line| line.starts_with("checkpoint_")) {
        let name = line.split(['{', ' ']).next()?;
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let row = rows.get(name).or_else(|| rows.get(base?));
        let Some(row) = row else { return Some(format!("{name} has no row")) };
        let labels: BTreeSet<&str> = labels(line).filter(|label| *label != "le").collect();
        if labels != row.labels {
            return Some(format!("{name} has the labels {labels:?}, not {:?}", row.labels));
        }
    }
    let open = |row: &Row| {
        row.labels.iter().any(|label| !["work", "sink", "outcome", "version"].contains(label))
    };
    let missing = rows.iter().find(|(name, row)| {
        places.contains(&row.place)
            && !seen.contains(*name)
            && (happened.contains(*name) || (row.kind != "histogram" && !open(row)))
    });
    missing.map(|(name, _)| format!("{name} is not told"))
}

/// Names of labels in a sample. Values hold no quote here.
fn labels(line: &str) -> impl Iterator<Item = &str> {
    let inner = line
        .split_once('{')
        .and_then(|(_, rest)| rest.rsplit_once('}'))
        .map_or("", |(inner, _)| inner);
    inner.split('"').step_by(2).filter_map(|piece| piece.trim_start_matches(',').strip_suffix('='))
}

#[test]
fn a_difference_is_seen() {
    let told = "# HELP checkpoint_connections Open connections\n# TYPE checkpoint_connections gauge\n\
                checkpoint_connections 1\n";
    assert_eq!(difference(told, &[], &[]).unwrap(), "checkpoint_connections is told by every");
    let all = |text: &str| difference(text, &["every"], &[]).unwrap();
    assert!(all(told).ends_with("is not told"), "{}", all(told));
    assert_eq!(all(&told.replace("gauge", "counter")), "checkpoint_connections is a counter");
    assert!(all(&told.replace("Open", "Shut")).starts_with("the help of checkpoint_connections"));
    let labelled = told.replace("connections 1", "connections{a=\"1\"} 1");
    assert!(
        all(&labelled).starts_with("checkpoint_connections has the labels"),
        "{}",
        all(&labelled)
    );
    let other = "# TYPE checkpoint_nothing gauge\n";
    assert_eq!(all(other), "checkpoint_nothing has no row");
}
