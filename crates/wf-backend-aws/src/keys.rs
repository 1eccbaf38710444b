//! Where each item is: partition and sort keys, and the keys of the two global indexes. docs/dynamodb.md shows an example
//! of each. The only place where a key is put together.
//!
//! What comes from outside is percent-encoded (`%`, `#`, controls), so that a separator is only ever ours. Times are
//! milliseconds in 15 digits and places 20 digits, so that text sorts as numbers do.

use serde::Serialize;
use wf_core::models::{Actor, AssetId, Digest, Phase, ProcedureId, TenantId, WorkflowId};
use wf_core::ports::LedgerKey;

/// The key of an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct Key {
    pub(crate) pk: String,
    pub(crate) sk: String,
}

impl Key {
    pub(crate) fn new(pk: String, sk: impl Into<String>) -> Self {
        Self { pk, sk: sk.into() }
    }
}

/// The partition and the sort key attribute of the table and of each index.
pub(crate) const PK: &str = "PK";
pub(crate) const SK: &str = "SK";

/// A global secondary index; only keys are projected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) name: &'static str,
    pub(crate) pk: &'static str,
    pub(crate) sk: &'static str,
}

/// By something that changes: phase, delivery state, due time, expiry.
pub(crate) const BY_STATE: Index = Index { name: "by_state", pk: "state_pk", sk: "state_sk" };
/// By what never changes: every workflow, every lock row, every message.
pub(crate) const BY_ID: Index = Index { name: "by_id", pk: "id_pk", sk: "id_sk" };

/// Above every character of a sort key.
pub(crate) const LAST: char = '\u{10ffff}';

/// Over how many partitions deadlines, bindings and attention rows are spread. All of one workflow are in one.
pub(crate) const SHARDS: u8 = 4;

/// To whom an offer to anybody is filed. No actor is written like this.
const ANYBODY: &str = "*";

/// Percent-encodes `%`, `#` and controls.
pub(crate) fn encoded(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '%' || c == '#' || c.is_control() {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                written.push_str(&format!("%{byte:02X}"));
            }
        } else {
            written.push(c);
        }
    }
    written
}

/// The reverse of [`encoded`]; what is no code stays as it is.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let code = more.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = more.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Milliseconds as text that sorts like numbers.
pub(crate) fn time(ms: i64) -> String {
    format!("{:015}", ms.max(0))
}

/// A place in a history as text that sorts like numbers.
pub(crate) fn place(seq: u64) -> String {
    format!("{seq:020}")
}

/// The partition of a workflow.
pub(crate) fn workflow(tenant: &TenantId, id: &WorkflowId) -> String {
    format!("T#{tenant}#WF#{id}")
}

/// The state of a workflow.
pub(crate) fn head(tenant: &TenantId, id: &WorkflowId) -> Key {
    Key::new(workflow(tenant, id), "HEAD")
}

/// What is left of a workflow that was purged.
pub(crate) fn tombstone(tenant: &TenantId, id: &WorkflowId) -> Key {
    Key::new(workflow(tenant, id), "GONE")
}

/// The sort key of an event.
pub(crate) fn event(seq: u64) -> String {
    format!("EVT#{}", place(seq))
}

/// A row of the ledger. The key is hashed: it may be long, and it is nobody's business in an access policy or a log.
pub(crate) fn ledger(key: &LedgerKey) -> Key {
    let LedgerKey { tenant, actor, key } = key;
    let hash = wf_core::idempotency::sha256_hex(key.as_str().as_bytes());
    Key::new(format!("T#{tenant}#IDEM#{}#{hash}", encoded(&actor.to_string())), "IDEM")
}

/// The partition of an asset.
pub(crate) fn asset(tenant: &TenantId, id: &AssetId) -> String {
    format!("T#{tenant}#ASSET#{id}")
}

/// Who holds an asset.
pub(crate) fn lock(tenant: &TenantId, id: &AssetId) -> Key {
    Key::new(asset(tenant, id), "LOCK")
}

/// The partition of what concerns an actor.
pub(crate) fn who(tenant: &TenantId, actor: &Actor) -> String {
    format!("T#{tenant}#WHO#{}", encoded(&actor.to_string()))
}

/// The partition of offers to anybody.
pub(crate) fn anybody(tenant: &TenantId) -> String {
    format!("T#{tenant}#WHO#{ANYBODY}")
}

/// How many open workflows an actor owns.
pub(crate) fn open_count(tenant: &TenantId, actor: &Actor) -> Key {
    Key::new(who(tenant, actor), "COUNT")
}

/// Sort keys start with one of these in the partitions of actors and assets.
pub(crate) const OPEN: &str = "OPEN#";
pub(crate) const OFFER: &str = "OFFER#";
pub(crate) const DONE: &str = "DONE#";

/// The partition of what is blocked.
pub(crate) fn blocked(tenant: &TenantId) -> String {
    format!("T#{tenant}#BLOCKED")
}

/// The partition that names every workflow of a tenant.
pub(crate) fn all_of(tenant: &TenantId) -> String {
    format!("T#{tenant}#LIST")
}

