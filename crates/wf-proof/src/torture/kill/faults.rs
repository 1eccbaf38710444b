//! Panics and errors at the failpoints: the server is not killed, so it must go on, and so must its callers.
//!
//! Some hits of every failpoint fail, in both ways. A call that meets one is answered as unknown or as unavailable,
//! and goes through when it is sent again. Afterwards the log is carried over into the database again, the server ends
//! politely, and the audit is clean.

use std::time::{Duration, Instant};

use crate::fault::Fault;
use crate::harness::server::Server;
use crate::harness::workload::{Workload, unknown};
use crate::torture::{Report, Setting, Size};

use super::database::{Database, tail};
use super::how::{POINTS, Point};
use super::tally::Tally;

/// How long the log may take to be carried over once nobody writes.
const CARRIED_WITHIN: Duration = Duration::from_secs(10);
/// How long all failpoints may take to be hit.
const HIT_WITHIN: Duration = Duration::from_secs(60);
/// Errors and panics at each failpoint.
const TURNS: usize = 3;
/// Calls that a server which works on must get done.
const CALLS_MIN: u64 = 50;

/// Appends what was done and found to the report.
pub(super) fn run(setting: &Setting, report: &mut Report) -> Result<(), Fault> {
    let work = match setting.size {
        Size::Short => Duration::from_secs(4),
        Size::Soak => Duration::from_secs(60),
    };
    let mut tally = Tally::default();
    let mut database = Database::in_a_hurry(setting, "faults")?;
    let launch = database.launch.clone().env("FAILPOINTS", failpoints());
    let server = Server::start(&launch)?;
    database.gate.open(server.address());
    let plan = database.plan(setting.seed);
    let workload = Workload::start(&plan, &database.gate, &database.recorder)?;
    let (begun, mut hit) = (Instant::now(), false);
    while begun.elapsed() < work || (!hit && begun.elapsed() < HIT_WITHIN) {
        std::thread::sleep(Duration::from_millis(100));
        hit = reached(&server.log()).1.is_empty();
    }
    let acknowledged = workload.acknowledged();
    workload.finish()?;
    let attempts = database.recorder.attempts();
    for call in unknown(&attempts) {
        database.found.push(format!("call {} of {} stayed unknown", call.call, call.tool));
    }
    if acknowledged < CALLS_MIN {
        database.found.push(format!("only {acknowledged} calls went through beside the faults"));
    }
    if !is_carried_over(&database) {
        database.found.push("the log is not carried over any more".to_owned());
    }
    let log = server.log();
    let ended = server.stop()?;
    if !ended.success() {
        database.found.push(format!("asked to end, the server ended with {ended}: {}", tail(&log)));
    }
    let (reached, missing) = reached(&log);
    database.found.extend(missing);
    database.gate.close();
    database.audit(&mut tally)?;
    report.done.push(format!(
        "{reached} errors and panics at failpoints while {acknowledged} calls were acknowledged"
    ));
    report.found.extend(database.close()?);
    Ok(())
}

/// At each failpoint, after what a start needs: an error and a panic in turns, with hits that pass between them. Where a
/// server comes by once a second, they come at once.
fn failpoints() -> String {
    let chain = |(point, pause): (&Point, usize)| {
        let (start, pass, times) = match point.name {
            "checkpoint" => (1, String::new(), 1),
            // A claim brings all that is due, so there are few.
            name if name.starts_with("deadline.") => (1, "1*off->".to_owned(), 1),
            _ => (12, format!("{pause}*off->"), TURNS),
        };
        let turn = format!("1*return->{pass}1*panic->{pass}");
        format!("{}={start}*off->{}1*off", point.name, turn.repeat(times))
    };
    // Different pauses, so that a batch is not always stopped at the same place.
    let pauses = [3, 5, 7, 11, 13, 17, 19, 2, 4, 6, 8, 1, 1, 1];
    POINTS.iter().zip(pauses).map(chain).collect::<Vec<_>>().join(";")
}

/// How often the log says that a failpoint did something, and those that never did.
fn reached(log: &str) -> (usize, Vec<String>) {
    let mut all = 0;
    let mut missing = Vec::new();
    for point in POINTS {
        let panics = log.matches(&format!("failpoint {} panic", point.name)).count();
        // An answer that was asked to fail is not logged, and of deliveries that fail only some; their panics are.
        let errors = log.matches(&format!("asked for at {}", point.name)).count();
        all += panics + errors;
        let silent = point.name == "answer" || point.name.starts_with("outbox.send");
        if panics == 0 || (errors == 0 && !silent) {
            missing.push(format!(
                "the failpoint {} gave {errors} errors and {panics} panics: it shows nothing",
                point.name
            ));
        }
    }
    (all, missing)
}

/// Waits until the write-ahead log is cut back to nothing.
fn is_carried_over(database: &Database) -> bool {
    let mut log = database.launch.database().into_os_string();
    log.push("-wal");
    let end = Instant::now() + CARRIED_WITHIN;
    while std::fs::metadata(&log).is_ok_and(|file| file.len() > 0) {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::reached;

    #[test]
    fn a_failpoint_that_does_nothing_is_noticed() {
        let log = "failpoint answer panic\nasked for at write\nfailpoint write panic\n";
        let (all, missing) = reached(log);
        assert_eq!(all, 3);
        assert_eq!(missing.len(), 12, "{missing:?}");
    }
}
