//! Reads the layers of the configuration — defaults, file, environment, flags — and lets the later win.
//!
//! Every problem is collected, so that one run names all of them. Nothing here knows what a key is for; `check` does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{self, KEYS, Key, ROUTE_KEYS, ROUTES};
use super::value::{Raw, Value};

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody set it.
    Default,
    /// The configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// Line and column, from 1.
        at: (usize, usize),
    },
    /// An environment variable.
    Variable(String),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, at } => write!(f, "{}:{}:{}", path.display(), at.0, at.1),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The value.
    pub(crate) value: Value,
    /// Where it comes from.
    pub(crate) origin: Origin,
}

/// Settings by key path.
pub(crate) type Settings = BTreeMap<&'static str, Setting>;

/// The merged layers.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    /// What counts, by key path.
    pub(crate) settings: Settings,
    /// The routes of the file, in order.
    pub(crate) routes: Vec<Settings>,
    /// The folder of the configuration file; empty, which is the current folder, without one.
    pub(crate) folder: PathBuf,
    /// What is wrong, one line each.
    pub(crate) problems: Vec<String>,
}

/// What is read besides the defaults.
#[derive(Debug, Default)]
pub(crate) struct Sources<'a> {
    /// The configuration file and its text.
    pub(crate) file: Option<(&'a Path, &'a str)>,
    /// The environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Key path, value, the flag that said so.
    pub(crate) flags: Vec<(String, String, String)>,
}

impl Layers {
    /// Reads all layers.
    pub(crate) fn read(sources: &Sources<'_>) -> Self {
        let mut layers = Self::default();
        for key in KEYS {
            layers.fill_in(key);
        }
        if let Some((path, text)) = sources.file {
            let file = FileLayer { path, text };
            layers.folder = file.folder().to_owned();
            file.read(&mut layers);
        }
        for (name, value) in &sources.environment {
            layers.variable(name, value);
        }
        for (path, value, flag) in &sources.flags {
            layers.flag(path, value, flag);
        }
        layers
    }

    fn fill_in(&mut self, key: &'static Key) {
        let Some(default) = key.default else { return };
        let raw = Raw::Loose(default.to_owned());
        // A test reads every default, so none is lost here.
        if let Ok(value) = key.kind.read(&raw, Path::new("")) {
            let origin = Origin::Default;
            self.settings.insert(key.path, Setting { value, origin });
        }
    }

    fn put(&mut self, key: &'static Key, raw: &Raw, base: &Path, origin: Origin) {
        match key.kind.read(raw, base) {
            Ok(value) => {
                self.settings.insert(key.path, Setting { value, origin });
            }
            Err(rule) => self.problems.push(format!("{origin}: {} must be {rule}", key.path)),
        }
    }

    fn variable(&mut self, name: &OsString, value: &OsString) {
        let Some(name) = name.to_str().filter(|name| name.starts_with("WF_")) else {
            return;
        };
        let Some(key) = KEYS.iter().find(|key| key.variable() == name) else {
            self.unknown_variable(name);
            return;
        };
        let origin = Origin::Variable(name.to_owned());
        match value.to_str() {
            Some(text) => self.put(key, &Raw::Loose(text.to_owned()), Path::new(""), origin),
            None => self.problems.push(format!("{origin}: must be UTF-8 text")),
        }
    }

    /// `WF_` alone does not make a variable ours; the name of a section behind it does.
    fn unknown_variable(&mut self, name: &str) {
        let ours =
            KEYS.iter().filter_map(|key| key.path.split('.').next()).chain(["notifications"]).any(
                |section| {
                    let rest = name.strip_prefix(&format!("WF_{}", section.to_ascii_uppercase()));
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
                },
            );
        if !ours {
            return;
        }
        let known: Vec<String> = KEYS.iter().map(Key::variable).collect();
        let hint = hint(keys::nearest(name, known.iter().map(String::as_str)));
        self.problems.push(format!("environment: unknown variable {name}{hint}"));
    }

    fn flag(&mut self, path: &str, value: &str, flag: &str) {
        match keys::find(path) {
            Some(key) => {
                let origin = Origin::Flag(flag.to_owned());
                self.put(key, &Raw::Loose(value.to_owned()), Path::new(""), origin);
            }
            None => self.problems.push(format!("{flag}: {}", unknown_key(path, "", KEYS))),
        }
    }
}

