//! `serve --print-config`: the configuration that counts, with where each value comes from and secrets masked.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use super::keys::{KEYS, Key, ROUTE_KEYS};
use super::layers::{Layers, Setting, Settings};
use super::value::{Kind, Value, masked_url};

/// The configuration as TOML.
pub(crate) fn as_toml(layers: &Layers) -> String {
    let mut text = String::new();
    let mut open = "";
    for key in KEYS {
        let Some((section, name)) = key.path.rsplit_once('.') else {
            continue;
        };
        if section != open {
            let gap = if text.is_empty() { "" } else { "\n" };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{gap}[{section}]");
            open = section;
        }
        line(&mut text, name, key, layers.settings.get(key.path));
    }
    for route in &layers.routes {
        text.push_str("\n[[notifications.route]]\n");
        for key in ROUTE_KEYS {
            line(&mut text, key.path, key, route.get(key.path));
        }
    }
    text
}

fn line(text: &mut String, name: &str, key: &Key, setting: Option<&Setting>) {
    let _ = match setting {
        Some(setting) => {
            writeln!(text, "{name} = {}  # {}", shown(key, &setting.value), setting.origin)
        }
        None => writeln!(text, "# {name} is not set"),
    };
}

/// The configuration as JSON: path → value and origin; keys that are not set are absent.
pub(crate) fn as_json(layers: &Layers) -> Json {
    let routes: Vec<Json> =
        layers.routes.iter().map(|route| Json::Object(object(ROUTE_KEYS, route))).collect();
    let mut all = object(KEYS, &layers.settings);
    all.insert("notifications.route".to_owned(), Json::Array(routes));
    Json::Object(all)
}

fn object(keys: &[Key], settings: &Settings) -> Map<String, Json> {
    keys.iter()
        .filter_map(|key| Some((key, settings.get(key.path)?)))
        .map(|(key, setting)| {
            let value = match shown(key, &setting.value) {
                Value::Count(number) => json!(number),
                Value::Switch(on) => json!(on),
                Value::List(items) => json!(items),
                Value::Text(text) => json!(text),
                Value::Path(path) => json!(path.to_string_lossy()),
                Value::Address(address) => json!(address.to_string()),
                duration @ Value::Duration(_) => json!(duration.to_string().trim_matches('"')),
            };
            let origin = setting.origin.to_string();
            (key.path.to_owned(), json!({ "value": value, "origin": origin }))
        })
        .collect()
}

/// The value without what may be a secret. The path of a webhook often is its password.
pub(crate) fn shown(key: &Key, value: &Value) -> Value {
    match (key.kind, value) {
        (Kind::Url, Value::Text(url)) => Value::Text(masked_url(url, key.path != "url")),
        _ => value.clone(),
    }
}
