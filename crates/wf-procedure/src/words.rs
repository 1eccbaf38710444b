//! Words made from ids and from parts, in every language that the parts have.

use std::collections::{BTreeMap, BTreeSet};

use wf_core::models::{Locale, Text};

/// `suction_pressure` → "suction pressure"; `SENSOR_MISSING` → "sensor missing".
pub(crate) fn of_id(id: &str) -> String {
    let words = id.replace(['_', '-', '.', ':'], " ");
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let shouted = words.chars().any(char::is_alphabetic) && words.to_uppercase() == words;
    let words = if shouted { words.to_lowercase() } else { words };
    if words.is_empty() { id.to_owned() } else { words }
}

/// `text` with every wording changed.
pub(crate) fn map(text: &Text, change: impl Fn(&str) -> String) -> Text {
    match text {
        Text::One(words) => Text::One(change(words)),
        Text::Many(languages) => {
            Text::Many(languages.iter().map(|(tag, words)| (tag.clone(), change(words))).collect())
        }
    }
}

/// A text made of several, in every language that one of them has.
pub(crate) fn compose(parts: &[&Text], write: impl Fn(&[&str]) -> String) -> Text {
    let mut tags: BTreeSet<&str> = BTreeSet::new();
    for part in parts {
        if let Text::Many(languages) = part {
            tags.extend(languages.keys().map(String::as_str));
        }
    }
    let write_for = |locale: &Locale| {
        let words: Vec<&str> = parts.iter().map(|p| p.get(locale)).collect();
        write(&words)
    };
    if tags.is_empty() {
        return Text::One(write_for(&Locale::default()));
    }
    let languages: BTreeMap<String, String> = tags
        .into_iter()
        .filter_map(|tag| Some((tag.to_owned(), write_for(&Locale::parse(tag)?))))
        .collect();
    Text::Many(languages)
}

/// With a capital letter, to start a sentence.
pub(crate) fn sentence(words: &str) -> String {
    let mut chars = words.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// At most `max` characters, cut with an ellipsis.
pub(crate) fn cut(words: &str, max: usize) -> String {
    if words.chars().count() <= max {
        return words.to_owned();
    }
    let mut kept: String = words.chars().take(max.saturating_sub(1)).collect();
    kept.push('…');
    kept
}
