//! A developer's key: made, written, read back, and its tokens taken.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use wf_core::models::{TenantId, Timestamp};

use super::forge::{NOW, ask, clock};
use crate::auth::{Caller, DevKey, DevKeyError, DevToken, JwtAuthenticator, JwtConfig, Refusal};

fn config() -> JwtConfig {
    let mut config = JwtConfig::new("http://127.0.0.1:8080", "http://127.0.0.1:8080/mcp");
    config.tenant_claim = Some("tenant".to_owned());
    config.roles_claim = Some("/realm/roles".to_owned());
    config
}

fn now() -> Timestamp {
    Timestamp::from_ms(NOW * 1000)
}

#[tokio::test]
async fn a_token_of_the_key_is_taken_also_by_the_key_that_was_read_back() {
    let made = DevKey::generate().expect("a key");
    let text = made.to_text().expect("a text");
    let read = DevKey::from_text(text.expose()).expect("the same key");
    assert_eq!(made.jwks(), read.jwks());
    let clock = clock();
    let who = JwtAuthenticator::local(config(), &read, Arc::new(clock.clone())).expect("one");
    let wish = DevToken {
        tenant: Some(TenantId::parse("acme").expect("a tenant")),
        name: Some("Ann".to_owned()),
        scopes: vec!["workflow:read".to_owned(), "workflow:supervise".to_owned()],
        roles: vec!["lead".to_owned()],
        life: Duration::from_secs(300),
        ..DevToken::new("ann")
    };
    let token = made.sign(&wish, &config(), now()).expect("signed");
    let Ok(Caller::User(user)) = ask(&who, token.expose()).await else { panic!("no user") };
    assert_eq!((user.tenant.as_str(), user.actor.subject()), ("acme", "ann"));
    assert_eq!(user.name.as_deref(), Some("Ann"));
    assert!(user.scopes.read && user.scopes.supervise && !user.scopes.write);
    assert!(user.roles.contains("lead"));
    clock.advance(361_000);
    assert_eq!(ask(&who, token.expose()).await, Err(Refusal::Unauthenticated));

    let stranger = DevKey::generate().expect("another key");
    let forged = stranger.sign(&wish, &config(), now()).expect("signed");
    assert_eq!(ask(&who, forged.expose()).await, Err(Refusal::Unauthenticated));
    assert_eq!(who.metadata(), None);
    who.load().await.expect("nothing to load");
}

#[tokio::test]
async fn a_token_for_a_service_is_one() {
    let key = DevKey::generate().expect("a key");
    let who = JwtAuthenticator::local(config(), &key, Arc::new(clock())).expect("one");
    let wish = DevToken {
        scopes: vec!["mcp:service".to_owned()],
        tenant: Some(TenantId::default_tenant()),
        ..DevToken::new("device")
    };
    let token = key.sign(&wish, &config(), now()).expect("signed");
    assert!(matches!(ask(&who, token.expose()).await, Ok(Caller::Service(_))));
}

#[test]
fn tokens_that_nobody_could_use_are_not_signed() {
    let key = DevKey::generate().expect("a key");
    let life = |life| DevToken { life, ..DevToken::new("ann") };
    for wish in [
        DevToken::new(""),
        DevToken::new("a".repeat(256)),
        life(Duration::ZERO),
        life(Duration::from_secs(24 * 60 * 60 + 1)),
    ] {
        let refused = key.sign(&wish, &config(), now()).err();
        assert_eq!(refused, Some(DevKeyError::Token), "{wish:?}");
    }
}

#[test]
fn only_a_whole_private_key_is_read_and_none_is_shown() {
    let key = DevKey::generate().expect("a key");
    let text = key.to_text().expect("a text");
    let jwk: serde_json::Value = serde_json::from_str(text.expose()).expect("JSON");
    let other = DevKey::generate().expect("a key").jwks()["keys"][0]["x"].clone();
    let mut broken = vec!["".to_owned(), "{}".to_owned(), "-----BEGIN PRIVATE KEY-----".to_owned()];
    for (name, value) in [
        ("d", json!(null)),
        ("d", json!("AA")),
        ("x", other),
        ("kty", json!("EC")),
        ("crv", json!("X25519")),
    ] {
        let mut jwk = jwk.clone();
        jwk[name] = value;
        broken.push(jwk.to_string());
    }
    for text in broken {
        assert_eq!(DevKey::from_text(&text).err(), Some(DevKeyError::Read), "{text}");
    }
    let secret = jwk["d"].as_str().expect("a secret");
    assert!(!format!("{key:?} {text:?} {}", key.jwks()).contains(secret));
}
