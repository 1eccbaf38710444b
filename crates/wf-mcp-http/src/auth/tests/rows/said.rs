//! Attacks on what a token says: the header, the times, the parties, and how the JSON is written.

use serde_json::json;

use super::{Table, claims_with, shortened};
use crate::auth::check::Check;
use crate::auth::tests::forge::{AUDIENCE, ISSUER, KEYS, NOW, claims, header, token, with};

pub(super) fn attacks(table: &mut Table) {
    key_names(table);
    foreign_keys(table);
    types(table);
    times(table);
    parties(table);
    kinds(table);
    ambiguous(table);
}

fn key_names(table: &mut Table) {
    use Check::{KeyId, KnownKey};
    for kid in
        ["../../x", "/dev/null", "x' OR '1'='1", "ec-1\0", "EC-1", "ec-1 ", "http://127.0.0.1/"]
    {
        table.header(&[KnownKey], json!({ "kid": kid }));
    }
    table.header(&[KnownKey], json!({ "kid": null }));
    for kid in [json!(""), json!(1), json!(["ec-1"]), json!({"a": "ec-1"}), json!("k".repeat(4000))]
    {
        table.header(&[KeyId, KnownKey], json!({ "kid": kid }));
    }
    table.written(
        &[KeyId, KnownKey],
        r#"{"alg":"ES256","kid":null,"typ":"at+jwt"}"#,
        &claims().to_string(),
    );
}

fn foreign_keys(table: &mut Table) {
    use Check::{KeyUse, KnownKey, PublicKey, Signature};
    let theirs = KEYS.stranger.named(json!({ "kid": "mine" }));
    for more in [
        json!({ "jwk": theirs }),
        json!({ "jku": "https://evil.example.com/jwks" }),
        json!({ "x5u": "https://evil.example.com/cert" }),
        json!({ "x5c": ["MIIB"] }),
    ] {
        let named = with(header(), more.clone());
        let token_of = |header: &serde_json::Value| token(header, &claims(), &KEYS.stranger);
        let name = format!("a key of one's own by {}", shortened(&more));
        table.row(&[Signature], name.clone(), token_of(&named));
        let renamed = with(named, json!({ "kid": "mine" }));
        table.row(&[KnownKey, Signature], format!("{name} with its own name"), token_of(&renamed));
    }
    for (guards, kid, key) in [
        (&[KeyUse][..], "enc-1", &KEYS.encrypts),
        (&[KeyUse], "wrap-1", &KEYS.wraps),
        (&[PublicKey], "leaked-1", &KEYS.leaked),
    ] {
        // The row is of the look-up too: a key that is not used is not there.
        let header = with(header(), json!({ "kid": kid }));
        table.row(guards, format!("by the key {kid}"), token(&header, &claims(), key));
    }
}

fn types(table: &mut Table) {
    use Check::{Critical, Type};
    for crit in [json!(["exp"]), json!(["b64"]), json!(["x"]), json!([]), json!("x")] {
        table.header(&[Critical], json!({ "crit": crit, "x": 1 }));
    }
    for typ in ["dpop+jwt", "logout+jwt", "secevent+jwt", "id_token", "at+jwt ", "", "JWE"] {
        table.header(&[Type], json!({ "typ": typ }));
    }
    table.header(&[Type], json!({ "typ": null }));
    table.header(&[Type], json!({ "typ": ["at+jwt"] }));
}

fn times(table: &mut Table) {
    use Check::{Expiry, IssuedAt, NotBefore, StrictJson};
    let odd = [json!("1999999999"), json!(-1), json!(1.5), json!(true), json!([NOW]), json!({})];
    for value in odd.iter().chain(&[json!(NOW - 3600), json!(NOW - 60), json!(0), json!(null)]) {
        table.claims(&[Expiry], json!({ "exp": value }));
    }
    for value in odd.iter().chain(&[json!(NOW + 3600), json!(NOW + 61)]) {
        table.claims(&[NotBefore], json!({ "nbf": value }));
    }
    for value in odd.iter().chain(&[json!(NOW + 3600), json!(NOW + 61), json!(null)]) {
        table.claims(&[IssuedAt], json!({ "iat": value }));
    }
    let head = header().to_string();
    let exp = format!("\"exp\":{}", NOW + 600);
    let huge = |number: &str| claims_with(&exp, &format!("\"exp\":{number}"));
    // Beyond what every reader agrees on. The second is no number for the clock either, the third none at all.
    table.written(&[StrictJson], &head, &huge("9007199254740993"));
    table.written(&[StrictJson, Expiry], &head, &huge("18446744073709551616"));
    table.written(&[], &head, &huge("1e400"));
    table.written(&[Expiry], &head, &huge("null"));
    table.written(&[Expiry], &head, &huge("1.8e9"));
    let past = format!("\"exp\":{},{exp}", NOW - 3600);
    table.written(&[StrictJson], &head, &claims_with(&exp, &past));
}

