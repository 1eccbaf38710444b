//! Whether a deadline can be claimed, and when the next one can.

use wf_core::models::Timestamp;
use wf_core::ports::{Claim, ReadError, latest_live_expiry};

use crate::codec::decode;
use crate::readers::Readers;

/// Now, and the latest expiry that a live lease can have.
pub(crate) const ANY_DUE: &str = "
SELECT 1 FROM deadlines d
 WHERE d.fire_at <= ?1 AND (d.lease_until IS NULL OR d.lease_until <= ?1 OR d.lease_until > ?2)
   AND NOT EXISTS (SELECT 1 FROM deadlines e
                    WHERE e.wid = d.wid AND (e.fire_at, e.id) < (d.fire_at, d.id)
                      AND e.lease_until > ?1 AND e.lease_until <= ?2)
 LIMIT 1";

/// Now, and the latest expiry that a live lease can have. The first that is due and that nothing hides; without one, the
/// first that is not due, and when the first lease is over that hides one.
pub(crate) const NEXT: &str = "
SELECT q.due,
       CASE WHEN q.due IS NULL THEN
       (SELECT d.fire_at FROM deadlines d WHERE d.fire_at > ?1 ORDER BY d.fire_at, d.id, d.wid LIMIT 1) END,
       CASE WHEN q.due IS NULL THEN
       (SELECT min(l.lease_until) FROM deadlines l
         WHERE l.fire_at <= ?1 AND l.lease_until > ?1 AND l.lease_until <= ?2
           AND NOT EXISTS (SELECT 1 FROM deadlines e
                            WHERE e.wid = l.wid AND (e.fire_at, e.id) < (l.fire_at, l.id)
                              AND e.lease_until > ?1 AND e.lease_until <= ?2)) END
  FROM (SELECT (SELECT d.fire_at FROM deadlines d
                 WHERE d.fire_at <= ?1 AND (d.lease_until IS NULL OR d.lease_until <= ?1 OR d.lease_until > ?2)
                   AND NOT EXISTS (SELECT 1 FROM deadlines e
                                    WHERE e.wid = d.wid AND (e.fire_at, e.id) < (d.fire_at, d.id)
                                      AND e.lease_until > ?1 AND e.lease_until <= ?2)
                 ORDER BY d.fire_at, d.id, d.wid LIMIT 1) AS due) q";

/// Whether a claim would find a deadline. Spares an idle store its write transactions.
pub(crate) async fn any_due(readers: &Readers, claim: &Claim) -> Result<bool, ReadError> {
    let now = claim.now.as_ms();
    let latest = latest_live_expiry(claim.now, claim.lease_ms).as_ms();
    let found = readers.rows(ANY_DUE, (now, latest), |_| Ok(())).await?;
    Ok(!found.is_empty())
}

/// When a claim can bring something.
pub(crate) async fn next(
    readers: &Readers,
    now: Timestamp,
    lease_ms: i64,
) -> Result<Option<Timestamp>, ReadError> {
    let arguments = (now.as_ms(), latest_live_expiry(now, lease_ms).as_ms());
    let row = |columns: &mut decode::Columns<'_>| {
        let mut times: [Option<i64>; 3] = [None; 3];
        for time in &mut times {
            *time = columns.next()?;
        }
        Ok(times.into_iter().flatten().min().map(Timestamp::from_ms))
    };
    Ok(readers.rows(NEXT, arguments, row).await?.into_iter().next().flatten())
}
