//! Who a good token's bearer is.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use wf_core::models::{Actor, Principal, Scopes, TenantId};

use super::forge::{
    ISSUER, KEYS, NOW, ORIGIN, TestKey, ask, claims, clock, config, head, header, token, with,
    without,
};
use crate::auth::check::Checks;
use crate::auth::key::KeySet;
use crate::auth::keys::Keys;
use crate::auth::{
    Audience, Authenticator as _, Caller, JwtAuthenticator, JwtConfig, JwtConfigError, Refusal,
};

fn who(change: impl FnOnce(&mut JwtConfig)) -> JwtAuthenticator {
    let mut config = config();
    change(&mut config);
    let Value::Object(jwks) = KEYS.jwks() else { panic!("an object") };
    let set = KeySet::read(&jwks, Checks::ALL).expect("a set");
    JwtAuthenticator::with(config, Keys::Fixed(Arc::new(set)), Arc::new(clock()), Checks::ALL)
}

async fn caller(who: &JwtAuthenticator, more: Value) -> Result<Caller, Refusal> {
    ask(who, &token(&header(), &with(claims(), more), &KEYS.ec)).await
}

async fn user(who: &JwtAuthenticator, more: Value) -> Principal {
    match caller(who, more.clone()).await {
        Ok(Caller::User(principal)) => Principal::clone(&principal),
        other => panic!("{more}: {other:?}"),
    }
}

#[tokio::test]
async fn a_user_is_who_the_token_says() {
    let who = who(|config| {
        config.tenant_claim = Some("org".to_owned());
        config.roles_claim = Some("/realm_access/roles".to_owned());
        config.supervisor_roles = BTreeSet::from(["lead".to_owned()]);
    });
    let more = json!({
        "org": "acme",
        "name": " Alice Example ",
        "realm_access": { "roles": ["technician", "lead"] },
    });
    let expected = Principal {
        tenant: TenantId::parse("acme").expect("a tenant"),
        actor: Actor::User("alice".to_owned()),
        name: Some("Alice Example".to_owned()),
        client_id: Some("app".to_owned()),
        scopes: Scopes::ALL,
        roles: BTreeSet::from(["lead".to_owned(), "technician".to_owned()]),
    };
    assert_eq!(user(&who, more).await, expected);
    for org in [json!(null), json!("a/b"), json!(7), json!(["acme"]), json!("")] {
        let refused = caller(&who, json!({ "org": org })).await;
        assert_eq!(refused, Err(Refusal::Unauthenticated), "{org}");
    }
}

#[tokio::test]
async fn scopes_are_what_the_claim_lists() {
    let who = who(|_| {});
    let (read, write, supervise) = (true, true, true);
    for (scope, expected) in [
        (json!("workflow:read"), Scopes { read, ..Scopes::default() }),
        (json!(" workflow:write  other "), Scopes { write, ..Scopes::default() }),
        (json!(["workflow:supervise"]), Scopes { supervise, ..Scopes::default() }),
        (json!("workflow:readonly xworkflow:write WORKFLOW:SUPERVISE"), Scopes::default()),
        (json!([]), Scopes::default()),
        (json!(null), Scopes::default()),
    ] {
        assert_eq!(user(&who, json!({ "scope": scope })).await.scopes, expected, "{scope}");
    }
}

#[tokio::test]
async fn a_name_that_cannot_be_spoken_is_left_out() {
    let who = who(|_| {});
    for name in [json!(null), json!(""), json!(7), json!("a\u{7}b"), json!("x".repeat(121))] {
        assert_eq!(user(&who, json!({ "name": name })).await.name, None, "{name}");
    }
    let longest = "é".repeat(120);
    assert_eq!(user(&who, json!({ "name": longest })).await.name.as_deref(), Some(&*longest));
}

