//! Reads, and writes of one item under a condition.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, Get, KeysAndAttributes, ReturnValue, ReturnValuesOnConditionCheckFailure,
    TransactGetItem,
};

use super::Link;
use crate::action::Expression;
use crate::fault::{Cause, Fail, Kind, Trouble};
use crate::item::{Item, key_to_sdk, to_sdk};
use crate::keys::{Index, Key, PK, SK};

/// Keys of one TransactGetItems or BatchGetItem (API reference).
const KEYS_MAX: usize = 100;

/// Sort keys of one partition, from `from` to `to`, both included.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    /// Of the table when absent. An index shows what was written a moment ago, not what is.
    pub(crate) index: Option<Index>,
    pub(crate) pk: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) backward: bool,
    /// At most this many items a page.
    pub(crate) limit: Option<u32>,
    /// Where a page before ended.
    pub(crate) start: Option<HashMap<String, AttributeValue>>,
}

impl Range {
    /// All sort keys that start with `prefix`.
    pub(crate) fn prefix(pk: String, prefix: &str) -> Self {
        let to = format!("{prefix}{}", crate::keys::LAST);
        // A key is never empty, and none of ours starts below a space.
        Self::between(pk, if prefix.is_empty() { " " } else { prefix }, to)
    }

    pub(crate) fn between(pk: String, from: impl Into<String>, to: impl Into<String>) -> Self {
        let (from, to) = (from.into(), to.into());
        Self { index: None, pk, from, to, backward: false, limit: None, start: None }
    }

    pub(crate) fn of(mut self, index: Index) -> Self {
        self.index = Some(index);
        self
    }

    pub(crate) fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit.max(1));
        self
    }

    pub(crate) fn backward(mut self) -> Self {
        self.backward = true;
        self
    }
}

/// Attributes that an expression calls `#name`, because their names are words of DynamoDB's own.
fn aliases(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter_map(|word| word.strip_prefix('#'))
}

/// What became of a write under a condition.
#[derive(Debug)]
pub(crate) enum Changed {
    /// It was written.
    Done,
    /// The condition does not hold for this item, if there is one. Nothing was written, unless, with `after_unknown`, by
    /// an attempt before, whose answer was lost.
    Not { met: Option<Item>, after_unknown: bool },
}

impl Changed {
    /// A deletion took place, by this attempt or by one before.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Done | Self::Not { met: None, after_unknown: true })
    }
}

impl Link {
    /// One item, as it is now.
    pub(crate) async fn get(&self, key: &Key) -> Result<Option<Item>, Fail> {
        let request = self
            .client
            .get_item()
            .table_name(self.table())
            .set_key(Some(key_to_sdk(key)))
            .consistent_read(true)
            .set_return_consumed_capacity(self.measuring());
        let answer = self.again("GetItem", || request.clone().send()).await;
        let answer = answer.map_err(super::Failed::trouble)?;
        self.consumed(true, answer.consumed_capacity());
        Ok(answer.item.map(Item::from))
    }

    /// Items as they are together at one moment, in the order of the keys.
    pub(crate) async fn get_together(&self, keys: &[Key]) -> Result<Vec<Option<Item>>, Fail> {
        match keys {
            [] => return Ok(Vec::new()),
            [one] => return Ok(vec![self.get(one).await?]),
            more if more.len() > KEYS_MAX => return Err(Trouble::TooMuch("keys").into()),
            _ => {}
        }
        let mut request =
            self.client.transact_get_items().set_return_consumed_capacity(self.measuring());
        for key in keys {
            let get =
                Get::builder().table_name(self.table()).set_key(Some(key_to_sdk(key))).build();
            let get = get.map_err(|error| Trouble::Refused(Cause::said(error.to_string())))?;
            request = request.transact_items(TransactGetItem::builder().get(get).build());
        }
        let mut patience = self.patience();
        let answer = loop {
            let answer = self.again("TransactGetItems", || request.clone().send()).await;
            match answer {
                Ok(answer) => break answer,
                // Somebody wrote one of the items in the meantime.
                Err(failed) if failed.kind == Kind::Cancelled => {
                    if !patience.pause().await {
                        return Err(failed.trouble().into());
                    }
                }
                Err(failed) => return Err(failed.trouble().into()),
            }
        };
        self.consumed(true, answer.consumed_capacity());
        let mut items = answer.responses.unwrap_or_default().into_iter();
        let next = || items.next().and_then(|answer| answer.item).map(Item::from);
        Ok(std::iter::repeat_with(next).take(keys.len()).collect())
    }

