//! Definitions by digest, and which digest a version has, once for ever.

use sqlx::SqliteConnection;
use wf_core::models::Digest;
use wf_core::policy::Definition;

use crate::codec::decode::Columns;
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
pub(crate) async fn put(
    conn: &mut SqliteConnection,
    definition: &Definition,
) -> Result<Option<Digest>, sqlx::Error> {
    let id = definition.id.as_str();
    let version = i64::from(definition.version);
    let known = sqlx::query(VERSION).bind(id).bind(version).fetch_optional(&mut *conn).await?;
    if let Some(row) = &known {
        let digest: Digest = Columns::new(row, 0).parsed("a digest")?;
        return Ok((digest != definition.digest).then_some(digest));
    }
    let text = |e: serde_json::Error| unreadable("a definition", e);
    sqlx::query(PUT)
        .bind(definition.digest.as_str())
        .bind(id)
        .bind(version)
        .bind(serde_json::to_string(&definition.title).map_err(text)?)
        .bind(serde_json::to_string(&definition.document).map_err(text)?)
        .execute(&mut *conn)
        .await?;
    sqlx::query(PUT_VERSION)
        .bind(id)
        .bind(version)
        .bind(definition.digest.as_str())
        .execute(conn)
        .await?;
    Ok(None)
}