#[tokio::test]
async fn nobody_is_behind_a_service_token() {
    let who = who(|config| config.service_clients = BTreeSet::from(["m2m".to_owned()]));
    let service = |more: Value| {
        let who = &who;
        async move {
            match caller(who, more).await {
                Ok(Caller::Service(service)) => Ok(service.client_id.to_string()),
                Ok(Caller::User(user)) => Err(format!("{user:?}")),
                Err(refusal) => Err(refusal.to_string()),
            }
        }
    };
    // By scope, and by being its own subject (RFC 9068 section 5); more scopes do not make it a person.
    let by_scope = json!({ "scope": "mcp:service workflow:write", "client_id": "app" });
    assert_eq!(service(by_scope).await.as_deref(), Ok("app"));
    let itself = json!({ "sub": "app", "client_id": "app" });
    assert_eq!(service(itself).await.as_deref(), Ok("app"));
    let by_azp = json!({ "sub": "app", "client_id": null, "azp": "app" });
    assert_eq!(service(by_azp).await.as_deref(), Ok("app"));
    assert!(service(json!({})).await.is_err());
    // Without an audience only by the list, only services, and never with a wrong audience.
    let m2m = json!({ "sub": "m2m", "client_id": "m2m", "aud": null });
    assert_eq!(service(m2m.clone()).await.as_deref(), Ok("m2m"));
    for more in [
        json!({ "sub": "alice" }),
        json!({ "sub": "app", "client_id": "app" }),
        json!({ "aud": "https://other.example.com" }),
    ] {
        let mut claims = with(claims(), m2m.clone());
        let (Value::Object(all), Value::Object(more)) = (&mut claims, more) else {
            panic!("objects")
        };
        all.extend(more);
        let shown = claims.to_string();
        let refused = ask(&who, &token(&header(), &claims, &KEYS.ec)).await;
        assert_eq!(refused, Err(Refusal::Unauthenticated), "{shown}");
    }
}

#[tokio::test]
async fn every_algorithm_of_the_list_and_every_type_of_access_token_is_taken() {
    let who = who(|_| {});
    for (alg, kid, key) in [
        ("ES256", "ec-1", &KEYS.ec),
        ("EdDSA", "ed-1", &KEYS.ed),
        ("RS256", "rsa-1", &KEYS.rsa),
        ("RS256", "rsa-any", &KEYS.rsa),
    ] {
        let header = json!({ "alg": alg, "kid": kid, "typ": "at+jwt" });
        assert!(ask(&who, &token(&header, &claims(), key)).await.is_ok(), "{alg} {kid}");
    }
    let header_of = |typ: &str| with(header(), json!({ "typ": typ }));
    for typ in ["at+jwt", "AT+JWT", "application/at+jwt", "JWT", "jwt"] {
        assert!(ask(&who, &token(&header_of(typ), &claims(), &KEYS.ec)).await.is_ok(), "{typ}");
    }
    let bare = with(header(), json!({ "typ": null }));
    let access = with(claims(), json!({ "token_use": "access" }));
    assert!(ask(&who, &token(&bare, &access, &KEYS.ec)).await.is_ok());
    for more in [
        json!({ "aud": [super::forge::AUDIENCE] }),
        json!({ "nbf": null }),
        json!({ "nbf": NOW + 60 }),
        json!({ "iat": NOW + 60 }),
        json!({ "exp": NOW - 59 }),
        json!({ "typ": "Bearer" }),
        json!({ "sub": "a".repeat(255) }),
    ] {
        assert!(caller(&who, more.clone()).await.is_ok(), "{more}");
    }
}

/// Also when it was recognised at another path a moment ago.
#[tokio::test]
async fn a_token_counts_at_the_path_that_it_is_for() {
    let at = async |who: &JwtAuthenticator, path: &str, token: &str| {
        let value = format!("Bearer {token}");
        who.authenticate(&head(path, &[("authorization", &value)])).await
    };
    let for_path = |path: &str| {
        let aud = format!("{ORIGIN}{path}");
        token(&header(), &with(claims(), json!({ "aud": aud })), &KEYS.ec)
    };
    let called = who(|_| {});
    let paths = ["/mcp", "/mcp-std"];
    for path in paths {
        let token = for_path(path);
        for asked in paths.into_iter().chain(paths) {
            let answer = at(&called, asked, &token).await;
            assert_eq!(answer.is_ok(), asked == path, "for {path} at {asked}: {answer:?}");
        }
        assert!(
            at(&called, &format!("{path}?x=1"), &token).await.is_ok(),
            "a query is no part of it"
        );
    }
    // Where the issuer knows one name for all, every path takes it, and no URL.
    let named = who(|config| config.audience = Audience::Named("checkpoint".to_owned()));
    let by_name = token(&header(), &with(claims(), json!({ "aud": "checkpoint" })), &KEYS.ec);
    for path in paths {
        assert!(at(&named, path, &by_name).await.is_ok(), "{path}");
        assert!(at(&named, path, &for_path(path)).await.is_err(), "{path}");
        assert!(at(&called, path, &by_name).await.is_err(), "{path}");
    }
}

