//! System calls that fail: of each kind the Nth of a file, once or from then on, under callers.
//!
//! Each point: twenty calls of callers, then the fault is gone, the five seconds, what was left open is settled, the
//! audit. At the end of a group the server is killed in the middle of a fault, because a commit that was answered with
//! an unknown outcome may be there after that.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::caller::Said;
use super::case::{Draw, Group};
use super::scene::Scene;
use crate::fault::Fault;
use crate::harness::audit::audit_live;
use crate::harness::disk::Tap;
use crate::harness::disk::rules::{Call, File, Rule, When};

/// How long the checkpointer is waited for: it comes once a second, and cuts the log in the second pause.
const PERIODS: Duration = Duration::from_millis(2_500);

/// The points of a group: all of them in a soak.
pub(super) fn points(group: Group, draw: &Draw) -> Vec<Rule> {
    if draw.soak {
        return all(group);
    }
    let mut random = StdRng::seed_from_u64(draw.seed);
    (0..group.points).filter_map(|_| one(group, &mut random)).collect()
}

/// Runs these points of a group.
pub(super) async fn run(
    scene: &mut Scene,
    group: Group,
    points: &[Rule],
    draw: &Draw,
) -> Result<(), Fault> {
    let Some(tap) = scene.tap.clone() else {
        return Err(Fault::Run("the sweep needs the preload library".to_owned()));
    };
    scene.work(2, "before the faults").await?;
    let mut random = StdRng::seed_from_u64(draw.seed.wrapping_add(1));
    let (mut hit, mut refused, mut slowest) = (0, 0, Duration::ZERO);
    for rule in points {
        scene.at = Some(rule.to_string());
        let before = tap.disturbed()?;
        refused += disturb(scene, &tap, group, *rule).await?;
        hit += usize::from(tap.disturbed()? > before);
        tap.leave_alone()?;
        slowest = slowest.max(scene.recover().await?);
        for violation in audit_live(&scene.launch.database(), &scene.recorder.attempts())? {
            scene.wrong(violation);
        }
    }
    if let Some(rule) = one(group, &mut random) {
        scene.at = Some(format!("killed in the middle of {rule}"));
        refused += disturb(scene, &tap, group, rule).await?;
        scene.take_server()?.kill()?;
        tap.leave_alone()?;
        scene.start()?;
        slowest = slowest.max(scene.recover().await?);
    }
    scene.at = None;
    if hit == 0 {
        scene.wrong("no call was made to fail: the case shows nothing");
    }
    let (count, slowest) = (points.len(), slowest.as_millis());
    scene.done.push(format!(
        "{hit} of {count} points hit, {refused} calls refused, writes again after {slowest} ms at most"
    ));
    scene.work(2, "after the faults").await?;
    scene.close()
}

/// Twenty calls while a rule counts, and as many reads. Answers how many were refused.
async fn disturb(scene: &mut Scene, tap: &Tap, group: Group, rule: Rule) -> Result<usize, Fault> {
    let before = tap.disturbed()?;
    let rules: Vec<Rule> = group.with.into_iter().chain([rule]).collect();
    tap.disturb(&rules)?;
    let mut said = scene.round(5).await?;
    said.extend(scene.looks().await?);
    if is_rare(group) {
        let end = Instant::now() + PERIODS;
        while tap.disturbed()? == before && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        said.extend(scene.round(1).await?);
    }
    scene.condemn(&said);
    Ok(said.iter().filter(|said| matches!(said, Said::Unavailable { .. })).count())
}

/// Whether such calls are made by the checkpointer only.
fn is_rare(group: Group) -> bool {
    group.file == File::Database || group.call == Call::Ftruncate
}

/// One point.
fn one(group: Group, random: &mut StdRng) -> Option<Rule> {
    let action = *group.actions.get(random.random_range(0..group.actions.len()))?;
    let number = random.random_range(1..=group.reach);
    let when = if random.random_bool(0.5) { When::Nth(number) } else { When::From(number) };
    Some(Rule { call: group.call, file: group.file, action, when })
}

/// Every point.
fn all(group: Group) -> Vec<Rule> {
    let when = (1..=group.reach).flat_map(|number| [When::Nth(number), When::From(number)]);
    let of = |when| {
        group.actions.iter().map(move |action| Rule {
            call: group.call,
            file: group.file,
            action: *action,
            when,
        })
    };
    when.flat_map(of).collect()
}
