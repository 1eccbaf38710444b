//! The metrics themselves, in the order of docs/observability.md.

use metrics::Unit;

use super::{Kind, Metric, Named, Place};

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
