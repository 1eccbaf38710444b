//! Copies a store into another, of the same kind or not, and compares the two. Stopped at any point, it goes on.
//!
//! The comparison reads both stores whole, in whatever order they give their records (`tally`), in bounded memory.

mod tally;

use std::collections::BTreeMap;

use crate::ports::copy::{
    Begun, CopyError, CopySourcePort, CopyTargetPort, Record, RecordKind, Side, StoreFacts,
};
use crate::ports::{Cursor, ReadError};

use tally::{Strangers, Tally};

/// How much is done at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Records of one page, at least 1.
    pub page: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { page: 500 }
    }
}

/// What a copy is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Records go from the source to the target.
    Copying,
    /// The source is read again.
    ReadingSource,
    /// The target is read.
    ReadingTarget,
}

/// What became of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyReport {
    /// The store's id, which both have.
    pub store_id: String,
    /// The target had a part of it before.
    pub resumed: bool,
    /// The target was finished before; nothing was read or written.
    pub already: bool,
    /// Records of each kind in the source.
    pub counts: BTreeMap<RecordKind, u64>,
    /// A hash over everything in the source: the same for every copy of it.
    pub evidence: String,
    /// What differs, a bounded number of lines. The target is a store only when there is nothing.
    pub differences: Vec<String>,
}

/// Copies and compares. `progress` is told how many records a stage has seen.
///
/// # Errors
/// [`CopyError`]; started again, the copy goes on where it stopped.
pub async fn copy(
    source: &dyn CopySourcePort,
    target: &dyn CopyTargetPort,
    pace: Pace,
    progress: &mut (dyn FnMut(Stage, u64) + Send),
) -> Result<CopyReport, CopyError> {
    let facts = source.facts().await.map_err(from_source)?;
    let mut report = CopyReport {
        store_id: facts.identity.id.clone(),
        resumed: true,
        already: false,
        counts: BTreeMap::new(),
        evidence: String::new(),
        differences: Vec::new(),
    };
    match target.begin(&facts).await? {
        Begun::Finished => {
            report.already = true;
            return Ok(report);
        }
        Begun::Copying { after, records } => {
            report.resumed = after.is_some();
            fill((source, target), pace, after, records, progress).await?;
        }
        Begun::Copied { .. } => {}
    }
    let of = read(source, pace, Stage::ReadingSource, progress).await.map_err(from_source)?;
    let to = read(target, pace, Stage::ReadingTarget, progress).await.map_err(from_target)?;
    report.counts = of.counts();
    report.evidence = of.evidence(&facts);
    report.differences = of.differences(&to);
    let unlike = of.unlike(&to);
    let same = to.evidence(&known_by(target).await?) == report.evidence;
    if same && unlike.is_empty() && report.differences.is_empty() {
        target.finish(&facts).await?;
        return Ok(report);
    }
    let mut ours = Strangers::of(&unlike);
    let mut theirs = Strangers::of(&unlike);
    each(source, pace, |record| ours.see(record)).await.map_err(from_source)?;
    each(target, pace, |record| theirs.see(record)).await.map_err(from_target)?;
    report.differences.extend(ours.differences(&theirs));
    if report.differences.is_empty() {
        report.differences.push("the identity of the store differs".to_owned());
    }
    Ok(report)
}

fn from_source(error: ReadError) -> CopyError {
    CopyError::reading(Side::Source, error)
}

fn from_target(error: ReadError) -> CopyError {
    CopyError::reading(Side::Target, error)
}

async fn known_by(target: &dyn CopyTargetPort) -> Result<StoreFacts, CopyError> {
    target.facts().await.map_err(from_target)
}

/// Sends every page of the source from `after` on.
async fn fill(
    (source, target): (&dyn CopySourcePort, &dyn CopyTargetPort),
    pace: Pace,
    mut after: Option<Cursor>,
    mut records: u64,
    progress: &mut (dyn FnMut(Stage, u64) + Send),
) -> Result<(), CopyError> {
    loop {
        let page = source.export(after.as_ref(), pace.page).await.map_err(from_source)?;
        target.import(&page.items, page.next.as_ref()).await?;
        records = records.saturating_add(u64::try_from(page.items.len()).unwrap_or(u64::MAX));
        progress(Stage::Copying, records);
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Reads a store whole.
async fn read(
    store: &(impl CopySourcePort + ?Sized),
    pace: Pace,
    stage: Stage,
    progress: &mut (dyn FnMut(Stage, u64) + Send),
) -> Result<Tally, ReadError> {
    let mut tally = Tally::default();
    let mut seen = 0_u64;
    each(store, pace, |record| {
        tally.add(record);
        seen = seen.saturating_add(1);
        progress(stage, seen);
    })
    .await?;
    Ok(tally)
}

async fn each(
    store: &(impl CopySourcePort + ?Sized),
    pace: Pace,
    mut see: impl FnMut(&Record) + Send,
) -> Result<(), ReadError> {
    let mut after = None;
    loop {
        let page = store.export(after.as_ref(), pace.page).await?;
        page.items.iter().for_each(&mut see);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}
