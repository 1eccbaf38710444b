//! Keys of an issuer and of attackers, and tokens of every shape.

use std::sync::{Arc, LazyLock};

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair,
    RsaPublicKeyComponents,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Request;
use http::request::Parts;
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Map, Value, json};
use wf_core::models::Timestamp;
use wf_testkit::clock::ManualClock;

use crate::auth::check::Checks;
use crate::auth::key::KeySet;
use crate::auth::keys::Keys;
use crate::auth::{Audience, Authenticator as _, Caller, JwtAuthenticator, JwtConfig, Refusal};

pub(super) const ISSUER: &str = "https://as.example.com";
pub(super) const ORIGIN: &str = "https://wf.example.com";
pub(super) const AUDIENCE: &str = "https://wf.example.com/mcp";
/// The time of all tests, in seconds.
pub(super) const NOW: i64 = 1_796_000_000;

/// A private key, and the public half as a JWK without a name.
pub(super) struct TestKey {
    pub(super) algorithm: Algorithm,
    pub(super) jwk: Map<String, Value>,
    /// The public half in the bytes that a confused verifier could take for a secret.
    pub(super) public: Vec<u8>,
    private: EncodingKey,
}

fn members(of: Value) -> Map<String, Value> {
    let Value::Object(members) = of else { panic!("no object: {of}") };
    members
}

pub(super) fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl TestKey {
    pub(super) fn ec() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        let public = pair.public_key().as_ref().to_vec();
        let (x, y) = (b64(&public[1..33]), b64(&public[33..]));
        let document = pair.to_pkcs8v1().expect("a document");
        Self {
            algorithm: Algorithm::ES256,
            jwk: members(json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y })),
            public,
            private: EncodingKey::from_ec_der(document.as_ref()),
        }
    }

    pub(super) fn ed() -> Self {
        let pair = Ed25519KeyPair::generate().expect("a key");
        let public = pair.public_key().as_ref().to_vec();
        let document = pair.to_pkcs8v1().expect("a document");
        Self {
            algorithm: Algorithm::EdDSA,
            jwk: members(json!({ "kty": "OKP", "crv": "Ed25519", "x": b64(&public) })),
            public,
            private: EncodingKey::from_ed_der(document.as_ref()),
        }
    }

    pub(super) fn rsa() -> Self {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).expect("a key");
        let components = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
        let public = pair.public_key().as_der().expect("a document").as_ref().to_vec();
        // Signing wants PKCS #1; PKCS #8 has it as its last member, after a fixed head.
        let pkcs8 = pair.as_der().expect("a document");
        let private = pkcs1(pkcs8.as_ref());
        let (n, e) = (b64(&components.n), b64(&components.e));
        Self {
            algorithm: Algorithm::RS256,
            jwk: members(json!({ "kty": "RSA", "n": n, "e": e })),
            public,
            private: EncodingKey::from_rsa_der(&private),
        }
    }

    /// The JWK with more members.
    pub(super) fn named(&self, more: Value) -> Value {
        let mut jwk = self.jwk.clone();
        jwk.extend(members(more));
        Value::Object(jwk)
    }

    pub(super) fn sign(&self, message: &str) -> String {
        self.sign_as(self.algorithm, message)
    }

    pub(super) fn sign_as(&self, algorithm: Algorithm, message: &str) -> String {
        jsonwebtoken::crypto::sign(message.as_bytes(), &self.private, algorithm).expect("signed")
    }
}

/// The PKCS #1 key inside of a PKCS #8 document of a 2048-bit RSA key (RFC 5958 section 2).
fn pkcs1(pkcs8: &[u8]) -> Vec<u8> {
    // SEQUENCE (4) + version (3) + AlgorithmIdentifier (15) + OCTET STRING head (4).
    pkcs8[26..].to_vec()
}

/// HMAC over a message: what a verifier checks that believes in `alg: HS256`.
pub(super) fn hs256(secret: &[u8], message: &str) -> String {
    let key = EncodingKey::from_secret(secret).expect("a secret");
    jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::HS256).expect("signed")
}

/// The keys of the issuer, and some of its mistakes.
pub(super) struct Issuer {
    pub(super) ec: TestKey,
    pub(super) ed: TestKey,
    pub(super) rsa: TestKey,
    pub(super) encrypts: TestKey,
    pub(super) wraps: TestKey,
    pub(super) leaked: TestKey,
    pub(super) stranger: TestKey,
}

