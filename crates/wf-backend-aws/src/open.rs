//! Opening a store: look at the table, read its identity, make one where there is none.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use tokio::time::Instant;
use wf_core::ports::copy::StoreFacts;
use wf_core::ports::{OpenError, StoreIdentity};
use wf_core::state_machine::Secret;

use crate::config::AwsConfig;
use crate::definitions::put_new;
use crate::fault::{Cause, Fail, Trouble};
use crate::guard::Guard;
use crate::item::{Attributes, Item, Value, json};
use crate::keys;
use crate::link::Link;
use crate::store::AwsStore;
use crate::{client, copy, table};

/// The schema that this build reads and writes.
pub(crate) const SCHEMA: u64 = 1;

/// The attribute of an identity that is being marked as restored: the id to be. No build opens such a table.
pub(crate) const RESTORING: &str = "restoring";

/// A store that was opened.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: AwsStore,
    /// The table was empty: the store was made.
    pub created: bool,
}

pub(crate) async fn open(config: AwsConfig, may_create: bool) -> Result<Opened, OpenError> {
    if config.table.is_empty() {
        return Err(OpenError::Refused { message: "backend.aws.table is not set".to_owned() });
    }
    let link = Link::new(client::connect(&config).await, config);
    let begun = Instant::now();
    let facts = match facts(&link).await {
        Ok(facts) => facts,
        // DynamoDB refuses a key of another shape, and says no more than that.
        Err(error @ OpenError::Unavailable { .. }) => {
            return Err(not_ours(&link).await.ok().flatten().unwrap_or(error));
        }
        Err(error) => return Err(error),
    };
    let (created, facts) = match facts {
        Some(facts) => (false, Some(facts)),
        None if may_create => (make(&link).await?, self::facts(&link).await?),
        None => (false, None),
    };
    let Some(facts) = facts else {
        let table = &link.config().table;
        let message = format!("there is no store in the table {table}: start the server once");
        return Err(OpenError::Refused { message });
    };
    let guard = Guard::new(facts.identity.id, link.config(), begun);
    Ok(Opened { store: AwsStore::new(link.guarded(guard), facts.fence_base), created })
}

/// The identity of the store, if there is one.
pub(crate) async fn identity(link: &Link) -> Result<Option<StoreIdentity>, OpenError> {
    Ok(facts(link).await?.map(|facts| facts.identity))
}

/// What the store is known by, if there is one.
async fn facts(link: &Link) -> Result<Option<StoreFacts>, OpenError> {
    let Some(item) = link.get(&keys::identity()).await? else { return Ok(None) };
    check(link, &item)?;
    if restoring(&item)?.is_some() {
        let message = format!(
            "the table {} is being marked as restored: run `wf-cli restored` again, to its end",
            link.config().table
        );
        return Err(OpenError::Refused { message });
    }
    Ok(Some(StoreFacts { identity: read(&item)?, fence_base: fence_base(&item)? }))
}

/// The identity is of a schema that this build knows, and of a whole store.
pub(crate) fn check(link: &Link, item: &Item) -> Result<(), OpenError> {
    let found: u64 = item.number("schema")?;
    if found > SCHEMA {
        return Err(OpenError::NewerSchema { found, known: SCHEMA });
    }
    if copy::is_unfinished(item)? {
        let message = format!(
            "the table {} holds an unfinished copy of a store: run the same `wf-cli copy` again, or empty the table",
            link.config().table
        );
        return Err(OpenError::Refused { message });
    }
    Ok(())
}

/// The id that the store is to have, while it is being marked as restored.
pub(crate) fn restoring(item: &Item) -> Result<Option<&str>, Fail> {
    item.opt_text(RESTORING)
}

pub(crate) fn read(item: &Item) -> Result<StoreIdentity, Fail> {
    with_secrets(item, item.text("store_id")?.to_owned())
}

/// The fence of an asset that has no lock row; above 0 in a store that was restored once.
pub(crate) fn fence_base(item: &Item) -> Result<u64, Fail> {
    Ok(item.opt_number("fence_base")?.unwrap_or(0))
}

/// The identity of a store with this id and the keys of an item.
pub(crate) fn with_secrets(item: &Item, id: String) -> Result<StoreIdentity, Fail> {
    let written: Vec<String> = item.json("secrets")?;
    let secret = |text: &String| {
        let bytes = BASE64_STANDARD_NO_PAD.decode(text);
        bytes.map(Secret::new).map_err(|_| Fail::unreadable("a secret", "not base64"))
    };
    let secrets = written.iter().map(secret).collect::<Result<Vec<_>, Fail>>()?;
    if secrets.is_empty() {
        return Err(Fail::unreadable("secrets", "there is none"));
    }
    Ok(StoreIdentity { id, secrets })
}

/// The attributes of keys.
pub(crate) fn secrets(secrets: &[Secret]) -> Result<Attributes, Fail> {
    let written: Vec<String> =
        secrets.iter().map(|secret| BASE64_STANDARD_NO_PAD.encode(secret.expose())).collect();
    Ok(Attributes::from([("secrets", Value::S(json(&written, "secrets")?))]))
}

/// What is wrong with the table, if it has another shape.
async fn not_ours(link: &Link) -> Result<Option<OpenError>, OpenError> {
    let table = &link.config().table;
    let wrong = table::shape_of(link.client(), table).await?;
    Ok(wrong.first().map(|wrong| OpenError::Refused {
        message: format!("the table {table} is not ours: {wrong}"),
    }))
}

/// Makes the identity, unless somebody else does at the same time. Only in a table of our shape.
async fn make(link: &Link) -> Result<bool, OpenError> {
    if let Some(refused) = not_ours(link).await? {
        return Err(refused);
    }
    let mut item = secrets(&[fresh_secret()?])?;
    item.insert("schema", Value::n(SCHEMA));
    item.insert("store_id", Value::S(fresh_id()?));
    Ok(put_new(link, keys::identity(), item).await?)
}

/// A fresh store id: 32 lowercase hexadecimal digits.
pub(crate) fn fresh_id() -> Result<String, Fail> {
    let mut bytes = [0_u8; 16];
    fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A fresh key to sign with.
pub(crate) fn fresh_secret() -> Result<Secret, Fail> {
    let mut bytes = vec![0_u8; 32];
    fill(&mut bytes)?;
    Ok(Secret::new(bytes))
}

fn fill(bytes: &mut [u8]) -> Result<(), Fail> {
    getrandom::fill(bytes).map_err(|error| {
        Fail::from(Trouble::Refused(Cause::said(format!("no randomness: {error}"))))
    })
}
