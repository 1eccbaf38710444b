//! Open workflows without a binding: those that started before their store had a state machine, or were copied into a table
//! by somebody who did not name it. No row asks for a look at them, so only a command that somebody runs looks for them: it
//! reads every workflow there is.

use wf_core::ports::{Attention, Cursor, ListQuery, Page};

use super::attention::wanted;
use crate::definitions::put_new;
use crate::fault::Fail;
use crate::keys;
use crate::link::Link;
use crate::read::lists;

/// Workflows of one page.
const PAGE: u32 = 250;

/// A page of them. With `asks`, a row asks for a look at each from now on.
pub(super) async fn page(
    link: &Link,
    after: Option<&Cursor>,
    asks: bool,
) -> Result<Page<Attention>, Fail> {
    let query = ListQuery { tenant: None, phase: None, after: after.cloned(), limit: PAGE };
    let Page { mut items, next } = lists::list(link, &query).await?;
    items.retain(|workflow| workflow.phase.is_open());
    let bindings: Vec<_> = items.iter().map(|one| keys::binding(&one.tenant, &one.id)).collect();
    let bound = link.get_each(&bindings).await?;
    let mut found = Vec::new();
    for (workflow, _) in items.into_iter().zip(bound).filter(|(_, bound)| bound.is_none()) {
        if asks {
            let (key, row) = wanted(&workflow);
            // One that is there asks for as much.
            put_new(link, key, row).await?;
        }
        found.push(Attention {
            wanted_revision: Some(workflow.revision),
            not_before: workflow.updated_at,
            tenant: workflow.tenant,
            workflow_id: workflow.id,
            looks: 0,
        });
    }
    Ok(Page { items: found, next })
}
