//! What the sinks of a run received, held against the outbox of the store: only what a commit wrote, each time the same, in
//! the order of each stream, and in the end all of it.

use std::collections::BTreeMap;

use wf_core::models::Digest;
use wf_core::ports::{OutboxQuery, OutboxRow, OutboxState, ReadError, StorageBackendPort};

use super::found::Found;
use super::{Invariant, Violation};

/// Rows asked of the store at once.
const PAGE: u32 = 200;

/// A message as a sink received it, answered with a yes or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The id that it brought along.
    pub id: String,
    /// The body, hashed; without what each delivery has of its own (a time, a signature).
    pub body: Digest,
}

/// Holds what was received, in the order in which it was, against the outbox of a store that nobody writes to.
///
/// A sink that is asked again after it took a message may take it again: then it is the same. Of what is still pending
/// nothing is said; whoever waited until nothing was asks the store whether anything is.
///
/// # Errors
/// [`ReadError`] when the store does not answer.
pub async fn deliveries(
    store: &dyn StorageBackendPort,
    received: &[Received],
) -> Result<Vec<Violation>, ReadError> {
    let mut found = Found::default();
    let rows = rows(store).await?;
    let mut first: BTreeMap<&str, (usize, &Digest)> = BTreeMap::new();
    for (place, message) in received.iter().enumerate() {
        let (_, body) = first.entry(&message.id).or_insert((place, &message.body));
        if **body != message.body {
            found.add(Invariant::I10, &message.id, "it was delivered again with another body");
        }
        if !rows.iter().any(|row| row.message.id == message.id) {
            found.add(Invariant::I10, &message.id, "it was delivered, and no commit wrote it");
        }
    }
    let mut last = BTreeMap::new();
    for row in &rows {
        let message = &row.message;
        match (first.get(message.id.as_str()), row.status.state) {
            (None, OutboxState::Delivered) => {
                found.add(Invariant::I10, &message.id, "it counts as delivered, and nobody got it");
            }
            (None, OutboxState::Pending | OutboxState::Dead) => {}
            (Some((place, _)), _) => {
                let stream = (&message.tenant, &message.workflow_id, &message.recipient);
                if last.insert(stream, *place).is_some_and(|before| before > *place) {
                    found.add(Invariant::I10, &message.id, "it overtook one before it");
                }
            }
        }
    }
    Ok(found.into_violations())
}

/// All of an outbox, in the order of the events.
async fn rows(store: &dyn StorageBackendPort) -> Result<Vec<OutboxRow>, ReadError> {
    let mut rows = Vec::new();
    let mut query = OutboxQuery { limit: PAGE, ..OutboxQuery::default() };
    loop {
        let page = store.list_outbox(&query).await?;
        rows.extend(page.items);
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    rows.sort_by_key(|row| row.message.seq);
    Ok(rows)
}
