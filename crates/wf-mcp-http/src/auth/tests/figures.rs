//! What a token costs: verified, and recognised. Figures, not a test: run it alone, and in release.
//!
//! `cargo test --release -p wf-mcp-http --lib -- --ignored --nocapture auth::tests::figures`

use std::time::Instant;

use serde_json::json;

use super::forge::{KEYS, claims, head, token, without};
use crate::auth::Authenticator as _;
use crate::auth::cache::TokenDigest;

/// Best of a few rounds, in microseconds per call.
async fn microseconds<F: AsyncFnMut()>(mut call: F) -> f64 {
    const CALLS: u32 = 300;
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let start = Instant::now();
        for _ in 0..CALLS {
            call().await;
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS));
    }
    best
}

#[tokio::test]
#[ignore = "prints figures of this machine"]
#[expect(clippy::print_stdout, reason = "figures for whoever runs it")]
async fn of_a_token() {
    let who = without(&[]);
    for (alg, kid, key) in
        [("RS256", "rsa-1", &KEYS.rsa), ("ES256", "ec-1", &KEYS.ec), ("EdDSA", "ed-1", &KEYS.ed)]
    {
        let token = token(&json!({ "alg": alg, "kid": kid, "typ": "at+jwt" }), &claims(), key);
        let head = head("/mcp", &[("authorization", &format!("Bearer {token}"))]);
        let verified = microseconds(async || {
            let judged = who.judge(&token, "/mcp", super::forge::NOW * 1000).await;
            assert!(std::hint::black_box(judged).is_ok());
        });
        let verified = verified.await;
        let recognised = microseconds(async || {
            assert!(std::hint::black_box(who.authenticate(&head).await).is_ok());
        });
        let recognised = recognised.await;
        let hashed = microseconds(async || {
            std::hint::black_box(TokenDigest::of("/mcp", &token));
        });
        let hashed = hashed.await;
        let length = token.len();
        println!(
            "{alg}: {length} bytes, verified {verified:.1} µs, recognised {recognised:.2} µs \
             (of it the hash {hashed:.2} µs)"
        );
    }
}
