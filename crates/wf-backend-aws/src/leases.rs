//! Leases: a token and an expiry on an item. Whoever holds the token may change what is leased; after the expiry somebody
//! else may take it. An expiry further ahead than any clock that is nearly right gives counts as over.

use wf_core::models::Timestamp;
use wf_core::ports::{Claim, LeaseToken, latest_live_expiry};

use crate::action::Expression;
use crate::fault::Fail;
use crate::item::{Attributes, Item, Value};
use crate::keys::Key;
use crate::link::{Changed, Link};

/// When the live lease of an item is over, if it has one.
pub(crate) fn live_until(item: &Item, now: Timestamp, lease_ms: i64) -> Result<Option<i64>, Fail> {
    let until: Option<i64> = item.opt_number("lease_until")?;
    let horizon = latest_live_expiry(now, lease_ms).as_ms();
    Ok(until.filter(|until| now.as_ms() < *until && *until <= horizon))
}

/// An item has a live lease.
pub(crate) fn is_live(item: &Item, now: Timestamp, lease_ms: i64) -> Result<bool, Fail> {
    Ok(live_until(item, now, lease_ms)?.is_some())
}

/// What a lease must be for somebody else to take it.
pub(crate) fn over(now: Timestamp, lease_ms: i64) -> (&'static str, Vec<(&'static str, Value)>) {
    let text =
        "(attribute_not_exists(lease_until) OR lease_until <= :now OR lease_until > :horizon)";
    let horizon = latest_live_expiry(now, lease_ms).as_ms();
    (text, vec![(":now", Value::n(now.as_ms())), (":horizon", Value::n(horizon))])
}

/// Takes the lease of an item whose attribute `due` is there and not after now, unless it has a live one. An answer that
/// was lost does no harm: the item that the repeat meets has our token, which is fresh for each claim.
pub(crate) async fn take(
    link: &Link,
    key: &Key,
    due: &'static str,
    claim: &Claim,
) -> Result<bool, Fail> {
    let (over, values) = over(claim.now, claim.lease_ms);
    let condition = Expression::new(
        format!("{due} <= :now AND {over}"),
        values.into_iter().collect::<Attributes>(),
    );
    put(link, key, &claim.token, claim.now, claim.lease_ms, condition).await
}

async fn put(
    link: &Link,
    key: &Key,
    token: &LeaseToken,
    now: Timestamp,
    lease_ms: i64,
    condition: Expression,
) -> Result<bool, Fail> {
    let until = now.plus_ms(lease_ms).as_ms();
    let update = Expression::new(
        "SET lease_token = :token, lease_until = :until",
        [(":token", Value::s(&token.0)), (":until", Value::n(until))],
    );
    Ok(match link.update(key, &update, &condition).await? {
        Changed::Done => true,
        Changed::Not { met: Some(item), after_unknown: true } => {
            item.opt_text("lease_token")? == Some(&token.0)
        }
        Changed::Not { .. } => false,
    })
}
