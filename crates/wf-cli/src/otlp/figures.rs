//! The metrics registry in OTLP: the same figures, under the same names, that `/metrics` shows.
//!
//! Made from the text of `/metrics`, once a minute: so both can never differ, and a call pays nothing for the second
//! reader. There is one registry, of the `metrics` facade, and its only views are that text and Prometheus' own protobuf.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use metrics_exporter_prometheus::PrometheusHandle;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use prost::Message as _;
use tokio::sync::watch;
use tokio::time::timeout;

use super::send::{Sender, Signal};

/// How often figures are sent.
const EVERY: Duration = Duration::from_secs(60);

/// Sends figures until `end`, and then once more.
pub(super) async fn tell(
    registry: PrometheusHandle,
    sender: Arc<Sender>,
    resource: ResourceAttributesWithSchema,
    mut end: watch::Receiver<bool>,
) {
    let begun = nanoseconds(SystemTime::now());
    let mut ended = false;
    while !ended {
        ended = timeout(EVERY, end.wait_for(|ended| *ended)).await.is_ok();
        let times = Times { begun, now: nanoseconds(SystemTime::now()) };
        let metrics = read(&registry.render(), times);
        let count = u64::try_from(metrics.len()).unwrap_or(u64::MAX);
        let message = message(metrics, &resource).encode_to_vec();
        sender.send(Signal::Metrics, message.into(), count, &mut end).await;
    }
}

fn message(
    metrics: Vec<Metric>,
    resource: &ResourceAttributesWithSchema,
) -> ExportMetricsServiceRequest {
    let scope = InstrumentationScope {
        name: super::SERVICE.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let scope_metrics = ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() };
    let resource = Resource { attributes: resource.attributes.0.clone(), ..Resource::default() };
    let resource_metrics = ResourceMetrics {
        resource: Some(resource),
        scope_metrics: vec![scope_metrics],
        ..ResourceMetrics::default()
    };
    ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Since when counters count, and when they were read.
#[derive(Debug, Clone, Copy)]
struct Times {
    begun: u64,
    now: u64,
}

/// Labels of a line, but for `le`.
type Labels = Vec<(String, String)>;

/// The lines of one metric.
#[derive(Debug, Default)]
struct Family {
    help: String,
    kind: String,
    /// Of a counter or gauge.
    numbers: Vec<(Labels, f64)>,
    /// Of a histogram, by labels.
    histograms: BTreeMap<Labels, Buckets>,
}

#[derive(Debug, Default)]
struct Buckets {
    /// Upper bound and how many are at or below it; the last bound is infinite.
    cumulative: Vec<(f64, u64)>,
    sum: f64,
    count: u64,
}

/// Reads what the registry rendered. A line that is none is left out: the registry writes all of them.
fn read(text: &str, times: Times) -> Vec<Metric> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or((rest, ""));
            families.entry(name.to_owned()).or_default().help = help.replace("\\n", " ");
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            current = name.to_owned();
            families.entry(current.clone()).or_default().kind = kind.to_owned();
        } else if let (Some((name, labels, value)), Some(family)) =
            (sample(line), families.get_mut(&current))
        {
            family.add(name.strip_prefix(current.as_str()).unwrap_or(name), labels, value);
        }
    }
    families.into_iter().filter_map(|(name, family)| family.metric(name, times)).collect()
}

impl Family {
    fn add(&mut self, suffix: &str, mut labels: Labels, value: f64) {
        if self.kind != "histogram" {
            self.numbers.push((labels, value));
            return;
        }
        let bound = labels.iter().position(|(name, _)| name == "le").map(|at| labels.remove(at).1);
        let buckets = self.histograms.entry(labels).or_default();
        match (suffix, bound.as_deref()) {
            ("_bucket", Some("+Inf")) => buckets.cumulative.push((f64::INFINITY, whole(value))),
            ("_bucket", Some(bound)) => {
                buckets.cumulative.extend(bound.parse().ok().map(|bound| (bound, whole(value))));
            }
            ("_sum", _) => buckets.sum = value,
            ("_count", _) => buckets.count = whole(value),
            _ => {}
        }
    }

    fn metric(self, name: String, times: Times) -> Option<Metric> {
        let number = |(labels, value): (Labels, f64)| NumberDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: times.begun,
            time_unix_nano: times.now,
            value: Some(number_data_point::Value::AsDouble(value)),
            ..NumberDataPoint::default()
        };
        let cumulative = i32::from(AggregationTemporality::Cumulative);
        let data = match self.kind.as_str() {
            "counter" => metric::Data::Sum(Sum {
                data_points: self.numbers.into_iter().map(number).collect(),
                aggregation_temporality: cumulative,
                is_monotonic: true,
            }),
            "gauge" => metric::Data::Gauge(Gauge {
                data_points: self.numbers.into_iter().map(number).collect(),
            }),
            "histogram" => metric::Data::Histogram(Histogram {
                data_points: self
                    .histograms
                    .into_iter()
                    .map(|(labels, buckets)| buckets.point(labels, times))
                    .collect(),
                aggregation_temporality: cumulative,
            }),
            // Described, and never recorded.
            _ => return None,
        };
        Some(Metric { name, description: self.help, data: Some(data), ..Metric::default() })
    }
}

