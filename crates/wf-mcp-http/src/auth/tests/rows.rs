//! The table of attacks on a token. Every row is refused, and every row says which checks refuse it: without those it
//! gets through, and without any other single one it does not. The rows are in `signed` and `said`.

mod said;
mod signed;

use std::collections::BTreeSet;

use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Value, json};

use super::forge::{
    KEYS, OCT, TestKey, ask, b64, claims, good, header, hs256, message, token, with, without,
};
use crate::auth::Refusal;
use crate::auth::check::Check;

/// One attack.
struct Row {
    name: String,
    token: String,
    /// What refuses it, each alone; empty for what is no token at all.
    guards: &'static [Check],
}

#[derive(Default)]
struct Table(Vec<Row>);

impl Table {
    fn row(&mut self, guards: &'static [Check], name: impl Into<String>, token: String) {
        self.0.push(Row { name: name.into(), token, guards });
    }

    /// A token that is good but for some members of its header.
    fn header(&mut self, guards: &'static [Check], more: Value) {
        let name = format!("header with {}", shortened(&more));
        self.row(guards, name, token(&with(header(), more), &claims(), &KEYS.ec));
    }

    /// A token that is good but for some claims.
    fn claims(&mut self, guards: &'static [Check], more: Value) {
        let name = format!("claims with {}", shortened(&more));
        self.row(guards, name, token(&header(), &with(claims(), more), &KEYS.ec));
    }

    /// A token that is good but for how its JSON is written.
    fn written(&mut self, guards: &'static [Check], header: &str, claims: &str) {
        let message = message(header, claims);
        let signature = KEYS.ec.sign(&message);
        self.row(guards, format!("{header} {claims}"), format!("{message}.{signature}"));
    }
}

fn shortened(value: &Value) -> String {
    value.to_string().chars().take(90).collect()
}

/// Good claims as text, with one text exchanged for another.
fn claims_with(from: &str, to: &str) -> String {
    let text = claims().to_string();
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

fn table() -> Vec<Row> {
    let mut table = Table::default();
    signed::attacks(&mut table);
    said::attacks(&mut table);
    table.0
}

#[tokio::test]
async fn every_attack_is_refused_alike() {
    let who = without(&[]);
    assert!(ask(&who, &good()).await.is_ok());
    for row in table() {
        assert_eq!(ask(&who, &row.token).await, Err(Refusal::Unauthenticated), "{}", row.name);
    }
}

#[tokio::test]
async fn every_attack_gets_through_without_its_guards() {
    for row in table().iter().filter(|row| !row.guards.is_empty()) {
        let answer = ask(&without(row.guards), &row.token).await;
        assert!(answer.is_ok(), "{}: refused without {:?}", row.name, row.guards);
    }
}

#[tokio::test]
async fn a_check_that_is_left_out_lets_through_exactly_what_it_guards_alone() {
    let table = table();
    for (at, check) in Check::ALL.iter().enumerate() {
        let only = &Check::ALL[at..=at];
        let who = without(only);
        let mut through = BTreeSet::new();
        for row in &table {
            if ask(&who, &row.token).await.is_ok() {
                through.insert(row.name.as_str());
            }
        }
        let guarded: BTreeSet<&str> =
            table.iter().filter(|row| row.guards == only).map(|row| row.name.as_str()).collect();
        assert_eq!(through, guarded, "without {check:?}");
    }
}

/// A check that no row needs would be a check that nobody saw refuse anything.
#[test]
fn every_check_of_a_token_has_an_attack() {
    // Where the token is, and whether it is one, is the business of `bearer`; `Shape` is what cannot be read.
    let elsewhere =
        [Check::Bearer, Check::OneHeader, Check::OneMethod, Check::Length, Check::Shape];
    let used: BTreeSet<Check> = table().iter().flat_map(|row| row.guards).copied().collect();
    let missing: Vec<_> =
        Check::ALL.iter().filter(|c| !used.contains(c) && !elsewhere.contains(c)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Why keys of the issuer are read by rules of our own: the library takes a published secret for a key.
#[test]
fn the_library_alone_would_verify_with_a_published_secret() {
    let jwk = json!({ "kty": "oct", "kid": "oct-1", "k": b64(OCT) });
    let jwk: jsonwebtoken::jwk::Jwk = serde_json::from_value(jwk).expect("a JWK");
    let key = DecodingKey::from_jwk(&jwk).expect("a key");
    let signature = hs256(OCT, "a.b");
    let verified = jsonwebtoken::crypto::verify(&signature, b"a.b", &key, Algorithm::HS256);
    assert_eq!(verified.ok(), Some(true));
}

#[test]
fn weak_and_secret_keys_are_not_read() {
    use crate::auth::check::Checks;
    use crate::auth::key::KeySet;
    let rsa = |bits: usize| {
        let modulus = vec![0x80_u8; bits / 8];
        json!({ "kty": "RSA", "n": b64(modulus), "e": "AQAB" })
    };
    let count = |jwk: Value| {
        let document = serde_json::Map::from_iter([("keys".to_owned(), json!([jwk]))]);
        KeySet::read(&document, Checks::ALL).expect("a set").len()
    };
    for (bits, usable) in [(512, 0), (1024, 0), (2040, 0), (2048, 1), (4096, 1), (16384, 0)] {
        assert_eq!(count(rsa(bits)), usable, "{bits}");
    }
    let ec = |more| TestKey::ec().named(more);
    assert_eq!(count(ec(json!({ "key_ops": ["verify"] }))), 1);
    assert_eq!(count(ec(json!({ "x": b64([1; 31]) }))), 0);
    assert_eq!(count(ec(json!({ "alg": "ES384" }))), 0);
    assert_eq!(count(ec(json!({ "alg": "HS256" }))), 0);
    assert_eq!(count(ec(json!({ "crv": "secp256k1" }))), 0);
    assert_eq!(count(ec(json!({ "kid": 7 }))), 0);
}
