//! What happens to the process: it is stopped for a while, it runs out of file descriptors.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Signal};
use tokio::task::JoinSet;

use super::super::caller::{Caller, Said};
use super::super::case::{Draw, Running};
use super::super::scene::{SOON, Scene};
use super::super::trouble::limited;
use crate::fault::Fault;
use crate::harness::client::Client;
use crate::harness::server::{Launch, Server};

/// How long the process stands still.
const STILL: Duration = Duration::from_secs(5);

/// How long the processor time of a process without descriptors is watched, and how much of it may be used.
const WATCHED: Duration = Duration::from_secs(2);
const USED_MAX: Duration = Duration::from_millis(400);

/// Connections that wait for a descriptor.
const WAITING: usize = 50;

/// A server that is stopped and goes on holds nothing that another server took meanwhile, and loses no call.
pub(in super::super) fn stopped<'a>(scene: &'a mut Scene, _: &'a Draw) -> Running<'a> {
    Box::pin(async move {
        scene.work(2, "before the stop").await?;
        let folder = scene.place.folder.join("second");
        fs::create_dir(&folder).map_err(Fault::io("a folder for the second server"))?;
        let mut launch = Launch { folder, ..scene.launch.clone() };
        let database = scene.launch.database().display().to_string();
        launch.arguments.extend(["--database".to_owned(), database]);
        let second = Server::start(&launch)?;
        let mut other = Caller::new(100, second.address(), &scene.recorder);
        let id = scene.server()?.id();
        let disturbed = async {
            signal(id, Signal::STOP)?;
            let end = Instant::now() + STILL;
            let (mut done, mut wrong) = (0, Vec::new());
            while Instant::now() < end {
                match other.act().await {
                    Said::Done => done += 1,
                    // The one that stands still may hold the write lock.
                    Said::Unavailable { .. } => {}
                    said @ (Said::Shed | Said::Silent(_) | Said::Wrong(_)) => {
                        wrong.push(format!("the other server answered {said:?}"));
                    }
                }
            }
            signal(id, Signal::CONT)?;
            Ok::<_, Fault>((done, wrong))
        };
        let (disturbed, worked) = tokio::join!(disturbed, scene.work(8, "over a stop"));
        worked?;
        let (done, wrong) = disturbed?;
        wrong.into_iter().for_each(|what: String| scene.wrong(what));
        scene.done.push(format!("{done} calls at another server during a stop"));
        scene.recover().await?;
        for open in other.settle(3).await {
            scene.wrong(format!("not settled at the other server: {open}"));
        }
        second.stop()?;
        scene.close()
    })
}

fn signal(id: u32, signal: Signal) -> Result<(), Fault> {
    let pid = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or_else(|| Fault::Run("no process id".to_owned()))?;
    rustix::process::kill_process(pid, signal)
        .map_err(|error| Fault::io("signalling the server")(error.into()))
}

/// Without descriptors connections wait, without cost; those that are open are served; with descriptors all are.
pub(in super::super) fn no_descriptors<'a>(scene: &'a mut Scene, _: &'a Draw) -> Running<'a> {
    Box::pin(async move {
        scene.work(4, "before the limit").await?;
        let id = scene.server()?.id();
        let before = limited(scene, Resource::Nofile, Some(next_descriptor(id)?))?;
        let mut waiting = JoinSet::new();
        let address = scene.server()?.address();
        for _ in 0..WAITING {
            waiting.spawn(async move { Client::new(address).get("/healthz").await.is_ok() });
        }
        let said = scene.round(3).await?;
        scene.condemn(&said);
        if said.iter().all(|said| *said != Said::Done) {
            scene.wrong("connections that are open are not served");
        }
        let used = processor_time(id)?;
        // Doing nothing for a while is the experiment.
        tokio::time::sleep(WATCHED).await;
        let used = processor_time(id)?.saturating_sub(used);
        if used > USED_MAX {
            scene.wrong(format!("{used:?} of processor time in {WATCHED:?} without descriptors"));
        }
        let served_early = waiting.try_join_next().is_some();
        if served_early {
            scene.wrong("the limit has no effect: a new connection was served");
        }
        limited(scene, Resource::Nofile, before)?;
        let begun = Instant::now();
        let served = async {
            let mut served = 0;
            while let Some(one) = waiting.join_next().await {
                served += usize::from(one.unwrap_or(false));
            }
            served
        };
        let served = tokio::time::timeout(SOON, served).await.unwrap_or(0);
        if served + usize::from(served_early) < WAITING {
            scene.wrong(format!("only {served} of {WAITING} waiting connections are served"));
        }
        let took = begun.elapsed().as_millis();
        scene.done.push(format!("{} ms of processor time without descriptors", used.as_millis()));
        scene.done.push(format!("{WAITING} waiting connections served after {took} ms"));
        scene.recover().await?;
        scene.close()
    })
}

/// The lowest number that no open file has: with it as the limit, nothing more can be opened.
fn next_descriptor(id: u32) -> Result<u64, Fault> {
    let listed = fs::read_dir(format!("/proc/{id}/fd")).map_err(Fault::io("open files"))?;
    let open: BTreeSet<u64> =
        listed.filter_map(|one| one.ok()?.file_name().to_str()?.parse().ok()).collect();
    Ok((0..).find(|number| !open.contains(number)).unwrap_or(0))
}

/// User and system time of a process (proc(5): fields 14 and 15 of stat, in ticks of 10 ms).
fn processor_time(id: u32) -> Result<Duration, Fault> {
    let stat =
        fs::read_to_string(format!("/proc/{id}/stat")).map_err(Fault::io("processor time"))?;
    // The name in field 2 may hold anything, so fields are counted from its closing bracket.
    let (_, fields) = stat.rsplit_once(')').unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok());
    Ok(Duration::from_millis(ticks.sum::<u64>().saturating_mul(10)))
}
