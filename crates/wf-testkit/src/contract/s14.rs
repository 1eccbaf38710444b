//! S14: opening an unknown newer schema is refused with a clear error.

use wf_core::ports::OpenError;

use super::cast::start_with_everything;
use super::{ContractFixture, Verdict, Violation, check};

/// A store of a newer build is not opened, and the error says which version it has and which one is known.
///
/// # Errors
/// When the store breaks the law.
pub async fn s14_newer_schema_is_refused(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    store.commit(start_with_everything(1, 1).build()).await?;
    drop(store);
    // Opening a store of this build is no reason to refuse.
    drop(fixture.reopen().await?);
    fixture.make_schema_newer().await?;
    for _ in 0..2 {
        match fixture.reopen().await {
            Err(OpenError::NewerSchema { found, known }) => {
                check!(found > known, "schema {found} is not newer than {known}");
            }
            Err(error) => {
                return Err(Violation::new(format!("a newer schema was refused with {error:?}")));
            }
            Ok(store) => {
                return Err(Violation::new(format!("a newer schema was opened: {store:?}")));
            }
        }
    }
    Ok(())
}