pub(super) static KEYS: LazyLock<Issuer> = LazyLock::new(|| Issuer {
    ec: TestKey::ec(),
    ed: TestKey::ed(),
    rsa: TestKey::rsa(),
    encrypts: TestKey::ec(),
    wraps: TestKey::ec(),
    leaked: TestKey::ec(),
    stranger: TestKey::ec(),
});

/// A secret of the issuer that should not be in its public set.
pub(super) const OCT: &[u8] = b"a secret that was published by mistake";

impl Issuer {
    pub(super) fn jwks(&self) -> Value {
        json!({ "keys": [
            self.ec.named(json!({ "kid": "ec-1", "use": "sig" })),
            self.ed.named(json!({ "kid": "ed-1", "alg": "EdDSA" })),
            self.rsa.named(json!({ "kid": "rsa-1", "alg": "RS256" })),
            self.rsa.named(json!({ "kid": "rsa-any" })),
            { "kty": "oct", "kid": "oct-1", "k": b64(OCT), "alg": "HS256" },
            self.encrypts.named(json!({ "kid": "enc-1", "use": "enc" })),
            self.wraps.named(json!({ "kid": "wrap-1", "key_ops": ["wrapKey"] })),
            self.leaked.named(json!({ "kid": "leaked-1", "d": b64([7; 32]) })),
            { "kty": "EC", "crv": "P-521", "kid": "p521", "x": "AA", "y": "AA" },
            "not a key",
        ] })
    }
}

/// The settings of the tests.
pub(super) fn config() -> JwtConfig {
    JwtConfig {
        audience: Audience::Called { origin: ORIGIN.to_owned() },
        algorithms: crate::auth::SigningAlgorithm::ALL.to_vec(),
        ..JwtConfig::new(ISSUER, AUDIENCE)
    }
}

/// Claims of a good token.
pub(super) fn claims() -> Value {
    json!({
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "alice",
        "client_id": "app",
        "scope": "workflow:read workflow:write",
        "iat": NOW - 10,
        "nbf": NOW - 10,
        "exp": NOW + 600,
        "jti": "1",
    })
}

/// Good claims with other members; `null` takes one out.
pub(super) fn with(base: Value, more: Value) -> Value {
    let mut all = members(base);
    for (name, value) in members(more) {
        if value.is_null() {
            all.remove(&name);
        } else {
            all.insert(name, value);
        }
    }
    Value::Object(all)
}

/// The header of a token signed with the key `ec-1`.
pub(super) fn header() -> Value {
    json!({ "alg": "ES256", "kid": "ec-1", "typ": "at+jwt" })
}

/// The signed part of a token, from JSON as it is written.
pub(super) fn message(header: &str, claims: &str) -> String {
    format!("{}.{}", b64(header), b64(claims))
}

/// A token with this header and these claims, signed with `key`.
pub(super) fn token(header: &Value, claims: &Value, key: &TestKey) -> String {
    let message = message(&header.to_string(), &claims.to_string());
    let signature = key.sign(&message);
    format!("{message}.{signature}")
}

/// A good token.
pub(super) fn good() -> String {
    token(&header(), &claims(), &KEYS.ec)
}

pub(super) fn clock() -> ManualClock {
    ManualClock::new(Timestamp::from_ms(NOW * 1000))
}

/// An authenticator that knows the keys of [`KEYS`], with some checks left out.
pub(super) fn without(left_out: &'static [crate::auth::check::Check]) -> JwtAuthenticator {
    let checks = Checks(left_out);
    let set = KeySet::read(&members(KEYS.jwks()), checks).expect("a set");
    JwtAuthenticator::with(config(), Keys::Fixed(Arc::new(set)), Arc::new(clock()), checks)
}

/// The head of a request with these headers.
pub(super) fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::post(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request").into_parts().0
}

/// What an authenticator says about a bearer of `token`.
pub(super) async fn ask(who: &JwtAuthenticator, token: &str) -> Result<Caller, Refusal> {
    let value = format!("Bearer {token}");
    who.authenticate(&head("/mcp", &[("authorization", &value)])).await
}
