//! What `/metrics` of a server says, as numbers: the text format of Prometheus, as far as this product writes it.
//!
//! Samples of several servers are added up, but for those that all servers tell alike.

use std::collections::BTreeMap;

/// Most samples that are kept of one server.
const SAMPLES_MAX: usize = 20_000;

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// The samples of one look at one server, or of several together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures(Vec<Sample>);

impl Figures {
    /// Reads an exposition; lines that are none are passed over.
    pub(super) fn read(text: &str) -> Self {
        let ours = text.lines().filter(|line| line.starts_with("checkpoint_"));
        Self(ours.filter_map(sample).take(SAMPLES_MAX).collect())
    }

    /// Of all servers.
    pub(super) fn of<'a>(servers: impl Iterator<Item = &'a Self>) -> Self {
        Self(servers.flat_map(|figures| figures.0.iter().cloned()).collect())
    }

    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.0.iter().filter(move |sample| sample.name == name)
    }

    /// The sum of all samples of this name; nothing when there is none.
    pub(super) fn sum(&self, name: &str) -> Option<f64> {
        self.named(name).map(|sample| sample.value).reduce(|a, b| a + b)
    }

    /// The largest sample of this name.
    pub(super) fn largest(&self, name: &str) -> Option<f64> {
        self.named(name).map(|sample| sample.value).reduce(f64::max)
    }

    /// The smallest.
    pub(super) fn smallest(&self, name: &str) -> Option<f64> {
        self.named(name).map(|sample| sample.value).reduce(f64::min)
    }

    /// Sums of the samples of this name whose labels are as wanted, by the value of a label.
    pub(super) fn by(
        &self,
        name: &str,
        label: &str,
        wanted: impl Fn(&str, &str) -> bool,
    ) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for sample in self.named(name) {
            if sample.labels.iter().all(|(label, value)| wanted(label, value)) {
                let value = sample.labels.get(label).cloned().unwrap_or_default();
                *sums.entry(value).or_insert(0.0) += sample.value;
            }
        }
        sums
    }

    /// The value of a label of the first sample of this name.
    pub(super) fn label(&self, name: &str, label: &str) -> Option<&str> {
        self.0.iter().find(|sample| sample.name == name)?.labels.get(label).map(String::as_str)
    }

    /// The mean of a histogram: its sum over its count.
    pub(super) fn mean(&self, histogram: &str) -> Option<f64> {
        let count = self.sum(&format!("{histogram}_count"))?;
        let sum = self.sum(&format!("{histogram}_sum"))?;
        (count > 0.0).then(|| sum / count)
    }

    /// Names and sums, for programs.
    pub(super) fn sums(&self) -> BTreeMap<&str, f64> {
        let mut sums = BTreeMap::new();
        for sample in self.0.iter().filter(|sample| !sample.labels.contains_key("le")) {
            *sums.entry(sample.name.as_str()).or_insert(0.0) += sample.value;
        }
        sums
    }
}

/// `name{label="value",…} 1.5`; in values `\"`, `\\` and `\n` are escaped.
fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Sample { name: name.to_owned(), labels, value })
}

fn labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut found = BTreeMap::new();
    loop {
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((found, behind));
        }
        let (name, behind) = rest.trim_start_matches(',').split_once("=\"")?;
        let mut value = String::new();
        let mut characters = behind.char_indices();
        rest = loop {
            match characters.next()? {
                (at, '"') => break behind.get(at + 1..)?,
                (_, '\\') => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        found.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_labels_with_any_character_and_add_up() {
        let text = "# HELP checkpoint_a x\ncheckpoint_a{t=\"}, \\\"b\\\\\",c=\"\"} 1\ncheckpoint_a{t=\"d\",c=\"e\"} 2.5\nother 7\n\
                    checkpoint_b 1e3 1700000000\ncheckpoint_broken{t=\"\n";
        let figures = Figures::read(text);
        assert_eq!(figures.sum("checkpoint_a"), Some(3.5));
        assert_eq!(figures.sum("checkpoint_b"), Some(1000.0));
        assert_eq!(figures.sum("other"), None);
        assert_eq!(figures.label("checkpoint_a", "t"), Some("}, \"b\\"));
        let coded =
            figures.by("checkpoint_a", "t", |label, value| label != "c" || !value.is_empty());
        assert_eq!(coded, [("d".to_owned(), 2.5)].into());
        let twice = Figures::of([&figures, &figures].into_iter());
        assert_eq!(twice.sum("checkpoint_a"), Some(7.0));
        assert_eq!(twice.largest("checkpoint_a"), Some(2.5));
    }
}