impl Buckets {
    /// Prometheus counts what is at or below a bound, OTLP what is between two.
    fn point(self, labels: Labels, times: Times) -> HistogramDataPoint {
        let mut below = 0;
        let mut bucket_counts = Vec::with_capacity(self.cumulative.len());
        for (_, count) in &self.cumulative {
            bucket_counts.push(count.saturating_sub(below));
            below = *count;
        }
        let bounds = self.cumulative.iter().map(|(bound, _)| *bound);
        HistogramDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: times.begun,
            time_unix_nano: times.now,
            count: self.count,
            sum: Some(self.sum),
            bucket_counts,
            explicit_bounds: bounds.filter(|bound| bound.is_finite()).collect(),
            ..HistogramDataPoint::default()
        }
    }
}

/// A count, which the registry writes without a fraction.
fn whole(value: f64) -> u64 {
    format!("{value:.0}").parse().unwrap_or(0)
}

fn attributes(labels: Labels) -> Vec<KeyValue> {
    labels
        .into_iter()
        .map(|(key, value)| KeyValue {
            key,
            value: Some(AnyValue { value: Some(any_value::Value::StringValue(value)) }),
            ..KeyValue::default()
        })
        .collect()
}

/// `name{label="value",…} number` (Prometheus text format 0.0.4).
fn sample(line: &str) -> Option<(&str, Labels, f64)> {
    let (name, mut rest) = line.split_at(line.find(['{', ' '])?);
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, value) = rest.split_once("=\"")?;
            let (value, after) = quoted(value)?;
            labels.push((label.trim_start_matches(',').to_owned(), value));
            rest = after;
        }
        rest = rest.strip_prefix('}')?;
    }
    Some((name, labels, rest.trim().parse().ok()?))
}

/// What stands before the closing quote, without its escapes, and what follows that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};

    use super::*;

    const TIMES: Times = Times { begun: 1, now: 2 };

    /// What the registry of this build says, as the collector gets it.
    fn told(record: impl FnOnce()) -> BTreeMap<String, metric::Data> {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &[0.1, 1.0])
            .unwrap()
            .build_recorder();
        metrics::with_local_recorder(&recorder, record);
        let read = read(&recorder.handle().render(), TIMES);
        read.into_iter().filter_map(|metric| Some((metric.name, metric.data?))).collect()
    }

    fn labels(attributes: &[KeyValue]) -> Vec<String> {
        attributes.iter().map(|a| format!("{}={:?}", a.key, a.value)).collect()
    }

    #[test]
    fn counters_and_gauges_keep_name_labels_and_value() {
        let told = told(|| {
            metrics::describe_counter!("calls_total", "Calls");
            metrics::describe_counter!("never_total", "Never counted");
            metrics::counter!("calls_total", "tool" => "a", "tenant" => "odd \"\\ {x=\"1\"} ,\nname")
                .increment(7);
            metrics::gauge!("depth").set(-1.5);
        });
        assert_eq!(told.len(), 2, "{told:?}");
        let metric::Data::Sum(sum) = &told["calls_total"] else { panic!("{told:?}") };
        assert!(sum.is_monotonic);
        let point = &sum.data_points[0];
        assert_eq!(point.value, Some(number_data_point::Value::AsDouble(7.0)));
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1, 2));
        let odd = attributes(vec![
            ("tool".to_owned(), "a".to_owned()),
            ("tenant".to_owned(), "odd \"\\ {x=\"1\"} ,\nname".to_owned()),
        ]);
        let (mut found, mut expected) = (labels(&point.attributes), labels(&odd));
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        let metric::Data::Gauge(gauge) = &told["depth"] else { panic!("{told:?}") };
        assert_eq!(gauge.data_points[0].value, Some(number_data_point::Value::AsDouble(-1.5)));
    }

    #[test]
    fn histograms_are_counted_between_bounds() {
        let told = told(|| {
            let seconds = metrics::histogram!("tool_seconds", "tool" => "a");
            for value in [0.05, 0.5, 0.6, 30.0] {
                seconds.record(value);
            }
        });
        let metric::Data::Histogram(histogram) = &told["tool_seconds"] else { panic!("{told:?}") };
        let point = &histogram.data_points[0];
        assert_eq!(point.explicit_bounds, [0.1, 1.0]);
        assert_eq!(point.bucket_counts, [1, 2, 1]);
        assert_eq!((point.count, point.sum.map(f64::round)), (4, Some(31.0)));
        assert_eq!(labels(&point.attributes).len(), 1, "`le` is no label");
    }
}
