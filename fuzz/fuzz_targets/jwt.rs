//! Credentials for the authenticator. An input is `<how><bytes>`; how it is made is in [`credential`].
//!
//! Nothing but a token that the issuer signed is ever taken, in the one way to write it, and of those only the ones whose claims
//! a second reading finds in order; what is taken names the tenant, the subject and the scopes that the claims name. Claims
//! that are in order are taken, until the second that they say.

#![no_main]

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use checkpoint_fuzz::json::{Choices, witness};
use checkpoint_fuzz::planted;
use http::Request;
use jsonwebtoken::{Algorithm, EncodingKey};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use tokio::runtime::{Builder, Runtime};
use wf_core::models::Timestamp;
use wf_mcp_http::auth::{DevKey, JwtAuthenticator, JwtConfig};
use wf_mcp_http::{Authenticator, Caller, Refusal};
use wf_testkit::clock::ManualClock;

const ISSUER: &str = "https://as.example.com";
const AUDIENCE: &str = "https://wf.example.com/mcp";
/// The time of every input, in seconds.
const NOW: i64 = 1_796_000_000;
/// The skew that the settings allow, in seconds.
const SKEW: i64 = 60;

/// The keys of RFC 8032 section 7.1: the first is the issuer's, the second a stranger's.
const SEED: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
const PUBLIC: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const STRANGER: &str = "TM0Imyj_ltqdtsNG7BFOD1uKMZ81q6Yk2oz27U-4pvs";

struct Gate {
    runtime: Runtime,
    authenticator: JwtAuthenticator,
    clock: ManualClock,
    kid: String,
    issuer: EncodingKey,
    stranger: EncodingKey,
    /// Tokens as the issuer makes them, all to be taken now.
    genuine: Vec<String>,
}

static GATE: LazyLock<Gate> = LazyLock::new(|| {
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": PUBLIC, "d": SEED}).to_string();
    let dev = DevKey::from_text(&jwk).expect("the key of the RFC");
    let kid = dev.jwks()["keys"][0]["kid"].as_str().expect("a name").to_owned();
    let mut config = JwtConfig::new(ISSUER, AUDIENCE);
    config.tenant_claim = Some("tenant".to_owned());
    config.roles_claim = Some("roles".to_owned());
    config.supervisor_roles = ["chief".to_owned()].into();
    config.service_clients = ["robot".to_owned()].into();
    let clock = ManualClock::new(Timestamp::from_ms(NOW * 1_000));
    let authenticator =
        JwtAuthenticator::local(config, &dev, Arc::new(clock.clone())).expect("good settings");
    let mut gate = Gate {
        runtime: Builder::new_current_thread().build().expect("a runtime"),
        authenticator,
        clock,
        kid,
        issuer: private(SEED),
        stranger: private(STRANGER),
        genuine: Vec::new(),
    };
    for subject in ["ann", "bob", "robot"] {
        let mut choices = Choices(&[]);
        let mut claims = lawful_claims(&mut choices);
        claims.insert("sub".to_owned(), subject.into());
        if subject == "robot" {
            claims.remove("aud");
            claims.insert("client_id".to_owned(), "robot".into());
        }
        let header = json!({"alg": "EdDSA", "kid": gate.kid, "typ": "at+jwt"}).to_string();
        let token =
            signed(&gate.issuer, header.as_bytes(), Value::Object(claims).to_string().as_bytes());
        assert!(gate.ask(&token).is_ok(), "{subject}");
        gate.genuine.push(token);
    }
    gate
});

/// A private key from its seed (RFC 8410 section 7).
fn private(seed: &str) -> EncodingKey {
    let head = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let seed = URL_SAFE_NO_PAD.decode(seed).expect("a seed");
    EncodingKey::from_ed_der(&[head.as_slice(), seed.as_slice()].concat())
}

fn signed(key: &EncodingKey, header: &[u8], claims: &[u8]) -> String {
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), key, Algorithm::EdDSA);
    format!("{message}.{}", signature.expect("signed"))
}

impl Gate {
    /// Whom a token is taken for.
    fn ask(&self, token: &str) -> Result<Caller, Refusal> {
        let token = if planted() { lenient(token) } else { token.to_owned() };
        let request = Request::post("/mcp").header("authorization", format!("Bearer {token}"));
        // What cannot be in a header reaches nobody.
        let Ok(request) = request.body(()) else { return Err(Refusal::Unauthenticated) };
        let (head, ()) = request.into_parts();
        self.runtime.block_on(self.authenticator.authenticate(&head))
    }
}

