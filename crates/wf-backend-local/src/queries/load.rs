//! Everything a decision needs, in one statement.

use wf_core::locks::LockRow;
use wf_core::models::{AssetId, WorkflowId};
use wf_core::ports::{LoadQuery, ReadError, Snapshot};

use super::Readers;
use crate::codec::decode::{self, Columns, Read};
use crate::fault::read_error;
use sqlx::sqlite::SqliteRow;

/// Tenant, workflow id, ledger actor, ledger key, asset ids as a JSON array, owner whose open workflows are counted,
/// tenant of the ledger key. The first column says what a row is. One compound statement reads one snapshot.
pub(crate) const LOAD: &str = "
SELECT 1, w.state, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM workflows w WHERE w.tenant = ?1 AND w.id = ?2
UNION ALL
SELECT 2, l.operation, l.fingerprint, l.result_version, l.created_at, l.expires_at, l.seq, l.mark, l.fields, l.result,
       w.id
  FROM ledger l CROSS JOIN workflows w ON w.wid = l.wid
 WHERE l.tenant = ?7 AND l.actor = ?3 AND l.key = ?4
UNION ALL
SELECT 3, k.asset_id, k.fence, k.holder, k.owner, k.owner_name, k.acquired_at, NULL, NULL, NULL, NULL
  FROM (SELECT value AS id FROM json_each(?5)
         UNION
        SELECT a.asset_id FROM workflows w CROSS JOIN workflow_assets a ON a.wid = w.wid
         WHERE w.tenant = ?1 AND w.id = ?2) q
 CROSS JOIN locks k ON k.tenant = ?1 AND k.asset_id = q.id
UNION ALL
SELECT 4, count(*), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM workflows w WHERE w.tenant = ?1 AND w.owner = ?6 AND w.completed_at IS NULL
UNION ALL
SELECT 5, s.fence_base, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM store s WHERE s.one = 1";

/// Reads the snapshot.
pub(crate) async fn load(readers: &Readers, query: &LoadQuery) -> Result<Snapshot, ReadError> {
    let assets: Vec<&str> = query.assets.iter().map(AssetId::as_str).collect();
    let ledger = query.ledger.as_ref();
    let ask = sqlx::query(LOAD)
        .bind(query.tenant.as_str())
        .bind(query.workflow.as_ref().map(WorkflowId::as_str))
        .bind(ledger.map(|key| key.actor.to_string()))
        .bind(ledger.map(|key| key.key.as_str()))
        .bind(serde_json::Value::from(assets).to_string())
        .bind(query.count_open_of.as_ref().map(ToString::to_string))
        .bind(ledger.map(|key| key.tenant.as_str()));
    let rows = readers.rows(ask).await?;
    read(query, &rows).map_err(read_error)
}

fn read(query: &LoadQuery, rows: &[SqliteRow]) -> Read<Snapshot> {
    let mut snapshot = Snapshot::default();
    let mut fence_base = 0;
    for row in rows {
        let mut columns = Columns::new(row, 0);
        match (columns.next::<i64>()?, &query.ledger) {
            (1, _) => snapshot.workflow = Some(decode::workflow(columns.text()?)?),
            (2, Some(key)) => snapshot.ledger = Some(decode::ledger(key.clone(), &mut columns)?),
            (3, _) => {
                let asset = columns.parsed("an asset id")?;
                let lock = decode::lock(query.tenant.clone(), asset, &mut columns)?;
                snapshot.locks.push(lock);
            }
            (4, _) => {
                let count = columns.next::<i64>()?;
                snapshot.open_count = u32::try_from(count).unwrap_or(u32::MAX);
            }
            (5, _) => fence_base = columns.unsigned("a fence")?,
            _ => {}
        }
    }
    if fence_base > 0 {
        add_forgotten(query, fence_base, &mut snapshot.locks);
    }
    snapshot.locks.sort_by(|a, b| a.asset_id.cmp(&b.asset_id));
    Ok(snapshot)
}

/// After a restore, an asset without a row may have been held in the time that was lost: it is free, with a fence
/// above those of that time.
fn add_forgotten(query: &LoadQuery, fence_base: u64, locks: &mut Vec<LockRow>) {
    for asset_id in &query.assets {
        if locks.iter().all(|lock| lock.asset_id != *asset_id) {
            locks.push(LockRow {
                tenant: query.tenant.clone(),
                asset_id: asset_id.clone(),
                fence: fence_base,
                holder: None,
            });
        }
    }
}
