//! What the port's methods say of themselves: identity and definitions.

use wf_core::models::Digest;
use wf_core::ports::DefinitionError;

use super::{ContractFixture, Verdict, Violation, check, check_eq};
use crate::build::definition;

/// Id and secrets of a store stay what they are, for every handle.
///
/// # Errors
/// When the store breaks the law.
pub async fn port_identity_is_stable(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let identity = store.identity().await?;
    check_eq!(store.identity().await?, identity, "the identity, asked again");
    drop(store);
    check_eq!(fixture.reopen().await?.identity().await?, identity, "after another open");

    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    check!(identity.id.len() >= 16 && identity.id.bytes().all(hex), "the id {:?}", identity.id);
    check!(!identity.secrets.is_empty(), "no secret");
    for secret in &identity.secrets {
        check!(secret.expose().len() >= 16, "a secret of {} bytes", secret.expose().len());
    }
    Ok(())
}

/// Two stores have neither an id nor a secret in common.
///
/// # Errors
/// When the store breaks the law.
pub async fn port_identity_is_random(fixture: &dyn ContractFixture) -> Verdict {
    let one = fixture.open().await?.identity().await?;
    let two = fixture.open().await?.identity().await?;
    check!(one.id != two.id, "two stores have the id {:?}", one.id);
    check!(one.secrets != two.secrets, "two stores have the same secrets");
    Ok(())
}

/// A definition that was stored is found by its digest, whole, through every handle.
///
/// # Errors
/// When the store breaks the law.
pub async fn port_definition_is_found_by_digest(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let known = definition("pump.check", 3, "Größe ≥ 4 \u{1F6E0}");
    store.put_definition(&known).await?;
    for handle in [&store, &fixture.reopen().await?] {
        let found = handle.definition(&known.digest).await?;
        check_eq!(found, Some(known.clone()), "the definition");
        let nothing = handle.definition(&Digest::of(b"nothing")).await?;
        check_eq!(nothing, None, "an unknown digest");
    }
    Ok(())
}

/// The same definition may be stored again; other versions and procedures stand beside it.
///
/// # Errors
/// When the store breaks the law.
pub async fn port_definition_may_be_stored_again(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let all = [
        definition("pump.check", 1, "one"),
        definition("pump.check", 2, "two"),
        definition("pump.check2", 1, "three"),
    ];
    for _ in 0..2 {
        for one in &all {
            store.put_definition(one).await?;
        }
    }
    for one in &all {
        let found = store.definition(&one.digest).await?;
        check_eq!(found.as_ref(), Some(one), "the definition");
    }
    Ok(())
}

/// A version means one digest for ever: another one is refused with the digest that is stored.
///
/// # Errors
/// When the store breaks the law.
pub async fn port_changed_definition_is_refused(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let known = definition("pump.check", 1, "one");
    store.put_definition(&known).await?;
    let changed = definition("pump.check", 1, "something else");
    for handle in [&store, &fixture.reopen().await?] {
        match handle.put_definition(&changed).await {
            Err(DefinitionError::Changed { existing }) => {
                check_eq!(existing, known.digest, "the digest that is stored");
            }
            Err(error) => return Err(error.into()),
            Ok(()) => return Err(Violation::new("a changed definition was taken")),
        }
    }
    check_eq!(store.definition(&changed.digest).await?, None, "the refused definition");
    check_eq!(store.definition(&known.digest).await?, Some(known), "the known definition");
    Ok(())
}