    /// Items as they are, each by itself, in the order of the keys. What is left unprocessed is asked for again. A key may
    /// come twice: an index in which an item moves shows it at both places for a moment.
    pub(crate) async fn get_each(&self, keys: &[Key]) -> Result<Vec<Option<Item>>, Fail> {
        let mut found: HashMap<Key, Item> = HashMap::new();
        let wanted: Vec<Key> = keys.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect();
        for some in wanted.chunks(KEYS_MAX) {
            self.get_some(some, &mut found).await?;
        }
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    async fn get_some(&self, keys: &[Key], found: &mut HashMap<Key, Item>) -> Result<(), Fail> {
        let mut left: Vec<_> = keys.iter().map(key_to_sdk).collect();
        let mut patience = self.patience();
        while !left.is_empty() {
            let asked = left.len();
            let wanted = KeysAndAttributes::builder().set_keys(Some(left)).consistent_read(true);
            let wanted = wanted.build();
            let wanted =
                wanted.map_err(|error| Trouble::Refused(Cause::said(error.to_string())))?;
            let request = self
                .client
                .batch_get_item()
                .request_items(self.table(), wanted)
                .set_return_consumed_capacity(self.measuring());
            let answer = self.again("BatchGetItem", || request.clone().send()).await;
            let answer = answer.map_err(super::Failed::trouble)?;
            self.consumed(true, answer.consumed_capacity());
            for attributes in answer.responses.unwrap_or_default().into_values().flatten() {
                let item = Item::from(attributes);
                found.insert(item.key()?, item);
            }
            let unprocessed = answer.unprocessed_keys.unwrap_or_default();
            left = unprocessed.into_values().flat_map(|more| more.keys).collect();
            // An answer has its greatest size: going on is no repeat. Only standing still is.
            if left.len() == asked && !patience.pause().await {
                let cause = Cause::said("keys stay unprocessed");
                return Err(Trouble::Throttled(cause).into());
            }
        }
        Ok(())
    }

    /// One page of a range; from an index only keys. The second part is where the next page starts.
    pub(crate) async fn query(
        &self,
        range: &Range,
    ) -> Result<(Vec<Item>, Option<HashMap<String, AttributeValue>>), Fail> {
        let (pk, sk) = range.index.map_or((PK, SK), |index| (index.pk, index.sk));
        let limit = range.limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX));
        let request = self
            .client
            .query()
            .table_name(self.table())
            .set_index_name(range.index.map(|index| index.name.to_owned()))
            .key_condition_expression(format!("{pk} = :pk AND {sk} BETWEEN :from AND :to"))
            .expression_attribute_values(":pk", AttributeValue::S(range.pk.clone()))
            .expression_attribute_values(":from", AttributeValue::S(range.from.clone()))
            .expression_attribute_values(":to", AttributeValue::S(range.to.clone()))
            .scan_index_forward(!range.backward)
            .consistent_read(range.index.is_none())
            .set_limit(limit)
            .set_exclusive_start_key(range.start.clone())
            .set_return_consumed_capacity(self.measuring());
        let answer = self.again("Query", || request.clone().send()).await;
        let answer = answer.map_err(super::Failed::trouble)?;
        self.consumed(true, answer.consumed_capacity());
        let items = answer.items.unwrap_or_default().into_iter().map(Item::from).collect();
        Ok((items, answer.last_evaluated_key.filter(|key| !key.is_empty())))
    }

    /// All pages of a range, until there are `most` items.
    pub(crate) async fn query_all(&self, mut range: Range, most: usize) -> Result<Vec<Item>, Fail> {
        let mut items = Vec::new();
        while items.len() < most {
            let (page, next) = self.query(&range).await?;
            items.extend(page);
            range.start = next;
            if range.start.is_none() {
                break;
            }
        }
        items.truncate(most);
        Ok(items)
    }

    /// Changes one item under a condition. A repeat after a lost answer may meet what it wrote itself: who cares writes
    /// something by which it knows it again.
    pub(crate) async fn update(
        &self,
        key: &Key,
        update: &Expression,
        condition: &Expression,
    ) -> Result<Changed, Fail> {
        self.allowed().await?;
        let mut values = to_sdk(&update.values);
        values.extend(to_sdk(&condition.values));
        let mut request = self
            .client
            .update_item()
            .table_name(self.table())
            .set_key(Some(key_to_sdk(key)))
            .update_expression(&update.text)
            .condition_expression(&condition.text)
            .set_expression_attribute_values((!values.is_empty()).then_some(values))
            .return_values(ReturnValue::None)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .set_return_consumed_capacity(self.measuring());
        for name in aliases(&update.text).chain(aliases(&condition.text)) {
            request = request.expression_attribute_names(format!("#{name}"), name);
        }
        match self.again("UpdateItem", || request.clone().send()).await {
            Ok(answer) => {
                self.consumed(false, answer.consumed_capacity());
                Ok(Changed::Done)
            }
            Err(failed) if failed.kind == Kind::Condition => {
                let after_unknown = failed.after_unknown;
                let error = failed.error.into_service_error();
                let met = if let UpdateItemError::ConditionalCheckFailedException(met) = error {
                    met.item.map(Item::from)
                } else {
                    None
                };
                Ok(Changed::Not { met, after_unknown })
            }
            Err(failed) => Err(failed.trouble().into()),
        }
    }

    /// Deletes one item under a condition.
    pub(crate) async fn delete(&self, key: &Key, condition: &Expression) -> Result<Changed, Fail> {
        self.allowed().await?;
        let values = to_sdk(&condition.values);
        let request = self
            .client
            .delete_item()
            .table_name(self.table())
            .set_key(Some(key_to_sdk(key)))
            .condition_expression(&condition.text)
            .set_expression_attribute_values((!values.is_empty()).then_some(values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .set_return_consumed_capacity(self.measuring());
        match self.again("DeleteItem", || request.clone().send()).await {
            Ok(answer) => {
                self.consumed(false, answer.consumed_capacity());
                Ok(Changed::Done)
            }
            Err(failed) if failed.kind == Kind::Condition => {
                let after_unknown = failed.after_unknown;
                let error = failed.error.into_service_error();
                let met = if let DeleteItemError::ConditionalCheckFailedException(met) = error {
                    met.item.map(Item::from)
                } else {
                    None
                };
                Ok(Changed::Not { met, after_unknown })
            }
            Err(failed) => Err(failed.trouble().into()),
        }
    }
}
