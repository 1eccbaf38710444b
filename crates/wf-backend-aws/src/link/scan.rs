//! Reading the whole table, and filling one: parallel scans, batches of puts.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use tokio::task::JoinSet;

use super::Link;
use crate::fault::{Cause, Fail, Trouble};
use crate::item::{Attributes, Item, key_to_sdk, to_sdk};
use crate::keys::Key;

/// Puts of one BatchWriteItem (API reference).
const PUTS_MAX: usize = 25;
/// Batches that are under way at once.
const BATCHES_MAX: usize = 8;

/// A part of a parallel scan.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    /// Which one, from 0.
    pub(crate) number: i32,
    /// Of how many.
    pub(crate) of: i32,
    /// After which key; from its start when absent.
    pub(crate) after: Option<Key>,
    /// At most this many items.
    pub(crate) limit: u32,
}

impl Link {
    /// Items of a segment as they are now, and the key after which it goes on.
    pub(crate) async fn scan(&self, segment: &Segment) -> Result<(Vec<Item>, Option<Key>), Fail> {
        let request = self
            .client
            .scan()
            .table_name(self.table())
            .segment(segment.number)
            .total_segments(segment.of)
            .consistent_read(true)
            .limit(i32::try_from(segment.limit.max(1)).unwrap_or(i32::MAX))
            .set_exclusive_start_key(segment.after.as_ref().map(key_to_sdk))
            .set_return_consumed_capacity(self.measuring());
        let answer = self.again("Scan", || request.clone().send()).await;
        let answer = answer.map_err(super::Failed::trouble)?;
        self.consumed(true, answer.consumed_capacity());
        let last = answer.last_evaluated_key.filter(|key| !key.is_empty());
        let last = last.map(|key| Item::from(key).key()).transpose()?;
        Ok((answer.items.unwrap_or_default().into_iter().map(Item::from).collect(), last))
    }

    /// Puts items, over whatever is there, some batches at once. Putting one again changes nothing.
    pub(crate) async fn put_all(&self, items: BTreeMap<Key, Attributes>) -> Result<(), Fail> {
        let mut batches: Vec<Vec<WriteRequest>> = Vec::new();
        for (key, attributes) in &items {
            let item = key_to_sdk(key).into_iter().chain(to_sdk(attributes)).collect();
            let put = PutRequest::builder().set_item(Some(item)).build();
            let put = put.map_err(|error| Trouble::Refused(Cause::said(error.to_string())))?;
            let request = WriteRequest::builder().put_request(put).build();
            match batches.last_mut() {
                Some(batch) if batch.len() < PUTS_MAX => batch.push(request),
                Some(_) | None => batches.push(vec![request]),
            }
        }
        let mut running = JoinSet::new();
        for batch in batches {
            if running.len() == BATCHES_MAX {
                done(running.join_next().await)?;
            }
            let link = self.clone();
            running.spawn(async move { link.put_some(batch).await });
        }
        while let Some(ended) = running.join_next().await {
            done(Some(ended))?;
        }
        Ok(())
    }

    async fn put_some(&self, mut left: Vec<WriteRequest>) -> Result<(), Fail> {
        let mut patience = self.patience();
        while !left.is_empty() {
            let asked = left.len();
            let request = self
                .client
                .batch_write_item()
                .request_items(self.table(), left)
                .set_return_consumed_capacity(self.measuring());
            let answer = self.again("BatchWriteItem", || request.clone().send()).await;
            let answer = answer.map_err(super::Failed::trouble)?;
            self.consumed(false, answer.consumed_capacity());
            let unprocessed = answer.unprocessed_items.unwrap_or_default();
            left = unprocessed.into_values().flatten().collect();
            // What is left was throttled. Some progress is progress; only standing still takes patience.
            if left.len() == asked && !patience.pause().await {
                let cause = Cause::said("items stay unprocessed");
                return Err(Trouble::Throttled(cause).into());
            }
        }
        Ok(())
    }
}

fn done(ended: Option<Result<Result<(), Fail>, tokio::task::JoinError>>) -> Result<(), Fail> {
    match ended {
        None => Ok(()),
        Some(Ok(done)) => done,
        Some(Err(error)) => Err(Trouble::Silent(Cause::said(error.to_string())).into()),
    }
}
