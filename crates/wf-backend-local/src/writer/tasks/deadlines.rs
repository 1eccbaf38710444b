//! Deadlines: their lease, and the removal of those that a decision refused.

use sqlx::SqliteConnection;
use wf_core::models::Timestamp;
use wf_core::ports::{Claim, ClaimedDeadline, Deadline};

use crate::codec::decode::{self, Columns};

/// Now, the latest expiry that a live lease can have, limit.
pub(crate) const CLAIMABLE: &str = "
SELECT d.wid, d.id, d.fire_at, w.tenant, w.id
  FROM deadlines d CROSS JOIN workflows w ON w.wid = d.wid
 WHERE d.fire_at <= ?1 AND (d.lease_until IS NULL OR d.lease_until <= ?1 OR d.lease_until > ?2)
 ORDER BY d.fire_at, d.id, d.wid
 LIMIT ?3";

/// Token, expiry, workflow number, deadline.
pub(crate) const LEASE: &str = "
UPDATE deadlines SET lease_token = ?1, lease_until = ?2 WHERE wid = ?3 AND id = ?4";

/// Tenant, workflow, deadline, token.
pub(crate) const SETTLE: &str = "
DELETE FROM deadlines
 WHERE wid = (SELECT w.wid FROM workflows w WHERE w.tenant = ?1 AND w.id = ?2) AND id = ?3 AND lease_token = ?4";

/// Takes the lease of deadlines that are due, earliest first.
pub(crate) async fn claim(
    conn: &mut SqliteConnection,
    claim: &Claim,
) -> Result<Vec<ClaimedDeadline>, sqlx::Error> {
    let now = claim.now.as_ms();
    let until = now.saturating_add(claim.lease_ms);
    let found = sqlx::query(CLAIMABLE)
        .bind(now)
        .bind(until)
        .bind(i64::from(claim.limit))
        .fetch_all(&mut *conn)
        .await?;
    let mut claimed = Vec::with_capacity(found.len());
    for row in &found {
        let mut columns = Columns::new(row, 0);
        let wid = columns.next::<i64>()?;
        let deadline = Deadline {
            id: columns.text()?.to_owned(),
            fire_at: Timestamp::from_ms(columns.next()?),
        };
        let (tenant, workflow_id) = decode::workflow_name(&mut columns)?;
        sqlx::query(LEASE)
            .bind(&claim.token.0)
            .bind(until)
            .bind(wid)
            .bind(&deadline.id)
            .execute(&mut *conn)
            .await?;
        claimed.push(ClaimedDeadline { tenant, workflow_id, deadline, token: claim.token.clone() });
    }
    Ok(claimed)
}

/// Removes a claimed deadline; false, and nothing written, when its lease is somebody else's.
pub(crate) async fn settle(
    conn: &mut SqliteConnection,
    claimed: &ClaimedDeadline,
) -> Result<bool, sqlx::Error> {
    let done = sqlx::query(SETTLE)
        .bind(claimed.tenant.as_str())
        .bind(claimed.workflow_id.as_str())
        .bind(&claimed.deadline.id)
        .bind(&claimed.token.0)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() > 0)
}
