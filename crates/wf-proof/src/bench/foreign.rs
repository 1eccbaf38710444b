//! Whether time tells what an answer does not: the same call for an id of another tenant, and for one that never was.
//!
//! The calls take turns in an order that is drawn anew each time, on one connection. What is said of the times is how often
//! the one is slower than the other, over all pairs (the area under the ROC curve, Mann and Whitney's U): 50 of 100 when
//! nobody can tell them apart. Beside it, as a control, an id of the caller's own, which must be told apart.

use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::contenders::{launch, temporary};
use super::run::say;
use super::samples::Samples;
use super::wire::Connection;
use super::work::{Names, Round};
use crate::fault::Fault;
use crate::harness::client::request_body;
use crate::harness::server::{Launch, Server};

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The built server.
    pub server: &'a Path,
    /// Calls of each kind.
    pub samples: usize,
    /// How far from 50 of 100 foreign ids may be.
    pub most: f64,
}

/// Workflows of each owner; a call is about one of them, drawn at random.
const WORKFLOWS: usize = 64;
/// Calls of each kind that are not counted, before those that are.
const WARM: usize = 200;
/// The control must be this far from 50 of 100, or the measure is blind.
const CONTROL: f64 = 15.0;

/// What an id is to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unknown,
    /// Of another tenant.
    Foreign,
    /// Of somebody else of the same tenant, under visibility own.
    Unseen,
    Own,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Unknown, Self::Foreign, Self::Unseen, Self::Own];

    const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Foreign => "foreign",
            Self::Unseen => "unseen",
            Self::Own => "own",
        }
    }
}

/// Measures, and says what it measured.
///
/// # Errors
/// When something could not be measured, the answers differ, or time tells foreign ids from unknown ones.
pub async fn measure(asked: &Asked<'_>) -> Result<(), Fault> {
    let folder = temporary(None)?;
    let mut launch = launch(asked.server, folder.path(), None)?.env("WF_AUTH_VISIBILITY", "own");
    launch.arguments.extend(["--auth".to_owned(), "dev".to_owned()]);
    let server = Server::start(&launch)?;
    let foreign = start(&server, &token(&launch, "plant-a", "ann")?).await?;
    let unseen = start(&server, &token(&launch, "plant-b", "cid")?).await?;
    let bob = token(&launch, "plant-b", "bob")?;
    let own = start(&server, &bob).await?;
    let mut asking = Asking {
        connection: Connection::open(server.address()).await?.bearing(&bob)?,
        ids: [Vec::new(), foreign, unseen, own],
        unknown: None,
    };
    let mut worst = 0.0_f64;
    for tool in ["get_status", "submit_step"] {
        let times = asking.times(tool, asked.samples).await?;
        let unknown = &times[0];
        for (kind, times) in Kind::ALL.iter().zip(&times) {
            let (said, slower) = (times.quantiles(), 100.0 * slower(times, unknown));
            say(&format!(
                "{tool:<11} {:<7} p50 {:.1} µs, p90 {:.1}, p99 {:.1} ({} calls); slower than unknown in {slower:.1} of 100",
                kind.name(),
                said.p50_us,
                said.p90_us,
                said.p99_us,
                said.count
            ));
            let off = (slower - 50.0).abs();
            match kind {
                Kind::Foreign => worst = worst.max(off),
                Kind::Own if off < CONTROL => {
                    return Err(Fault::Run("the measure does not even tell one's own".to_owned()));
                }
                Kind::Unknown | Kind::Unseen | Kind::Own => {}
            }
        }
    }
    server.stop()?;
    let said = format!("foreign ids: {worst:.1} off 50 of 100 at most, {:.1} allowed", asked.most);
    say(&said);
    if worst > asked.most { Err(Fault::Run(said)) } else { Ok(()) }
}

/// A token of the server's own key.
fn token(launch: &Launch, tenant: &str, subject: &str) -> Result<String, Fault> {
    let issued = launch.command(&["token", "issue", "--sub", subject, "--tenant", tenant])?;
    if !issued.status.success() {
        let said = String::from_utf8_lossy(&issued.stderr).into_owned();
        return Err(Fault::Run(format!("no token was issued: {said}")));
    }
    Ok(String::from_utf8_lossy(&issued.stdout).trim().to_owned())
}

