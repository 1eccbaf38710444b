//! Where connections go: only to addresses that were vetted, whatever a name server says and when.

use std::sync::{Arc, Mutex};

use rustls::RootCertStore;
use wf_core::ports::NotificationPort as _;

use super::receiver::{Receiver, Then, certificate, status};
use super::{IMPATIENT, Names, PATIENT, config, message, opened, secret, trusting};
use crate::sink::{OpenError, WebhookSink};
use crate::trust::{LOOK_AGAIN, TrustError};

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[tokio::test]
async fn a_public_name_that_leads_inside_is_not_connected_to() {
    let canary = Receiver::new(Then::Answers(status("200 OK"))).await;
    let url = format!("https://hooks.example.com:{}/hook", canary.port);
    for inside in [
        &["127.0.0.1"][..],
        &["::ffff:127.0.0.1"],
        &["::1"],
        &["169.254.169.254", "127.0.0.1"],
        &["10.0.0.1", "fe80::1", "0.0.0.0"],
    ] {
        let names = Names::are(inside);
        let sink = opened(&url, false, names, RootCertStore::empty(), PATIENT).expect("a sink");
        let error = sink.deliver(&message(1)).await.expect_err("refused");
        assert!(!error.permanent, "a name server can be set right");
        let text = chain(error.source.as_ref());
        assert!(text.contains("address"), "{text}");
    }
    assert_eq!(canary.connections(), 0);
    // The control: with the route's consent the same name is connected to.
    let names = Names::are(&["127.0.0.1"]);
    let sink = opened(&url, true, names, RootCertStore::empty(), IMPATIENT).expect("a sink");
    assert!(sink.deliver(&message(1)).await.is_err(), "it speaks no TLS");
    assert_eq!(canary.connections(), 1);
}

#[tokio::test]
async fn a_name_is_looked_up_once_for_each_connection_and_vetted_each_time() {
    let receiver = Receiver::new(Then::Answers(status("200 OK"))).await;
    let url = format!("http://hooks.example.com:{}/hook", receiver.port);
    let names = Names::are(&["127.0.0.1"]);
    let sink = opened(&url, true, names.clone(), RootCertStore::empty(), PATIENT).expect("a sink");
    sink.deliver(&message(1)).await.expect("taken");
    assert_eq!(names.asked(), 1, "nothing between the check and the connection asks again");
    // The name server changes its mind: the open connection stays where it was vetted, and a new one is refused.
    names.become_(&["169.254.169.254"]);
    sink.deliver(&message(2)).await.expect("taken");
    assert_eq!((names.asked(), receiver.connections()), (1, 1));
    let fresh = opened(&url, true, names.clone(), RootCertStore::empty(), PATIENT).expect("a sink");
    assert!(fresh.deliver(&message(3)).await.is_err());
    assert_eq!((names.asked(), receiver.connections()), (2, 1));
}

#[tokio::test]
async fn addresses_that_are_refused_are_passed_over() {
    let receiver = Receiver::new(Then::Answers(status("200 OK"))).await;
    let url = format!("http://hooks.example.com:{}/hook", receiver.port);
    let names = Names::are(&["169.254.169.254", "127.0.0.1"]);
    let sink = opened(&url, true, names, RootCertStore::empty(), PATIENT).expect("a sink");
    sink.deliver(&message(1)).await.expect("taken at the second");
}

#[tokio::test]
async fn a_receiver_must_prove_that_it_is_the_one_in_the_url() {
    let (acceptor, proof) = certificate("hooks.example.com");
    let receiver = Receiver::over(Then::Answers(status("200 OK")), Some(acceptor)).await;
    let mut roots = RootCertStore::empty();
    roots.add(proof).expect("a root");
    let deliver = async |host: &str, roots: RootCertStore| {
        let url = format!("https://{host}:{}/hook", receiver.port);
        let names = Names::are(&["127.0.0.1"]);
        let sink = opened(&url, true, names, roots, PATIENT).expect("a sink");
        sink.deliver(&message(1)).await
    };
    deliver("hooks.example.com", roots.clone()).await.expect("taken");
    assert!(deliver("hooks.example.net", roots).await.is_err(), "another name");
    assert!(deliver("hooks.example.com", RootCertStore::empty()).await.is_err(), "not trusted");
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn what_is_trusted_is_looked_at_again_and_stays_while_it_cannot_be_read() {
    let (acceptor, proof) = certificate("hooks.example.com");
    let receiver = Receiver::over(Then::Answers(status("200 OK")), Some(acceptor)).await;
    let mut roots = RootCertStore::empty();
    roots.add(proof).expect("a root");
    let trusted = Arc::new(Mutex::new(Some(RootCertStore::empty())));
    let now = Arc::clone(&trusted);
    let trust = move || match &*now.lock().expect("no panic") {
        Some(roots) => Ok(trusting(roots.clone())),
        None => Err(TrustError::NoRoots(std::io::Error::other("unreadable"))),
    };
    let (secret, names) = (secret(), Names::are(&["127.0.0.1"]));
    let url = format!("https://hooks.example.com:{}/hook", receiver.port);
    let config = config(&url, secret.path(), true);
    let sink = WebhookSink::for_tests(&config, Arc::new(trust), names, PATIENT).expect("a sink");
    let later = async || {
        tokio::time::pause();
        tokio::time::advance(LOOK_AGAIN).await;
        tokio::time::resume();
    };
    assert!(sink.deliver(&message(1)).await.is_err(), "nobody is trusted");
    *trusted.lock().expect("no panic") = Some(roots);
    assert!(sink.deliver(&message(1)).await.is_err(), "not looked at yet");
    later().await;
    sink.deliver(&message(1)).await.expect("trusted now");
    *trusted.lock().expect("no panic") = None;
    later().await;
    sink.deliver(&message(2)).await.expect("trusted as before");
    *trusted.lock().expect("no panic") = Some(RootCertStore::empty());
    later().await;
    assert!(sink.deliver(&message(3)).await.is_err(), "trusted no more");
}

#[tokio::test]
async fn an_address_in_the_url_is_refused_before_anything_is_sent() {
    for url in ["https://127.0.0.1:8443/", "https://[::ffff:10.0.0.1]/", "https://169.254.169.254/"]
    {
        let names = Names::are(&["1.1.1.1"]);
        let refused = opened(url, false, names, RootCertStore::empty(), PATIENT);
        assert!(matches!(refused, Err(OpenError::Target(_))), "{url}");
    }
}
