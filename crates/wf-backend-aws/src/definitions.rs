//! Procedure definitions: by digest, and which digest a version has, once for ever.

use wf_core::models::Digest;
use wf_core::policy::Definition;
use wf_core::ports::DefinitionError;

use crate::action::{Action, Expression, absent};
use crate::fault::{Cause, Fail, Trouble};
use crate::item::{Attributes, Value, json};
use crate::keys;
use crate::link::{Link, Unsent};

/// The largest definition, in bytes of JSON: an item has 400 KB (Service quotas).
const BYTES_MAX: usize = 390_000;

/// The item of a definition.
pub(crate) fn item(definition: &Definition) -> Result<Attributes, Fail> {
    let body = json(definition, "a definition")?;
    if body.len() > BYTES_MAX {
        return Err(Trouble::TooMuch("a definition of more than 390 KB").into());
    }
    Ok(Attributes::from([("body", Value::S(body))]))
}

/// Stores a definition. Storing the same again changes nothing.
pub(crate) async fn put(link: &Link, definition: &Definition) -> Result<(), DefinitionError> {
    let item = item(definition).map_err(DefinitionError::from)?;
    let digest = || Value::s(definition.digest.as_str());
    let text = "attribute_not_exists(PK) OR digest = :digest";
    let same = Expression::new(text, [(":digest", digest())]);
    let version = Attributes::from([("digest", digest())]);
    let actions = [
        Action::put(keys::version(&definition.id, definition.version), version).when(same),
        Action::put(keys::definition(&definition.digest), item),
    ];
    let met = match link.transact(&actions).await {
        Ok(None) => return Ok(()),
        Ok(Some(met)) => met,
        Err(Unsent { fail, .. }) => return Err(fail.into()),
    };
    let item = met.all.into_iter().find_map(|(_, item)| item);
    let existing: Option<Result<Digest, Fail>> = item.map(|item| item.parsed("digest"));
    match existing {
        Some(existing) => {
            Err(DefinitionError::Changed { existing: existing.map_err(DefinitionError::from)? })
        }
        None => {
            Err(Fail::from(Trouble::Silent(Cause::said("the old version was not sent"))).into())
        }
    }
}

/// The definition with this digest.
pub(crate) async fn get(link: &Link, digest: &Digest) -> Result<Option<Definition>, Fail> {
    let item = link.get(&keys::definition(digest)).await?;
    item.map(|item| item.json("body")).transpose()
}

/// Stores an item unless there is one; true when it was stored.
pub(crate) async fn put_new(
    link: &Link,
    key: keys::Key,
    attributes: Attributes,
) -> Result<bool, Fail> {
    match link.transact(&[Action::put(key, attributes).when(absent())]).await {
        Ok(met) => Ok(met.is_none()),
        Err(Unsent { fail, .. }) => Err(fail),
    }
}
