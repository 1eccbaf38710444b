//! Values of configuration keys: what each kind accepts, and how it is written back.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wf_core::models::Locale;
use wf_mcp_http::RateLimit;

/// What a key accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any text that is not empty.
    Text,
    /// An IP address and a port.
    Address,
    /// A file or folder.
    Path,
    /// A whole number from `min` to `max`.
    Count {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A whole number and a unit: ms, s, m, h or d.
    Duration,
    /// Texts; separated by commas in the environment and in flags.
    List,
    /// An http or https URL.
    Url,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Switch,
    /// An IANA time zone.
    Zone,
    /// A language tag.
    Language,
    /// A log level or tracing directives.
    Filter,
    /// A whole number for each second, minute or hour.
    Rate,
}

/// What a layer holds before its kind is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Raw {
    /// Text of a file.
    Text(String),
    /// A whole number of a file.
    Integer(i64),
    /// A truth value of a file.
    Switch(bool),
    /// A list of texts of a file.
    List(Vec<String>),
    /// Text of the environment or of a flag, to be read as the key's kind.
    Loose(String),
    /// Something of a file that no key takes; its type.
    Other(&'static str),
}

/// A value that fits its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// Text.
    Text(String),
    /// A file or folder.
    Path(PathBuf),
    /// An address.
    Address(SocketAddr),
    /// A whole number.
    Count(u64),
    /// A length of time.
    Duration(Duration),
    /// Texts.
    List(Vec<String>),
    /// A truth value.
    Switch(bool),
}

impl Kind {
    /// Reads a value; a relative path is taken relative to `base`.
    ///
    /// # Errors
    /// What would be right, to be put after "must be".
    pub(crate) fn read(self, raw: &Raw, base: &Path) -> Result<Value, String> {
        let rule = || self.rule();
        match self {
            Self::Count { min, max } => {
                let number = match raw {
                    Raw::Integer(number) => u64::try_from(*number).ok(),
                    Raw::Loose(text) => text.trim().parse().ok(),
                    Raw::Text(_) | Raw::Switch(_) | Raw::List(_) | Raw::Other(_) => None,
                };
                number.filter(|n| (min..=max).contains(n)).map(Value::Count).ok_or_else(rule)
            }
            Self::Switch => match raw {
                Raw::Switch(on) => Ok(Value::Switch(*on)),
                Raw::Loose(text) => text.trim().parse().map(Value::Switch).map_err(|_| rule()),
                Raw::Text(_) | Raw::Integer(_) | Raw::List(_) | Raw::Other(_) => Err(rule()),
            },
            Self::List => match raw {
                Raw::List(items) => Ok(Value::List(items.clone())),
                Raw::Loose(text) => Ok(Value::List(
                    text.split(',')
                        .map(str::trim)
                        .filter(|item| !item.is_empty())
                        .map(str::to_owned)
                        .collect(),
                )),
                Raw::Text(_) | Raw::Integer(_) | Raw::Switch(_) | Raw::Other(_) => Err(rule()),
            },
            Self::Text
            | Self::Address
            | Self::Path
            | Self::Duration
            | Self::Url
            | Self::Choice(_)
            | Self::Zone
            | Self::Language
            | Self::Filter
            | Self::Rate => match raw {
                Raw::Text(text) | Raw::Loose(text) => {
                    self.read_text(text.trim(), base).ok_or_else(rule)
                }
                Raw::Integer(_) | Raw::Switch(_) | Raw::List(_) | Raw::Other(_) => Err(rule()),
            },
        }
    }

    fn read_text(self, text: &str, base: &Path) -> Option<Value> {
        if text.is_empty() {
            return None;
        }
        let good = |fits: bool| fits.then(|| Value::Text(text.to_owned()));
        match self {
            Self::Address => text.parse().ok().map(Value::Address),
            Self::Path => Some(Value::Path(base.join(text))),
            Self::Duration => duration(text).map(Value::Duration),
            Self::Url => good(is_url(text)),
            Self::Choice(words) => good(words.contains(&text)),
            Self::Zone => good(jiff::tz::TimeZone::get(text).is_ok()),
            Self::Language => good(Locale::parse(text).is_some()),
            Self::Filter => good(is_filter(text)),
            Self::Rate => good(text.parse::<RateLimit>().is_ok()),
            Self::Text => good(true),
            Self::Count { .. } | Self::Switch | Self::List => None,
        }
    }

