//! The guard on its own: heads however they are cut, peers that take nothing or little, and the end of a connection.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn ends() -> Ends {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    Ends { local: address, peer: address }
}

fn guard<T>(io: T) -> (Guard<T>, Wire) {
    Guard::new(io, ends(), Patience { head: SECOND, write: SECOND })
}

fn scan(pieces: &[&[u8]]) -> (Option<usize>, bool) {
    let wire = Wire::new(ends());
    let mut scan = Scan::default();
    let mut end = None;
    for piece in pieces {
        end = scan.take(piece, &wire.0);
    }
    (end, wire.had_bare_line_feed())
}

#[test]
fn the_end_of_a_head_is_found_however_it_is_cut() {
    assert_eq!(scan(&[b"GET / HTTP/1.1\r\nA: b\r\n\r\nrest"]), (Some(24), false));
    assert_eq!(scan(&[b"GET / HTTP/1.1\r", b"\nA: b\r\n", b"\r", b"\n"]), (Some(1), false));
    assert_eq!(scan(&[b"\r\n\r\nGET / HTTP/1.1\r\n\r\n"]), (Some(22), false));
    assert_eq!(scan(&[b"GET / HTTP/1.1\r\nA: b"]), (None, false));
}

#[test]
fn a_bare_line_feed_is_seen() {
    assert_eq!(scan(&[b"GET / HTTP/1.1\nA: b\n\n"]), (Some(21), true));
    assert_eq!(scan(&[b"GET / HTTP/1.1\r\nA: b\n\r\n"]), (Some(23), true));
    assert_eq!(scan(&[b"GET / HTTP/1.1\r\nA: b\r", b"\n\n"]), (Some(2), true));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_nothing_is_given_up() {
    let (ours, _theirs) = tokio::io::duplex(8);
    let (mut guard, _) = guard(ours);
    guard.write_all(b"fits").await.unwrap();
    let error = guard.write_all(b"does not fit any more").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_a_byte_now_and_then_is_given_up_too() {
    let (ours, mut theirs) = tokio::io::duplex(8);
    let (mut guard, _) = guard(ours);
    let taking = tokio::spawn(async move {
        let mut taken = 0;
        while theirs.read_u8().await.is_ok() {
            taken += 1;
            sleep(SECOND / 4).await;
        }
        taken
    });
    let error = guard.write_all(&[b'x'; 1_000]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    drop(guard);
    assert!(taking.await.unwrap() < 20);
}

/// TLS and other buffers take everything at once and show only when they are flushed that nothing gets through.
#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_nothing_from_a_buffer_is_given_up_too() {
    let (ours, _theirs) = tokio::io::duplex(8);
    let (mut guard, _) = guard(tokio::io::BufStream::new(ours));
    guard.write_all(&[b'x'; 100]).await.unwrap();
    let error = guard.flush().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let error = guard.shutdown().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_every_answer_has_time_for_each() {
    let (ours, mut theirs) = tokio::io::duplex(8);
    let (mut guard, _) = guard(ours);
    let taking = tokio::spawn(async move {
        let mut taken = [0; 16];
        for _ in 0..5 {
            sleep(SECOND / 2).await;
            theirs.read_exact(&mut taken).await.unwrap();
        }
    });
    for _ in 0..5 {
        guard.write_all(&[b'x'; 16]).await.unwrap();
        guard.flush().await.unwrap();
    }
    taking.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_end_waits_for_a_peer_in_the_middle_of_a_request() {
    let (ours, mut theirs) = tokio::io::duplex(8);
    let (mut guard, wire) = guard(ours);
    theirs.write_all(b"GET / HT").await.unwrap();
    guard.read_exact(&mut [0; 8]).await.unwrap();
    assert!(!wire.next_request(Some(1)));
    let sending = tokio::spawn(async move {
        theirs.write_all(&[b'x'; 10_000]).await.unwrap();
        theirs
    });
    guard.shutdown().await.unwrap();
    // All of it went out: a closed connection would have refused it.
    sending.await.unwrap();

    // One that stays silent is not waited for, and one between two requests is not waited for at all.
    let begun = Instant::now();
    let (ours, mut theirs) = tokio::io::duplex(8);
    let (mut guard, _) = self::guard(ours);
    guard.shutdown().await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let (ours, mut silent) = tokio::io::duplex(8);
    let (mut guard, _) = self::guard(ours);
    silent.write_all(b"GET").await.unwrap();
    guard.read_exact(&mut [0; 3]).await.unwrap();
    guard.shutdown().await.unwrap();
    assert_eq!(begun.elapsed(), LINGER_TIME_MAX);
    theirs.write_all(b"x").await.unwrap();
}

#[tokio::test]
async fn surplus_and_unknown_bytes_end_the_connection() {
    let (mut guard, wire) = guard(());
    let request = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
    guard.saw(request);
    assert!(wire.next_request(Some(2)));
    guard.saw(&request[..20]);
    guard.saw(&request[20..]);
    assert!(wire.next_request(Some(2)));
    guard.saw(request);
    guard.saw(request);
    assert!(!wire.next_request(Some(2)));
    guard.saw(request);
    assert!(!wire.next_request(None));
}