fn parties(table: &mut Table) {
    use Check::{Audience, Issuer, KnownKey, Signature};
    for iss in [
        json!(null),
        json!([ISSUER]),
        json!(format!("{ISSUER}/")),
        json!("https://AS.example.com"),
        json!("https://as.example.com:443"),
        json!("http://as.example.com"),
        json!("https://other.example.com"),
        json!(1),
        json!(""),
    ] {
        table.claims(&[Issuer], json!({ "iss": iss }));
    }
    let other = with(claims(), json!({ "iss": "https://other.example.com" }));
    let foreign = with(header(), json!({ "kid": "other-1" }));
    table.row(
        &[Issuer, KnownKey, Signature],
        "another issuer's token",
        token(&foreign, &other, &KEYS.stranger),
    );
    table.row(
        &[KnownKey, Signature],
        "a token that another issuer made in our issuer's name",
        token(&foreign, &claims(), &KEYS.stranger),
    );
    for aud in [
        json!(null),
        json!("https://other.example.com/mcp"),
        json!(["https://other.example.com/mcp"]),
        json!([AUDIENCE, "https://other.example.com/mcp"]),
        json!([]),
        json!([[AUDIENCE]]),
        json!(format!("{AUDIENCE}/")),
        json!("https://WF.example.com/mcp"),
        json!("https://wf.example.com:443/mcp"),
        json!("https://wf.example.com"),
        json!("https://wf.example.com/mcp-std"),
        json!("https://wf.example.com/mcp?x"),
        json!("/mcp"),
        json!("http://wf.example.com/mcp"),
        json!("app"),
        json!({ "aud": AUDIENCE }),
        json!(1),
    ] {
        table.claims(&[Audience], json!({ "aud": aud }));
    }
}

fn kinds(table: &mut Table) {
    use Check::{AccessToken, Audience, Claims, Subject};
    let long = "a".repeat(256);
    for sub in [json!(null), json!(""), json!(7), json!(["alice"]), json!(long), json!("a\nb")] {
        table.claims(&[Subject], json!({ "sub": sub }));
    }
    for more in [
        json!({ "nonce": "n" }),
        json!({ "at_hash": "x" }),
        json!({ "c_hash": "x" }),
        json!({ "events": {} }),
        json!({ "token_use": "id" }),
        json!({ "typ": "ID" }),
        json!({ "typ": "Refresh" }),
        json!({ "typ": "Offline" }),
    ] {
        table.claims(&[AccessToken], more);
    }
    let id_token = with(claims(), json!({ "aud": "app", "nonce": "n", "scope": null }));
    let jwt = with(header(), json!({ "typ": "JWT" }));
    table.row(&[Audience, AccessToken], "an ID token", token(&jwt, &id_token, &KEYS.ec));
    for more in [
        json!({ "scope": 7 }),
        json!({ "scope": [7] }),
        json!({ "scope": { "a": 1 } }),
        json!({ "scope": "s".repeat(300) }),
        json!({ "client_id": 7 }),
        json!({ "client_id": "" }),
        json!({ "client_id": "a\u{1b}b" }),
    ] {
        table.claims(&[Claims], more);
    }
}

/// JSON that two readers could understand in two ways, and what is no JSON object.
fn ambiguous(table: &mut Table) {
    use Check::StrictJson;
    let head = header().to_string();
    let aud = format!("\"aud\":\"{AUDIENCE}\"");
    let sub = "\"sub\":\"alice\"";
    for (from, to) in [
        (aud.as_str(), format!("\"aud\":\"evil\",{aud}")),
        (&aud, format!("\"a\\u0075d\":\"evil\",{aud}")),
        (sub, format!("\"sub\":\"admin\",{sub}")),
    ] {
        table.written(&[StrictJson], &head, &claims_with(from, &to));
    }
    let twice = head.replacen('{', r#"{"alg":"none","#, 1);
    table.written(&[StrictJson], &twice, &claims().to_string());
    for (head, claims) in [
        ("[]", "{}"),
        ("{}", "[]"),
        ("\u{feff}{}", "{}"),
        ("{}", "null"),
        ("{", "{}"),
        (r#"{"a":[[[[[[[[[1]]]]]]]]]}"#, "{"),
    ] {
        table.written(&[], head, claims);
    }
}
