//! Every metric of a server: its name, kind, unit, labels, where it is told, and what it says.
//!
//! The registry gets it at the start, so that `/metrics` explains itself and counters begin at 0: what begins at 1 has no
//! increase that an alert could see. docs/observability.md has the same table, and what to do; the test below compares
//! them, `cargo xtask tidy` (metrics-table) compares the table with the sources of all crates.

mod list;

use metrics::{Label, Unit};

use crate::config::Config;
use crate::config::backend::BackendConfig;
pub(crate) use list::METRICS;

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Which servers tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// All.
    Every,
    /// Those whose store is a file.
    File,
    /// Those whose store is a DynamoDB table.
    Table,
    /// Those that reconcile the executions of a state machine.
    Machine,
    /// Those that have a certificate.
    Tls,
    /// Those that send spans and figures to a collector.
    Collector,
}

/// A label, and its values where they are few and known.
type Named = (&'static str, &'static [&'static str]);

/// One metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) unit: Unit,
    pub(crate) labels: &'static [Named],
    pub(crate) place: Place,
    pub(crate) says: &'static str,
}

impl Metric {
    /// What `/metrics` says of it: the meaning, and the unit where it is none of things.
    fn help(&self) -> String {
        if self.unit == Unit::Count {
            return self.says.to_owned();
        }
        format!("{} [{}]", self.says, self.unit.as_str())
    }

    fn describe(&self) {
        let (name, unit, help) = (self.name, self.unit, self.help());
        match self.kind {
            Kind::Counter => metrics::describe_counter!(name, unit, help),
            Kind::Gauge => metrics::describe_gauge!(name, unit, help),
            Kind::Histogram => metrics::describe_histogram!(name, unit, help),
        }
    }

    /// The series that are known before anything happens: none where a label has values that only life tells, or there
    /// are several labels.
    fn known_series(&self) -> Vec<Vec<Label>> {
        match self.labels {
            [] => vec![Vec::new()],
            [(label, values)] => {
                values.iter().map(|value| vec![Label::from_static_parts(label, value)]).collect()
            }
            _ => Vec::new(),
        }
    }

    fn begin(&self) {
        for labels in self.known_series() {
            match self.kind {
                Kind::Counter => metrics::counter!(self.name, labels).increment(0),
                // By nothing, so that what was set already stays.
                Kind::Gauge => metrics::gauge!(self.name, labels).increment(0.0),
                Kind::Histogram => {}
            }
        }
    }
}

/// Tells the registry of every metric.
pub(crate) fn describe() {
    METRICS.iter().for_each(Metric::describe);
}

/// Lets those begin that a server with this configuration tells.
pub(crate) fn begin(config: &Config) {
    let machine = crate::compose::machine(config).is_some_and(|machine| machine.reconciler);
    let told = |place| match (place, &config.backend) {
        (Place::Every, _) | (Place::File, BackendConfig::Local { .. }) => true,
        (Place::Table, BackendConfig::Aws(_)) => true,
        (Place::Machine, _) => machine,
        (Place::Tls, _) => config.server.tls.is_some(),
        (Place::Collector, _) => config.otlp_endpoint.is_some(),
        (Place::File, BackendConfig::Aws(_)) | (Place::Table, BackendConfig::Local { .. }) => false,
    };
    METRICS.iter().filter(|metric| told(metric.place)).for_each(Metric::begin);
    metrics::gauge!("checkpoint_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const PAGE: &str = include_str!("../../../../docs/observability.md");

    /// A row as docs/observability.md has it, up to what to do.
    fn row(metric: &Metric) -> String {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let labels: Vec<String> =
            metric.labels.iter().map(|(label, _)| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
        let unit = if metric.unit == Unit::Count { "–" } else { metric.unit.as_str() };
        let place = match metric.place {
            Place::Every => "every",
            Place::File => "file",
            Place::Table => "table",
            Place::Machine => "state machine",
            Place::Tls => "TLS",
            Place::Collector => "OTLP",
        };
        let (name, says) = (metric.name, metric.says);
        format!("| `{name}` | {kind} | {labels} | {unit} | {place} | {says} |")
    }

    #[test]
    fn the_table_of_the_document_is_the_catalogue() {
        let rows: Vec<&str> =
            PAGE.lines().filter(|line| line.starts_with("| `checkpoint_")).collect();
        for metric in METRICS {
            let wanted = row(metric);
            let found: Vec<_> = rows.iter().filter(|row| row.starts_with(&wanted)).collect();
            assert_eq!(found.len(), 1, "docs/observability.md wants this row once: {wanted} … |");
            let act = found[0][wanted.len()..].trim_matches(['|', ' ']);
            assert!(!act.is_empty(), "{} does not say what to do", metric.name);
        }
        assert_eq!(rows.len(), METRICS.len(), "a row of a metric that does not exist");
        let names: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len(), "a metric is twice in the catalogue");
    }

    #[test]
    fn help_names_the_unit() {
        let help = |name| METRICS.iter().find(|metric| metric.name == name).unwrap().help();
        assert_eq!(help("checkpoint_wal_bytes"), "Size of the write-ahead log [bytes]");
        assert_eq!(help("checkpoint_connections"), "Open connections");
    }
}
