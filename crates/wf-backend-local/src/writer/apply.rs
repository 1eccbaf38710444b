//! A batch inside its transaction: read what the conditions need, judge, write.

use rusqlite::Connection;

use super::job::{Answer, Job};
use super::judge::{LockCell, Wanted, World};
use super::sheet::SqlCache;
use super::{tasks, write};
use crate::codec::Placement;
use crate::codec::decode::{self, Columns, Read, unsigned};
use crate::codec::encode::Prepared;
use crate::connection::{int, rows};
use crate::failpoint;
use crate::fault::{Failure, Trouble, unreadable};
use crate::schema;

const FENCE_BASE: &str = "SELECT fence_base FROM store WHERE one = 1";

const LAST_WID: &str = "SELECT coalesce(max(wid), 0) FROM workflows";

/// Ledger keys as a JSON array of arrays. The first column says which of them a row answers, as in the next two.
const LEDGER: &str = "
SELECT q.key, l.lid, l.operation, l.fingerprint, l.result_version, l.created_at, l.expires_at, l.seq, l.mark,
       l.fields, l.result, w.id
  FROM json_each(?1) q
 CROSS JOIN ledger l ON l.tenant = q.value ->> 0 AND l.actor = q.value ->> 1 AND l.key = q.value ->> 2
 CROSS JOIN workflows w ON w.wid = l.wid";

/// Workflows, by tenant and id.
const HEADS: &str = "
SELECT q.key, w.wid, w.revision, w.phase, w.owner, w.offered_to, w.offered_at, w.blocked_since, w.completed_at,
       w.assets
  FROM json_each(?1) q
 CROSS JOIN workflows w ON w.tenant = q.value ->> 0 AND w.id = q.value ->> 1";

/// Locks, by tenant and asset.
const LOCKS: &str = "
SELECT q.key, k.floor, k.fence, k.holder, k.owner, k.owner_name, k.acquired_at
  FROM json_each(?1) q
 CROSS JOIN locks k ON k.tenant = q.value ->> 0 AND k.asset_id = q.value ->> 1";

/// What a batch reads: name and SQL.
#[cfg(test)]
pub(crate) const HOT: &[(&str, &str)] = &[
    ("fence base", FENCE_BASE),
    ("last number", LAST_WID),
    ("ledger rows to judge", LEDGER),
    ("heads to judge", HEADS),
    ("locks to judge", LOCKS),
];

/// Runs the jobs: the commits first, together, then the others one after the other. They wait for the same COMMIT, so
/// no caller can tell in which order they were sent.
pub(crate) fn apply(
    conn: &Connection,
    jobs: &[Job],
    cache: &mut SqlCache,
) -> Result<Vec<Answer>, Failure> {
    let commits: Vec<&Prepared> = jobs
        .iter()
        .filter_map(|job| match job {
            Job::Commit(commit, ..) => Some(&**commit),
            Job::Task(..) | Job::Close(_) => None,
        })
        .collect();
    let version = int(conn, "PRAGMA user_version").map_err(Failure::before_commit)?;
    if u64::try_from(version).ok() != Some(schema::known()) {
        let trouble = Trouble::SchemaChanged { found: version, known: schema::known() };
        return Err(Failure::NotApplied(trouble));
    }
    let mut verdicts = commit_all(conn, &commits, cache)?.into_iter();
    let mut answers = Vec::with_capacity(jobs.len());
    for job in jobs {
        answers.extend(match job {
            Job::Commit(..) => verdicts.next(),
            Job::Task(task, _) => {
                let done = tasks::run(conn, task);
                Some(Answer::Task(done.map_err(Failure::before_commit)?))
            }
            Job::Close(_) => None,
        });
    }
    Ok(answers)
}

fn commit_all(
    conn: &Connection,
    commits: &[&Prepared],
    cache: &mut SqlCache,
) -> Result<Vec<Answer>, Failure> {
    if commits.is_empty() {
        return Ok(Vec::new());
    }
    let wanted = Wanted::by(commits);
    let mut world = read(conn, &wanted).map_err(Failure::before_commit)?;
    let verdicts = commits
        .iter()
        .zip(&wanted.places)
        .map(|(commit, places)| Answer::Commit(world.take(commit, places)))
        .collect();
    if !world.accepted.is_empty() {
        failpoint::hit(failpoint::WRITE).map_err(Failure::before_commit)?;
        let script = write::write(&world, &wanted, cache);
        script.run(conn).map_err(Failure::before_commit)?;
    }
    Ok(verdicts)
}

