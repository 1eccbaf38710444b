//! What a call costs as the database grows: a small and a large one, a workflow with a short and one with a long history.
//! Both servers run at once and are called in turns, so that the machine is the same for both.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use rusqlite::OpenFlags;
use serde::Serialize;
use tempfile::TempDir;

use super::contenders::{serve, temporary};
use super::load::{self, Wanted};
use super::plan::Plan;
use super::samples::Samples;
use super::wire::Connection;
use super::work::{Names, Round, expect, take_up};
use crate::fault::Fault;
use crate::harness::client::request_body;
use crate::harness::server::Server;

/// How large.
#[derive(Debug, Clone)]
pub struct Sizes {
    /// A filled database.
    pub small: PathBuf,
    /// Another, much larger.
    pub large: PathBuf,
    /// Events of the long history.
    pub history: u64,
}

/// What one round measured: half of the calls took at most so long, in microseconds; small or short first.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Growth {
    /// `submit_step`, by the number of workflows.
    pub step: (f64, f64),
    /// `find_work`, by the number of workflows.
    pub find_work: (f64, f64),
    /// `get_status`, by the number of workflows.
    pub get_status: (f64, f64),
    /// A durable step (`correct_step`) of a workflow, by the number of its events.
    pub history: (f64, f64),
    /// `get_status` of a workflow, by the number of its events.
    pub history_status: (f64, f64),
}

/// The servers of the measurement.
#[derive(Debug)]
pub struct Growing {
    small: Server,
    large: Server,
    long: Round,
    time: Duration,
    _folders: [TempDir; 2],
}

/// Steps that are recorded before a workflow's history is made longer by corrections. Its first event is its start, the
/// second the orchestrator's.
const RECORDED: usize = 8;

/// Corrections of one short history, which begins with ten events.
const CORRECTIONS: usize = 10;

/// The units of the load are numbered from 1; these are out of its way.
const LONG: usize = 9_001;
const SHORT: usize = 9_002;
const SEEN: usize = 9_003;

impl Growing {
    /// Starts the servers and makes the long history, call by call.
    ///
    /// # Errors
    /// When a server does not start or a call is not answered as it must be.
    pub async fn begin(
        server: &Path,
        sizes: &Sizes,
        below: Option<&Path>,
        time: Duration,
    ) -> Result<Self, Fault> {
        let folders = [temporary(below)?, temporary(below)?];
        let [first, second] = &folders;
        let small = serve(server, first.path(), Some(&sizes.small))?;
        let large = serve(server, second.path(), Some(&sizes.large))?;
        let mut names = Names::new()?;
        for (server, database) in [(&small, &sizes.small), (&large, &sizes.large)] {
            let mut connection = Connection::open(server.address()).await?;
            for workflow in left_open(database)? {
                take_up(&mut connection, &workflow, &mut names).await?;
            }
        }
        let mut connection = Connection::open(small.address()).await?;
        let long = Round::start(&mut connection, LONG, &mut names).await?;
        for body in long.steps.iter().take(RECORDED) {
            expect(&connection.call(body.clone()).await?, "recorded")?;
        }
        // Two events of its start, one of each step.
        let have = 2 + u64::try_from(RECORDED).unwrap_or_default();
        for n in have..sizes.history {
            expect(&connection.call(long.correction(n, &mut names)).await?, "corrected")?;
        }
        Ok(Self { small, large, long, time, _folders: folders })
    }

    /// One round. In every other one the large database goes first.
    ///
    /// # Errors
    /// When a call is not answered as it must be.
    pub async fn round(&self, large_first: bool) -> Result<Growth, Fault> {
        let order: [bool; 2] = if large_first { [true, false] } else { [false, true] };
        let mut measured = Growth {
            step: (0.0, 0.0),
            find_work: (0.0, 0.0),
            get_status: (0.0, 0.0),
            history: (0.0, 0.0),
            history_status: (0.0, 0.0),
        };
        for large in order {
            let plan = self.plan(large);
            let steps = load::steps(&plan).await?.times.p50_us;
            *pick(&mut measured.step, large) = steps;
            *pick(&mut measured.find_work, large) = find_work(&plan).await?;
            *pick(&mut measured.get_status, large) = status_of_new(&plan).await?;
        }
        for long in order {
            let (step, status) = if long { self.long().await? } else { self.short().await? };
            *pick(&mut measured.history, long) = step;
            *pick(&mut measured.history_status, long) = status;
        }
        Ok(measured)
    }

