//! The keys of an issuer over time: floods, rotation, outages. Time is tokio's and stands still until a test moves it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use wf_testkit::clock::ManualClock;

use super::forge::{ISSUER, KEYS, TestKey, ask, claims, clock, config, header, token, with};
use crate::auth::address::Address;
use crate::auth::check::Checks;
use crate::auth::fetch::{Fetch, FetchError};
use crate::auth::issuer::Issuer;
use crate::auth::keys::{Keys, Remote, Source};
use crate::auth::settings::KeyTimes;
use crate::auth::{JwtAuthenticator, Refusal};

const JWKS: &str = "https://as.example.com/jwks";

/// An issuer in memory: documents by address, and how often each was asked for.
#[derive(Debug)]
struct Fake {
    documents: Mutex<BTreeMap<String, Bytes>>,
    hits: Mutex<BTreeMap<String, usize>>,
    /// Answers that may be given; closed by taking them all.
    gate: Semaphore,
}

impl Fake {
    fn new(jwks: &Value) -> Arc<Self> {
        let fake = Self {
            documents: Mutex::default(),
            hits: Mutex::default(),
            gate: Semaphore::new(1_000_000),
        };
        fake.publish(JWKS, jwks);
        Arc::new(fake)
    }

    fn publish(&self, address: &str, document: &Value) {
        let bytes = Bytes::from(document.to_string());
        self.documents.lock().expect("not poisoned").insert(address.to_owned(), bytes);
    }

    fn breaks(&self) {
        self.documents.lock().expect("not poisoned").clear();
    }

    fn close(&self) {
        self.gate.forget_permits(usize::MAX);
    }

    fn open(&self) {
        self.gate.add_permits(1_000_000);
    }

    fn hits(&self) -> usize {
        self.hits.lock().expect("not poisoned").get(JWKS).copied().unwrap_or(0)
    }
}

#[async_trait]
impl Fetch for Fake {
    async fn get(&self, address: &Address) -> Result<Bytes, FetchError> {
        let address = address.to_string();
        *self.hits.lock().expect("not poisoned").entry(address.clone()).or_default() += 1;
        self.gate.acquire().await.expect("never closed").forget();
        let found = self.documents.lock().expect("not poisoned").get(&address).cloned();
        found.ok_or(FetchError::Status(StatusCode::NOT_FOUND))
    }
}

/// An authenticator whose keys are at [`JWKS`], with the wall clock beside tokio's.
struct World {
    who: Arc<JwtAuthenticator>,
    clock: ManualClock,
}

impl World {
    fn new(fake: &Arc<Fake>, times: KeyTimes) -> Self {
        let fetch: Arc<dyn Fetch> = Arc::clone(fake) as _;
        let source = Source::At(Address::parse(JWKS).expect("an address"), fetch);
        let keys = Keys::Remote(Arc::new(Remote::new(source, times, Checks::ALL)));
        let clock = clock();
        let who = JwtAuthenticator::with(config(), keys, Arc::new(clock.clone()), Checks::ALL);
        Self { who: Arc::new(who), clock }
    }

    async fn passes(&self, time: Duration) {
        tokio::time::advance(time).await;
        self.clock.advance(u64::try_from(time.as_millis()).expect("small"));
    }

    async fn ask(&self, token: &str) -> Result<(), Refusal> {
        ask(&self.who, token).await.map(|_| ())
    }
}

/// Lets every task run as far as it comes.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

fn jwks(keys: &[(&str, &TestKey)]) -> Value {
    let keys: Vec<_> = keys.iter().map(|(kid, key)| key.named(json!({ "kid": kid }))).collect();
    json!({ "keys": keys })
}

/// A token by the key `kid` that lives for a day.
fn by(kid: &str, key: &TestKey) -> String {
    let long = with(claims(), json!({ "exp": super::forge::NOW + 86_400 }));
    token(&with(header(), json!({ "kid": kid })), &long, key)
}

const TIMES: fn() -> KeyTimes = KeyTimes::default;

