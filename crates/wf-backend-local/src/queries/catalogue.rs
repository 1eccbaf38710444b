//! Definitions, and what the store is known by.

use wf_core::models::{Digest, TenantId, WorkflowId};
use wf_core::policy::Definition;
use wf_core::ports::{ReadError, StoreIdentity, Tombstone};
use wf_core::state_machine::Secret;

use crate::codec::decode;
use crate::readers::Readers;
use crate::writer::tasks::purge;

/// Digest.
pub(crate) const DEFINITION: &str = "
SELECT digest, procedure_id, version, title, document FROM definitions WHERE digest = ?1";

const IDENTITY: &str = "
SELECT s.id, k.secret FROM store s CROSS JOIN secrets k WHERE s.one = 1 ORDER BY k.number DESC";

/// The definition with this digest.
pub(crate) async fn definition(
    readers: &Readers,
    digest: &Digest,
) -> Result<Option<Definition>, ReadError> {
    let digest = digest.to_string();
    let found = readers.rows(DEFINITION, [digest], decode::definition).await?;
    Ok(found.into_iter().next())
}

/// Id and keys of the store.
pub(crate) async fn identity(readers: &Readers) -> Result<StoreIdentity, ReadError> {
    let rows = readers
        .rows(IDENTITY, (), |columns| {
            let id = columns.text()?.to_owned();
            Ok((id, Secret::new(columns.next()?)))
        })
        .await?;
    let Some((id, _)) = rows.first() else {
        return Err(ReadError::Corrupt { what: "the store has no identity".to_owned() });
    };
    Ok(StoreIdentity {
        id: id.clone(),
        secrets: rows.iter().map(|(_, secret)| secret.clone()).collect(),
    })
}

/// What is left of a purged workflow.
pub(crate) async fn tombstone(
    readers: &Readers,
    tenant: &TenantId,
    workflow: &WorkflowId,
) -> Result<Option<Tombstone>, ReadError> {
    let place = (tenant.to_string(), workflow.to_string());
    let found = readers
        .rows(purge::TOMBSTONE, place, |columns| decode::json("a tombstone", columns.text()?))
        .await?;
    Ok(found.into_iter().next())
}
