//! A reconciler that stands still for longer than its lease, while another does all there is to do, and then goes on: none
//! of its writes lands. In one process before each write of a pass, and once as a process that the system has stopped.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Notify;
use tokio::time::sleep;
use wf_backend_aws::AwsConfig;
use wf_backend_aws::execution::Reconciler;
use wf_core::models::Timestamp;
use wf_testkit::clock::ManualClock;

use crate::bench::Bench;
use crate::crashes::{Turn, about_to};
use crate::fixture::{Attributes, config, endpoint, rows};
use crate::plain_policy::PlainPolicy;
use crate::site::Site;
use crate::wire::{Sent, Wire};

/// Everything in the table but the leases.
async fn table(config: &AwsConfig) -> BTreeMap<(String, String), Attributes> {
    let mut rows = rows(config).await;
    rows.retain(|(pk, _), _| !pk.starts_with("RECON#"));
    rows
}

/// Writes that were sent after standing still, and those that landed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Late {
    sent: usize,
    landed: usize,
}

/// A process stands still before each of its writes; `overtaken`: another comes meanwhile, after its lease.
async fn late(turn: Turn, overtaken: bool) -> Late {
    let mut late = Late::default();
    for left in 0.. {
        let (world, _, slow) = about_to(turn).await;
        let slow = Arc::new(slow);
        let gate = slow.bench.wire.stands_still(left);
        let mut pass = tokio::spawn({
            let slow = Arc::clone(&slow);
            async move { slow.pass().await }
        });
        tokio::select! {
            () = gate.reached() => {}
            report = &mut pass => {
                report.expect("a pass");
                break;
            }
        }
        if overtaken {
            // Executions stand still, too, so that the other sees what the first saw.
            world.bench.clock.advance(60_000);
            let other = world.process(false).await;
            other.pass().await;
            world.converges(&other).await;
        }
        slow.written();
        let (before, running) = (table(&world.bench.config).await, world.plane.running());
        gate.open();
        pass.await.expect("a pass");
        world.plane.run().await;
        // The one it stood still before was sent already.
        late.sent += 1 + slow.written().len();
        late.landed += usize::from(table(&world.bench.config).await != before);
        if overtaken {
            assert_eq!(world.plane.running(), running, "{turn:?} {left}");
            world.converges(&world.process(false).await).await;
        }
    }
    late
}

macro_rules! late_writes {
    ($($name:ident $turn:ident),+ $(,)?) => {$(
        #[tokio::test]
        #[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
        async fn $name() {
            let overtaken = late(Turn::$turn, true).await;
            assert!(overtaken.sent > 0 && overtaken.landed == 0, "{overtaken:?}");
            // What is counted does land where nobody came meanwhile.
            let alone = late(Turn::$turn, false).await;
            assert!(alone.landed > 0, "{alone:?}");
        }
    )+};
}

late_writes! {
    a_late_start Start,
    a_late_answer Advance,
    a_late_successor Replace,
    a_late_successor_of_what_is_worn Wear,
    a_late_end Retire,
}

/// What the process that is stopped is told.
const CHILD: &str = "WF_STOPPED_PROCESS";
/// How long something may take here; longer than a lease.
const PATIENCE: Duration = Duration::from_millis(PATIENCE_MS);
const PATIENCE_MS: u64 = 90_000;

/// A clock that shows the time.
fn wall() -> ManualClock {
    let clock = ManualClock::default();
    set(&clock);
    clock
}

fn set(clock: &ManualClock) {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time");
    clock.set(Timestamp::from_ms(i64::try_from(since.as_millis()).expect("a time")));
}

async fn reconciler(bench: &Bench) -> Reconciler {
    let (engine, clock) = (Arc::clone(bench.engine()), Arc::new(bench.clock.clone()));
    let made = Reconciler::connect(&bench.store, engine, clock, Arc::new(Notify::new())).await;
    made.expect("a reconciler").expect("a state machine")
}

