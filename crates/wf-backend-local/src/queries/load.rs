//! Everything a decision needs, in one statement.

use wf_core::locks::LockRow;
use wf_core::models::{AssetId, TenantId, Workflow};
use wf_core::ports::{LedgerKey, LedgerRow, LoadQuery, ReadError, Snapshot};

use crate::codec::decode::{self, Columns, Read};
use crate::readers::Readers;

/// Tenant, workflow id, ledger actor, ledger key, asset ids as a JSON array, owner whose open workflows are counted,
/// tenant of the ledger key. The first column says what a row is. One compound statement reads one snapshot; its parts are
/// read in this order, so the row of the ledger is there before the work for the rest. A lock may come twice.
pub(crate) const LOAD: &str = "
SELECT 1, l.operation, l.fingerprint, l.result_version, l.created_at, l.expires_at, l.seq, l.mark, l.fields, l.result,
       w.id
  FROM ledger l CROSS JOIN workflows w ON w.wid = l.wid
 WHERE l.tenant = ?7 AND l.actor = ?3 AND l.key = ?4
UNION ALL
SELECT 2, w.state, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM workflows w WHERE w.tenant = ?1 AND w.id = ?2
UNION ALL
SELECT 3, k.asset_id, k.fence, k.holder, k.owner, k.owner_name, k.acquired_at, NULL, NULL, NULL, NULL
  FROM json_each(?5) q CROSS JOIN locks k ON k.tenant = ?1 AND k.asset_id = q.value
UNION ALL
SELECT 3, k.asset_id, k.fence, k.holder, k.owner, k.owner_name, k.acquired_at, NULL, NULL, NULL, NULL
  FROM workflows w CROSS JOIN workflow_assets a ON a.wid = w.wid
 CROSS JOIN locks k ON k.tenant = ?1 AND k.asset_id = a.asset_id
 WHERE w.tenant = ?1 AND w.id = ?2
UNION ALL
SELECT 4, count(*), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM workflows w WHERE w.tenant = ?1 AND w.owner = ?6 AND w.completed_at IS NULL
UNION ALL
SELECT 5, s.fence_base, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM store s WHERE s.one = 1";

/// What a row is.
enum Part {
    Workflow(Box<Workflow>),
    Ledger(Box<LedgerRow>),
    Lock(Box<LockRow>),
    OpenCount(u32),
    FenceBase(u64),
    Nothing,
}

/// Reads the snapshot.
pub(crate) async fn load(readers: &Readers, query: &LoadQuery) -> Result<Snapshot, ReadError> {
    let assets: Vec<&str> = query.assets.iter().map(AssetId::as_str).collect();
    let ledger = query.ledger.as_ref();
    let arguments = (
        query.tenant.to_string(),
        query.workflow.as_ref().map(ToString::to_string),
        ledger.map(|key| key.actor.to_string()),
        ledger.map(|key| key.key.to_string()),
        serde_json::Value::from(assets).to_string(),
        query.count_open_of.as_ref().map(ToString::to_string),
        ledger.map(|key| key.tenant.to_string()),
    );
    let (tenant, key) = (query.tenant.clone(), query.ledger.clone());
    let decode = move |columns: &mut Columns<'_>| part(&tenant, key.as_ref(), columns);
    let fingerprint = query.answered_as;
    let is_the_answer = move |part: &Part| match part {
        Part::Ledger(row) => Some(row.entry.fingerprint) == fingerprint,
        Part::Workflow(_)
        | Part::Lock(_)
        | Part::OpenCount(_)
        | Part::FenceBase(_)
        | Part::Nothing => false,
    };
    let parts = readers.rows_up_to(LOAD, arguments, decode, is_the_answer).await?;
    Ok(together(query, parts))
}

fn part(tenant: &TenantId, key: Option<&LedgerKey>, columns: &mut Columns<'_>) -> Read<Part> {
    Ok(match (columns.next::<i64>()?, key) {
        (1, Some(key)) => Part::Ledger(Box::new(decode::ledger(key.clone(), columns)?)),
        (2, _) => Part::Workflow(Box::new(decode::workflow(columns.text()?)?)),
        (3, _) => {
            let asset = columns.parsed("an asset id")?;
            Part::Lock(Box::new(decode::lock(tenant.clone(), asset, columns)?))
        }
        (4, _) => Part::OpenCount(u32::try_from(columns.next::<i64>()?).unwrap_or(u32::MAX)),
        (5, _) => Part::FenceBase(columns.unsigned("a fence")?),
        _ => Part::Nothing,
    })
}

fn together(query: &LoadQuery, parts: Vec<Part>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut fence_base = 0;
    for part in parts {
        match part {
            Part::Workflow(workflow) => snapshot.workflow = Some(*workflow),
            Part::Ledger(row) => snapshot.ledger = Some(*row),
            Part::Lock(row) => snapshot.locks.push(*row),
            Part::OpenCount(count) => snapshot.open_count = count,
            Part::FenceBase(base) => fence_base = base,
            Part::Nothing => {}
        }
    }
    if fence_base > 0 {
        add_forgotten(query, fence_base, &mut snapshot.locks);
    }
    snapshot.locks.sort_by(|a, b| a.asset_id.cmp(&b.asset_id));
    snapshot.locks.dedup_by(|a, b| a.asset_id == b.asset_id);
    snapshot
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
