//! What callers do: they go away in the middle of a call, they send one call fifty times at once.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;
use tokio::task::JoinSet;
use wf_testkit::audit::history::Outcome;

use super::super::caller::{Said, judge};
use super::super::case::{Draw, Running};
use super::super::scene::Scene;
use crate::fault::Fault;
use crate::harness::client::{Client, request_body};

/// Copies of a call that are sent at once.
const AT_ONCE: u32 = 50;

/// A call whose caller goes away is done or not, and its key tells which.
pub(in super::super) fn hang_up<'a>(scene: &'a mut Scene, draw: &'a Draw) -> Running<'a> {
    Box::pin(async move {
        let mut random = StdRng::seed_from_u64(draw.seed);
        let address = scene.server()?.address();
        let (rounds, mut done_before) = (if draw.soak { 2_000 } else { 60 }, 0);
        for _ in 0..rounds {
            let sent_ns = scene.recorder.now_ns();
            let Some(caller) = scene.callers().first_mut() else { break };
            let (tool, arguments) = caller.in_hand();
            let request = request(&address.to_string(), &request_body(tool, &arguments));
            let part = if random.random_bool(0.2) {
                random.random_range(0..request.len())
            } else {
                request.len()
            };
            let wait = Duration::from_micros(random.random_range(0..4_000));
            let sent = async {
                let mut stream = TcpStream::connect(address)?;
                stream.write_all(request.get(..part).unwrap_or_default())?;
                // When the caller goes is the experiment.
                tokio::time::sleep(wait).await;
                Ok(())
            };
            sent.await.map_err(Fault::io("a caller that goes away"))?;
            caller.keep(200, sent_ns, Outcome::Unknown { why: "the caller went away".to_owned() });
            let said = caller.act().await;
            if said != Said::Done {
                scene.wrong(format!("after its caller went away, a call got {said:?}"));
            }
            done_before += u32::from(last_is_duplicate(scene));
        }
        if done_before == 0 {
            scene.wrong("no call was done whose caller was gone: the case shows nothing");
        }
        scene.done.push(format!("{rounds} callers went away, {done_before} calls were done"));
        scene.work(2, "at last").await?;
        scene.close()
    })
}

fn last_is_duplicate(scene: &Scene) -> bool {
    let attempts = scene.recorder.attempts();
    let last = attempts.last().and_then(|attempt| attempt.outcome.result());
    last.is_some_and(|result| result.get("duplicate") == Some(&Value::Bool(true)))
}

fn request(host: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-11-25\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

/// Of one call that is sent fifty times at once, one is done anew; the others are told so, or told to try again.
pub(in super::super) fn one_key<'a>(scene: &'a mut Scene, draw: &'a Draw) -> Running<'a> {
    Box::pin(async move {
        let address = scene.server()?.address();
        let (mut fresh, mut duplicates, mut refused) = (0_u32, 0_u32, 0_u32);
        let rounds = if draw.soak { 200 } else { 8 };
        for _ in 0..rounds {
            let Some(caller) = scene.callers().first() else { break };
            let (tool, arguments) = caller.in_hand();
            let mut copies = JoinSet::new();
            for number in 0..AT_ONCE {
                let (arguments, recorder) = (arguments.clone(), scene.recorder.clone());
                copies.spawn(async move {
                    let sent_ns = recorder.now_ns();
                    let outcome = Client::new(address).call(tool, &arguments).await;
                    (300 + number, sent_ns, outcome)
                });
            }
            let mut fresh_now = 0;
            while let Some(copy) = copies.join_next().await {
                let (number, sent_ns, outcome) =
                    copy.map_err(|error| Fault::Run(format!("a caller broke: {error}")))?;
                let result = outcome.result();
                let said = judge(&outcome, result.as_ref());
                let duplicate = result.and_then(|r| r.get("duplicate")?.as_bool());
                match (said, duplicate) {
                    (Said::Done, Some(false)) => fresh_now += 1,
                    (Said::Done, Some(true)) => duplicates += 1,
                    (Said::Unavailable { .. } | Said::Shed, _) => refused += 1,
                    (said, _) => scene.wrong(format!("one of many copies got {said:?}")),
                }
                if let Some(caller) = scene.callers().first() {
                    caller.keep(number, sent_ns, outcome);
                }
            }
            if fresh_now != 1 {
                scene.wrong(format!("{fresh_now} of {AT_ONCE} copies of a call were done anew"));
            }
            fresh += fresh_now;
            if let Some(caller) = scene.callers().first_mut() {
                let said = caller.act().await;
                scene.condemn(&[said]);
            }
        }
        scene.done.push(format!("{fresh} done, {duplicates} duplicates, {refused} to try again"));
        scene.close()
    })
}
