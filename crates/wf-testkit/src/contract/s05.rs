//! S5: a reader sees a commit whole or not at all.

use wf_core::models::Workflow;
use wf_core::ports::{Commit, CommitError, Snapshot};

use super::cast::{ann, plant, start, step_after};
use super::look::{self, MANY, Store};
use super::{ContractFixture, Verdict, Violation, check, check_eq};
use crate::build::asset;

const PUMP: &str = "PUMP-7";
const WORKFLOWS: u32 = 8;

/// One workflow after the other holds the pump, does some steps, completes and frees it.
fn story() -> Vec<Commit> {
    let mut commits = Vec::new();
    for n in 1..=WORKFLOWS {
        let mut last = start(n).acquire(&asset(PUMP), u64::from(n)).message("log").build();
        for round in 0..3 {
            let next = step_after(&last, 10).note(&format!("round {round}")).assert_assets();
            commits.push(last);
            last = next.build();
        }
        let end = step_after(&last, 10).complete().release_assets().build();
        commits.extend([last, end]);
    }
    commits
}

/// Sends the commits in a task, and meanwhile lets `look` look, again and again, for each commit in turn until it is
/// there. `look` says whether it is.
async fn watch<L>(fixture: &dyn ContractFixture, commits: &[Commit], mut look: L) -> Verdict
where
    L: AsyncFnMut(&Store, &Commit) -> Result<bool, Violation>,
{
    let writer = fixture.open().await?;
    let reader = fixture.reopen().await?;
    let to_send = commits.to_vec();
    let writing = tokio::spawn(async move {
        for commit in to_send {
            writer.commit(commit).await?;
        }
        Ok::<(), CommitError>(())
    });
    for commit in commits {
        loop {
            let finished = writing.is_finished();
            if look(&reader, commit).await? {
                break;
            }
            check!(!finished, "a commit is not seen although the writer has ended: {commit:?}");
            tokio::task::yield_now().await;
        }
    }
    match writing.await {
        Ok(answer) => Ok(answer?),
        Err(error) => Err(Violation::new(format!("the writer died: {error}"))),
    }
}

/// State, ledger row and lock row of one consistent read belong together, at every moment of a busy store.
///
/// # Errors
/// When the store breaks the law.
pub async fn s05_reader_sees_whole_commits(fixture: &dyn ContractFixture) -> Verdict {
    let commits = story();
    watch(fixture, &commits, async |store, commit| {
        let mut query = look::query(&plant());
        query.workflow = Some(commit.next.id.clone());
        query.ledger = Some(commit.ledger.key.clone());
        query.assets = vec![asset(PUMP)];
        query.count_open_of = Some(ann());
        belongs_together(commit, &store.load(&query).await?)
    })
    .await
}

fn belongs_together(commit: &Commit, seen: &Snapshot) -> Result<bool, Violation> {
    let there = seen.ledger.is_some();
    let revision = seen.workflow.as_ref().map_or(0, |w| w.revision);
    check_eq!(there, revision >= commit.next.revision, "ledger row and state: {seen:?}");

    let [row] = seen.locks.as_slice() else {
        let before_all = seen.locks.is_empty() && !there;
        check!(before_all, "the pump's row is missing or double: {seen:?}");
        return Ok(false);
    };
    let holder = row.holder.as_ref().map(|h| &h.workflow_id);
    let open = seen.workflow.as_ref().is_some_and(|w| w.phase.is_open());
    check_eq!(open, holder == Some(&commit.next.id), "state and lock: {seen:?}");
    let open_now = u32::from(holder.is_some());
    check_eq!(seen.open_count, open_now, "open workflows and lock: {seen:?}");
    Ok(there)
}

/// States in lists are states that were committed, and their events are all there, without a gap.
///
/// # Errors
/// When the store breaks the law.
pub async fn s05_lists_and_events_are_whole(fixture: &dyn ContractFixture) -> Verdict {
    let commits = story();
    let states: Vec<&Workflow> = commits.iter().map(|c| &c.next).collect();
    watch(fixture, &commits, async |store, commit| {
        let mut listed = look::all_workflows(store, Some(&plant()), None, MANY).await?;
        listed.extend(store.open_of(&plant(), &ann(), MANY).await?);
        for one in &listed {
            check!(states.contains(&one), "a state nobody committed: {one:?}");
            let events = look::events(store, &one.tenant, &one.id).await?;
            let seqs: Vec<u64> = events.iter().map(|e| e.seq).collect();
            let count = u64::try_from(seqs.len()).unwrap_or(u64::MAX);
            check_eq!(seqs, (1..=count).collect::<Vec<_>>(), "the events' places");
            check!(count >= one.revision, "a state is seen before its events: {one:?}");
        }
        let mine = |w: &&Workflow| w.id == commit.next.id;
        Ok(listed.iter().filter(mine).any(|w| w.revision >= commit.next.revision))
    })
    .await
}