/// What a control makes of a token: a reader of base64 that does not mind spare bits.
fn lenient(token: &str) -> String {
    let config = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&base64::alphabet::URL_SAFE, config);
    let Some((message, signature)) = token.rsplit_once('.') else { return token.to_owned() };
    let Ok(signature) = engine.decode(signature) else { return token.to_owned() };
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fuzz_target!(|data: &[u8]| {
    let Some((how, rest)) = data.split_first() else { return };
    let gate = &*GATE;
    gate.clock.set(Timestamp::from_ms(NOW * 1_000));
    match how % 5 {
        0 | 1 => {
            let token = credential(gate, how % 5, rest);
            let taken = gate.ask(&token);
            let is_genuine = gate.genuine.iter().any(|one| one == token.trim_start_matches(' '));
            assert_eq!(taken.is_ok(), is_genuine, "{token}");
        }
        2 => {
            let (header, claims) = halves(rest);
            let header = String::from_utf8_lossy(header).replace("KID", &gate.kid);
            let token = signed(&gate.issuer, header.as_bytes(), claims);
            if let Ok(caller) = gate.ask(&token) {
                lawful(header.as_bytes(), claims, &gate.kid, &caller);
            }
        }
        3 => by_choice(gate, &mut Choices(rest)),
        _ => {
            let (header, claims) = halves(rest);
            let header = String::from_utf8_lossy(header).replace("KID", &gate.kid);
            let token = signed(&gate.stranger, header.as_bytes(), claims);
            assert!(gate.ask(&token).is_err(), "signed by a stranger: {token}");
        }
    }
});

fn halves(bytes: &[u8]) -> (&[u8], &[u8]) {
    let cut = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    (&bytes[..cut], bytes.get(cut + 1..).unwrap_or_default())
}