/// The world as the conditions of the batch need it.
fn read<'a>(conn: &Connection, wanted: &Wanted<'a>) -> Read<World<'a>> {
    let mut world = World::default();
    world.ledger.resize_with(wanted.ledger.len(), Default::default);
    world.heads.resize_with(wanted.heads.len(), Default::default);
    world.next_wid = int(conn, LAST_WID)? + 1;
    let keys: Vec<[String; 3]> = wanted
        .ledger
        .iter()
        .map(|k| [k.tenant.to_string(), k.actor.to_string(), k.key.to_string()])
        .collect();
    rows(conn, LEDGER, [json(&keys)], |columns| note_ledger(&mut world, wanted, columns))?;
    let heads: Vec<[&str; 2]> =
        wanted.heads.iter().map(|(tenant, id)| [tenant.as_str(), id.as_str()]).collect();
    rows(conn, HEADS, [json(&heads)], |columns| note_head(&mut world, columns))?;
    if wanted.locks.is_empty() {
        return Ok(world);
    }
    let fence = unsigned("a fence", int(conn, FENCE_BASE)?)?;
    world.locks.resize_with(wanted.locks.len(), || LockCell { fence, ..LockCell::default() });
    let locks: Vec<[&str; 2]> =
        wanted.locks.iter().map(|(tenant, asset)| [tenant.as_str(), asset.as_str()]).collect();
    rows(conn, LOCKS, [json(&locks)], |columns| note_lock(&mut world, wanted, columns))?;
    Ok(world)
}

pub(crate) fn json<T: serde::Serialize>(keys: &T) -> String {
    // Texts always serialise; an empty array finds nothing, which a condition would notice.
    serde_json::to_string(keys).unwrap_or_else(|_| "[]".to_owned())
}

/// Which of the things that were asked for a row answers.
fn place(columns: &mut Columns<'_>) -> Read<usize> {
    usize::try_from(columns.next::<i64>()?).map_err(|e| unreadable("a place", e))
}

fn note_ledger(world: &mut World<'_>, wanted: &Wanted<'_>, columns: &mut Columns<'_>) -> Read<()> {
    let place = place(columns)?;
    if let (Some(cell), Some(key)) = (world.ledger.get_mut(place), wanted.ledger.get(place)) {
        cell.stored = Some(columns.next()?);
        // A row that cannot be read is the trouble of this key alone, not of the batch.
        let read = decode::ledger((*key).clone(), columns);
        cell.read = Some(read.map_err(|e| e.to_string()));
    }
    Ok(())
}

fn note_head(world: &mut World<'_>, columns: &mut Columns<'_>) -> Read<()> {
    let place = place(columns)?;
    if let Some(cell) = world.heads.get_mut(place) {
        cell.wid = columns.next()?;
        cell.revision = columns.unsigned("a revision")?;
        let placement = Placement {
            phase: columns.next()?,
            owner: columns.next()?,
            offered_to: columns.next()?,
            offered_at: columns.next()?,
            blocked_since: columns.next()?,
            completed_at: columns.next()?,
        };
        cell.stored = Some((placement, columns.next()?));
    }
    Ok(())
}

fn note_lock(world: &mut World<'_>, wanted: &Wanted<'_>, columns: &mut Columns<'_>) -> Read<()> {
    let place = place(columns)?;
    if let (Some(cell), Some((tenant, asset))) =
        (world.locks.get_mut(place), wanted.locks.get(place))
    {
        let floor = columns.next::<i64>()?;
        let row = decode::lock((*tenant).clone(), (*asset).clone(), columns)?;
        cell.exists = true;
        cell.floor = unsigned("a fence", floor)?;
        cell.fence = row.fence;
        cell.holder = row.holder;
    }
    Ok(())
}
