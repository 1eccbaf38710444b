//! Copies of stores, for the tests of each backend: what a store holds, and carrying it over in the worst order.

use wf_core::ports::Cursor;
use wf_core::ports::copy::{Begun, CopyError, CopySourcePort, CopyTargetPort, Record};

use crate::contract::Violation;

/// Every record of a store, in pages of about `limit`.
///
/// # Errors
/// [`Violation`] when a page cannot be read.
pub async fn everything(store: &dyn CopySourcePort, limit: u32) -> Result<Vec<Record>, Violation> {
    let (mut found, mut after): (Vec<Record>, Option<Cursor>) = (Vec::new(), None);
    loop {
        let page = store.export(after.as_ref(), limit).await?;
        found.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(found),
        }
    }
}

/// What a store holds: its records as text, sorted.
///
/// # Errors
/// [`Violation`] when a page cannot be read.
pub async fn held(store: &dyn CopySourcePort) -> Result<Vec<String>, Violation> {
    let records = everything(store, 1_000).await?;
    let mut lines: Vec<String> =
        records.iter().map(|record| format!("{} {record:?}", record.digest())).collect();
    lines.sort_unstable();
    Ok(lines)
}

/// The first record that one of two stores holds and the other does not.
///
/// # Errors
/// [`Violation`] that shows it.
pub async fn hold_the_same(
    a: &dyn CopySourcePort,
    b: &dyn CopySourcePort,
) -> Result<(), Violation> {
    let (here, there) = (held(a).await?, held(b).await?);
    if let Some(line) = here.iter().find(|line| !there.contains(line)) {
        return Err(Violation::new(format!("only in the first: {line}")));
    }
    if let Some(line) = there.iter().find(|line| !here.contains(line)) {
        return Err(Violation::new(format!("only in the second: {line}")));
    }
    if here.len() != there.len() {
        return Err(Violation::new("a record comes twice"));
    }
    let (facts, other) = (a.facts().await?, b.facts().await?);
    if facts != other {
        return Err(Violation::new(format!("{facts:?} and {other:?}")));
    }
    Ok(())
}

/// Copies in small pieces, from the last record to the first and each piece twice, so that everything comes before what
/// it belongs to.
///
/// # Errors
/// [`Violation`] when one of the stores refuses.
pub async fn carry(
    source: &dyn CopySourcePort,
    target: &dyn CopyTargetPort,
) -> Result<(), Violation> {
    let facts = source.facts().await?;
    let begun = target.begin(&facts).await?;
    if begun != (Begun::Copying { after: None, records: 0 }) {
        return Err(Violation::new(format!("an empty target says {begun:?}")));
    }
    let mut records = everything(source, 7).await?;
    records.reverse();
    let somewhere = Cursor("somewhere".to_owned());
    for piece in records.chunks(5) {
        for _ in 0..2 {
            target.import(piece, Some(&somewhere)).await?;
        }
    }
    target.import(&[], None).await?;
    target.finish(&facts).await?;
    Ok(())
}

impl From<CopyError> for Violation {
    fn from(error: CopyError) -> Self {
        Self::new(error.to_string())
    }
}