/// A text: any, or parts of genuine tokens, disturbed.
fn credential(gate: &Gate, how: u8, rest: &[u8]) -> String {
    if how == 0 {
        return String::from_utf8_lossy(rest).into_owned();
    }
    let mut choices = Choices(rest);
    let parts: Vec<&str> = (0..3)
        .map(|at| {
            let token = &gate.genuine[choices.below(gate.genuine.len())];
            token.split('.').nth(at).unwrap_or_default()
        })
        .collect();
    let mut bytes = parts.join(".").into_bytes();
    // Counted from the end: the last letters of a signature have spare bits.
    for edit in choices.0.chunks_exact(3) {
        let back = usize::from(u16::from_be_bytes([edit[0], edit[1]])) % (bytes.len() + 1);
        let at = bytes.len() - back;
        match edit[2] {
            0x80.. if at < bytes.len() => bytes[at] = edit[2] & 0x7f,
            0x7f if at < bytes.len() => drop(bytes.remove(at)),
            letter => bytes.insert(at, letter & 0x7f),
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Claims in order; with zeros for choices those of a technician.
fn lawful_claims(choices: &mut Choices<'_>) -> Map<String, Value> {
    let mut claims = Map::new();
    let mut set = |name: &str, value: Value| drop(claims.insert(name.to_owned(), value));
    set("iss", ISSUER.into());
    set("sub", ["ann", "böb", "a b", "x@y"][choices.below(4)].into());
    set("aud", [json!(AUDIENCE), json!([AUDIENCE])][choices.below(2)].clone());
    set("exp", (NOW + [3_600, 1, -SKEW + 1, 0][choices.below(4)]).into());
    set("iat", (NOW - [60, 0, -SKEW, 1_000_000][choices.below(4)]).into());
    if choices.below(2) == 1 {
        set("nbf", (NOW + [0, SKEW, -5][choices.below(3)]).into());
    }
    set("tenant", ["t", "A.b-c_9"][choices.below(2)].into());
    let scopes = ["workflow:read workflow:write", "", " workflow:supervise ", "other"];
    set("scope", scopes[choices.below(4)].into());
    if choices.below(2) == 1 {
        set("roles", [json!(["chief"]), json!("chief"), json!([])][choices.below(3)].clone());
    }
    if choices.below(2) == 1 {
        set("client_id", "app".into());
    }
    claims
}

/// Claims in order, and perhaps one that is not: taken exactly when there is none, until the time that they say.
fn by_choice(gate: &Gate, choices: &mut Choices<'_>) {
    let mut claims = lawful_claims(choices);
    let wrong = [
        ("iss", json!([ISSUER])),
        ("iss", json!("https://as.example.com/")),
        ("aud", json!([AUDIENCE, "https://other.example.com"])),
        ("aud", json!("https://wf.example.com/mcp/")),
        ("aud", json!([])),
        ("exp", json!(NOW - SKEW)),
        ("exp", json!(1e300)),
        ("exp", json!("1999999999")),
        ("exp", json!(-1)),
        ("exp", json!(1_999_999_999.5)),
        ("iat", json!(NOW + SKEW + 1)),
        ("iat", json!("0")),
        ("nbf", json!(NOW + SKEW + 1)),
        ("nbf", json!(null)),
        ("sub", json!("")),
        ("sub", json!(7)),
        ("sub", json!("a\u{1}")),
        ("sub", json!("x".repeat(256))),
        ("tenant", json!("a/b")),
        ("tenant", json!("x".repeat(65))),
        ("scope", json!(7)),
        ("scope", json!([7])),
        ("client_id", json!(["app"])),
        ("nonce", json!("n")),
        ("token_use", json!("id")),
        ("typ", json!("Refresh")),
    ];
    let needed = ["iss", "sub", "aud", "exp", "iat", "tenant"];
    let fault = choices.below(1 + wrong.len() + needed.len());
    if let Some((name, value)) = fault.checked_sub(1).and_then(|fault| wrong.get(fault)) {
        claims.insert((*name).to_owned(), value.clone());
    } else if let Some(fault) = fault.checked_sub(1 + wrong.len()) {
        claims.remove(needed[fault]);
    }
    let until = claims.get("exp").and_then(Value::as_i64).unwrap_or_default() + SKEW;
    let claims = Value::Object(claims).to_string();
    let header = json!({"alg": "EdDSA", "kid": gate.kid, "typ": "at+jwt"}).to_string();
    let token = signed(&gate.issuer, header.as_bytes(), claims.as_bytes());
    let taken = gate.ask(&token);
    assert_eq!(taken.is_ok(), fault == 0, "{claims}");
    if let Ok(caller) = taken {
        lawful(header.as_bytes(), claims.as_bytes(), &gate.kid, &caller);
        gate.clock.set(Timestamp::from_ms(until * 1_000 - 1));
        assert_eq!(gate.ask(&token).as_ref(), Ok(&caller), "to the end: {claims}");
        gate.clock.set(Timestamp::from_ms(until * 1_000));
        assert!(gate.ask(&token).is_err(), "after the end: {claims}");
    }
}

/// What was taken must be in order for a second reading, which knows nothing of the first.
fn lawful(header: &[u8], claims: &[u8], kid: &str, caller: &Caller) {
    let shown = String::from_utf8_lossy(claims).into_owned();
    let read = |bytes: &[u8]| {
        let seen = witness(bytes).unwrap_or_else(|| panic!("no JSON: {shown}"));
        assert!(!seen.duplicate && !seen.inexact && seen.depth <= 8, "two ways to read: {shown}");
        seen.value.as_object().unwrap_or_else(|| panic!("no object: {shown}")).clone()
    };
    let (header, claims) = (read(header), read(claims));
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    assert_eq!(header.get("alg"), Some(&json!("EdDSA")));
    assert!(header.get("kid").is_none_or(|id| *id == json!(kid)), "another key: {header:?}");
    assert!(!header.contains_key("crit"), "{header:?}");
    let kind = header.get("typ").and_then(Value::as_str).map(str::to_ascii_lowercase);
    let said = header.contains_key("typ");
    let kinds = ["at+jwt", "application/at+jwt", "jwt"];
    assert!(
        kind.is_some_and(|kind| kinds.contains(&kind.as_str()))
            || (!said && text("token_use") == Some("access"))
    );
    assert_eq!(text("iss"), Some(ISSUER), "{shown}");
    let seconds = |name: &str| claims.get(name).map(|value| value.as_u64().expect("whole seconds"));
    let (now, skew) = (NOW as u64, SKEW as u64);
    assert!(seconds("exp").is_some_and(|exp| now < exp.saturating_add(skew)), "{shown}");
    assert!(seconds("iat").is_some_and(|iat| iat <= now + skew), "{shown}");
    assert!(seconds("nbf").is_none_or(|nbf| nbf <= now + skew), "{shown}");
    for foreign in ["nonce", "at_hash", "c_hash", "s_hash", "events"] {
        assert!(!claims.contains_key(foreign), "an ID or logout token: {shown}");
    }
    let subject = text("sub").expect("a subject");
    assert!(
        (1..=255).contains(&subject.len()) && !subject.chars().any(char::is_control),
        "{shown}"
    );
    let tenant = text("tenant").expect("a tenant");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    assert!((1..=64).contains(&tenant.len()) && tenant.bytes().all(plain), "{shown}");
    let ours = [json!(AUDIENCE), json!([AUDIENCE])];
    let scopes: Vec<&str> = match claims.get("scope") {
        Some(Value::String(text)) => text.split(' ').collect(),
        Some(Value::Array(list)) => list.iter().map(|one| one.as_str().expect("texts")).collect(),
        _ => Vec::new(),
    };
    match caller {
        Caller::User(principal) => {
            assert!(claims.get("aud").is_some_and(|aud| ours.contains(aud)), "{shown}");
            assert_eq!(principal.tenant.as_str(), tenant);
            assert_eq!(principal.actor.to_string(), format!("user:{subject}"));
            assert_eq!(principal.scopes.read, scopes.contains(&"workflow:read"), "{shown}");
            assert_eq!(principal.scopes.write, scopes.contains(&"workflow:write"), "{shown}");
            let chief = match claims.get("roles") {
                Some(Value::Array(roles)) => roles.contains(&json!("chief")),
                roles => roles == Some(&json!("chief")),
            };
            assert_eq!(principal.scopes.supervise, chief || scopes.contains(&"workflow:supervise"));
        }
        Caller::Service(service) => {
            assert_eq!(service.tenant.as_str(), tenant);
            let client = claims.get("client_id").or_else(|| claims.get("azp"));
            let named = client.and_then(Value::as_str);
            let right = claims.get("aud").map_or(named == Some("robot"), |aud| ours.contains(aud));
            assert!(right, "{shown}");
            assert!(scopes.contains(&"mcp:service") || named == Some(subject), "{shown}");
            assert_eq!(&*service.client_id, named.unwrap_or(subject));
        }
    }
}
