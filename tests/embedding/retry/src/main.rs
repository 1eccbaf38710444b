//! A file of orders, where an order that is sent again is not written twice: `wf-idempotency` in a program that knows
//! nothing of workflows. What it prints is `golden.txt`.
//!
//! A line of the file is both, the order and the ledger's row of it. So they are written together or not at all.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wf_idempotency::{
    Fingerprint, IdempotencyKey, LedgerEntry, StrictLimits, Verdict, canonical_string, judge,
    parse_strict, replay,
};

/// One line.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    key: String,
    order: Value,
    row: LedgerEntry,
}

/// The file, and what is in it.
#[derive(Debug)]
struct Orders {
    file: File,
    lines: Vec<Line>,
}

impl Orders {
    fn open(path: &Path) -> Result<Self, Box<dyn Error>> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let lines = io::read_to_string(&file)?
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        Ok(Self { file, lines })
    }

    /// Takes an order as a client sent it, unless it was taken already.
    fn take(&mut self, sent: &[u8], now_ms: i64) -> Result<Value, Box<dyn Error>> {
        let order = parse_strict(sent, StrictLimits::default())?;
        let arguments = order.as_object().ok_or("an order is an object")?;
        let key = arguments.get("idempotency_key").and_then(Value::as_str).ok_or("no key")?;
        let key = IdempotencyKey::parse(key)?;
        let fingerprint = Fingerprint::of("order", arguments, &["idempotency_key"])?;
        let line = self.lines.iter().find(|line| line.key == key.as_str());
        match judge(line.map(|line| &line.row), "order", &fingerprint, now_ms) {
            Verdict::Replay(row) => return Ok(replay(row)?),
            Verdict::Conflict(_) => return Err("the key was used for another order".into()),
            Verdict::Fresh | Verdict::Expired(_) => {}
        }
        let answer = json!({ "duplicate": false, "number": self.lines.len() + 1 });
        let row = LedgerEntry {
            operation: "order".to_owned(),
            fingerprint,
            result_version: 1,
            result: canonical_string(&answer)?,
            created_at_ms: now_ms,
            expires_at_ms: None,
        };
        let line = Line { key: key.as_str().to_owned(), order, row };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        self.file.write_all(&text)?;
        self.file.sync_data()?;
        self.lines.push(line);
        Ok(answer)
    }
}

/// The file of this run, which is gone when the run is over.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let name = format!("orders-{}.jsonl", std::process::id());
    let place = Place(std::env::temp_dir().join(name));
    let mut out = io::stdout();
    let mut say = |what: &str, answer: Result<Value, Box<dyn Error>>| {
        let answer = answer.map_or_else(|refused| refused.to_string(), |value| value.to_string());
        writeln!(out, "{what:<28} {answer}")
    };

    let mut orders = Orders::open(&place.0)?;
    let first = br#"{"idempotency_key": "k-1", "pieces": 5}"#;
    say("an order", orders.take(first, 0))?;
    // Another client library, the same order.
    let again = br#"{"pieces":5.0,"idempotency_key":"k-\u0031"}"#;
    say("the same again", orders.take(again, 1))?;
    say("six pieces under its key", orders.take(br#"{"idempotency_key":"k-1","pieces":6}"#, 2))?;
    say(
        "five pieces, or six",
        orders.take(br#"{"idempotency_key":"k-2","pieces":5,"pieces":6}"#, 3),
    )?;
    drop(orders);

    let mut orders = Orders::open(&place.0)?;
    say("after a restart", orders.take(again, 4))?;
    say("another order", orders.take(br#"{"idempotency_key":"k-3","pieces":6}"#, 5))?;
    let pieces: Vec<_> = orders.lines.iter().map(|line| line.order["pieces"].to_string()).collect();
    say("in the file", Ok(json!(pieces)))?;
    Ok(())
}
