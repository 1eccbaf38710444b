//! One action of a transaction, before the SDK sees it: plain data in a fixed order, so that it can be hashed, compared
//! and shown. `commit` makes them, `link` sends them.

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::item::{Attributes, key_to_sdk, to_sdk};
use crate::keys::Key;

/// One action on one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Action {
    pub(crate) key: Key,
    pub(crate) what: What,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) condition: Option<Expression>,
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) enum What {
    /// Writes the whole item; the key is added.
    Put(Attributes),
    Update(Expression),
    Delete,
    /// Only the condition.
    Check,
}

/// An expression of DynamoDB and the values in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Expression {
    pub(crate) text: String,
    pub(crate) values: Attributes,
}

impl Expression {
    pub(crate) fn new(text: impl Into<String>, values: impl Into<Attributes>) -> Self {
        Self { text: text.into(), values: values.into() }
    }
}

/// The item does not exist.
pub(crate) fn absent() -> Expression {
    Expression::new("attribute_not_exists(PK)", [])
}

impl Action {
    pub(crate) fn put(key: Key, attributes: Attributes) -> Self {
        Self { key, what: What::Put(attributes), condition: None }
    }

    pub(crate) fn update(key: Key, update: Expression) -> Self {
        Self { key, what: What::Update(update), condition: None }
    }

    pub(crate) fn delete(key: Key) -> Self {
        Self { key, what: What::Delete, condition: None }
    }

    pub(crate) fn check(key: Key, condition: Expression) -> Self {
        Self { key, what: What::Check, condition: Some(condition) }
    }

    pub(crate) fn when(mut self, condition: Expression) -> Self {
        self.condition = Some(condition);
        self
    }

    /// About how many bytes it sends.
    pub(crate) fn size(&self) -> usize {
        let of = |attributes: &Attributes| -> usize {
            attributes.iter().map(|(name, value)| name.len() + value.len()).sum()
        };
        let what = match &self.what {
            What::Put(attributes) => of(attributes),
            What::Update(update) => update.text.len() + of(&update.values),
            What::Delete | What::Check => 0,
        };
        let condition = self.condition.as_ref().map_or(0, |c| c.text.len() + of(&c.values));
        self.key.pk.len() + self.key.sk.len() + what + condition
    }

    /// As the SDK wants it. The item that a failed condition met is asked for.
    pub(crate) fn to_sdk(&self, table: &str) -> Result<TransactWriteItem, BuildError> {
        let met = self.condition.as_ref().map(|_| ReturnValuesOnConditionCheckFailure::AllOld);
        let condition = self.condition.as_ref().map(|c| c.text.clone());
        let mut values = self.condition.as_ref().map_or_else(Attributes::new, |c| c.values.clone());
        if let What::Update(update) = &self.what {
            values.extend(update.values.clone());
        }
        let values = (!values.is_empty()).then(|| to_sdk(&values));
        let key = key_to_sdk(&self.key);
        let item = TransactWriteItem::builder();
        Ok(match &self.what {
            What::Put(attributes) => item.put(
                Put::builder()
                    .table_name(table)
                    .set_item(Some(key.into_iter().chain(to_sdk(attributes)).collect()))
                    .set_condition_expression(condition)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(met)
                    .build()?,
            ),
            What::Update(update) => item.update(
                Update::builder()
                    .table_name(table)
                    .set_key(Some(key))
                    .update_expression(&update.text)
                    .set_condition_expression(condition)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(met)
                    .build()?,
            ),
            What::Delete => item.delete(
                Delete::builder()
                    .table_name(table)
                    .set_key(Some(key))
                    .set_condition_expression(condition)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(met)
                    .build()?,
            ),
            What::Check => item.condition_check(
                ConditionCheck::builder()
                    .table_name(table)
                    .set_key(Some(key))
                    .condition_expression(condition.unwrap_or_default())
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(met)
                    .build()?,
            ),
        }
        .build())
    }
}

/// The client request token of a transaction: the first 36 base64url characters of SHA-256 over a number of the call and
/// the serialised actions. Sent again within the call, the same request has the same token; the same commit sent by
/// another call has another, because it must meet its ledger row and not be told that it was taken.
pub(crate) fn token(call: u64, salt: u32, actions: &[Action]) -> String {
    let mut hash = Sha256::new();
    hash.update(call.to_be_bytes());
    hash.update(salt.to_be_bytes());
    // Texts and numbers only: this cannot fail, and if it did, the token would merely say less.
    hash.update(serde_json::to_vec(actions).unwrap_or_default());
    let mut token = BASE64_URL_SAFE_NO_PAD.encode(hash.finalize());
    token.truncate(36);
    token
}
