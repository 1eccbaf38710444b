//! A batch inside its transaction: read what the conditions need, judge, write.

use std::collections::BTreeMap;

use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteRow;
use wf_core::ports::DeadlineChange;

use super::job::{Answer, Job};
use super::judge::{Wanted, World};
use super::sheet::{Script, Sheet, SqlCache, Value};
use super::{statements, tasks};
use crate::codec::Placement;
use crate::codec::decode::{self, Columns, Read, unsigned};
use crate::codec::encode::{Prepared, signed};
use crate::fault::{Failure, Trouble, unreadable};
use crate::schema;

/// Ledger keys, workflows and assets, each as a JSON array of arrays. The first column says what a row is, the second
/// which of the array it answers.
pub(crate) const READ: &str = "
SELECT 0, user_version FROM pragma_user_version;
SELECT 1, fence_base FROM store WHERE one = 1;
SELECT 2, max(wid) FROM workflows;
SELECT 3, q.key, l.lid, l.operation, l.fingerprint, l.result_version, l.created_at, l.expires_at, l.seq, l.fields,
       l.result, w.id
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
        let script = write(&world, &wanted, cache);
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

fn json<T: serde::Serialize>(keys: &T) -> String {
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

/// The statements that write what the world has become.
fn write(world: &World<'_>, wanted: &Wanted<'_>, cache: &mut SqlCache) -> Script {
    let mut script = Script::default();
    write_heads(world, wanted, &mut script, cache);
    write_events(world, &mut script, cache);
    write_ledger(world, &mut script, cache);
    write_locks(world, wanted, &mut script, cache);
    write_outbox(world, &mut script, cache);
    write_deadlines(world, &mut script, cache);
    script
}

/// A number that was checked to fit when the commit was prepared.
fn number(n: u64) -> Value {
    signed(n).unwrap_or(i64::MAX).into()
}

fn write_heads(world: &World<'_>, wanted: &Wanted<'_>, script: &mut Script, cache: &mut SqlCache) {
    let mut fresh = Sheet::new(&statements::NEW_WORKFLOWS);
    let mut states = Sheet::new(&statements::STATES);
    let mut placements = Sheet::new(&statements::PLACEMENTS);
    let mut gone = Sheet::new(&statements::ASSETS_GONE);
    let mut assets = Sheet::new(&statements::ASSETS);
    for (cell, (tenant, id)) in world.heads.iter().zip(&wanted.heads) {
        let Some(head) = cell.written else { continue };
        let place = &head.placement;
        let rest: [Value; 7] = [
            place.phase.as_str().into(),
            place.owner.as_str().into(),
            place.offered_to.as_deref().into(),
            place.offered_at.into(),
            place.blocked_since.into(),
            place.completed_at.into(),
            head.assets.as_str().into(),
        ];
        let [phase, owner, offered_to, offered_at, blocked, completed, list] = rest;
        let (wid, revision) = (Value::Int(cell.wid), number(cell.revision));
        let (updated, active) = (head.updated_at.into(), head.last_activity.into());
        let state = Value::from(&head.state);
        let assets_changed = match &cell.stored {
            None => {
                fresh.push([
                    wid,
                    tenant.as_str().into(),
                    id.as_str().into(),
                    revision,
                    phase,
                    owner,
                    offered_to,
                    offered_at,
                    blocked,
                    completed,
                    updated,
                    active,
                    list,
                    state,
                ]);
                true
            }
            Some((before, list_before)) => {
                states.push([wid.clone(), revision, updated, active, state]);
                let assets_changed =
                    before.completed_at != place.completed_at || *list_before != head.assets;
                if assets_changed {
                    gone.push([wid.clone()]);
                }
                // A completed workflow that changes again has a new ledger row for the sweep.
                if assets_changed || before != place || place.completed_at.is_some() {
                    placements.push([
                        wid, phase, owner, offered_to, offered_at, blocked, completed, list,
                    ]);
                }
                assets_changed
            }
        };
        if assets_changed {
            for asset in head.assets.split_terminator(' ') {
                assets.push([
                    cell.wid.into(),
                    asset.into(),
                    tenant.as_str().into(),
                    id.as_str().into(),
                    place.completed_at.into(),
                ]);
            }
        }
    }
    for sheet in [fresh, states, placements, gone, assets] {
        script.add(sheet, cache);
    }
}

fn write_events(world: &World<'_>, script: &mut Script, cache: &mut SqlCache) {
    let mut events = Sheet::new(&statements::EVENTS);
    let mut beside = Sheet::new(&statements::SENSITIVE_VALUES);
    for (wid, commit) in &world.accepted {
        for event in &commit.events {
            events.push([(*wid).into(), event.seq.into(), (&event.body).into()]);
            if let Some(values) = &event.sensitive {
                beside.push([(*wid).into(), event.seq.into(), values.into()]);
            }
        }
    }
    script.add(events, cache);
    script.add(beside, cache);
}

fn write_ledger(world: &World<'_>, script: &mut Script, cache: &mut SqlCache) {
    let mut gone = Sheet::new(&statements::LEDGER_GONE);
    let mut rows = Sheet::new(&statements::LEDGER);
    for cell in &world.ledger {
        let Some((wid, row)) = cell.written else {
            continue;
        };
        if let Some(lid) = cell.stored {
            gone.push([lid.into()]);
        }
        rows.push([
            row.key.tenant.as_str().into(),
            row.key.actor.to_string().into(),
            row.key.key.as_str().into(),
            wid.into(),
            number(row.seq),
            row.entry.operation.as_str().into(),
            row.entry.fingerprint.to_string().into(),
            i64::from(row.entry.result_version).into(),
            row.entry.created_at_ms.into(),
            row.entry.expires_at_ms.into(),
            json(&row.fields).into(),
            row.entry.result.as_str().into(),
        ]);
    }
    script.add(gone, cache);
    script.add(rows, cache);
}

fn write_locks(world: &World<'_>, wanted: &Wanted<'_>, script: &mut Script, cache: &mut SqlCache) {
    let mut rows = Sheet::new(&statements::LOCKS);
    for (cell, (tenant, asset)) in world.locks.iter().zip(&wanted.locks) {
        if !cell.written {
            continue;
        }
        let holder = cell.holder.as_ref();
        rows.push([
            tenant.as_str().into(),
            asset.as_str().into(),
            number(cell.fence),
            number(cell.floor),
            holder.map(|h| h.workflow_id.as_str()).into(),
            holder.map(|h| h.owner.id.to_string()).into(),
            holder.and_then(|h| h.owner.name.as_deref()).into(),
            holder.map(|h| h.acquired_at.as_ms()).into(),
        ]);
    }
    script.add(rows, cache);
}

fn write_outbox(world: &World<'_>, script: &mut Script, cache: &mut SqlCache) {
    let mut streams = Sheet::new(&statements::STREAMS);
    let mut rows = Sheet::new(&statements::OUTBOX);
    let mut due = Sheet::new(&statements::STREAMS_DUE);
    for (_, commit) in &world.accepted {
        for message in &commit.outbox {
            let stream: [Value; 3] = [
                commit.tenant.as_str().into(),
                commit.id.as_str().into(),
                message.recipient.as_str().into(),
            ];
            let [tenant, workflow, recipient] = stream.clone();
            rows.push([
                tenant,
                workflow,
                recipient,
                message.seq.into(),
                message.id.as_str().into(),
                message.next_attempt_at.into(),
                (&message.body).into(),
            ]);
            streams.push(stream.clone());
            due.push(stream);
        }
    }
    for sheet in [streams, rows, due] {
        script.add(sheet, cache);
    }
}

fn write_deadlines(world: &World<'_>, script: &mut Script, cache: &mut SqlCache) {
    // The last change of a deadline in the batch is what remains.
    let mut last: BTreeMap<(i64, &str), Option<i64>> = BTreeMap::new();
    for (wid, commit) in &world.accepted {
        for change in &commit.deadlines {
            match change {
                DeadlineChange::Set(d) => last.insert((*wid, &d.id), Some(d.fire_at.as_ms())),
                DeadlineChange::Clear(id) => last.insert((*wid, id), None),
            };
        }
    }
    let mut gone = Sheet::new(&statements::DEADLINES_GONE);
    let mut set = Sheet::new(&statements::DEADLINES);
    for ((wid, id), fire_at) in last {
        match fire_at {
            Some(at) => set.push([wid.into(), id.into(), at.into()]),
            None => gone.push([wid.into(), id.into()]),
        }
    }
    script.add(gone, cache);
    script.add(set, cache);
}
