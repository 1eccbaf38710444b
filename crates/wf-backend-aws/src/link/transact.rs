//! Transactions: sent until the outcome is known or patience ends, always as the same built request.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::CancellationReason;

use super::{Failed, Link};
use crate::action::{self, Action};
use crate::commit::ACTIONS_MAX;
use crate::fault::{Cause, Fail, Kind, Trouble};
use crate::item::Item;

/// Bytes of one transaction: 4 MB, less what names and numbers add.
const BYTES_MAX: usize = 4_000_000;

/// Conditions that do not hold: nothing was written, unless by an attempt before.
#[derive(Debug)]
pub(crate) struct Met {
    /// The actions whose conditions do not hold, as far as DynamoDB says, and the items that they met. Nothing is the
    /// matter with those before the first.
    pub(crate) all: Vec<(usize, Option<Item>)>,
    /// An attempt before this one may have been applied.
    pub(crate) after_unknown: bool,
}

/// A transaction of which it is not known that it was applied.
#[derive(Debug)]
pub(crate) struct Unsent {
    /// It may have been, or may still be.
    pub(crate) unknown: bool,
    pub(crate) fail: Fail,
}

impl Unsent {
    fn surely(fail: impl Into<Fail>) -> Self {
        Self { unknown: false, fail: fail.into() }
    }
}

/// What the reasons of a cancellation say.
enum Why {
    /// Some conditions do not hold, and the first action that has a reason is one of theirs.
    Conditions(Vec<(usize, Option<Item>)>),
    /// Others are at work on the items, or there is no capacity: it may pass later.
    Later(Kind),
    /// It will never pass.
    Never(String),
}

impl Link {
    /// Applies all actions or none. `Ok(Some(…))`: a condition does not hold.
    pub(crate) async fn transact(&self, actions: &[Action]) -> Result<Option<Met>, Unsent> {
        if actions.len() > ACTIONS_MAX {
            return Err(Unsent::surely(Trouble::TooMuch("actions")));
        }
        if actions.iter().map(Action::size).sum::<usize>() > BYTES_MAX {
            return Err(Unsent::surely(Trouble::TooMuch("bytes")));
        }
        self.allowed().await.map_err(Unsent::surely)?;
        let call = getrandom::u64().map_err(|error| {
            Unsent::surely(Trouble::Refused(Cause::said(format!("no randomness: {error}"))))
        })?;
        let mut request = self
            .client
            .transact_write_items()
            .client_request_token(action::token(call, 0, actions))
            .set_return_consumed_capacity(self.measuring());
        for one in actions {
            let one = one.to_sdk(self.table());
            let one = one.map_err(|error| {
                Unsent::surely(Trouble::Refused(Cause::said(error.to_string())))
            })?;
            request = request.transact_items(one);
        }
        let (mut patience, mut unknown, mut salt) = (self.patience(), false, 0);
        loop {
            self.count("TransactWriteItems");
            let failed = match request.clone().send().await {
                Ok(answer) => {
                    self.consumed(false, answer.consumed_capacity());
                    return Ok(None);
                }
                Err(error) => Failed::of(error),
            };
            tracing::debug!(kind = ?failed.kind, salt, "a transaction was not acknowledged");
            let fail = match failed.kind {
                Kind::Cancelled => match why(&failed) {
                    Why::Conditions(all) => {
                        return Ok(Some(Met { all, after_unknown: unknown }));
                    }
                    Why::Later(kind) => kind.trouble(crate::fault::cause(failed.error)),
                    Why::Never(what) => {
                        let fail = Trouble::Refused(Cause::said(what)).into();
                        return Err(Unsent { unknown, fail });
                    }
                },
                Kind::TokenTaken => {
                    unknown = true;
                    salt += 1;
                    request = request.client_request_token(action::token(call, salt, actions));
                    failed.trouble()
                }
                Kind::Unknown => {
                    unknown = true;
                    failed.trouble()
                }
                Kind::Throttled | Kind::Contended => failed.trouble(),
                Kind::Condition | Kind::NoTable | Kind::Denied | Kind::Refused => {
                    return Err(Unsent { unknown, fail: failed.trouble().into() });
                }
            };
            if !patience.pause().await {
                return Err(Unsent { unknown, fail: fail.into() });
            }
        }
    }
}

/// Reads the reasons, which stand in the order of the actions. A condition counts only when nothing before it is merely
/// contended: what comes first in a commit is what is told, so it must be known.
fn why(failed: &Failed<TransactWriteItemsError>) -> Why {
    let service = failed.error.as_service_error();
    let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = service else {
        return Why::Later(Kind::Contended);
    };
    let reasons = cancelled.cancellation_reasons();
    let said = |reason: &CancellationReason| {
        reason.code().filter(|code| *code != "None").map(str::to_owned)
    };
    let mut conditions = Vec::new();
    let mut later = None;
    for (index, reason) in reasons.iter().enumerate() {
        let Some(code) = said(reason) else { continue };
        match code.as_str() {
            "ConditionalCheckFailed" if later.is_none() => {
                conditions.push((index, reason.item().cloned().map(Item::from)));
            }
            "ConditionalCheckFailed" => {}
            "TransactionConflict" => later = Some(Kind::Contended),
            "ThrottlingError" | "ProvisionedThroughputExceeded" => later = Some(Kind::Throttled),
            _ => {
                let message = reason.message().unwrap_or_default();
                return Why::Never(format!("action {index}: {code}: {message}"));
            }
        }
    }
    if conditions.is_empty() {
        Why::Later(later.unwrap_or(Kind::Contended))
    } else {
        Why::Conditions(conditions)
    }
}