/// Starts workflows as the bearer of the token; their ids. Somebody else's units of the same tenant are taken.
async fn start(server: &Server, token: &str) -> Result<Vec<String>, Fault> {
    let mut connection = Connection::open(server.address()).await?.bearing(token)?;
    let mut names = Names::new()?;
    let mut ids = Vec::with_capacity(WORKFLOWS);
    let first = draw(10_000)? * WORKFLOWS;
    for unit in first..first + WORKFLOWS {
        ids.push(Round::start(&mut connection, unit, &mut names).await?.id);
    }
    Ok(ids)
}

struct Asking {
    connection: Connection,
    /// By kind, in their order; unknown ids are made up.
    ids: [Vec<String>; 4],
    /// The answer to an unknown id, to compare with.
    unknown: Option<Bytes>,
}

impl Asking {
    /// Times by kind.
    async fn times(&mut self, tool: &str, samples: usize) -> Result<[Samples; 4], Fault> {
        let mut times = [const { Samples::new() }; 4];
        self.unknown = None;
        for round in 0..WARM + samples {
            let mut order = [0, 1, 2, 3];
            for place in (1..order.len()).rev() {
                order.swap(place, draw(place + 1)?);
            }
            for at in order {
                let body = self.body(tool, at)?;
                let begun = Instant::now();
                let answer = self.connection.call(body).await?;
                let took = begun.elapsed();
                if Kind::ALL[at] != Kind::Own {
                    self.same(&answer)?;
                }
                if round >= WARM {
                    times[at].push(took);
                }
            }
        }
        Ok(times)
    }

    fn body(&self, tool: &str, at: usize) -> Result<Bytes, Fault> {
        let id = match self.ids[at].as_slice() {
            [] => {
                // In the form of the others, and as near to them as an id can be.
                let like = self.ids.iter().flatten().nth(draw(3 * WORKFLOWS)?);
                let (kept, _) = like.and_then(|id| id.rsplit_once('-')).unwrap_or_default();
                format!("{kept}-{:012x}", draw(1 << 48)?)
            }
            ids => ids[draw(ids.len())?].clone(),
        };
        let arguments = match tool {
            "submit_step" => {
                json!({"workflow_id": id, "step_id": "reading_01", "value": "none", "idempotency_key": "k-1"})
            }
            _ => json!({"workflow_id": id}),
        };
        let arguments: Map<String, Value> = arguments.as_object().cloned().unwrap_or_default();
        Ok(request_body(tool, &arguments))
    }

    /// Every answer about what is not there is the same, byte for byte.
    fn same(&mut self, answer: &Bytes) -> Result<(), Fault> {
        let first = self.unknown.get_or_insert_with(|| answer.clone());
        if first == answer {
            return Ok(());
        }
        let (first, answer) = (String::from_utf8_lossy(first), String::from_utf8_lossy(answer));
        Err(Fault::Run(format!("two answers about nothing differ: {first} and {answer}")))
    }
}

/// A random number below `end`.
fn draw(end: usize) -> Result<usize, Fault> {
    let number = getrandom::u64().map_err(|e| Fault::Run(format!("no randomness: {e}")))?;
    Ok(usize::try_from(number % u64::try_from(end).unwrap_or(u64::MAX)).unwrap_or_default())
}

/// In which part of all pairs the first is slower; half for each tie.
#[must_use]
pub fn slower(one: &Samples, other: &Samples) -> f64 {
    let (one, other) = (one.sorted(), other.sorted());
    let mut twice = 0_u64;
    for time in &one {
        let below = other.partition_point(|t| t < time);
        let not_above = other.partition_point(|t| t <= time);
        twice += u64::try_from(below + not_above).unwrap_or_default();
    }
    let pairs = u64::try_from(one.len() * other.len()).unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "counts of pairs are far below 2^52")]
    let part = twice as f64 / (2.0 * pairs.max(1) as f64);
    part
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Samples, slower};

    fn samples(nanos: &[u64]) -> Samples {
        let mut samples = Samples::new();
        nanos.iter().for_each(|n| samples.push(Duration::from_nanos(*n)));
        samples
    }

    #[test]
    fn pairs_are_counted_and_ties_are_halves() {
        let near = |one: &[u64], other: &[u64], part: f64| {
            let seen = slower(&samples(one), &samples(other));
            assert!((seen - part).abs() < 1e-9, "{one:?} {other:?}: {seen}");
        };
        near(&[3, 1, 2], &[2, 3, 1], 0.5);
        near(&[5, 6], &[1, 2, 3], 1.0);
        near(&[1, 2], &[5, 6, 7], 0.0);
        near(&[1, 4], &[1, 3], 0.625);
        near(&[], &[1], 0.0);
    }
}