/// How often the keys are fetched in ten minutes of tokens with keys that nobody knows.
async fn fetches_in_a_flood(times: KeyTimes) -> usize {
    let fake = Fake::new(&jwks(&[("a", &KEYS.ec)]));
    let world = World::new(&fake, times);
    let honest = by("a", &KEYS.ec);
    assert_eq!(world.ask(&honest).await, Ok(()));
    for round in 0..120 {
        for n in 0..20 {
            let forged = by(&format!("k-{round}-{n}"), &KEYS.stranger);
            assert_eq!(world.ask(&forged).await, Err(Refusal::Unauthenticated));
        }
        assert_eq!(world.ask(&honest).await, Ok(()));
        world.passes(Duration::from_secs(5)).await;
    }
    fake.hits()
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_unknown_keys_is_one_fetch_per_pause() {
    let ten_minutes_of_pauses = 20;
    let hits = fetches_in_a_flood(TIMES()).await;
    assert!((2..=1 + ten_minutes_of_pauses).contains(&hits), "{hits}");
    // The control: without the pause every forged token is a fetch.
    let hits = fetches_in_a_flood(KeyTimes { pause: Duration::ZERO, ..TIMES() }).await;
    assert!(hits >= 120 * 20, "{hits}");
}

#[tokio::test(start_paused = true)]
async fn many_wait_for_one_fetch_and_no_more_than_may() {
    let fake = Fake::new(&jwks(&[("a", &KEYS.ec)]));
    let world = World::new(&fake, TIMES());
    fake.close();
    let honest = by("a", &KEYS.ec);
    let mut waiting = Vec::new();
    for _ in 0..100 {
        let (who, token) = (Arc::clone(&world.who), honest.clone());
        waiting.push(tokio::spawn(async move { ask(&who, &token).await.map(|_| ()) }));
    }
    settle().await;
    assert_eq!(fake.hits(), 1);
    let over = waiting.iter().filter(|task| task.is_finished()).count();
    assert_eq!(over, 100 - 32, "as many wait as may");
    fake.open();
    let mut good = 0;
    for task in waiting {
        match task.await.expect("no panic") {
            Ok(()) => good += 1,
            Err(refusal) => assert!(matches!(refusal, Refusal::Unavailable { .. })),
        }
    }
    assert_eq!((good, fake.hits()), (32, 1));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_does_not_take_the_fetch_along() {
    let fake = Fake::new(&jwks(&[("a", &KEYS.ec)]));
    let world = World::new(&fake, TIMES());
    fake.close();
    let (who, forged) = (Arc::clone(&world.who), by("x", &KEYS.stranger));
    let client = tokio::spawn(async move { ask(&who, &forged).await.map(|_| ()) });
    settle().await;
    client.abort();
    assert!(client.await.expect_err("aborted").is_cancelled());
    fake.open();
    settle().await;
    // The pause is not over, so that this is the set of the first fetch.
    assert_eq!(world.ask(&by("a", &KEYS.ec)).await, Ok(()));
    assert_eq!(fake.hits(), 1);
}

#[tokio::test(start_paused = true)]
async fn keys_are_exchanged_while_the_server_runs() {
    let fake = Fake::new(&jwks(&[("a", &KEYS.ec)]));
    let world = World::new(&fake, TIMES());
    let (old, new) = (by("a", &KEYS.ec), by("b", &KEYS.encrypts));
    assert_eq!(world.ask(&old).await, Ok(()));
    assert_eq!(world.ask(&new).await, Err(Refusal::Unauthenticated), "not published yet");
    fake.publish(JWKS, &jwks(&[("a", &KEYS.ec), ("b", &KEYS.encrypts)]));
    world.passes(TIMES().pause).await;
    assert_eq!(world.ask(&new).await, Ok(()), "fetched because a token named it");
    assert_eq!(world.ask(&old).await, Ok(()));
    fake.publish(JWKS, &jwks(&[("b", &KEYS.encrypts)]));
    world.passes(TIMES().refresh / 2).await;
    // Old keys are used until the new set is there, which nobody waits for.
    assert_eq!(world.ask(&new).await, Ok(()));
    settle().await;
    assert_eq!(world.ask(&old).await, Err(Refusal::Unauthenticated), "taken out");
    assert_eq!(world.ask(&new).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_recognised_token_is_verified_again_when_keys_change() {
    let fake = Fake::new(&jwks(&[("a", &KEYS.ec)]));
    let world = World::new(&fake, TIMES());
    let old = by("a", &KEYS.ec);
    assert_eq!(world.ask(&old).await, Ok(()));
    fake.publish(JWKS, &jwks(&[("b", &KEYS.encrypts)]));
    // Well within the minute that a token is recognised for.
    world.who.load().await.expect("fetched");
    assert_eq!(world.ask(&old).await, Err(Refusal::Unauthenticated));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_keys_that_only_grow_old() {
    let fake = Fake::new(&jwks(&[("a", &KEYS.ec)]));
    let world = World::new(&fake, TIMES());
    let known = by("a", &KEYS.ec);
    assert_eq!(world.ask(&known).await, Ok(()));
    world.passes(TIMES().refresh / 2).await;
    fake.close();
    for _ in 0..3 {
        world.passes(Duration::from_secs(61)).await;
        let answer = tokio::time::timeout(Duration::ZERO, world.ask(&known)).await;
        assert_eq!(answer.expect("at once"), Ok(()));
        settle().await;
    }
    assert_eq!(fake.hits(), 2, "one at a time, however long it takes");
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for n in 0..100 {
        let long = with(claims(), json!({ "exp": super::forge::NOW + 86_400, "jti": n }));
        let fresh = token(&with(header(), json!({ "kid": "a" })), &long, &KEYS.ec);
        assert_eq!(world.ask(&fresh).await, Ok(()));
    }
    let after = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(after, before, "and one task, however many ask");
}

/// Nobody asked for a while, so that nothing was fetched: what was taken out meanwhile must not count for whoever comes
/// first, nor for those who come with them.
#[tokio::test(start_paused = true)]
async fn keys_that_were_taken_out_while_nobody_asked_do_not_count() {
    let fake = Fake::new(&jwks(&[("a", &KEYS.ec)]));
    let world = World::new(&fake, TIMES());
    let (old, new) = (by("a", &KEYS.ec), by("b", &KEYS.encrypts));
    assert_eq!(world.ask(&old).await, Ok(()));
    fake.publish(JWKS, &jwks(&[("b", &KEYS.encrypts)]));
    world.passes(TIMES().refresh).await;
    fake.close();
    let mut waiting = Vec::new();
    for n in 0..50 {
        let token = if n % 2 == 0 { old.clone() } else { new.clone() };
        let who = Arc::clone(&world.who);
        waiting.push(tokio::spawn(async move { (n, ask(&who, &token).await.map(|_| ())) }));
    }
    settle().await;
    assert_eq!(fake.hits(), 2, "one fetch for all");
    fake.open();
    let (mut good, mut later) = (0, 0);
    for task in waiting {
        match task.await.expect("no panic") {
            (n, Ok(())) => {
                assert_eq!(n % 2, 1, "the old key counts");
                good += 1;
            }
            (_, Err(Refusal::Unavailable { .. })) => later += 1,
            (n, refused) => assert_eq!((n % 2, refused), (0, Err(Refusal::Unauthenticated))),
        }
    }
    assert_eq!(
        (good, later),
        (16, 50 - 32),
        "as many wait as may, the others are told to come again"
    );
    assert_eq!((world.ask(&new).await, fake.hits()), (Ok(()), 2));
}

#[tokio::test(start_paused = true)]
async fn old_keys_count_on_once_the_issuer_was_asked_and_is_away() {
    let fake = Fake::new(&jwks(&[("a", &KEYS.ec)]));
    let world = World::new(&fake, TIMES());
    let known = by("a", &KEYS.ec);
    assert_eq!(world.ask(&known).await, Ok(()));
    fake.breaks();
    world.passes(TIMES().refresh).await;
    assert_eq!((world.ask(&known).await, fake.hits()), (Ok(()), 2), "the first one waits");
    // From then on it is asked again beside the requests, and nobody waits.
    fake.close();
    for _ in 0..3 {
        world.passes(Duration::from_secs(61)).await;
        let answer = tokio::time::timeout(Duration::ZERO, world.ask(&known)).await;
        assert_eq!(answer.expect("at once"), Ok(()));
        settle().await;
    }
    assert_eq!(fake.hits(), 3, "one at a time, however long it takes");
}

#[tokio::test(start_paused = true)]
async fn the_last_good_keys_last_through_an_outage_up_to_a_bound() {
    let fake = Fake::new(&jwks(&[("a", &KEYS.ec)]));
    let world = World::new(&fake, TIMES());
    let token = by("a", &KEYS.ec);
    assert_eq!(world.ask(&token).await, Ok(()));
    fake.breaks();
    world.passes(TIMES().keep - Duration::from_secs(61)).await;
    assert_eq!(world.ask(&token).await, Ok(()), "within the bound");
    assert_eq!(world.ask(&by("x", &KEYS.stranger)).await, Err(Refusal::Unauthenticated));
    world.passes(Duration::from_secs(61)).await;
    let answer = world.ask(&token).await;
    assert!(matches!(answer, Err(Refusal::Unavailable { .. })), "beyond it: {answer:?}");
    fake.publish(JWKS, &jwks(&[("a", &KEYS.ec)]));
    world.passes(TIMES().retry).await;
    assert_eq!(world.ask(&token).await, Ok(()), "the issuer is back");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_saw_keys_is_unavailable_and_recovers() {
    let fake = Fake::new(&json!({}));
    let world = World::new(&fake, TIMES());
    assert!(world.who.load().await.is_err());
    for token in [by("a", &KEYS.ec), by("x", &KEYS.stranger)] {
        let answer = world.ask(&token).await;
        assert_eq!(answer, Err(Refusal::Unavailable { after: TIMES().retry }));
    }
    assert_eq!(world.ask("nonsense").await, Err(Refusal::Unauthenticated), "needs no key");
    assert_eq!(fake.hits(), 1, "not before the pause is over");
    fake.publish(JWKS, &jwks(&[("a", &KEYS.ec)]));
    world.passes(TIMES().retry).await;
    assert_eq!(world.ask(&by("a", &KEYS.ec)).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_set_that_cannot_be_used_does_not_replace_one_that_can() {
    let fake = Fake::new(&jwks(&[("a", &KEYS.ec)]));
    let world = World::new(&fake, TIMES());
    let token = by("a", &KEYS.ec);
    assert_eq!(world.ask(&token).await, Ok(()));
    let oct = json!({ "keys": [{ "kty": "oct", "kid": "a", "k": "AAAA" }] });
    for bad in [json!([]), json!({ "keys": 7 }), json!({ "keys": [] }), oct, json!("x")] {
        fake.publish(JWKS, &bad);
        assert!(world.who.load().await.is_err(), "{bad}");
        world.passes(Duration::from_secs(61)).await;
        assert_eq!(world.ask(&token).await, Ok(()), "{bad}");
    }
}

#[tokio::test(start_paused = true)]
async fn keys_are_where_the_issuers_own_metadata_says() {
    let fake = Fake::new(&jwks(&[("a", &KEYS.ec)]));
    let at = format!("{ISSUER}/.well-known/oauth-authorization-server");
    let openid = format!("{ISSUER}/.well-known/openid-configuration");
    let good = json!({ "issuer": ISSUER, "jwks_uri": JWKS });
    let load = || {
        let fetch: Arc<dyn Fetch> = Arc::clone(&fake) as _;
        let address = Address::issuer(ISSUER).expect("an issuer");
        let issuer = Issuer::with(ISSUER, address, Arc::clone(&fetch));
        let remote = Remote::new(Source::Of(issuer, fetch), TIMES(), Checks::ALL);
        let keys = Keys::Remote(Arc::new(remote));
        JwtAuthenticator::with(config(), keys, Arc::new(clock()), Checks::ALL)
    };
    for bad in [
        json!({ "issuer": "https://other.example.com", "jwks_uri": JWKS }),
        json!({ "jwks_uri": JWKS }),
        json!({ "issuer": ISSUER }),
        json!({ "issuer": ISSUER, "jwks_uri": "http://as.example.com/jwks" }),
        json!({ "issuer": ISSUER, "jwks_uri": "https://169.254.169.254/jwks" }),
        json!({ "issuer": ISSUER, "jwks_uri": "file:///etc/passwd" }),
        json!([]),
    ] {
        fake.publish(&at, &bad);
        assert!(load().load().await.is_err(), "{bad}");
    }
    assert_eq!(fake.hits(), 0, "nothing was fetched that the metadata should not name");
    fake.publish(&at, &good);
    let who = load();
    assert_eq!(who.metadata(), None);
    who.load().await.expect("keys");
    assert_eq!(who.metadata(), Some(Bytes::from(good.to_string())));
    assert!(ask(&who, &by("a", &KEYS.ec)).await.is_ok());
    // The other place, when there is nothing at the first.
    fake.breaks();
    fake.publish(JWKS, &jwks(&[("a", &KEYS.ec)]));
    fake.publish(&openid, &good);
    load().load().await.expect("keys");
}