/// The partition of people.
pub(crate) fn people(tenant: &TenantId) -> String {
    format!("T#{tenant}#PEOPLE")
}

/// A definition by its digest.
pub(crate) fn definition(digest: &Digest) -> Key {
    Key::new(format!("DEF#{digest}"), "DEF")
}

/// Which digest a version of a procedure has.
pub(crate) fn version(id: &ProcedureId, version: u32) -> Key {
    Key::new("PROC".to_owned(), format!("{id}#{version}"))
}

/// What the store is known by.
pub(crate) fn identity() -> Key {
    Key::new("STORE".to_owned(), "SECRET")
}

/// The partition of completed workflows whose ledger rows have no expiry yet.
pub(crate) const SWEEP: &str = "SWEEP";

/// The partition of a stream of messages.
pub(crate) fn stream(tenant: &TenantId, workflow: &WorkflowId, recipient: &str) -> String {
    format!("T#{tenant}#OUT#{workflow}#{}", encoded(recipient))
}

/// The lease and the due time of a stream.
pub(crate) fn stream_head(tenant: &TenantId, workflow: &WorkflowId, recipient: &str) -> Key {
    Key::new(stream(tenant, workflow, recipient), "STREAM")
}

/// Sort keys of messages start so.
pub(crate) const MESSAGE: &str = "MSG#";

/// A message in its stream.
pub(crate) fn message(seq: u64, id: &str) -> String {
    format!("{MESSAGE}{}#{}", place(seq), encoded(id))
}

/// The partition of a shard of deadlines.
pub(crate) fn due(shard: u8) -> String {
    format!("DUE#{shard}")
}

/// A deadline.
pub(crate) fn deadline(tenant: &TenantId, workflow: &WorkflowId, id: &str, fire_at: i64) -> Key {
    let sk = format!("{}#{tenant}#{workflow}#{}", time(fire_at), encoded(id));
    Key::new(due(shard_of(tenant, workflow)), sk)
}

/// Which execution is bound to a workflow.
pub(crate) fn binding(tenant: &TenantId, id: &WorkflowId) -> Key {
    Key::new(workflow(tenant, id), "ORCH")
}

/// The partition of a shard of workflows whose executions are to be looked at.
pub(crate) fn attentions(shard: u8) -> String {
    format!("ATTN#{shard}")
}

/// The row of a workflow whose execution is to be looked at.
pub(crate) fn attention(tenant: &TenantId, workflow: &WorkflowId) -> Key {
    Key::new(attentions(shard_of(tenant, workflow)), format!("{tenant}#{workflow}"))
}

/// A shard's lease of the reconciler.
pub(crate) fn reconciler(shard: u8) -> Key {
    Key::new(format!("RECON#{shard}"), "LEASE")
}

/// In which shard everything of a workflow is that is spread over shards.
pub(crate) fn shard_of(tenant: &TenantId, workflow: &WorkflowId) -> u8 {
    let digest = Digest::of(format!("{tenant}#{workflow}").as_bytes());
    let nibble = digest.as_str().bytes().next_back().unwrap_or_default();
    nibble % SHARDS
}

/// Partitions of [`BY_STATE`].
pub(crate) mod by_state {
    use super::{Phase, TenantId};

    pub(crate) fn phase(tenant: &TenantId, phase: Phase) -> String {
        format!("T#{tenant}#{}", phase.as_str())
    }

    /// By when they are looked at next.
    pub(crate) fn bindings(shard: u8) -> String {
        format!("ORCH#{shard}")
    }

    pub(crate) const STREAMS: &str = "STREAM";
    pub(crate) const PENDING: &str = "OUT#pending";
    pub(crate) const DEAD: &str = "OUT#dead";
    /// By the time of delivery, for the sweep.
    pub(crate) const DELIVERED: &str = "OUT#delivered";
    pub(crate) const EXPIRY: &str = "EXPIRY";
}

/// Partitions of [`BY_ID`].
pub(crate) mod by_id {
    pub(crate) const WORKFLOWS: &str = "WF";
    pub(crate) const LOCKS: &str = "LOCK";
    pub(crate) const MESSAGES: &str = "MSG";
}

#[cfg(test)]
mod tests {
    use super::{decoded, encoded, place, time};

    #[test]
    fn no_outside_text_holds_a_separator() {
        assert_eq!(encoded("user:a#b%c\n\u{85}é ~"), "user:a%23b%25c%0A%C2%85é ~");
        assert_ne!(encoded("a%23b"), encoded("a#b"));
        for text in ["user:a#b%c\n\u{85}é ~", "a%23b", "%", "100%"] {
            assert_eq!(decoded(&encoded(text)), text);
        }
    }

    #[test]
    fn numbers_sort_as_text() {
        assert!(time(999) < time(1_000) && time(1_000) < time(253_402_214_400_000));
        assert_eq!(time(253_402_214_400_000).len(), 15);
        assert!(place(9) < place(10) && place(10) < place(u64::MAX));
        assert_eq!(place(u64::MAX).len(), 20);
    }
}
