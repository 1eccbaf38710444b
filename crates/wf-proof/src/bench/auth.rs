//! What it costs a server to know who calls: the same load without authentication, with a token that is recognised, and
//! with a token that was never seen for each call, in turns.
//!
//! The measure is the processor time of the server for one `submit_step`. Each load has a new server on a new database;
//! the order is another one in each round, so that nobody is always first. What is compared is two loads of one round.

use std::path::Path;
use std::time::Duration;

use super::contenders::{launch, temporary};
use super::load::{self, Measured};
use super::plan::Plan;
use super::run::say;
use super::samples::Spread;
use super::tokens::{Algorithm, Issuer, Shown};
use crate::fault::Fault;
use crate::harness::server::Server;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The built server.
    pub server: &'a Path,
    /// Callers at once.
    pub callers: usize,
    /// How long each load is measured.
    pub time: Duration,
    /// How often.
    pub rounds: usize,
    /// How many of 100 parts of a step's processor time recognising its caller may add.
    pub most: f64,
}

/// Tokens of a pool: more than the server remembers (8192), so that each is unknown again when its turn comes.
const POOL: usize = 10_000;
/// What the server calls itself; tokens are for its `/mcp`.
const ORIGIN: &str = "http://127.0.0.1:8080";
/// A signature must be seen to cost this much, in microseconds, or the measure is blind. It takes 25 and more.
const CONTROL_US: f64 = 8.0;

/// How callers say who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Not at all: `auth.mode = "none"`.
    Unasked,
    /// By one token, which the server has seen a moment ago.
    Recognised,
    /// By another token with each call, whose signature has to be verified.
    Verified(Algorithm),
}

impl Way {
    const ALL: [Self; 4] = [
        Self::Unasked,
        Self::Recognised,
        Self::Verified(Algorithm::Es256),
        Self::Verified(Algorithm::Rs256),
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Unasked => "nobody asked",
            Self::Recognised => "one token",
            Self::Verified(Algorithm::Es256) => "new ES256 tokens",
            Self::Verified(Algorithm::Rs256) => "new RS256 tokens",
        }
    }
}

/// Measures, and says what it measured.
///
/// # Errors
/// When something could not be measured, or recognising callers costs more than it may.
pub async fn measure(asked: &Asked<'_>) -> Result<(), Fault> {
    let issuer = Issuer::start()?;
    let shown = shown(&issuer)?;
    let mut costs = Costs::default();
    for round in 1..=asked.rounds.max(1) {
        let mut measured = [const { None }; Way::ALL.len()];
        for turn in 0..Way::ALL.len() {
            let at = (turn + round) % Way::ALL.len();
            measured[at] = Some(load(asked, &issuer, Way::ALL[at], shown[at].clone()).await?);
        }
        say(&format!("round {round}: {}", costs.add(&measured)));
    }
    costs.judge(asked.most)
}

/// What callers show, by way.
fn shown(issuer: &Issuer) -> Result<[Shown; Way::ALL.len()], Fault> {
    let resource = format!("{ORIGIN}/mcp");
    let each = |algorithm| issuer.pool(algorithm, &resource, POOL).map(Shown::Another);
    Ok([
        Shown::Nothing,
        Shown::One(issuer.token(Algorithm::Es256, &resource, POOL)?),
        each(Algorithm::Es256)?,
        each(Algorithm::Rs256)?,
    ])
}

async fn load(
    asked: &Asked<'_>,
    issuer: &Issuer,
    way: Way,
    shown: Shown,
) -> Result<Measured, Fault> {
    let folder = temporary(None)?;
    let mut launch = launch(asked.server, folder.path(), None)?;
    if way != Way::Unasked {
        launch = launch
            .env("WF_AUTH_MODE", "jwt")
            .env("WF_AUTH_ISSUER", issuer.name())
            .env("WF_AUTH_JWKS_URL", issuer.keys())
            .env("WF_SERVER_PUBLIC_URL", ORIGIN);
    }
    let server = Server::start(&launch)?;
    let plan = Plan::of(&server, asked.callers, asked.time);
    let measured = load::steps_by(&plan, &shown).await?;
    server.stop()?;
    Ok(measured)
}

/// Processor time of the server for one call in microseconds, by way, a round at a time.
#[derive(Debug, Default)]
struct Costs([Vec<f64>; Way::ALL.len()]);

impl Costs {
    /// Adds a round; says what it was.
    fn add(&mut self, measured: &[Option<Measured>; Way::ALL.len()]) -> String {
        let mut said = Vec::new();
        for ((way, cost), measured) in Way::ALL.iter().zip(&mut self.0).zip(measured) {
            let Some(measured) = measured else { continue };
            cost.push(measured.server_cpu_us);
            said.push(format!(
                "{} {:.1} µs a call ({:.0} steps/s, p50 {:.0} µs)",
                way.name(),
                measured.server_cpu_us,
                measured.rate,
                measured.times.p50_us
            ));
        }
        said.join("; ")
    }

    /// By how many of 100 parts a way is above the calls of nobody, of one round each.
    fn added(&self, at: usize) -> Spread {
        let pairs = self.0.first().into_iter().flatten().zip(self.0.get(at).into_iter().flatten());
        let parts: Vec<f64> =
            pairs.map(|(without, with)| 100.0 * (with / without.max(0.001) - 1.0)).collect();
        Spread::of(&parts)
    }

    fn judge(&self, most: f64) -> Result<(), Fault> {
        let median = |at: usize| self.0.get(at).map_or(0.0, |costs| Spread::of(costs).median);
        for (at, way) in Way::ALL.iter().enumerate() {
            let added = self.added(at);
            say(&format!(
                "{:<16} {:>6.1} µs of the server's processor a call; {:+.1} of 100 ({:+.1} to {:+.1})",
                way.name(),
                median(at),
                added.median,
                added.min,
                added.max
            ));
        }
        let seen = median(2) - median(1);
        if seen < CONTROL_US {
            return Err(Fault::Run(format!(
                "the measure is blind: an ES256 signature was seen to cost {seen:.1} µs"
            )));
        }
        let added = self.added(1).median;
        let said = format!(
            "recognising a caller adds {added:.1} of 100 to the processor time of a step, at most {most:.1} allowed"
        );
        say(&said);
        if added > most { Err(Fault::Run(said)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(rounds: &[[f64; 4]]) -> Costs {
        let mut costs = Costs::default();
        for round in rounds {
            let measured =
                round.map(|server_cpu_us| Some(Measured { server_cpu_us, ..Measured::default() }));
            costs.add(&measured);
        }
        costs
    }

    #[test]
    fn rounds_are_compared_one_by_one() {
        // The machine is twice as fast in the second round; what is added is the same part.
        let costs = costs(&[[100.0, 110.0, 180.0, 140.0], [50.0, 55.0, 90.0, 70.0]]);
        let added = costs.added(1);
        assert!((added.min - 10.0).abs() < 1e-9 && (added.max - 10.0).abs() < 1e-9, "{added:?}");
        assert!(costs.judge(10.1).is_ok());
        assert!(costs.judge(9.9).is_err(), "more than it may");
    }

    #[test]
    fn a_measure_that_sees_no_signature_is_no_measure() {
        let refused = costs(&[[100.0, 101.0, 103.0, 102.0]]).judge(15.0);
        assert!(refused.expect_err("blind").to_string().contains("blind"));
    }
}
