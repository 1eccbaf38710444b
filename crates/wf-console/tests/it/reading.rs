//! What is shown, to whom, with which headers.

use std::collections::BTreeSet;

use http::StatusCode;
use wf_core::access::Visibility;

use crate::world::{Browser, World, person};

#[tokio::test]
async fn every_answer_has_its_headers_and_no_page_has_script_or_style_of_its_own() {
    let (world, tom) = (World::new().await, person("tom", "default", false));
    let id = world.start(&tom, "T-1").await;
    world.stop(&tom, &id).await;
    let workflow = format!("/console/workflows/{id}");
    let evidence = format!("{workflow}/evidence");
    let mut browser = Browser::of(&world, "sue").await;
    let paths = [
        "/",
        "/console",
        "/console?show=completed&q=x&refresh=30",
        "/console/assets",
        "/console/messages",
        "/console/messages?show=pending",
        "/console/sign-in",
        "/console/style.css",
        "/console/nowhere",
        "/console/workflows/unknown",
        &workflow,
        &evidence,
    ];
    for path in paths {
        let answer = browser.get(path).await;
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; style-src 'self';"), "{path}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{path}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), value, "{path}");
        }
        if path != "/console/style.css" {
            assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        }
        let text = &answer.text;
        assert!(!text.contains("<script") && !text.contains("<style"), "{path}");
        assert!(!text.contains(" style=") && !text.contains(" onclick"), "{path}");
        assert!(!text.contains("http://") && !text.contains("https://"), "{path}: from elsewhere");
    }
    assert_eq!(browser.send("DELETE", "/console", String::new()).await.status, 405);
    assert_eq!(browser.post("/console", &[]).await.status, 405);
}

#[tokio::test]
async fn the_list_tells_what_is_stopped_first_and_finds_by_words() {
    let (world, tom) = (World::new().await, person("tom", "default", false));
    let quiet = world.start(&tom, "T-1").await;
    let stopped = world.start(&tom, "T-2").await;
    world.stop(&tom, &stopped).await;
    world.clock.advance(90 * 60 * 1_000);
    let mut browser = Browser::of(&world, "sue").await;
    let page = browser.get("/console").await.text;
    let place = |text: &str| page.find(text).unwrap_or_else(|| unreachable!("{text}: {page}"));
    assert!(place(stopped.as_str()) < place(quiet.as_str()));
    for shown in ["Stopped", "1 h 30 min", "What is the amount?", "CET</time>", "tom"] {
        place(shown);
    }
    let found = browser.get("/console?q=2").await.text;
    assert!(found.contains(stopped.as_str()) && !found.contains(quiet.as_str()));
    let blocked = browser.get("/console?show=blocked").await.text;
    assert!(blocked.contains(stopped.as_str()) && !blocked.contains(quiet.as_str()));
    assert!(browser.get("/console?q=nothing").await.text.contains("Nothing here is called so"));
    assert!(browser.get("/console?show=completed").await.text.contains("There is nothing here"));
    // No place of a list: the fault of who asks, not of the store.
    for list in
        ["/console?after=nonsense", "/console/assets?after=x%01", "/console/messages?after=x%01"]
    {
        let page = browser.get(list).await;
        assert_eq!(page.status, 422, "{list}");
        assert!(page.text.contains("begin at the first page"), "{list}: {}", page.text);
    }
    // Only who asks for it has the page ask again.
    assert_eq!(browser.get("/console").await.header("refresh"), "");
    assert_eq!(browser.get("/console?refresh=30").await.header("refresh"), "30");
    assert_eq!(browser.get("/console?refresh=1").await.header("refresh"), "");
}

#[tokio::test]
async fn every_open_workflow_is_on_exactly_one_page() {
    let world = World::new().await;
    let mut started = BTreeSet::new();
    for n in 1..=120 {
        // One person drives at most a hundred.
        let by = person(if n % 2 == 0 { "tom" } else { "ann" }, "default", false);
        let id = world.start(&by, &format!("T-{n}")).await;
        if n % 3 == 0 {
            world.stop(&by, &id).await;
        }
        started.insert(id.to_string());
    }
    let mut browser = Browser::of(&world, "sue").await;
    let (mut seen, mut pages, mut place) = (Vec::new(), 0, "/console".to_owned());
    loop {
        let page = browser.get(&place).await.text;
        let links = page.split("href=\"/console/workflows/").skip(1);
        seen.extend(links.map(|rest| rest.split('"').next().unwrap().to_owned()));
        pages += 1;
        let next = page.split_once("\">Next page</a>").map(|(before, _)| before);
        match next.and_then(|before| before.rsplit_once("href=\"")) {
            Some((_, next)) => place = next.replace("&amp;", "&"),
            None => break,
        }
    }
    assert_eq!((pages, seen.len()), (3, 120));
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), started);
    let page = browser.get("/console/assets").await.text;
    assert_eq!(page.matches("<tr").count(), 51, "fifty assets and the heading");
    assert!(page.contains("Next page"));
}

#[tokio::test]
async fn nothing_of_another_tenant_and_nothing_out_of_sight_is_shown() {
    let world = World::with(None, Visibility::Own).await;
    let (ann, tom) = (person("ann", "default", false), person("tom", "default", false));
    let hers = world.start(&ann, "T-1").await;
    let his = world.start(&tom, "T-2").await;
    world.stop(&ann, &hers).await;
    for (token, sees) in [("sue", [true, true]), ("tom", [false, true]), ("eve", [false, false])] {
        let mut browser = Browser::of(&world, token).await;
        let lists = browser.get("/console").await.text + &browser.get("/console/assets").await.text;
        for (id, sees) in [&hers, &his].into_iter().zip(sees) {
            assert_eq!(lists.contains(id.as_str()), sees, "{token} {id}");
            for what in ["", "/evidence"] {
                let answer = browser.get(&format!("/console/workflows/{id}{what}")).await;
                let status = if sees { StatusCode::OK } else { StatusCode::NOT_FOUND };
                assert_eq!(answer.status, status, "{token} {id}{what}");
            }
        }
        let messages = browser.get("/console/messages?show=pending").await;
        match token {
            "tom" => assert_eq!(messages.status, StatusCode::FORBIDDEN),
            "sue" => {
                assert!(messages.text.contains("lead") && messages.text.contains(hers.as_str()));
            }
            _ => assert!(
                messages.text.contains("There is none.") && !messages.text.contains(hers.as_str())
            ),
        }
    }
}

#[tokio::test]
async fn the_evidence_is_the_document_of_the_engine() {
    let (world, tom) = (World::new().await, person("tom", "default", false));
    let id = world.start(&tom, "T-1").await;
    world.stop(&tom, &id).await;
    let answer =
        Browser::of(&world, "sue").await.get(&format!("/console/workflows/{id}/evidence")).await;
    let text = world.engine.evidence(&tom, &id).await.unwrap();
    assert_eq!(answer.text, format!("{text}\n"));
    assert_eq!(answer.header("content-type"), "application/json");
    let name = format!("attachment; filename=\"evidence-{id}.json\"");
    assert_eq!(answer.header("content-disposition"), name);
}
