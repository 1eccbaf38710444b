//! Logs on stderr and the metrics registry. Values of readings, tokens and secrets are never handed to either.

use std::fmt::{self, Write};
use std::io::IsTerminal as _;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use crate::config::LogFormat;
use crate::exit::Failure;
use crate::output;

/// Libraries whose every-request chatter is below our own.
const QUIET: &str = "rmcp=warn,hyper=warn";

/// Starts logging for this process.
///
/// # Errors
/// When the directives are none; the configuration checked them, so only a flag of a caller can cause it.
pub(crate) fn start(directives: &str, format: LogFormat) -> Result<(), Failure> {
    // Later directives win, so a configured `rmcp=debug` is heard.
    let filter = EnvFilter::builder()
        .parse(format!("{QUIET},{directives}"))
        .map_err(|error| Failure::usage("telemetry.log cannot be read").because(error))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // It would say on stderr that stderr cannot be written, and panic over it: where the log is a file on the disk
        // that is full, whoever has something to say about that would die of saying it.
        .log_internal_errors(false)
        .with_ansi(output::colours(std::io::stderr().is_terminal()));
    match format {
        LogFormat::Text => lines.fmt_fields(debug_fn(field).delimited(" ")).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    }
    .map_err(|error| Failure::failed("logging cannot start").because(error))
}

/// Writes one field of a line of text. Libraries show what clients sent as it is, and a line must stay one line that says
/// what it says on every terminal: control characters are escaped. JSON does that by itself.
fn field(
    writer: &mut Writer<'_>,
    field: &tracing::field::Field,
    value: &dyn fmt::Debug,
) -> fmt::Result {
    if field.name() != "message" {
        write!(writer, "{}=", field.name())?;
    }
    write!(Escaping(writer), "{value:?}")
}

/// Escapes what would act on a terminal or end a line.
struct Escaping<'a, W>(&'a mut W);

impl<W: Write> Write for Escaping<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // U+2028 and U+2029 end lines too; U+202A to U+202E and U+2066 to U+2069 turn text around.
        let acts = |c: char| {
            c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        let mut rest = text;
        while let Some(at) = rest.find(acts) {
            let (plain, from) = rest.split_at(at);
            self.0.write_str(plain)?;
            let mut characters = from.chars();
            if let Some(character) = characters.next() {
                write!(self.0, "{}", character.escape_default())?;
            }
            rest = characters.as_str();
        }
        self.0.write_str(rest)
    }
}

/// Upper bounds of latency buckets, in seconds: around the 500 ms that an assistant waits.
const SECONDS: [f64; 14] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Upper bounds of batch buckets, in commits.
const COMMITS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// Every metric of the process, with what it says. docs/operating.md has the same list.
fn describe() {
    metrics::describe_counter!(
        "checkpoint_http_requests_total",
        "HTTP requests, by route and status"
    );
    metrics::describe_counter!(
        "checkpoint_tool_calls_total",
        "Tool calls, by tenant, tool, outcome, error code and whether it was a replay"
    );
    metrics::describe_histogram!("checkpoint_tool_seconds", "Time of a tool call, in seconds");
    metrics::describe_gauge!("checkpoint_requests_in_flight", "MCP requests at work now");
    metrics::describe_gauge!("checkpoint_connections", "Open connections");
    metrics::describe_histogram!(
        "checkpoint_commit_batch_size",
        "Writes that shared one commit to disk"
    );
    metrics::describe_histogram!(
        "checkpoint_commit_seconds",
        "Time of one commit to disk, in seconds"
    );
    metrics::describe_counter!(
        "checkpoint_commit_failures",
        "Commits to disk that did not succeed, by what is known of them"
    );
    metrics::describe_counter!("checkpoint_writer_panics", "Bugs met by the writer");
    metrics::describe_gauge!("checkpoint_commit_queue_depth", "Writes that wait for the writer");
    metrics::describe_gauge!("checkpoint_wal_bytes", "Size of the write-ahead log, in bytes");
    metrics::describe_counter!(
        "checkpoint_dynamodb_requests_total",
        "Requests to DynamoDB, repeats included, by operation"
    );
    metrics::describe_gauge!(
        "checkpoint_dynamodb_read_units",
        "Read capacity units that this process consumed"
    );
    metrics::describe_gauge!(
        "checkpoint_dynamodb_write_units",
        "Write capacity units that this process consumed"
    );
    metrics::describe_counter!(
        "checkpoint_background_panics_total",
        "Background work that a bug ended and that was begun again, by work"
    );
    metrics::describe_counter!("checkpoint_deadlines_fired_total", "Deadlines that passed");
    metrics::describe_counter!(
        "checkpoint_deadlines_kept_total",
        "Firings of deadlines that failed and are tried again"
    );
    metrics::describe_counter!(
        "checkpoint_deadline_failures_total",
        "Looks for deadlines that the store refused"
    );
    metrics::describe_histogram!(
        "checkpoint_deadline_lateness_seconds",
        "Time from a deadline to its firing, the latest of each round, in seconds"
    );
    describe_messages();
}

fn describe_messages() {
    metrics::describe_counter!(
        "checkpoint_notifications_delivered_total",
        "Messages delivered, by sink"
    );
    metrics::describe_counter!(
        "checkpoint_notification_failures_total",
        "Deliveries that failed and are tried again, or were given up, by sink"
    );
    metrics::describe_counter!(
        "checkpoint_notifications_given_up_total",
        "Messages that were given up"
    );
    metrics::describe_counter!(
        "checkpoint_notifications_damaged_total",
        "Messages, or streams of them, that cannot be read and were put aside"
    );
    metrics::describe_gauge!(
        "checkpoint_notifications_pending",
        "Messages to be delivered, counted up to 10,000 every 15 seconds"
    );
    metrics::describe_gauge!(
        "checkpoint_notifications_dead",
        "Messages that were given up and are kept, counted up to 10,000 every 15 seconds"
    );
    metrics::describe_gauge!(
        "checkpoint_notifications_oldest_pending_seconds",
        "Age of the oldest message to be delivered, in seconds; 0 when none is"
    );
    metrics::describe_counter!(
        "checkpoint_dispatch_failures_total",
        "Delivery rounds that the store refused"
    );
}

/// Installs the registry that `metrics::counter!` and its kin write to, and returns what renders it.
///
/// # Errors
/// When the process has a registry already.
pub(crate) fn metrics() -> Result<PrometheusHandle, Failure> {
    let cannot = "metrics cannot start";
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
        .and_then(|builder| {
            builder.set_buckets_for_metric(Matcher::Suffix("_batch_size".to_owned()), &COMMITS)
        })
        .map_err(|error| Failure::failed(cannot).because(error))?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder)
        .map_err(|error| Failure::failed(cannot).because(error.to_string()))?;
    describe();
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_act_on_a_terminal_is_shown_instead() {
        let mut line = String::new();
        Escaping(&mut line).write_str("a\u{1b}[31m\r\nb\u{9b}c\u{202e}d\té😀").unwrap();
        assert_eq!(line, "a\\u{1b}[31m\\r\\nb\\u{9b}c\\u{202e}d\\té😀");
    }
}