    /// Ends the servers.
    ///
    /// # Errors
    /// When they do not end.
    pub async fn end(self) -> Result<(), Fault> {
        let mut connection = Connection::open(self.small.address()).await?;
        self.long.complete(&mut connection, RECORDED).await?;
        self.small.stop()?;
        self.large.stop()?;
        Ok(())
    }

    fn plan(&self, large: bool) -> Plan {
        let server = if large { &self.large } else { &self.small };
        Plan::of(server, 1, self.time)
    }

    /// Corrections and status of the workflow with the long history.
    async fn long(&self) -> Result<(f64, f64), Fault> {
        let plan = self.plan(false);
        let mut connection = Connection::open(plan.address).await?;
        let (mut names, mut samples) = (Names::new()?, Samples::default());
        let mut spent = Duration::ZERO;
        while spent < self.time {
            let time = correct(&mut connection, &self.long, CORRECTIONS, &mut names).await?;
            spent += time.iter().sum::<Duration>();
            time.into_iter().for_each(|time| samples.push(time));
        }
        let status = status(&plan, &self.long.id).await?;
        Ok((samples.quantiles().p50_us, status))
    }

    /// The same of workflows that are always new.
    async fn short(&self) -> Result<(f64, f64), Fault> {
        let plan = self.plan(false);
        let mut connection = Connection::open(plan.address).await?;
        let (mut names, mut samples) = (Names::new()?, Samples::default());
        let mut spent = Duration::ZERO;
        let mut seen = 0.0;
        while spent < self.time {
            let round = Round::start(&mut connection, SHORT, &mut names).await?;
            for body in round.steps.iter().take(RECORDED) {
                expect(&connection.call(body.clone()).await?, "recorded")?;
            }
            if samples.is_empty() {
                seen = status(&plan, &round.id).await?;
            }
            let time = correct(&mut connection, &round, CORRECTIONS, &mut names).await?;
            spent += time.iter().sum::<Duration>();
            time.into_iter().for_each(|time| samples.push(time));
            round.complete(&mut connection, RECORDED).await?;
        }
        Ok((samples.quantiles().p50_us, seen))
    }
}

/// What a run that was ended left open in a filled database: it would be in the way of the next.
fn left_open(database: &Path) -> Result<Vec<String>, Fault> {
    let read = || -> rusqlite::Result<Vec<String>> {
        let db = rusqlite::Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut open = db.prepare(
            "SELECT id FROM workflows WHERE owner = 'user:local' AND completed_at IS NULL AND tenant = 'default'",
        )?;
        open.query_map([], |row| row.get(0))?.collect()
    };
    read().map_err(|error| Fault::Run(format!("looking into {}: {error}", database.display())))
}

fn pick(pair: &mut (f64, f64), second: bool) -> &mut f64 {
    if second { &mut pair.1 } else { &mut pair.0 }
}

async fn correct(
    connection: &mut Connection,
    round: &Round,
    times: usize,
    names: &mut Names,
) -> Result<Vec<Duration>, Fault> {
    let mut taken = Vec::with_capacity(times);
    for n in 0..times {
        let body = round.correction(u64::try_from(n).unwrap_or_default(), names);
        let begun = std::time::Instant::now();
        let answer = connection.call(body).await?;
        taken.push(begun.elapsed());
        expect(&answer, "corrected")?;
    }
    Ok(taken)
}

async fn find_work(plan: &Plan) -> Result<f64, Fault> {
    let body = request_body("find_work", &serde_json::Map::new());
    Ok(load::repeated(plan, &body, Wanted::Outcome("list")).await?.times.p50_us)
}

async fn status(plan: &Plan, workflow: &str) -> Result<f64, Fault> {
    let body: Bytes = super::work::status_of(workflow);
    Ok(load::repeated(plan, &body, Wanted::Outcome("view")).await?.times.p50_us)
}

async fn status_of_new(plan: &Plan) -> Result<f64, Fault> {
    let mut connection = Connection::open(plan.address).await?;
    let mut names = Names::new()?;
    let round = Round::start(&mut connection, SEEN, &mut names).await?;
    let took = status(plan, &round.id).await?;
    round.complete(&mut connection, 0).await?;
    Ok(took)
}
