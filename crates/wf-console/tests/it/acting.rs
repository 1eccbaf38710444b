//! Deciding and releasing: once, by whom it is allowed to, from a page of this console.

use http::StatusCode;
use wf_core::models::WorkflowId;

use crate::world::{Browser, Shown, World, person};

fn path(id: &WorkflowId, what: &str) -> String {
    format!("/console/workflows/{id}{what}")
}

/// The fields of the form to decide, as the page has them.
fn decision(page: &Shown, comment: &str) -> Vec<(&'static str, String)> {
    let field = |name| page.field("/resolve", name);
    vec![
        ("form_token", field("form_token")),
        ("key", field("key")),
        ("block_id", field("block_id")),
        ("decision", "require_redo".to_owned()),
        ("comment", comment.to_owned()),
    ]
}

fn borrowed<'f>(fields: &'f [(&'static str, String)]) -> Vec<(&'f str, &'f str)> {
    fields.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

#[tokio::test]
async fn a_decision_is_made_once_however_often_its_form_is_sent() {
    let (world, tom) = (World::new().await, person("tom", "default", false));
    let id = world.start(&tom, "T-1").await;
    world.stop(&tom, &id).await;
    let before = world.revision(&tom, &id).await;
    let mut browser = Browser::of(&world, "sue").await;
    let page = browser.get(&path(&id, "")).await;
    assert!(
        page.text.contains("Stopped (urgent)") && page.text.contains("TOO_HIGH"),
        "{}",
        page.text
    );
    let form = decision(&page, "the sensor was loose");

    let first = browser.post(&path(&id, "/resolve"), &borrowed(&form)).await;
    let told = browser.follow(&first).await;
    assert!(told.text.contains("<strong>Done. </strong>"), "{}", told.text);
    assert!(!told.text.contains("had been sent before"));
    assert!(told.text.contains("the sensor was loose") && told.text.contains("In progress"));
    let after = world.revision(&tom, &id).await;
    assert!(after > before);

    let again = browser.post(&path(&id, "/resolve"), &borrowed(&form)).await;
    let told = browser.follow(&again).await;
    assert!(told.text.contains("This form had been sent before"), "{}", told.text);
    assert_eq!(world.revision(&tom, &id).await, after, "once");
    // What became of it is shown to who did it, and to nobody else.
    let place = again.header("location").to_owned();
    let mut other = Browser::of(&world, "tom").await;
    assert!(!other.get(&place).await.text.contains("had been sent before"));
    // Another form for a block that is over changes nothing, and says so.
    let mut late = decision(&page, "too late");
    late[1].1 = "another-key".to_owned();
    let refused = browser.post(&path(&id, "/resolve"), &borrowed(&late)).await;
    let told = browser.follow(&refused).await;
    assert!(
        told.text.contains("Not done.") && told.text.contains("role=\"alert\""),
        "{}",
        told.text
    );
    assert_eq!(world.revision(&tom, &id).await, after);
}

#[tokio::test]
async fn a_lock_is_released_once_with_a_reason() {
    let (world, tom) = (World::new().await, person("tom", "default", false));
    let id = world.start(&tom, "T-1").await;
    let mut browser = Browser::of(&world, "sue").await;
    let page = browser.get(&path(&id, "")).await;
    let field = |name| page.field("/release", name);
    let (token, key, asset) = (field("form_token"), field("key"), field("asset_id"));
    let fields = [
        ("form_token", token.as_str()),
        ("key", &key),
        ("asset_id", &asset),
        ("reason", "tablet lost"),
    ];
    let nothing_said = [fields[0], fields[1], fields[2], ("reason", " ")];
    let refused = browser.post(&path(&id, "/release"), &nothing_said).await;
    assert!(browser.follow(&refused).await.text.contains("VALIDATION_ERROR"));
    let done = browser.post(&path(&id, "/release"), &fields).await;
    let told = browser.follow(&done).await;
    assert!(
        told.text.contains("<strong>Done. </strong>") && told.text.contains("not held any more"),
        "{}",
        told.text
    );
    assert!(told.text.contains("Released by hand") && told.text.contains("tablet lost"));
    let revision = world.revision(&tom, &id).await;
    let again = browser.post(&path(&id, "/release"), &fields).await;
    assert!(browser.follow(&again).await.text.contains("This form had been sent before"));
    assert_eq!(world.revision(&tom, &id).await, revision);
    assert!(browser.get("/console/assets").await.text.contains("Free"));
}

#[tokio::test]
async fn a_form_that_is_not_of_this_console_does_nothing() {
    let (world, tom) = (World::new().await, person("tom", "default", false));
    let id = world.start(&tom, "T-1").await;
    world.stop(&tom, &id).await;
    let before = world.revision(&tom, &id).await;
    let mut browser = Browser::of(&world, "sue").await;
    let page = browser.get(&path(&id, "")).await;
    let form = decision(&page, "c");
    for origin in [None, Some("null"), Some("http://evil.example"), Some("http://127.0.0.1:9001")] {
        browser.origin = origin.map(str::to_owned);
        let answer = browser.post(&path(&id, "/resolve"), &borrowed(&form)).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{origin:?}");
        let answer = browser.post("/console/sign-in", &[("token", "sue")]).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{origin:?}");
    }
    browser.origin = Some("http://127.0.0.1:9000".to_owned());
    for token in ["", "guessed", &form[0].1[1..]] {
        let mut forged = form.clone();
        forged[0].1 = token.to_owned();
        let answer = browser.post(&path(&id, "/resolve"), &borrowed(&forged)).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{token:?}");
    }
    // The token of another session of the same person counts no more than any other.
    let mut second = Browser::of(&world, "sue").await;
    let answer = second.post(&path(&id, "/resolve"), &borrowed(&form)).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let incomplete = [form[0].clone(), form[3].clone()];
    let answer = browser.post(&path(&id, "/resolve"), &borrowed(&incomplete)).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(world.revision(&tom, &id).await, before, "nothing was done");
    // The control: the same form, as it is.
    let answer = browser.post(&path(&id, "/resolve"), &borrowed(&form)).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert!(world.revision(&tom, &id).await > before);
}

#[tokio::test]
async fn only_a_supervisor_of_the_tenant_acts() {
    let (world, tom) = (World::new().await, person("tom", "default", false));
    let id = world.start(&tom, "T-1").await;
    world.stop(&tom, &id).await;
    let before = world.revision(&tom, &id).await;
    let form = decision(&Browser::of(&world, "sue").await.get(&path(&id, "")).await, "c");
    for (token, says) in [("tom", "NOT_ALLOWED"), ("eve", "")] {
        let mut browser = Browser::of(&world, token).await;
        let own = browser.get("/console").await.field("/console/sign-out", "form_token");
        let mut form = form.clone();
        form[0].1 = own.clone();
        let answer = browser.post(&path(&id, "/resolve"), &borrowed(&form)).await;
        let told = browser.follow(&answer).await;
        assert!(told.text.contains(says), "{}", told.text);
        let fields =
            [("form_token", own.as_str()), ("key", "k"), ("asset_id", "T-1"), ("reason", "mine")];
        let answer = browser.post(&path(&id, "/release"), &fields).await;
        assert!(browser.follow(&answer).await.text.contains(says));
        assert_eq!(world.revision(&tom, &id).await, before, "{token}");
    }
    let page = Browser::of(&world, "tom").await.get(&path(&id, "")).await;
    assert!(page.text.contains("A supervisor decides here."));
    assert!(!page.text.contains("/resolve") && !page.text.contains("/release"));
}
