//! Any text as `requestState`, any JSON as `inputResponses`: never a panic, a 5xx or an internal error, and nothing is
//! recorded unless exactly the state that the server gave comes back with a yes.
//!
//! An input is `<how><which><text>\n<responses>`: how the state is made, which question it answers, and what of.

#![no_main]

use std::cell::RefCell;

use checkpoint_fuzz::{MODERN, Room, planted};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use wf_core::limits::REQUEST_STATE_MS;
use wf_core::models::Timestamp;
use wf_core::state_machine::Secret;
use wf_core::state_machine::request_state::{Claims, Origin, Question, Unfit};

const INPUTS_PER_ROOM: u32 = 2_000;

/// A server that has asked two questions: whether to abandon, and which of two is meant.
struct Asked {
    room: Room,
    abandon: (Value, String),
    which: (Value, String),
    events: u64,
    used: u32,
}

thread_local! {
    static ASKED: RefCell<Option<Asked>> = const { RefCell::new(None) };
}

fuzz_target!(|data: &[u8]| {
    let Some((header, rest)) = data.split_at_checked(2) else { return };
    let cut = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let (text, responses) = (&rest[..cut], rest.get(cut + 1..).unwrap_or_default());
    pure(text);
    ASKED.with_borrow_mut(|asked| {
        if asked.as_ref().is_none_or(|asked| asked.used >= INPUTS_PER_ROOM) {
            *asked = Some(ask());
        }
        let Some(at) = asked else { return };
        at.used += 1;
        let (tool, (arguments, given)) = match header[1] % 2 {
            0 => ("finish_workflow", &at.abandon),
            _ => ("get_status", &at.which),
        };
        let other = if header[1] % 2 == 0 { &at.which.1 } else { &at.abandon.1 };
        let state = made(header[0], text, given, other);
        let genuine = state == *given;
        let state =
            if planted() && short_of_one(&state) == short_of_one(given) { given } else { &state };
        let responses = serde_json::from_slice(responses)
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(responses)));
        let brought = json!({"requestState": state, "inputResponses": responses});
        let (headers, body) = call(tool, arguments, &brought);
        let answer = at.room.post(&headers, body.to_string().as_bytes());
        answer.check(data);
        let told = answer.json();
        let says_yes = responses["confirm"]["action"] == "accept"
            && responses["confirm"]["content"]["confirm"] == true;
        let events = at.room.events();
        if genuine && says_yes && tool == "finish_workflow" {
            assert_eq!(told["result"]["structuredContent"]["outcome"], "finished", "{told}");
            assert!(events > at.events);
        } else {
            assert_eq!(events, at.events, "something was recorded: {told}");
        }
        // The strict reader refused the body, for a number that would lose digits: nobody looked at the state.
        let unread = told["error"]["code"] == -32600;
        if responses.is_object() && !genuine && !unread {
            assert_eq!(told["error"]["code"], -32602, "{told}");
            assert_eq!(told["error"]["data"]["reason"], "foreign", "{told}");
        }
        // An answer that counted used the state up: the next input is asked anew.
        if events > at.events {
            *asked = None;
        } else if told["result"]["resultType"] == "complete" {
            at.ask_again(tool);
        }
    });
});

/// Without a server: bytes are no state, a state that was sealed opens, and one bit more or less and it does not.
fn pure(text: &[u8]) {
    let keys = [Secret::new(vec![7; 32])];
    let text = String::from_utf8_lossy(text);
    let origin = Origin { tenant: "t", actor: "user:a", client: "c", method: "m", call: "v1:0" };
    let now = Timestamp::from_ms(1_000_000);
    assert_eq!(Claims::open(&keys, &origin, &text, now), Err(Unfit::Foreign));
    let claims =
        Claims::new(Question::ReadBack { token: text.clone().into_owned() }, "n".to_owned(), now);
    let Some(state) = claims.sign(&keys, &origin) else { return };
    assert_eq!(Claims::open(&keys, &origin, &state, now).as_ref(), Ok(&claims));
    let late = now.plus_ms(REQUEST_STATE_MS);
    assert_eq!(Claims::open(&keys, &origin, &state, late), Err(Unfit::Expired));
    let other = Origin { call: &text, ..origin };
    assert!(Claims::open(&keys, &other, &state, now).is_err() || text == origin.call);
}

/// What a control compares: all but the last letter.
fn short_of_one(state: &str) -> (usize, &[u8]) {
    (state.len(), state.as_bytes().split_last().map_or(&[], |(_, all)| all))
}

/// A state: any text, the genuine one, that of the other question, or the genuine one disturbed.
fn made(how: u8, text: &[u8], given: &str, other: &str) -> String {
    let lossy = String::from_utf8_lossy(text).into_owned();
    match how % 6 {
        0 => lossy,
        1 => given.to_owned(),
        2 => other.to_owned(),
        3 => {
            let mut bytes = given.as_bytes().to_vec();
            for pair in text.chunks_exact(3) {
                let at = usize::from(u16::from_be_bytes([pair[0], pair[1]])) % bytes.len();
                bytes[at] = pair[2] & 0x7f;
            }
            String::from_utf8(bytes).unwrap_or_default()
        }
        4 => format!("{given}{lossy}"),
        _ => {
            let at = text.first().map_or(0, |byte| usize::from(*byte)) % given.len();
            let (head, tail) = given.split_at(at);
            format!("{head}{lossy}{tail}")
        }
    }
}

fn call(
    tool: &'static str,
    arguments: &Value,
    brought: &Value,
) -> (Vec<(&'static str, String)>, Value) {
    let mut params = json!({"name": tool, "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }});
    if let (Value::Object(params), Value::Object(brought)) = (&mut params, brought) {
        params.extend(brought.clone());
    }
    let headers = vec![
        ("mcp-protocol-version", MODERN.to_owned()),
        ("mcp-method", "tools/call".to_owned()),
        ("mcp-name", tool.to_owned()),
    ];
    (headers, json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
}

impl Asked {
    /// The question of this tool once more, with a new state.
    fn ask_again(&mut self, tool: &'static str) {
        let question = if tool == "finish_workflow" { &mut self.abandon } else { &mut self.which };
        let (headers, body) = call(tool, &question.0, &json!({}));
        let asked = self.room.post(&headers, body.to_string().as_bytes()).json();
        let state = asked["result"]["requestState"].as_str();
        question.1 = state.unwrap_or_else(|| panic!("{asked}")).to_owned();
    }
}

fn ask() -> Asked {
    let mut room = Room::new();
    let mut work = Value::Null;
    for pump in ["PUMP-204", "PUMP-205"] {
        let arguments = json!({
            "procedure_id": "pump-inspection", "assets": {"pump": pump}, "inputs": {"work_order": "WO 1"},
        });
        let (headers, body) = call("start_workflow", &arguments, &json!({}));
        let started = room.post(&headers, body.to_string().as_bytes()).json();
        work = started["result"]["structuredContent"]["workflow"]["id"].clone();
        assert!(work.is_string(), "{started}");
    }
    let events = room.events();
    let abandon = (json!({"workflow_id": work, "result": "abandoned"}), String::new());
    let mut asked = Asked { room, abandon, which: (json!({}), String::new()), events, used: 0 };
    asked.ask_again("finish_workflow");
    asked.ask_again("get_status");
    asked
}
