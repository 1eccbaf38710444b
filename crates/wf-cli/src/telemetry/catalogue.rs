//! Every metric of a server: its name, kind, unit, labels, where it is told, and what it says.
//!
//! The registry gets it at the start, so that `/metrics` explains itself and counters begin at 0: what begins at 1 has no
//! increase that an alert could see. docs/observability.md has the same table, and what to do; the test below compares
//! them, `cargo xtask tidy` (metrics-table) compares the table with the sources of all crates.

use metrics::{Label, Unit};

use crate::config::Config;
use crate::config::backend::BackendConfig;

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

const fn counter(
    name: &'static str,
    labels: &'static [Named],
    place: Place,
    says: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Counter, unit: Unit::Count, labels, place, says }
}

const fn gauge(name: &'static str, unit: Unit, place: Place, says: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, unit, labels: &[], place, says }
}

const fn histogram(
    name: &'static str,
    unit: Unit,
    labels: &'static [Named],
    place: Place,
    says: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Histogram, unit, labels, place, says }
}

/// Values of `sink`.
const SINKS: &[&str] = &["log", "webhook"];

/// All of them, in the order of the document.
pub(crate) const METRICS: &[Metric] = &[
    Metric {
        labels: &[("version", &[env!("CARGO_PKG_VERSION")])],
        ..gauge("checkpoint_build_info", Unit::Count, Place::Every, "1, with the version that runs")
    },
    gauge(
        "checkpoint_store_ready",
        Unit::Count,
        Place::Every,
        "1 when the store answered and takes commits, 0 when not; looked at every 15 seconds",
    ),
    gauge(
        "checkpoint_memory_bytes",
        Unit::Bytes,
        Place::Every,
        "Resident memory of the process, on Linux",
    ),
    counter(
        "checkpoint_http_requests_total",
        &[("route", &[]), ("status", &[])],
        Place::Every,
        "HTTP requests; status is none where the client left before its answer",
    ),
    counter(
        "checkpoint_credentials_refused_total",
        &[("check", &[])],
        Place::Every,
        "Credentials that were refused with 401, by the first check that they did not pass",
    ),
    counter(
        "checkpoint_tool_calls_total",
        &[("tenant", &[]), ("tool", &[]), ("outcome", &[]), ("code", &[]), ("duplicate", &[])],
        Place::Every,
        "Tool calls; code is the error code or empty, duplicate is true for a replay, tenants after the first 256 are (others)",
    ),
    histogram(
        "checkpoint_tool_seconds",
        Unit::Seconds,
        &[("tool", &[])],
        Place::Every,
        "Time of a tool call",
    ),
    gauge("checkpoint_requests_in_flight", Unit::Count, Place::Every, "MCP requests at work now"),
    gauge("checkpoint_connections", Unit::Count, Place::Every, "Open connections"),
    gauge(
        "checkpoint_subscriptions",
        Unit::Count,
        Place::Every,
        "Clients that listen for changes now",
    ),
    gauge(
        "checkpoint_workflows_blocked",
        Unit::Count,
        Place::Every,
        "Blocked workflows, counted up to 100 every minute",
    ),
    gauge(
        "checkpoint_workflows_oldest_blocked_seconds",
        Unit::Seconds,
        Place::Every,
        "How long the longest blocked of those has been blocked; 0 when none is",
    ),
    counter(
        "checkpoint_deadlines_fired_total",
        &[],
        Place::Every,
        "Deadlines that passed and were acted on",
    ),
    counter(
        "checkpoint_deadlines_kept_total",
        &[],
        Place::Every,
        "Firings of deadlines that failed and are tried again",
    ),
    counter(
        "checkpoint_deadline_failures_total",
        &[],
        Place::Every,
        "Looks for deadlines that the store refused",
    ),
    histogram(
        "checkpoint_deadline_lateness_seconds",
        Unit::Seconds,
        &[],
        Place::Every,
        "From a deadline to its firing, the latest of those that were fired together",
    ),
    counter(
        "checkpoint_notifications_delivered_total",
        &[("sink", SINKS)],
        Place::Every,
        "Messages delivered",
    ),
    counter(
        "checkpoint_notification_failures_total",
        &[("sink", SINKS)],
        Place::Every,
        "Deliveries that failed and are tried again, or were given up",
    ),
    counter(
        "checkpoint_notifications_given_up_total",
        &[],
        Place::Every,
        "Messages that were given up",
    ),
    counter(
        "checkpoint_notifications_damaged_total",
        &[],
        Place::Every,
        "Messages, or streams of them, that cannot be read and were put aside",
    ),
    gauge(
        "checkpoint_notifications_pending",
        Unit::Count,
        Place::Every,
        "Messages to be delivered, counted up to 10,000 every 15 seconds",
    ),
    gauge(
        "checkpoint_notifications_dead",
        Unit::Count,
        Place::Every,
        "Messages that were given up and are kept, counted up to 10,000 every 15 seconds",
    ),
    gauge(
        "checkpoint_notifications_oldest_pending_seconds",
        Unit::Seconds,
        Place::Every,
        "Age of the oldest message to be delivered; 0 when none is",
    ),
    counter(
        "checkpoint_dispatch_failures_total",
        &[],
        Place::Every,
        "Delivery rounds that the store refused",
    ),
    counter(
        "checkpoint_background_panics_total",
        &[("work", &["dispatcher", "clock", "reconciler", "backlog", "standing", "sweep"])],
        Place::Every,
        "Background work that a bug ended and that was begun again",
    ),
    counter(
        "checkpoint_reloads_total",
        &[("what", &[]), ("outcome", &[])],
        Place::Every,
        "Files that were read again while the server ran, by whether they were replaced or refused",
    ),
    Metric {
        labels: &[("what", &[]), ("file", &[])],
        ..gauge(
            "checkpoint_reload_refused",
            Unit::Count,
            Place::Every,
            "1 while what is on disk was refused and the old content is in use",
        )
    },
    histogram(
        "checkpoint_commit_batch_size",
        Unit::Count,
        &[],
        Place::File,
        "Writes that shared one commit to disk",
    ),
    histogram(
        "checkpoint_commit_seconds",
        Unit::Seconds,
        &[],
        Place::File,
        "Time of one commit to disk",
    ),
    counter(
        "checkpoint_commit_failures",
        &[("outcome", &["not_applied", "unknown", "corrupt"])],
        Place::File,
        "Commits to disk that did not succeed, by what is known of them",
    ),
    counter("checkpoint_writer_panics", &[], Place::File, "Bugs met by the writer"),
    gauge(
        "checkpoint_commit_queue_depth",
        Unit::Count,
        Place::File,
        "Writes that wait for the writer, of 1024 at most",
    ),
    gauge("checkpoint_wal_bytes", Unit::Bytes, Place::File, "Size of the write-ahead log"),
    gauge("checkpoint_database_bytes", Unit::Bytes, Place::File, "Size of the database file"),
    gauge(
        "checkpoint_disk_free_bytes",
        Unit::Bytes,
        Place::File,
        "Room left on the disk of the database, for this user",
    ),
    gauge("checkpoint_disk_bytes", Unit::Bytes, Place::File, "Size of the disk of the database"),
    counter(
        "checkpoint_dynamodb_requests_total",
        &[("operation", &[])],
        Place::Table,
        "Requests to DynamoDB, repeats included",
    ),
    gauge(
        "checkpoint_dynamodb_read_units",
        Unit::Count,
        Place::Table,
        "Read capacity units that this process consumed since its start",
    ),
    gauge(
        "checkpoint_dynamodb_write_units",
        Unit::Count,
        Place::Table,
        "Write capacity units that this process consumed since its start",
    ),
    Metric {
        labels: &[("shard", &[])],
        ..gauge(
            "checkpoint_reconciler_lag_seconds",
            Unit::Seconds,
            Place::Machine,
            "How long the oldest row of a shard has waited, as the holder of its lease saw it last",
        )
    },
    Metric {
        labels: &[("shard", &[])],
        ..gauge(
            "checkpoint_reconciler_shards_held",
            Unit::Count,
            Place::Machine,
            "1 where this process has the lease of the shard",
        )
    },
    counter(
        "checkpoint_reconciler_actions_total",
        &[("rule", &[]), ("action", &[]), ("outcome", &[])],
        Place::Machine,
        "Steps of the reconciler, by rule (R1 to R8)",
    ),
    counter(
        "checkpoint_reconciler_evictions_total",
        &[],
        Place::Machine,
        "Executions that were stopped by R7",
    ),
    counter(
        "checkpoint_reconciler_calls_total",
        &[("operation", &[]), ("outcome", &["ok", "error"])],
        Place::Machine,
        "Calls to Step Functions",
    ),
    gauge(
        "checkpoint_certificate_expiry_timestamp_seconds",
        Unit::Seconds,
        Place::Tls,
        "When the certificate that is served ends, as Unix time",
    ),
    counter(
        "checkpoint_otlp_failures_total",
        &[("signal", &["traces", "metrics"])],
        Place::Collector,
        "Messages that the collector did not take, each attempt",
    ),
    counter(
        "checkpoint_otlp_dropped_total",
        &[("signal", &[]), ("why", &[])],
        Place::Collector,
        "Spans, or figures, that nobody will see",
    ),
];

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