/// Not a test of its own: what the process does that is stopped. It makes one pass, says when it stands still before its
/// second write (the first starts an execution, the second records it), and goes on when it is told so.
#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn the_process_that_is_stopped() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let (name, machine) = told.split_once(' ').expect("a table and a state machine");
    let wire = Wire::new();
    let mut config = config(name, &wire);
    config.state_machine_arn = Some(machine.to_owned());
    // The write that it stands still before must not be given up for its time-out.
    config.attempt_timeout_ms = 2 * PATIENCE_MS;
    config.patience_ms = 2 * PATIENCE_MS;
    let bench = Bench::at(Arc::new(PlainPolicy::new()), config, wire.clone(), wall()).await;
    let gate = wire.stands_still(1);
    let pass = tokio::spawn(async move { reconciler(&bench).await.once(false).await });
    gate.reached().await;
    say("still");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line");
    wire.take_log();
    gate.open();
    let report = pass.await.expect("a pass").expect("a pass");
    let sent = 1 + wire.take_log().iter().filter(|sent| Sent::writes(sent)).count();
    assert!(format!("{report:?}").contains("Overtaken"), "{report:#?}");
    say(&format!("sent {sent}"));
}

#[expect(clippy::print_stdout, reason = "the other process reads it")]
fn say(what: &str) {
    println!("\n@{what}");
}

/// The process; it does not outlive the test.
struct Stopped(Child);

impl Stopped {
    fn start(told: &str) -> Self {
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["overtaken::the_process_that_is_stopped", "--exact", "--ignored", "--nocapture"])
            .env(CHILD, told)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        Self(child.expect("a process"))
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.0.id().to_string()]).status();
        assert!(sent.expect("a signal").success(), "{name}");
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The next thing that the process says.
fn said(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    let said =
        lines.map_while(Result::ok).find_map(|line| line.strip_prefix('@').map(str::to_owned));
    said.expect("the process goes on")
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_process_that_was_stopped_for_longer_than_its_lease_writes_nothing() {
    // On the emulator: another process cannot reach the double. The machine is the same for all tables.
    let machine = Site::new(&endpoint(), None).await.machine;
    let clock = wall();
    let bench = Bench::orchestrated(Arc::new(PlainPolicy::new()), clock.clone(), &machine).await;
    let work = bench.started("U-1", "s-1").await;
    let mut stopped = Stopped::start(&format!("{} {machine}", bench.config.table));
    let mut lines = BufReader::new(stopped.0.stdout.take().expect("output")).lines();
    assert_eq!(said(&mut lines), "still");
    stopped.signal("-STOP");
    let since = Instant::now();
    // Another takes over as soon as the lease is over, and does all there is to do.
    let other = reconciler(&bench).await;
    let binding = (format!("T#plant#WF#{work}"), "ORCH".to_owned());
    let (mut waited, until) = (false, Instant::now() + PATIENCE);
    loop {
        let rows = rows(&bench.config).await;
        let asks = rows.keys().any(|(pk, _)| pk.starts_with("ATTN#"));
        if !asks && rows[&binding].contains_key("task_token") {
            break;
        }
        assert!(Instant::now() < until, "{rows:#?}");
        set(&clock);
        let report = other.once(false).await.expect("a pass");
        waited |= !report.elsewhere.is_empty();
        sleep(Duration::from_millis(500)).await;
    }
    assert!(waited && since.elapsed() >= Duration::from_secs(20), "stopped for its lease");
    let before = table(&bench.config).await;
    stopped.0.stdin.as_mut().expect("input").write_all(b"go\n").expect("a line");
    stopped.signal("-CONT");
    assert_eq!(said(&mut lines), "sent 1", "the write that it stood still before, and no other");
    assert!(stopped.0.wait().expect("an end").success());
    assert_eq!(table(&bench.config).await, before, "none landed");
    assert_eq!(before[&binding]["fence"].as_n().expect("a number"), "1");
}