    fn rule(self) -> String {
        match self {
            Self::Text => "text in quotes, not empty".to_owned(),
            Self::Address => {
                "an IP address and a port, such as \"127.0.0.1:8080\" or \"[::1]:8080\"".to_owned()
            }
            Self::Path => "a path in quotes".to_owned(),
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::Duration => {
                "a whole number and ms, s, m, h or d in quotes, such as \"30s\"".to_owned()
            }
            Self::List => "a list of texts, such as [\"a\", \"b\"]".to_owned(),
            Self::Url => "an http or https URL, such as \"https://wf.example.com\"".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Switch => "true or false".to_owned(),
            Self::Zone => "an IANA time zone, such as \"Europe/Berlin\"".to_owned(),
            Self::Language => "a language tag, such as \"en\" or \"de-CH\"".to_owned(),
            Self::Rate => "a whole number and /s, /m or /h, such as \"600/m\"".to_owned(),
            Self::Filter => {
                "error, warn, info, debug or trace, or directives such as \"info,wf_core=debug\""
                    .to_owned()
            }
        }
    }
}

/// Reads `30s`: a whole number above 0 and ms, s, m, h or d. At most ten years.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok().filter(|n| *n > 0)?;
    let unit_ms: u64 = UNITS.iter().find(|(name, _)| *name == unit.trim())?.1;
    let ms = number.checked_mul(unit_ms)?;
    (ms <= 3_653 * 86_400_000).then(|| Duration::from_millis(ms))
}

const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A word alone must be a level: `EnvFilter` takes any other for the name of a target, and a slip would end all logging.
fn is_filter(text: &str) -> bool {
    let levels =
        text.split(',').map(str::trim).filter(|directive| !directive.contains(['=', '['])).all(
            |word| {
                word.is_empty() || word.parse::<tracing_subscriber::filter::LevelFilter>().is_ok()
            },
        );
    levels && text.parse::<tracing_subscriber::EnvFilter>().is_ok()
}

fn is_url(text: &str) -> bool {
    text.parse::<http::Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
    })
}

/// A URL without what may be a secret in it: user information and query; the path too when `path` is false.
pub(crate) fn masked_url(text: &str, path: bool) -> String {
    const MASK: &str = "***";
    let Ok(uri) = text.parse::<http::Uri>() else {
        return MASK.to_owned();
    };
    let mut shown = format!("{}://", uri.scheme_str().unwrap_or("https"));
    let authority = uri.authority().map_or("", http::uri::Authority::as_str);
    match authority.rsplit_once('@') {
        Some((_, host)) => shown.push_str(&format!("{MASK}@{host}")),
        None => shown.push_str(authority),
    }
    if path || uri.path() == "/" {
        shown.push_str(uri.path().trim_end_matches('/'));
    } else {
        shown.push_str(&format!("/{MASK}"));
    }
    if uri.query().is_some() {
        shown.push_str(&format!("?{MASK}"));
    }
    shown
}

impl fmt::Display for Value {
    /// As in a TOML file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        match self {
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::Path(path) => f.write_str(&quoted(&path.to_string_lossy())),
            Self::Address(address) => write!(f, "\"{address}\""),
            Self::Count(number) => write!(f, "{number}"),
            Self::Duration(duration) => {
                let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                let (unit, unit_ms) = UNITS
                    .into_iter()
                    .find(|(_, unit_ms)| ms.is_multiple_of(*unit_ms))
                    .unwrap_or(("ms", 1));
                write!(f, "\"{}{unit}\"", ms / unit_ms)
            }
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Switch(on) => write!(f, "{on}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_back_in_their_largest_whole_unit() {
        for (text, shown) in [
            ("30s", "30s"),
            ("90s", "90s"),
            ("120s", "2m"),
            ("30d", "30d"),
            ("24h", "1d"),
            ("1500ms", "1500ms"),
        ] {
            let value = Value::Duration(duration(text).unwrap());
            assert_eq!(value.to_string(), format!("\"{shown}\""), "{text}");
        }
        for bad in ["", "30", "s", "0s", "-1s", "1.5s", "30 weeks", "99999d"] {
            assert_eq!(duration(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn secrets_in_urls_are_masked() {
        assert_eq!(
            masked_url("https://bot:hunter2@hooks.example.com/services/T0/XYZ?sig=abc", false),
            "https://***@hooks.example.com/***?***"
        );
        assert_eq!(
            masked_url("https://auth.example.com/realm", true),
            "https://auth.example.com/realm"
        );
    }

    #[test]
    fn each_kind_refuses_what_it_is_not() {
        let base = Path::new("/etc");
        let zone = Kind::Zone;
        assert!(zone.read(&Raw::Text("Europe/Berlin".to_owned()), base).is_ok());
        assert!(zone.read(&Raw::Text("Europe/Atlantis".to_owned()), base).is_err());
        let count = Kind::Count { min: 1, max: 9 };
        assert!(count.read(&Raw::Loose("9".to_owned()), base).is_ok());
        assert!(count.read(&Raw::Text("9".to_owned()), base).is_err());
        assert!(count.read(&Raw::Integer(-1), base).is_err());
        assert_eq!(
            Kind::Path.read(&Raw::Text("a.db".to_owned()), base).unwrap(),
            Value::Path(PathBuf::from("/etc/a.db"))
        );
        assert!(Kind::Address.read(&Raw::Text("localhost:80".to_owned()), base).is_err());
    }
}
