//! Whether the table is still the store that was opened, in a schema that this build knows.
//!
//! Several builds may use one table at the same time, and nothing stops an operator from restoring or emptying it under a
//! running server. A condition on the identity in every transaction would make all of them conflict with each other, so a
//! process looks at it now and then instead: before a write, when its last look is older than
//! [`AwsConfig::trust_ms`](crate::AwsConfig::trust_ms). What the look finds counts from the moment before it was sent.
//!
//! So whoever changes the identity, to raise the schema or to mark a restored table, must wait for [`settled_after`] before
//! writing anything that an older process must not meet: by then every write that such a process began has come to its end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::AwsConfig;
use crate::copy;
use crate::fault::{Fail, Trouble};
use crate::item::Item;
use crate::link::Link;
use crate::open::{self, SCHEMA};

/// How long after a change of the identity no process writes any more that has not seen it.
pub(crate) fn settled_after(config: &AwsConfig) -> Duration {
    let last_write = config.patience_ms.saturating_add(config.attempt_timeout_ms);
    Duration::from_millis(config.trust_ms.saturating_add(last_write))
}

/// What a process knows of the store that it opened.
#[derive(Debug)]
pub(crate) struct Guard {
    store_id: String,
    trust: Duration,
    last: Mutex<Look>,
    /// One looks, the others wait for what it finds.
    pub(crate) looking: tokio::sync::Mutex<()>,
}

/// What was found, and when.
#[derive(Debug)]
struct Look {
    at: Instant,
    refusal: Option<Trouble>,
}

impl Guard {
    /// Of a store whose identity was read no earlier than `at`.
    pub(crate) fn new(store_id: String, config: &AwsConfig, at: Instant) -> Self {
        Self {
            store_id,
            trust: Duration::from_millis(config.trust_ms),
            last: Mutex::new(Look { at, refusal: None }),
            looking: tokio::sync::Mutex::new(()),
        }
    }

    /// What the last look found, while it counts.
    pub(crate) fn fresh(&self) -> Option<Result<(), Fail>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        (last.at.elapsed() < self.trust)
            .then(|| last.refusal.clone().map_or(Ok(()), |refusal| Err(refusal.into())))
    }

    /// Judges the identity as it was read no earlier than `at`.
    pub(crate) fn judge(&self, at: Instant, identity: Option<&Item>) -> Result<(), Fail> {
        let refusal = refusal(&self.store_id, identity)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match (&last.refusal, &refusal) {
            (None, Some(error)) => tracing::error!(%error, "the store is written to no more"),
            (Some(_), None) => tracing::warn!("the store is written to again"),
            (None, None) | (Some(_), Some(_)) => {}
        }
        *last = Look { at, refusal: refusal.clone() };
        refusal.map_or(Ok(()), |refusal| Err(refusal.into()))
    }
}

/// Why a process that opened the store `store_id` must not write where this is the identity.
fn refusal(store_id: &str, identity: Option<&Item>) -> Result<Option<Trouble>, Fail> {
    let Some(item) = identity else { return Ok(Some(Trouble::Replaced)) };
    let found: u64 = item.number("schema")?;
    if found > SCHEMA {
        return Ok(Some(Trouble::Newer { found, known: SCHEMA }));
    }
    let is_ours = item.opt_text("store_id")? == Some(store_id)
        && !copy::is_unfinished(item)?
        && open::restoring(item)?.is_none();
    Ok((!is_ours).then_some(Trouble::Replaced))
}

impl Link {
    /// Refuses where the table is no longer the store that was opened. Nobody refuses who opened none: commands that make a
    /// store, or read one whole.
    pub(crate) async fn allowed(&self) -> Result<(), Fail> {
        let Some(guard) = self.guard() else { return Ok(()) };
        if let Some(known) = guard.fresh() {
            return known;
        }
        let _one = guard.looking.lock().await;
        if let Some(known) = guard.fresh() {
            return known;
        }
        let at = Instant::now();
        let identity = self.get(&crate::keys::identity()).await?;
        guard.judge(at, identity.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use aws_sdk_dynamodb::types::AttributeValue;

    use super::{Guard, Instant, Item, refusal};
    use crate::config::AwsConfig;
    use crate::fault::{Fail, Trouble};

    fn identity(schema: u64, store_id: &str) -> HashMap<String, AttributeValue> {
        HashMap::from([
            ("schema".to_owned(), AttributeValue::N(schema.to_string())),
            ("store_id".to_owned(), AttributeValue::S(store_id.to_owned())),
        ])
    }

    fn with(name: &str) -> Item {
        let mut item = identity(1, "mine");
        item.insert(name.to_owned(), AttributeValue::S("x".to_owned()));
        item.into()
    }

    #[test]
    fn only_the_store_that_was_opened_may_be_written_to() {
        let found = |item: Item| refusal("mine", Some(&item)).unwrap();
        assert!(found(identity(1, "mine").into()).is_none());
        assert!(matches!(
            found(identity(2, "mine").into()),
            Some(Trouble::Newer { found: 2, known: 1 })
        ));
        assert!(matches!(found(identity(1, "another").into()), Some(Trouble::Replaced)));
        assert!(matches!(found(with("restoring")), Some(Trouble::Replaced)));
        assert!(matches!(found(with("copy_of")), Some(Trouble::Replaced)));
        assert!(matches!(refusal("mine", None), Ok(Some(Trouble::Replaced))));
        assert!(matches!(refusal("mine", Some(&Item::default())), Err(Fail::Unreadable(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_seen_counts_for_as_long_as_it_is_trusted() {
        let mut config = AwsConfig::new("t");
        config.trust_ms = 5_000;
        let guard = Guard::new("mine".to_owned(), &config, Instant::now());
        assert!(matches!(guard.fresh(), Some(Ok(()))));
        tokio::time::advance(std::time::Duration::from_millis(4_999)).await;
        assert!(matches!(guard.fresh(), Some(Ok(()))));
        tokio::time::advance(std::time::Duration::from_millis(1)).await;
        assert!(guard.fresh().is_none(), "it must look again");

        let newer: Item = identity(9, "mine").into();
        let refused = guard.judge(Instant::now(), Some(&newer));
        assert!(matches!(refused, Err(Fail::Trouble(Trouble::Newer { found: 9, .. }))));
        assert!(matches!(guard.fresh(), Some(Err(_))));
        // An older schema may come back with an older backup: then it goes on.
        let older: Item = identity(1, "mine").into();
        guard.judge(Instant::now(), Some(&older)).unwrap();
        assert!(matches!(guard.fresh(), Some(Ok(()))));
    }
}
