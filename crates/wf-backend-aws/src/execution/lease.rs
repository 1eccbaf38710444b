//! The lease of a shard of the reconciler, with an epoch that grows whenever it changes hands. A lease ends by time, and a
//! process may stand still for longer; what it writes then is refused by its epoch.

use wf_core::models::Timestamp;
use wf_core::ports::{Epoch, LeaseToken};

use crate::action::{Expression, absent};
use crate::fault::Fail;
use crate::item::{Attributes, Value};
use crate::keys;
use crate::leases;
use crate::link::{Changed, Link};

pub(super) fn number(epoch: Epoch) -> Value {
    Value::n(epoch.0)
}

/// The lease of one shard of the reconciler, of which one process at a time works.
#[derive(Debug, Clone)]
pub struct ShardLease {
    /// Which shard, below [`SHARDS`](super::SHARDS).
    pub shard: u8,
    /// Random, one's own, the same for each renewal.
    pub token: LeaseToken,
    /// Now.
    pub now: Timestamp,
    /// How long the lease lasts, in milliseconds.
    pub lease_ms: i64,
}

impl ShardLease {
    /// A lease that `token` asks for at `now`.
    #[must_use]
    pub fn new(shard: u8, token: LeaseToken, now: Timestamp, lease_ms: i64) -> Self {
        Self { shard, token, now, lease_ms }
    }
}

/// Takes or renews the lease of a shard; none when somebody else has it.
pub(super) async fn hold(link: &Link, lease: &ShardLease) -> Result<Option<Epoch>, Fail> {
    let key = keys::reconciler(lease.shard);
    let item = link.get(&key).await?.unwrap_or_default();
    let before: Option<u64> = item.opt_number("epoch")?;
    let mine = item.opt_text("lease_token")? == Some(lease.token.0.as_str());
    if !mine && leases::is_live(&item, lease.now, lease.lease_ms)? {
        return Ok(None);
    }
    let epoch = match before {
        Some(epoch) if mine => epoch,
        // No lower than the time, so that it grows even where the row was lost.
        before => {
            let time = u64::try_from(lease.now.as_ms()).unwrap_or(0);
            before.unwrap_or(0).saturating_add(1).max(time)
        }
    };
    let until = lease.now.plus_ms(lease.lease_ms).as_ms();
    let update = Expression::new(
        "SET lease_token = :token, lease_until = :until, epoch = :epoch",
        [
            (":token", Value::s(&lease.token.0)),
            (":until", Value::n(until)),
            (":epoch", Value::n(epoch)),
        ],
    );
    // Whoever changes hands raises the epoch, so an equal one means that the item is as it was read, or renewed since.
    let condition = match before {
        None => absent(),
        Some(before) if mine => Expression::new(
            "epoch = :before AND lease_token = :token",
            [(":before", Value::n(before))],
        ),
        Some(before) => {
            let (over, values) = leases::over(lease.now, lease.lease_ms);
            let mut values: Attributes = values.into_iter().collect();
            values.insert(":before", Value::n(before));
            Expression::new(format!("epoch = :before AND {over}"), values)
        }
    };
    Ok(match link.update(&key, &update, &condition).await? {
        Changed::Done => Some(Epoch(epoch)),
        Changed::Not { met: Some(item), after_unknown: true } => {
            let ours = item.opt_text("lease_token")? == Some(lease.token.0.as_str())
                && item.opt_number("epoch")? == Some(epoch);
            ours.then_some(Epoch(epoch))
        }
        Changed::Not { .. } => None,
    })
}

/// Gives the lease of a shard back; false when it is somebody else's. One that nobody has is given back. The epoch stays.
pub(super) async fn release(link: &Link, shard: u8, token: &LeaseToken) -> Result<bool, Fail> {
    let mine = Expression::new("lease_token = :mine", [(":mine", Value::s(&token.0))]);
    let free = Expression::new("REMOVE lease_token, lease_until", []);
    Ok(match link.update(&keys::reconciler(shard), &free, &mine).await? {
        Changed::Done => true,
        Changed::Not { met, .. } => match met {
            Some(item) => item.opt_text("lease_token")?.is_none(),
            None => true,
        },
    })
}
