//! Makes a retried call safe.
//!
//! A caller that got no answer does not know whether its call happened. It may only retry when the
//! server can tell "the same call again" from "another call". This crate holds the pure half of that:
//!
//! 1. [`parse_strict`] reads the raw bytes and refuses every document that two readers could
//!    understand differently (duplicate keys, numbers a double cannot hold, ...).
//! 2. [`Fingerprint::of`] hashes the operation and the [canonical form](canonical_bytes) (RFC 8785)
//!    of its arguments: same meaning, same fingerprint.
//! 3. [`judge`] compares a stored [`LedgerEntry`] with the call at hand: fresh, replay, conflict or
//!    expired. [`replay`] turns the stored result into the answer of a repeated call.
//!
//! The other half is the caller's: look the row up under (tenant, actor, [`IdempotencyKey`]), and
//! write the new row **in the transaction of the effect it records**, under the condition that no row
//! is there. A row written before or after the effect only moves the window in which a crash doubles it.
//!
//! Nothing here reads a clock, a file, the environment or a socket, or draws a random number: the
//! same input gives the same answer, for ever.
//!
//! # Example: a plain function made safe to retry
//!
//! The ledger and the effect live in one `HashMap`-backed store here. In a real server they are two
//! tables of one database, and `commit` is one transaction.
//!
//! ```
//! use std::collections::HashMap;
//! use serde_json::{json, Map, Value};
//! use wf_idempotency::{
//!     canonical_string, judge, parse_strict, replay, Fingerprint, IdempotencyKey, LedgerEntry,
//!     StrictLimits, Verdict,
//! };
//!
//! #[derive(Default)]
//! struct Store {
//!     balance: i64,
//!     ledger: HashMap<(String, IdempotencyKey), LedgerEntry>,
//! }
//!
//! /// The plain function: called twice, it pays twice.
//! fn deposit(balance: i64, arguments: &Map<String, Value>) -> Result<i64, String> {
//!     let amount = arguments.get("amount").and_then(Value::as_i64).ok_or("amount is missing")?;
//!     balance.checked_add(amount).ok_or_else(|| "the balance overflows".to_owned())
//! }
//!
//! /// The same function, safe to retry.
//! fn deposit_once(store: &mut Store, actor: &str, body: &[u8], now_ms: i64) -> Result<Value, String> {
//!     // Strict before anything is hashed: see the refusals of `parse_strict`.
//!     let parsed = parse_strict(body, StrictLimits::default()).map_err(|e| e.to_string())?;
//!     let arguments = parsed.as_object().ok_or("arguments must be an object")?;
//!     let key = arguments.get("idempotency_key").and_then(Value::as_str).ok_or("no key")?;
//!     let key = IdempotencyKey::parse(key).map_err(|e| e.to_string())?;
//!
//!     // What the client sent, without the key itself.
//!     let fingerprint = Fingerprint::of("deposit", arguments, &["idempotency_key"])
//!         .map_err(|e| e.to_string())?;
//!
//!     // Two actors may use the same key; neither sees the other's result.
//!     let scope = (actor.to_owned(), key);
//!     match judge(store.ledger.get(&scope), "deposit", &fingerprint, now_ms) {
//!         Verdict::Replay(entry) => return replay(entry).map_err(|e| e.to_string()),
//!         Verdict::Conflict(_) => return Err("this key was used for another call".to_owned()),
//!         Verdict::Fresh | Verdict::Expired(_) => {}
//!     }
//!
//!     // The whole result exists before the commit, so that the row can hold it.
//!     let balance = deposit(store.balance, arguments)?;
//!     let result = json!({ "balance": balance, "duplicate": false });
//!     let entry = LedgerEntry {
//!         operation: "deposit".to_owned(),
//!         fingerprint,
//!         result_version: 1,
//!         result: canonical_string(&result).map_err(|e| e.to_string())?,
//!         created_at_ms: now_ms,
//!         expires_at_ms: None,
//!     };
//!
//!     // One commit: the effect and the row that says it happened.
//!     store.balance = balance;
//!     store.ledger.insert(scope, entry);
//!     Ok(result)
//! }
//!
//! # fn main() -> Result<(), String> {
//! let mut store = Store::default();
//! let call = br#"{"idempotency_key": "k-1", "amount": 5}"#;
//! // The retry of a client that writes its JSON differently.
//! let retry = br#"{"amount":5.0,"idempotency_key":"k-\u0031"}"#;
//! let other = br#"{"idempotency_key": "k-1", "amount": 6}"#;
//!
//! assert_eq!(deposit_once(&mut store, "ann", call, 0)?, json!({"balance": 5, "duplicate": false}));
//! assert_eq!(deposit_once(&mut store, "ann", retry, 1)?, json!({"balance": 5, "duplicate": true}));
//! assert!(deposit_once(&mut store, "ann", other, 2).is_err());
//! assert_eq!(store.balance, 5);
//!
//! // The same key of another actor is another call.
//! assert_eq!(deposit_once(&mut store, "bob", other, 3)?, json!({"balance": 11, "duplicate": false}));
//! # Ok(())
//! # }
//! ```

mod canonical;
mod exact;
mod fingerprint;
mod key;
mod ledger;
mod pointer;
mod strict;
mod written;

pub use canonical::{CanonicalError, canonical_bytes, canonical_string, sha256_hex};
pub use exact::MAX_SAFE_INTEGER;
pub use fingerprint::{Fingerprint, FingerprintError};
pub use key::{IdempotencyKey, KeyError};
pub use ledger::{LedgerEntry, ReplayError, Verdict, judge, replay};
pub use strict::{StrictError, StrictLimits, parse_strict};
pub use written::from_text;

/// The code of the README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
