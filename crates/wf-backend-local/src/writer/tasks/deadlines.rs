//! Deadlines: their lease, and the removal of those that a decision refused.

use rusqlite::Connection;
use wf_core::models::Timestamp;
use wf_core::ports::{Claim, ClaimedDeadline, Deadline};

use crate::codec::decode::{self, Read};
use crate::connection::{rows, run};
use crate::failpoint;

/// Now, the latest expiry that a live lease can have, limit.
pub(crate) const CLAIMABLE: &str = "
SELECT d.wid, d.id, d.fire_at, w.tenant, w.id
  FROM deadlines d CROSS JOIN workflows w ON w.wid = d.wid
 WHERE d.fire_at <= ?1 AND (d.lease_until IS NULL OR d.lease_until <= ?1 OR d.lease_until > ?2)
   AND NOT EXISTS (SELECT 1 FROM deadlines e
                    WHERE e.wid = d.wid AND (e.fire_at, e.id) < (d.fire_at, d.id)
                      AND e.lease_until > ?1 AND e.lease_until <= ?2)
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
pub(crate) fn claim(conn: &Connection, claim: &Claim) -> Read<Vec<ClaimedDeadline>> {
    let now = claim.now.as_ms();
    let until = now.saturating_add(claim.lease_ms);
    let latest = super::outbox::latest(claim);
    let claimed = rows(conn, CLAIMABLE, (now, latest, claim.limit), |columns| {
        let wid = columns.next::<i64>()?;
        let deadline = Deadline {
            id: columns.text()?.to_owned(),
            fire_at: Timestamp::from_ms(columns.next()?),
        };
        let (tenant, workflow_id) = decode::workflow_name(columns)?;
        let token = claim.token.clone();
        Ok((wid, ClaimedDeadline { tenant, workflow_id, deadline, token }))
    })?;
    for (wid, one) in &claimed {
        run(conn, LEASE, (&one.token.0, until, wid, &one.deadline.id))?;
    }
    failpoint::hit(failpoint::DEADLINE_CLAIM)?;
    Ok(claimed.into_iter().map(|(_, one)| one).collect())
}

/// Removes a claimed deadline; false, and nothing written, when its lease is somebody else's.
pub(crate) fn settle(conn: &Connection, claimed: &ClaimedDeadline) -> Read<bool> {
    let (tenant, workflow) = (claimed.tenant.as_str(), claimed.workflow_id.as_str());
    let arguments = (tenant, workflow, &claimed.deadline.id, &claimed.token.0);
    Ok(run(conn, SETTLE, arguments)? > 0)
}
