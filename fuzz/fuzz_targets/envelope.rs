//! Any bytes as the body of `POST /mcp`, under the headers of any revision: never a panic, a 5xx or an internal error.
//!
//! The first byte of an input chooses the headers, the rest is the body.

#![no_main]

use std::cell::RefCell;

use checkpoint_fuzz::{MODERN, Room, planted};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// So many inputs see one store; then it is a new one, so that it does not grow for ever.
const INPUTS_PER_ROOM: u32 = 2_000;

thread_local! {
    static ROOM: RefCell<Option<(Room, u32)>> = const { RefCell::new(None) };
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, body)) = data.split_first() else { return };
    ROOM.with_borrow_mut(|room| {
        if room.as_ref().is_none_or(|(_, used)| *used >= INPUTS_PER_ROOM) {
            *room = Some((Room::new(), 0));
        }
        let Some((room, used)) = room else { return };
        *used += 1;
        let named = named(body);
        let mut answer = room.post(&headers(*choice, &named), body);
        if planted() && cut_inside(&serde_json::from_slice(body).unwrap_or_default()) {
            answer.status = 500;
        }
        answer.check(data);
        let json = answer.json();
        if json["result"].get("structuredContent").is_some() {
            let told = &json["result"]["structuredContent"];
            assert!(told["ok"].is_boolean() && told["outcome"].is_string(), "{told}");
            let speech = told["speech"].as_str().expect("speech").chars().count();
            assert!((1..=240).contains(&speech), "{told}");
        }
    });
});

/// Method and name that the headers of the modern revision must repeat.
fn named(body: &[u8]) -> (String, String) {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let plain = |value: &Value| {
        let text = value.as_str().unwrap_or_default();
        let is_plain = text.len() < 64 && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_plain { text.to_owned() } else { String::new() }
    };
    let params = &message["params"];
    let name = if params["name"].is_string() { &params["name"] } else { &params["uri"] };
    (plain(&message["method"]), plain(name))
}

fn headers(choice: u8, (method, name): &(String, String)) -> Vec<(&'static str, String)> {
    let version = |version: &str| ("mcp-protocol-version", version.to_owned());
    match choice % 5 {
        0 => Vec::new(),
        1 => vec![version("2025-03-26")],
        2 => vec![version("2025-11-25")],
        3 => vec![version(MODERN), ("mcp-method", "tools/call".to_owned())],
        _ => {
            let mut all = vec![version(MODERN), ("mcp-method", method.clone())];
            if !name.is_empty() {
                all.push(("mcp-name", name.clone()));
            }
            all
        }
    }
}

/// What a control breaks: a server that cuts texts after four bytes, wherever that is.
fn cut_inside(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() > 4 && !text.is_char_boundary(4),
        Value::Array(items) => items.iter().any(cut_inside),
        Value::Object(members) => members.values().any(cut_inside),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
