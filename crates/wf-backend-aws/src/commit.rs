//! The one write: know the head that it was decided on, build one transaction, send it, judge what came back.
//!
//! `build` makes the actions, `check` refuses what is not well formed or too large, `judge` says which conflict it was.

mod build;
mod check;
mod judge;

use std::sync::Arc;

use wf_core::ports::{Commit, CommitError, Conflict};

use build::Built;
pub(crate) use build::{ACTIONS_MAX, messages};

use crate::codec::head::{self, Known};
use crate::fault::{Cause, Fail, Trouble};
use crate::keys;
use crate::known::Memory;
use crate::link::{Link, Unsent};

/// How often a commit that nothing speaks against is built anew because the head moved while we looked.
const LOOKS_MAX: u32 = 3;

/// Applies a commit, all of it or nothing.
pub(crate) async fn commit(
    link: &Link,
    memory: &Memory,
    commit: Commit,
) -> Result<(), CommitError> {
    check::check(&commit)?;
    for _ in 0..LOOKS_MAX {
        match known(link, memory, &commit).await.map_err(Fail::into_commit_error)? {
            Some(known) => return send(link, memory, &commit, &known).await,
            // The head has another revision, so the commit is refused; the ledger and the locks come first.
            None => {
                if let Some(conflict) = judge::look(link, &commit, memory.fence_base())
                    .await
                    .map_err(Fail::into_commit_error)?
                {
                    return Err(CommitError::Conflict(conflict));
                }
            }
        }
    }
    let cause = Cause::said("the head moves faster than it can be read");
    Err(Fail::from(Trouble::Contended(cause)).into_commit_error())
}

/// What is known of the workflow at the revision that the commit expects; none when it has another one.
async fn known(link: &Link, memory: &Memory, commit: &Commit) -> Result<Option<Arc<Known>>, Fail> {
    if commit.expected == 0 {
        return Ok(Some(Arc::default()));
    }
    let key = keys::head(&commit.next.tenant, &commit.next.id);
    if let Some(known) = memory.get(&key) {
        if known.revision == commit.expected {
            return Ok(Some(known));
        }
        if known.revision > commit.expected {
            return Ok(None);
        }
    }
    let Some(item) = link.get(&key).await? else { return Ok(None) };
    let (_, known) = head::read(&item)?;
    let known = Arc::new(known);
    memory.put(key, Arc::clone(&known));
    Ok((known.revision == commit.expected).then_some(known))
}

async fn send(
    link: &Link,
    memory: &Memory,
    commit: &Commit,
    known: &Known,
) -> Result<(), CommitError> {
    let binds = link.config().state_machine_arn.is_some();
    let built = build::build(commit, known, memory.fence_base(), binds)?;
    let met = match link.transact(&built.actions()).await {
        Ok(None) => {
            memory.put(keys::head(&commit.next.tenant, &commit.next.id), Arc::new(built.next));
            return Ok(());
        }
        Ok(Some(met)) => met,
        Err(Unsent { unknown: false, fail: Fail::Trouble(Trouble::TooMuch(_)) }) => {
            return Err(CommitError::TooLarge { what: "the commit" });
        }
        Err(Unsent { unknown: false, fail }) => return Err(fail.into_commit_error()),
        Err(Unsent { unknown: true, fail }) => return Err(ambiguous(fail)),
    };
    let conflict = judge::met(commit, &built, &met.all).map_err(Fail::into_commit_error)?;
    if !met.after_unknown {
        return Err(CommitError::Conflict(
            first(link, commit, (&built, memory.fence_base()), conflict).await,
        ));
    }
    match conflict {
        // An earlier attempt was applied and its answer was lost.
        Conflict::Ledger(row) if row.mark == commit.ledger.mark => Ok(()),
        // The key is taken, or the head has moved on: no earlier attempt can be applied any more.
        Conflict::Ledger(_) | Conflict::Revision { .. } => Err(CommitError::Conflict(conflict)),
        // The asset may be freed before an earlier attempt arrives.
        Conflict::Asset { .. } => Err(ambiguous(
            Trouble::Silent(Cause::said("an attempt before was not answered")).into(),
        )),
    }
}

/// The conflict to tell. Where the head answered for a lock and has moved on, the lock may be lost, which comes first.
async fn first(
    link: &Link,
    commit: &Commit,
    (built, fence_base): (&Built, u64),
    conflict: Conflict,
) -> Conflict {
    if !built.trusts_head || !matches!(conflict, Conflict::Revision { .. }) {
        return conflict;
    }
    // Refused is refused: where the look fails, what is known is told.
    judge::look(link, commit, fence_base).await.ok().flatten().unwrap_or(conflict)
}

fn ambiguous(fail: Fail) -> CommitError {
    let source = match fail {
        Fail::Trouble(trouble) => trouble.into(),
        Fail::Unreadable(what) => what.into(),
    };
    CommitError::Ambiguous { source }
}
