//! What stands beside an event is replaced. Backups and the point-in-time recovery of the table keep what was there for as
//! long as they are kept (docs/data-life.md).

use wf_core::ports::Erasure;
use wf_core::state_machine::SensitiveValue;

use crate::action::Expression;
use crate::fault::Fail;
use crate::item::{Value, json};
use crate::keys::{self, Key};
use crate::link::{Changed, Link};

/// Erases; false when something else stands there.
pub(crate) async fn erase(link: &Link, erasure: &Erasure) -> Result<bool, Fail> {
    let Erasure { tenant, workflow_id, seq, was, becomes } = erasure;
    let key = Key::new(keys::workflow(tenant, workflow_id), keys::event(*seq));
    let Some(item) = link.get(&key).await? else { return Ok(false) };
    let stands: Vec<SensitiveValue> = item.opt_json("sensitive")?.unwrap_or_default();
    if was.is_empty() || stands != *was {
        return Ok(false);
    }
    let left = json(becomes, "a sensitive value")?;
    let before = Value::s(item.text("sensitive")?);
    // The attribute has a name that is a word of DynamoDB's own.
    let replace = Expression::new("SET #sensitive = :left", [(":left", Value::s(&left))]);
    let unchanged = Expression::new("#sensitive = :before", [(":before", before)]);
    match link.update(&key, &replace, &unchanged).await? {
        Changed::Done => Ok(true),
        // An attempt whose answer was lost may have done it: it is known again by what it left.
        Changed::Not { met: Some(met), after_unknown: true } => {
            Ok(met.opt_text("sensitive")? == Some(left.as_str()))
        }
        Changed::Not { .. } => Ok(false),
    }
}
