//! Who gets in, and for how long.

use std::net::IpAddr;

use http::StatusCode;
use wf_console::Turned;
use wf_core::models::Scopes;

use crate::world::{Browser, World, person};

const PAGES: [&str; 5] = [
    "/console",
    "/console/assets",
    "/console/messages",
    "/console/workflows/w-1",
    "/console/workflows/w-1/evidence",
];

#[tokio::test]
async fn nobody_sees_anything_before_signing_in() {
    let world = World::new().await;
    let mut browser = Browser::new(&world);
    for cookie in [None, Some("guessed".to_owned())] {
        browser.cookie = cookie;
        for path in PAGES {
            let answer = browser.get(path).await;
            assert_eq!(answer.status, StatusCode::SEE_OTHER, "{path}");
            assert!(answer.header("location").starts_with("/console/sign-in"), "{path}");
            assert_eq!(answer.text, "");
        }
        for path in [
            "/console/workflows/w-1/resolve",
            "/console/workflows/w-1/release",
            "/console/sign-out",
        ] {
            let answer = browser.post(path, &[("form_token", ""), ("key", "k")]).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
        }
    }
    let page = browser.get("/console/sign-in").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("<label for=\"token\">"));
}

#[tokio::test]
async fn a_wrong_token_is_told_plainly_and_a_good_one_opens_a_session() {
    let world = World::new().await;
    let mut browser = Browser::new(&world);
    world.names.set("robot", Err(Turned::Service));
    world.names.set("away", Err(Turned::Unavailable));
    let mute = Scopes { read: false, write: true, supervise: false };
    world.names.set(
        "mute",
        Ok(wf_core::models::Principal { scopes: mute, ..person("m", "default", false) }),
    );
    for (token, status, says) in [
        ("", 422, "Paste an access token"),
        ("forged", 401, "was not accepted"),
        ("robot", 403, "of a service"),
        ("mute", 403, "workflow:read"),
        ("away", 503, "cannot be checked"),
    ] {
        let answer = browser.post("/console/sign-in", &[("token", token)]).await;
        assert_eq!(answer.status.as_u16(), status, "{token}");
        assert!(answer.text.contains(says) && answer.text.contains("role=\"alert\""), "{token}");
        assert_eq!((answer.header("set-cookie"), answer.text.contains("forged")), ("", false));
    }
    let next = "/console/assets?after=x";
    let answer =
        browser.post("/console/sign-in", &[("token", " Bearer sue\n"), ("next", next)]).await;
    assert_eq!((answer.status, answer.header("location")), (StatusCode::SEE_OTHER, next));
    let cookie = answer.header("set-cookie");
    assert!(cookie.ends_with("; Path=/console; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains("sue"), "{cookie}");
    assert_eq!(browser.get("/console").await.status, StatusCode::OK);
    // Over TLS the cookie never goes without it.
    browser.origin = Some("https://ops.example".to_owned());
    assert_eq!(
        browser.post("/console/sign-in", &[("token", "sue")]).await.status,
        403,
        "another host"
    );
}

#[tokio::test]
async fn a_session_ends_with_its_token_and_when_one_signs_out() {
    let world = World::new().await;
    let mut browser = Browser::of(&world, "sue").await;
    assert_eq!(browser.get("/console").await.status, StatusCode::OK);
    // While keys are away nothing is shown, and the session stays.
    world.names.set("sue", Err(Turned::Unavailable));
    assert_eq!(browser.get("/console").await.status, StatusCode::SERVICE_UNAVAILABLE);
    world.names.set("sue", Ok(person("sue", "default", true)));
    assert_eq!(browser.get("/console").await.status, StatusCode::OK);
    // A token that expired ends it for good.
    world.names.set("sue", Err(Turned::Unknown));
    let over = browser.get("/console").await;
    assert_eq!(over.status, StatusCode::SEE_OTHER);
    assert!(browser.follow(&over).await.text.contains("Your session is over"));
    world.names.set("sue", Ok(person("sue", "default", true)));
    assert_eq!(browser.get("/console").await.status, StatusCode::SEE_OTHER, "for good");

    let mut browser = Browser::of(&world, "sue").await;
    let page = browser.get("/console").await;
    let form_token = page.field("/console/sign-out", "form_token");
    let cookie = browser.cookie.clone();
    let out = browser.post("/console/sign-out", &[("form_token", &form_token)]).await;
    assert!(out.header("set-cookie").contains("Max-Age=0"));
    assert!(browser.follow(&out).await.text.contains("You are signed out"));
    browser.cookie = cookie;
    assert_eq!(browser.get("/console").await.status, StatusCode::SEE_OTHER, "the old cookie");
}

#[tokio::test]
async fn a_session_has_a_bounded_time() {
    let world = World::new().await;
    let mut browser = Browser::of(&world, "sue").await;
    world.clock.advance(29 * 60 * 1_000);
    assert_eq!(browser.get("/console").await.status, StatusCode::OK);
    world.clock.advance(31 * 60 * 1_000);
    assert_eq!(browser.get("/console").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn trying_tokens_is_slowed_down_for_one_address() {
    let world = World::new().await;
    let mut browser = Browser::new(&world);
    for _ in 0..10 {
        let answer = browser.post("/console/sign-in", &[("token", "guess")]).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
    let answer = browser.post("/console/sign-in", &[("token", "sue")]).await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answer.header("retry-after"), "61");
    browser.address = IpAddr::from([127, 0, 0, 2]);
    let other = browser.post("/console/sign-in", &[("token", "sue")]).await;
    assert_eq!(other.status, StatusCode::SEE_OTHER);
    browser.address = IpAddr::from([127, 0, 0, 1]);
    world.clock.advance(61_000);
    let later = browser.post("/console/sign-in", &[("token", "sue")]).await;
    assert_eq!(later.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn where_nobody_is_asked_nobody_signs_in() {
    let world = World::open().await;
    let mut browser = Browser::new(&world);
    let page = browser.get("/console").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("no sign-in on this server") && !page.text.contains("Sign out"));
    assert_eq!(browser.get("/console/sign-in").await.header("location"), "/console");
}
