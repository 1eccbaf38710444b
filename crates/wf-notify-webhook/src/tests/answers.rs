//! What receivers answer, and what they do instead of answering.

use std::sync::atomic::Ordering;
use std::time::Duration;

use wf_core::ports::{DeliveryError, NotificationPort as _};

use super::receiver::{Receiver, Then, status};
use super::{IMPATIENT, PATIENT, message, sink};
use crate::sink::ANSWER_BYTES_MAX;

async fn refused(then: Then, deadline: Duration) -> DeliveryError {
    let receiver = Receiver::new(then).await;
    sink(&receiver.url(), deadline).deliver(&message(1)).await.expect_err("not taken")
}

#[tokio::test]
async fn statuses_are_taken_tried_again_or_given_up() {
    for line in ["200 OK", "201 Created", "202 Accepted", "204 No Content"] {
        let receiver = Receiver::new(Then::Answers(status(line))).await;
        sink(&receiver.url(), PATIENT).deliver(&message(1)).await.expect(line);
    }
    for (line, permanent) in [
        ("500 Oops", false),
        ("503 Busy", false),
        ("404 Not Found", false),
        ("410 Gone", true),
        ("400 Bad Request", true),
        ("422 No", true),
    ] {
        let error = refused(Then::Answers(status(line)), PATIENT).await;
        assert_eq!((error.permanent, error.retry_after_ms), (permanent, None), "{line}");
        let number = line.split(' ').next().unwrap_or_default();
        assert!(error.source.to_string().contains(number), "{}", error.source);
    }
}

#[tokio::test]
async fn retry_after_is_handed_on() {
    let answer = "HTTP/1.1 429 Slow Down\r\nRetry-After: 90\r\nContent-Length: 0\r\n\r\n";
    let error = refused(Then::Answers(answer.to_owned()), PATIENT).await;
    assert_eq!((error.permanent, error.retry_after_ms), (false, Some(90_000)));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let canary = Receiver::new(Then::Answers(status("200 OK"))).await;
    for line in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        let answer =
            format!("HTTP/1.1 {line}\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", canary.url());
        let error = refused(Then::Answers(answer), PATIENT).await;
        assert!(!error.permanent, "{line}");
        assert_eq!(canary.connections(), 0, "{line}");
    }
}

#[tokio::test]
async fn a_receiver_that_closes_or_hangs_is_tried_again() {
    let closed = refused(Then::Closes, PATIENT).await;
    assert!(!closed.permanent);
    for answer in ["", "HTTP/1.1 200 OK\r\n"] {
        let hung = refused(Then::Hangs(answer.to_owned()), IMPATIENT).await;
        assert!(!hung.permanent);
        assert!(hung.source.to_string().contains("did not answer"), "{}", hung.source);
    }
    let gone = Receiver::new(Then::Closes).await.url();
    let nobody = sink(&gone, PATIENT).deliver(&message(1)).await.expect_err("nobody is there");
    assert!(!nobody.permanent);
}

#[tokio::test]
async fn a_status_counts_even_when_its_body_never_ends() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{";
    let receiver = Receiver::new(Then::Hangs(answer.to_owned())).await;
    sink(&receiver.url(), PATIENT).deliver(&message(1)).await.expect("taken");
}

#[tokio::test]
async fn of_a_gigabyte_hardly_anything_is_read() {
    let receiver = Receiver::new(Then::Floods).await;
    let sink = sink(&receiver.url(), PATIENT);
    sink.deliver(&message(1)).await.expect("taken");
    sink.deliver(&message(2)).await.expect("taken, on another connection");
    assert_eq!(receiver.connections(), 2);
    let written = receiver.seen.written.load(Ordering::SeqCst);
    // What sockets buffer on both sides comes on top of what is read.
    let most = 2 * (ANSWER_BYTES_MAX as u64 + 16 * 1024 * 1024);
    assert!(written < most, "{written} bytes went out");
}
