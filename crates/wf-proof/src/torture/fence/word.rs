//! A word that comes too late: a server delivers a message, and stands still while the receiver thinks; it is refused. Another
//! takes the stream over and is delivering the message when the first goes on and says that it has to be tried again.
//!
//! The store must not listen: the second server's delivery is the one, and the message is taken once. A store that believes
//! whoever had the lease once gives the stream free in the middle of a delivery, and the message is taken twice: the negative
//! control.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Map, Value, json};

use super::super::Setting;
use super::super::crew::Crew;
use super::super::peer::{Answer, Asked, Peer, Reply};
use super::{DONE_WITHIN, STILL_MS, TAKEN_OVER_WITHIN, comes, stands_still};
use crate::fault::Fault;
use crate::harness::client::Client;
use crate::harness::record::Call;

/// What the store does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    /// As it is.
    Fenced,
    /// It settles for whoever asks.
    Believes,
}

/// What is said of a message that came through more than once.
pub(super) const TAKEN: &str = "was taken";
/// How often the scene is played at most.
const TRIES: u32 = 5;
/// How long the receiver thinks about the first delivery of a server: of the first one, until it surely stands still.
const THINKS: Duration = Duration::from_millis(2_500);
/// 24 bytes, of no secrecy.
const SECRET: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// What the receiver saw.
#[derive(Debug, Default)]
struct Seen {
    /// The receiver thinks about what the first server delivered.
    first: AtomicBool,
    /// The first server stands still.
    second: AtomicBool,
    /// Deliveries of the second server so far.
    begun: AtomicUsize,
    /// By the id of the message, how often it was taken.
    taken: Mutex<BTreeMap<String, usize>>,
}

impl Seen {
    fn answer(&self, asked: &Asked) -> Reply {
        if !self.second.load(Ordering::SeqCst) {
            self.first.store(true, Ordering::SeqCst);
            return Reply::Late(THINKS, Answer::status(503));
        }
        let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
        let id = body.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner).entry(id).or_default() += 1;
        let first = self.begun.fetch_add(1, Ordering::SeqCst) == 0;
        let taken = Answer::status(200);
        if first { Reply::Late(THINKS, taken) } else { Reply::Answers(taken) }
    }
}

/// Plays it, again where the first server holds the write lock by chance when it stops; what was found.
pub(super) fn late(setting: &Setting, store: Store) -> Result<Vec<String>, Fault> {
    for _ in 0..TRIES {
        if let Some(found) = once(setting, store)? {
            return Ok(found);
        }
    }
    Ok(vec!["the lock was always held: the scene shows nothing".to_owned()])
}

/// Plays it; nothing when the lock was held.
fn once(setting: &Setting, store: Store) -> Result<Option<Vec<String>>, Fault> {
    let mut crew = Crew::new(setting, &format!("fence-word-{store:?}"), 2)?;
    crew.set_clock(0)?;
    let seen = Arc::new(Seen::default());
    let answering = Arc::clone(&seen);
    let receiver = Peer::start(move |asked| answering.answer(asked))?;
    for number in 0..2 {
        crew.rig(number, |launch| {
            launch.arguments.extend(["--config", "route.toml"].map(str::to_owned));
        });
        crew.write(number, "route.toml", &route(&receiver))?;
        crew.write(number, "hook.secret", SECRET)?;
    }
    let unfenced = if store == Store::Believes { "settle.unfenced=return" } else { "" };
    if crew.start(0, unfenced)? {
        one_message(&crew)?;
        let delivers = comes(TAKEN_OVER_WITHIN, || seen.first.load(Ordering::SeqCst));
        crew.server(0)?.signal(Signal::STOP)?;
        if !delivers || !stands_still(&crew)? {
            crew.found.push("no server stood still: the scene shows nothing".to_owned());
        } else if crew.is_locked()? {
            crew.close()?;
            return Ok(None);
        } else {
            seen.second.store(true, Ordering::SeqCst);
            goes_on(&mut crew, &seen)?;
        }
        // However it came here, one that stands still cannot end.
        crew.server(0)?.signal(Signal::CONT)?;
        judge(&mut crew, &seen)?;
    }
    crew.close().map(Some)
}

/// The second server begins to deliver, and then the first goes on.
fn goes_on(crew: &mut Crew, seen: &Seen) -> Result<(), Fault> {
    crew.set_clock(STILL_MS)?;
    if !crew.start(1, "")? {
        return Ok(());
    }
    if !comes(TAKEN_OVER_WITHIN, || seen.begun.load(Ordering::SeqCst) > 0) {
        crew.found.push("the stream is not taken over".to_owned());
    }
    Ok(())
}

fn judge(crew: &mut Crew, seen: &Seen) -> Result<(), Fault> {
    crew.all_is_done(STILL_MS, DONE_WITHIN)?;
    let failed = crew.count("SELECT coalesce(sum(attempts), 0) FROM outbox", &[])?;
    if failed > 0 {
        crew.found.push(format!("{failed} failures are written down by whom nobody asked"));
    }
    let taken = seen.taken.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if taken.is_empty() {
        crew.found.push("no message was taken: the scene shows nothing".to_owned());
    }
    for (id, times) in taken.iter().filter(|(_, times)| **times != 1) {
        crew.found.push(format!("{id} {TAKEN} {times} times"));
    }
    crew.stop()?;
    crew.audit()
}

fn route(receiver: &Peer) -> String {
    format!(
        "[[notifications.route]]\nsink = \"webhook\"\nurl = \"http://{}/\"\nsecret_file = \"hook.secret\"\nallow_private = true\n",
        receiver.address()
    )
}

/// A start: its deadline of a second makes a message.
fn one_message(crew: &Crew) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Fault::io("a runtime"))?;
    let arguments = json!({
        "procedure_id": "pump-inspection", "assets": { "pump": "PUMP-1" }, "inputs": { "work_order": "WO 1" },
        "idempotency_key": "word-1",
    });
    let arguments = if let Value::Object(map) = arguments { map } else { Map::new() };
    let call = Call { number: crew.recorder.next_call(), tool: "start_workflow", arguments };
    let mut client = Client::new(crew.server(0)?.address());
    let sent_ns = crew.recorder.now_ns();
    let outcome = runtime.block_on(client.call(call.tool, &call.arguments));
    crew.recorder.attempted(0, &call, sent_ns, outcome);
    Ok(())
}

/// The id of the message that a line of a server's log tells of, where it is such a line.
pub(super) fn message_of(line: &str) -> Option<&str> {
    if !line.contains("checkpoint::notification") {
        return None;
    }
    let (_, rest) = line.split_once(" id=")?;
    rest.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::message_of;

    #[test]
    fn the_id_of_a_message_is_found_in_the_log() {
        let line = "2026-03-01T08:00:00Z  INFO checkpoint::notification: notification id=0197/1/a/9f kind=late";
        assert_eq!(message_of(line), Some("0197/1/a/9f"));
        assert_eq!(message_of("2026-03-01T08:00:00Z  INFO other: id=1"), None);
    }
}