fn hint(name: Option<&str>) -> String {
    name.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

fn unknown_key(path: &str, section: &str, known: &[Key]) -> String {
    let near = keys::nearest(path, known.iter().map(|key| key.path));
    let near = near.map(|near| format!("{section}{near}"));
    format!("unknown key {section}{path}{}", hint(near.as_deref()))
}

/// The configuration file while it is read.
#[derive(Debug, Clone, Copy)]
struct FileLayer<'a> {
    path: &'a Path,
    text: &'a str,
}

impl FileLayer<'_> {
    fn read(self, layers: &mut Layers) {
        match DeTable::parse(self.text) {
            Ok(table) => self.table(layers, "", table.get_ref()),
            Err(error) => {
                let at = self.at(error.span().map_or(0, |span| span.start));
                layers.problems.push(format!("{at}: not TOML: {}", error.message()));
            }
        }
    }

    fn table(self, layers: &mut Layers, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let path = if section.is_empty() {
                name.get_ref().to_string()
            } else {
                format!("{section}.{}", name.get_ref())
            };
            let origin = self.at(name.span().start);
            if path == ROUTES {
                self.routes(layers, value, &origin);
            } else if let Some(key) = keys::find(&path) {
                layers.put(key, &raw(value.get_ref()), self.folder(), origin);
            } else if let (DeValue::Table(inner), true) = (value.get_ref(), is_section(&path)) {
                self.table(layers, &path, inner);
            } else if is_section(&path) {
                layers.problems.push(format!("{origin}: [{path}] must be a section"));
            } else {
                let problem = self.unknown(&path, value.get_ref());
                layers.problems.push(format!("{origin}: {problem}"));
            }
        }
    }

    fn unknown(self, path: &str, value: &DeValue<'_>) -> String {
        if value.is_table() {
            let near = keys::nearest(path, sections());
            return format!("unknown section [{path}]{}", hint(near));
        }
        unknown_key(path, "", KEYS)
    }

    fn routes(self, layers: &mut Layers, value: &Spanned<DeValue<'_>>, origin: &Origin) {
        let DeValue::Array(routes) = value.get_ref() else {
            layers.problems.push(format!("{origin}: write [[{ROUTES}]] once for each route"));
            return;
        };
        for route in routes.iter() {
            let at = self.at(route.span().start);
            let Some(table) = route.get_ref().as_table() else {
                layers.problems.push(format!("{at}: each {ROUTES} must be a table"));
                continue;
            };
            let mut one = Layers::default();
            for key in ROUTE_KEYS {
                one.fill_in(key);
            }
            for (name, value) in table {
                let origin = self.at(name.span().start);
                let name = name.get_ref().as_ref();
                match ROUTE_KEYS.iter().find(|key| key.path == name) {
                    Some(key) => one.put(key, &raw(value.get_ref()), self.folder(), origin),
                    None => {
                        let problem = unknown_key(name, &format!("{ROUTES}."), ROUTE_KEYS);
                        one.problems.push(format!("{origin}: {problem}"));
                    }
                }
            }
            layers.problems.append(&mut one.problems);
            layers.routes.push(one.settings);
        }
    }

    /// Paths in the file are relative to the file, so that it means the same from every folder.
    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    fn at(self, offset: usize) -> Origin {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |tail| tail.chars().count()) + 1;
        Origin::File { path: self.path.to_owned(), at: (line, column) }
    }
}

fn sections() -> impl Iterator<Item = &'static str> {
    KEYS.iter()
        .filter_map(|key| key.path.rsplit_once('.'))
        .map(|(section, _)| section)
        .chain(["notifications"])
}

fn is_section(path: &str) -> bool {
    sections().any(|section| section == path)
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Raw::Other("number"), Raw::Integer),
        DeValue::Boolean(on) => Raw::Switch(*on),
        DeValue::Array(items) => items
            .iter()
            .map(|item| item.get_ref().as_str().map(str::to_owned))
            .collect::<Option<Vec<String>>>()
            .map_or(Raw::Other("list"), Raw::List),
        DeValue::Float(_) => Raw::Other("number"),
        DeValue::Datetime(_) => Raw::Other("date"),
        DeValue::Table(_) => Raw::Other("table"),
    }
}
