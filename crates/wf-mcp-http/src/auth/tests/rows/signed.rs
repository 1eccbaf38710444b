//! Attacks on how a token is signed: the algorithm, the key, the signature, and how they are written.

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use super::Table;
use crate::auth::check::Check;
use crate::auth::tests::forge::{
    KEYS, OCT, b64, claims, good, header, hs256, message, token, with,
};

pub(super) fn attacks(table: &mut Table) {
    algorithms(table);
    confused_secrets(table);
    signatures(table);
    written_signatures(table);
    shapes(table);
}

fn algorithms(table: &mut Table) {
    use Check::{Algorithm as Listed, KeyAlgorithm, Signature};
    for name in ["none", "None", "nOnE", "NONE", ""] {
        let message =
            message(&with(header(), json!({"alg": name})).to_string(), &claims().to_string());
        let guards = &[Listed, KeyAlgorithm, Signature];
        table.row(guards, format!("alg {name:?} without a signature"), format!("{message}."));
        let signed = format!("{message}.{}", KEYS.ec.sign(&message));
        table.row(guards, format!("alg {name:?} with a signature"), signed);
        table.row(&[], format!("alg {name:?} in two parts"), message);
    }
    for alg in [json!(null), json!(7), json!(["ES256"])] {
        table.header(&[Listed, KeyAlgorithm, Signature], json!({ "alg": alg }));
    }
    let rs256 = with(header(), json!({ "alg": "RS256" }));
    table.row(
        &[KeyAlgorithm, Signature],
        "RS256 by the name of an EC key",
        token(&rs256, &claims(), &KEYS.rsa),
    );
    for (guards, kid, algorithm) in [
        (&[KeyAlgorithm][..], "rsa-1", Algorithm::PS256),
        (&[Listed, KeyAlgorithm], "rsa-1", Algorithm::RS384),
        (&[Listed, KeyAlgorithm], "rsa-any", Algorithm::RS512),
        (&[Listed, KeyAlgorithm], "rsa-any", Algorithm::PS384),
    ] {
        let header = json!({ "alg": format!("{algorithm:?}"), "kid": kid, "typ": "at+jwt" });
        let message = message(&header.to_string(), &claims().to_string());
        let name = format!("{algorithm:?} by the key {kid}");
        let signature = KEYS.rsa.sign_as(algorithm, &message);
        table.row(guards, name, format!("{message}.{signature}"));
    }
}

/// The public half of a key, or a secret that was published, in the place of a shared secret.
fn confused_secrets(table: &mut Table) {
    use Check::{Algorithm as Listed, KeyAlgorithm, KnownKey, Signature};
    let secrets: [(&str, &str, &[u8]); 2] =
        [("ec-1", "the point", &KEYS.ec.public), ("ed-1", "the public key", &KEYS.ed.public)];
    for (kid, what, secret) in secrets {
        let header = with(header(), json!({ "alg": "HS256", "kid": kid }));
        let message = message(&header.to_string(), &claims().to_string());
        let name = format!("HS256 with {what} of {kid} as secret");
        let signature = hs256(secret, &message);
        // The library looks at the type of the key too, so that the signature guards as well.
        table.row(&[Listed, KeyAlgorithm, Signature], name, format!("{message}.{signature}"));
    }
    let modulus = KEYS.rsa.jwk["n"].as_str().expect("text").to_owned();
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &KEYS.rsa.public)
    );
    let jwk = Value::Object(KEYS.rsa.jwk.clone()).to_string();
    for (what, secret) in
        [("modulus", modulus.as_bytes()), ("PEM", pem.as_bytes()), ("JWK", jwk.as_bytes())]
    {
        let header = with(header(), json!({ "alg": "HS256", "kid": "rsa-any" }));
        let message = message(&header.to_string(), &claims().to_string());
        let name = format!("HS256 with the {what} of an RSA key as secret");
        let signature = hs256(secret, &message);
        table.row(&[Listed, KeyAlgorithm, Signature], name, format!("{message}.{signature}"));
    }
    let oct = with(header(), json!({ "alg": "HS256", "kid": "oct-1" }));
    let oct = message(&oct.to_string(), &claims().to_string());
    let guards = &[Listed, KeyAlgorithm, KnownKey, Signature];
    let signature = hs256(OCT, &oct);
    table.row(guards, "HS256 by a secret in the set of keys", format!("{oct}.{signature}"));
}

fn signatures(table: &mut Table) {
    use Check::Signature;
    let good = good();
    let (message, signature) = good.rsplit_once('.').expect("three parts");
    let other = KEYS.ec.sign("another message");
    for (name, bad) in [
        ("no signature", String::new()),
        ("r = s = 0", b64([0; 64])),
        ("a signature of another message", other),
        ("a signature by another key", KEYS.stranger.sign(message)),
        ("a signature that is too short", signature[..signature.len() - 6].to_owned()),
        ("a signature in DER", b64([0x30, 6, 2, 1, 1, 2, 1, 1])),
    ] {
        table.row(&[Signature], name, format!("{message}.{bad}"));
    }
    let evil = with(claims(), json!({ "sub": "admin" })).to_string();
    let (head, _) = message.split_once('.').expect("two parts");
    let moved = format!("{head}.{}.{signature}", b64(evil));
    table.row(&[Signature], "claims that were exchanged", moved);
}

/// One signature, written in more than one way.
fn written_signatures(table: &mut Table) {
    let good = good();
    let (message, signature) = good.rsplit_once('.').expect("three parts");
    // 64 bytes are 85 characters and two bits of the 86th; the other four bits must be zero.
    let (body, last) = signature.split_at(85);
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digit = alphabet.iter().position(|c| Some(c) == last.as_bytes().first()).expect("one");
    let spare = char::from(alphabet[digit | 1]);
    let mut standard = signature.to_owned();
    while !standard.contains(['-', '_']) {
        standard = KEYS.ec.sign(message);
    }
    standard = standard.replace('-', "+").replace('_', "/");
    for (name, bad) in [
        ("padding", format!("{signature}==")),
        ("half a padding", format!("{signature}=")),
        ("spare bits", format!("{body}{spare}")),
        ("a space", format!("{body} {last}")),
        ("a tab", format!("{body}\t{last}")),
        ("the other alphabet", standard),
    ] {
        table.row(
            &[Check::CanonicalBase64],
            format!("a signature with {name}"),
            format!("{message}.{bad}"),
        );
    }
}

fn shapes(table: &mut Table) {
    let good = good();
    let (head, _) = good.split_once('.').expect("three parts");
    for (name, bad) in [
        ("four parts", format!("{good}.x")),
        ("an encrypted one, in five parts", "a.b.c.d.e".to_owned()),
        ("a padded header", format!("{head}=.{}", &good[head.len() + 1..])),
        ("a point", ".".to_owned()),
        ("two points", "..".to_owned()),
        ("nothing", String::new()),
        ("an opaque token", "2YotnFZFEjr1zCsicMWpAA".to_owned()),
        ("JSON", r#"{"alg":"none"}"#.to_owned()),
    ] {
        table.row(&[], name, bad);
    }
}
