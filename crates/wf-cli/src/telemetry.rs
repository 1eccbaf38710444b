//! Logs on stderr and the metrics registry. Values of readings, tokens and secrets are never handed to either.
//!
//! `catalogue` has the metrics.

pub(crate) mod catalogue;

use std::fmt::{self, Write};
use std::io::IsTerminal as _;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::LogFormat;
use crate::exit::Failure;
use crate::otlp::Otlp;
use crate::output;

/// Libraries whose every-request chatter is below our own.
const QUIET: &str = "rmcp=warn,hyper=warn";

/// Starts logging for this process, and collecting its spans where there is a collector.
///
/// # Errors
/// When the directives are none; the configuration checked them, so only a flag of a caller can cause it.
pub(crate) fn start(
    directives: &str,
    format: LogFormat,
    collector: Option<&Otlp>,
) -> Result<(), Failure> {
    // Later directives win, so a configured `rmcp=debug` is heard.
    let filter = EnvFilter::builder()
        .parse(format!("{QUIET},{directives}"))
        .map_err(|error| Failure::usage("telemetry.log cannot be read").because(error))?;
    let cannot = "logging cannot start";
    if let Some(collector) = collector {
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .log_internal_errors(false)
            .with_ansi(output::colours(std::io::stderr().is_terminal()));
        let lines = match format {
            LogFormat::Text => lines.fmt_fields(debug_fn(field).delimited(" ")).boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        return tracing_subscriber::registry()
            .with(collector.layer())
            .with(lines.with_filter(filter))
            .try_init()
            .map_err(|error| Failure::failed(cannot).because(error));
    }
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
    .map_err(|error| Failure::failed(cannot).because(error))
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
    catalogue::describe();
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
