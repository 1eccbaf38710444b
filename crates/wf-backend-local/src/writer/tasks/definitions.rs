//! Definitions by digest, and which digest a version has, once for ever.

use rusqlite::Connection;
use wf_core::models::Digest;
use wf_core::policy::Definition;

use crate::codec::decode::Read;
use crate::connection::{rows, run};
use crate::fault::unreadable;

/// Procedure, version.
pub(crate) const VERSION: &str =
    "SELECT digest FROM procedure_versions WHERE procedure_id = ?1 AND version = ?2";

/// Digest, procedure, version, title, document.
pub(crate) const PUT: &str = "
INSERT INTO definitions (digest, procedure_id, version, title, document) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (digest) DO NOTHING";

/// Procedure, version, digest.
pub(crate) const PUT_VERSION: &str =
    "INSERT INTO procedure_versions (procedure_id, version, digest) VALUES (?1, ?2, ?3)";

/// Stores the definition; answers the other digest, and stores nothing, when the version is known with one.
pub(crate) fn put(conn: &Connection, definition: &Definition) -> Read<Option<Digest>> {
    let id = definition.id.as_str();
    let version = i64::from(definition.version);
    let known: Option<Digest> =
        rows(conn, VERSION, (id, version), |columns| columns.parsed("a digest"))?.pop();
    if let Some(digest) = known {
        return Ok((digest != definition.digest).then_some(digest));
    }
    let digest = definition.digest.as_str();
    let text = |e: serde_json::Error| unreadable("a definition", e);
    let title = serde_json::to_string(&definition.title).map_err(text)?;
    let document = serde_json::to_string(&definition.document).map_err(text)?;
    run(conn, PUT, (digest, id, version, title, document))?;
    run(conn, PUT_VERSION, (id, version, digest))?;
    Ok(None)
}