#[tokio::test]
async fn only_listed_algorithms_are_taken() {
    let who = who(|config| config.algorithms = vec![crate::auth::SigningAlgorithm::EdDsa]);
    assert!(caller(&who, json!({})).await.is_err());
    let header = json!({ "alg": "EdDSA", "kid": "ed-1", "typ": "at+jwt" });
    assert!(ask(&who, &token(&header, &claims(), &KEYS.ed)).await.is_ok());
}

#[tokio::test]
async fn a_token_without_a_key_name_means_the_only_key() {
    let key = TestKey::ed();
    let Value::Object(jwks) = json!({ "keys": [key.named(json!({}))] }) else { panic!("one") };
    let set = KeySet::read(&jwks, Checks::ALL).expect("a set");
    let keys = Keys::Fixed(Arc::new(set));
    let who = JwtAuthenticator::with(config(), keys, Arc::new(clock()), Checks::ALL);
    let header = json!({ "alg": "EdDSA", "typ": "at+jwt" });
    assert!(ask(&who, &token(&header, &claims(), &key)).await.is_ok());
    let named = json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": "x" });
    assert!(ask(&who, &token(&named, &claims(), &key)).await.is_err());
}

#[tokio::test]
async fn a_recognised_token_is_the_same_caller_until_it_expires() {
    let clock = clock();
    let Value::Object(jwks) = KEYS.jwks() else { panic!("an object") };
    let keys = Keys::Fixed(Arc::new(KeySet::read(&jwks, Checks::ALL).expect("a set")));
    let who = JwtAuthenticator::with(config(), keys, Arc::new(clock.clone()), Checks::ALL);
    let token = token(&header(), &with(claims(), json!({ "exp": NOW + 10 })), &KEYS.ec);
    let value = format!("bearer  {token}");
    let head = head("/mcp?x=1", &[("authorization", &value)]);
    let (first, second) = (who.authenticate(&head).await, who.authenticate(&head).await);
    match (&first, &second) {
        (Ok(Caller::User(a)), Ok(Caller::User(b))) => assert!(Arc::ptr_eq(a, b)),
        other => panic!("{other:?}"),
    }
    clock.advance(69_999);
    assert_eq!(who.authenticate(&head).await, first);
    clock.advance(1);
    assert_eq!(who.authenticate(&head).await, Err(Refusal::Unauthenticated));
}

#[test]
fn settings_that_cannot_be_are_said() {
    let setting = |change: fn(&mut JwtConfig)| {
        let mut config = config();
        change(&mut config);
        match config.check() {
            Ok(()) => "",
            Err(
                JwtConfigError::Address { setting, .. } | JwtConfigError::Value { setting, .. },
            ) => setting,
        }
    };
    assert_eq!(setting(|_| {}), "");
    assert_eq!(setting(|c| c.issuer = "http://as.example.com".to_owned()), "issuer");
    assert_eq!(setting(|c| c.issuer = format!("{ISSUER}?a")), "issuer");
    assert_eq!(setting(|c| c.jwks_url = Some("http://10.0.0.1/".to_owned())), "jwks_url");
    assert_eq!(setting(|c| c.audience = Audience::Named(String::new())), "audience");
    assert_eq!(setting(|c| c.audience = Audience::Called { origin: String::new() }), "audience");
    assert_eq!(setting(|c| c.algorithms.clear()), "algorithms");
    assert_eq!(setting(|c| c.clock_skew = std::time::Duration::from_secs(301)), "clock_skew");
    assert_eq!(setting(|c| c.key_times.pause = std::time::Duration::ZERO), "key_times");
    for name in ["HS256", "none", "rs256", "ES384", ""] {
        assert!(name.parse::<crate::auth::SigningAlgorithm>().is_err(), "{name}");
    }
}

/// What the credentials are must not be in what is shown of them.
#[tokio::test]
async fn nothing_shows_a_token() {
    let token = super::forge::good();
    let head = head("/mcp", &[("authorization", &format!("Bearer {token}"))]);
    let who = without(&[]);
    assert!(who.authenticate(&head).await.is_ok());
    let bearer = crate::auth::bearer::bearer(&head, Checks::ALL).expect("a token");
    let signature = token.rsplit('.').next().expect("three parts");
    for shown in [format!("{who:?}"), format!("{bearer:?}"), format!("{:#?}", who)] {
        assert!(!shown.contains(signature), "{shown}");
    }
    assert_eq!(format!("{bearer:?}"), "[masked]");
}
