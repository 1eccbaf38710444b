//! A batch inside its transaction: read what the conditions need, judge, write.

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;

use super::job::{Answer, Job};
use super::judge::{Wanted, World};
use super::sheet::SqlCache;
use super::{tasks, write};
use crate::codec::Placement;
use crate::codec::decode::{self, Columns, Read, unsigned};
use crate::codec::encode::Prepared;
use crate::failpoint;
use crate::fault::{Failure, Trouble, unreadable};
use crate::schema;

/// Ledger keys, workflows and assets, each as a JSON array of arrays. The first column says what a row is, the second
/// which of the array it answers.
pub(crate) const READ: &str = "
SELECT 0, user_version FROM pragma_user_version;
SELECT 1, fence_base FROM store WHERE one = 1;
SELECT 2, max(wid) FROM workflows;
SELECT 3, q.key, l.lid, l.operation, l.fingerprint, l.result_version, l.created_at, l.expires_at, l.seq, l.mark,
       l.fields, l.result, w.id
  FROM json_each(?1) q
 CROSS JOIN ledger l ON l.tenant = q.value ->> 0 AND l.actor = q.value ->> 1 AND l.key = q.value ->> 2
 CROSS JOIN workflows w ON w.wid = l.wid;
SELECT 4, q.key, w.wid, w.revision, w.phase, w.owner, w.offered_to, w.offered_at, w.blocked_since, w.completed_at,
       w.assets
  FROM json_each(?2) q
 CROSS JOIN workflows w ON w.tenant = q.value ->> 0 AND w.id = q.value ->> 1;
SELECT 5, q.key, k.floor, k.fence, k.holder, k.owner, k.owner_name, k.acquired_at
  FROM json_each(?3) q
 CROSS JOIN locks k ON k.tenant = q.value ->> 0 AND k.asset_id = q.value ->> 1";

/// Runs the jobs: the commits first, together, then the others one after the other. They wait for the same COMMIT, so
/// no caller can tell in which order they were sent.
pub(crate) async fn apply(
    conn: &mut SqliteConnection,
    jobs: &[Job],
    cache: &mut SqlCache,
) -> Result<Vec<Answer>, Failure> {
    let commits: Vec<&Prepared> = jobs
        .iter()
        .filter_map(|job| match job {
            Job::Commit(commit, _) => Some(&**commit),
            Job::Task(..) | Job::Close(_) => None,
        })
        .collect();
    let mut verdicts = commit_all(conn, &commits, cache).await?.into_iter();
    let mut answers = Vec::with_capacity(jobs.len());
    for job in jobs {
        answers.extend(match job {
            Job::Commit(..) => verdicts.next(),
            Job::Task(task, _) => {
                let done = tasks::run(conn, task).await;
                Some(Answer::Task(done.map_err(Failure::before_commit)?))
            }
            Job::Close(_) => None,
        });
    }
    Ok(answers)
}

async fn commit_all(
    conn: &mut SqliteConnection,
    commits: &[&Prepared],
    cache: &mut SqlCache,
) -> Result<Vec<Answer>, Failure> {
    let wanted = Wanted::by(commits);
    let mut world = read(conn, &wanted).await?;
    let verdicts = commits
        .iter()
        .zip(&wanted.places)
        .map(|(commit, places)| Answer::Commit(world.take(commit, places)))
        .collect();
    if !world.accepted.is_empty() {
        failpoint::hit(failpoint::WRITE).map_err(Failure::before_commit)?;
        let script = write::write(&world, &wanted, cache);
        script.run(conn, commits.len() == 1).await.map_err(Failure::before_commit)?;
    }
    Ok(verdicts)
}

async fn read<'a>(conn: &mut SqliteConnection, wanted: &Wanted<'a>) -> Result<World<'a>, Failure> {
    let ledger: Vec<[String; 3]> = wanted
        .ledger
        .iter()
        .map(|k| [k.tenant.to_string(), k.actor.to_string(), k.key.to_string()])
        .collect();
    let heads: Vec<[&str; 2]> =
        wanted.heads.iter().map(|(tenant, id)| [tenant.as_str(), id.as_str()]).collect();
    let locks: Vec<[&str; 2]> =
        wanted.locks.iter().map(|(tenant, asset)| [tenant.as_str(), asset.as_str()]).collect();
    let rows = sqlx::query(READ)
        .bind(json(&ledger))
        .bind(json(&heads))
        .bind(json(&locks))
        .fetch_all(conn)
        .await
        .map_err(Failure::before_commit)?;
    let mut world = World::default();
    world.ledger.resize_with(wanted.ledger.len(), Default::default);
    world.heads.resize_with(wanted.heads.len(), Default::default);
    world.locks.resize_with(wanted.locks.len(), Default::default);
    let mut version = 0;
    for row in &rows {
        note(&mut world, wanted, row, &mut version).map_err(Failure::before_commit)?;
    }
    if u64::try_from(version).ok() != Some(schema::known()) {
        return Err(Failure::NotApplied(Trouble::SchemaChanged));
    }
    Ok(world)
}

pub(crate) fn json<T: serde::Serialize>(keys: &T) -> String {
    // Texts always serialise; an empty array finds nothing, which a condition would notice.
    serde_json::to_string(keys).unwrap_or_else(|_| "[]".to_owned())
}

/// Enters a row in the world.
fn note(
    world: &mut World<'_>,
    wanted: &Wanted<'_>,
    row: &SqliteRow,
    version: &mut i64,
) -> Read<()> {
    let mut columns = Columns::new(row, 0);
    let kind = columns.next::<i64>()?;
    match kind {
        0 => *version = columns.next()?,
        1 => {
            let base = columns.unsigned("a fence")?;
            for cell in &mut world.locks {
                cell.fence = base;
            }
        }
        2 => world.next_wid = columns.next::<Option<i64>>()?.unwrap_or(0) + 1,
        _ => {
            let place = columns.next::<i64>()?;
            let place = usize::try_from(place).map_err(|e| unreadable("a place", e))?;
            match kind {
                3 => note_ledger(world, wanted, place, &mut columns)?,
                4 => note_head(world, place, &mut columns)?,
                _ => note_lock(world, wanted, place, &mut columns)?,
            }
        }
    }
    Ok(())
}

fn note_ledger(
    world: &mut World<'_>,
    wanted: &Wanted<'_>,
    place: usize,
    columns: &mut Columns<'_>,
) -> Read<()> {
    if let (Some(cell), Some(key)) = (world.ledger.get_mut(place), wanted.ledger.get(place)) {
        cell.stored = Some(columns.next()?);
        // A row that cannot be read is the trouble of this key alone, not of the batch.
        let read = decode::ledger((*key).clone(), columns);
        cell.read = Some(read.map_err(|e| e.to_string()));
    }
    Ok(())
}

fn note_head(world: &mut World<'_>, place: usize, columns: &mut Columns<'_>) -> Read<()> {
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

fn note_lock(
    world: &mut World<'_>,
    wanted: &Wanted<'_>,
    place: usize,
    columns: &mut Columns<'_>,
) -> Read<()> {
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
