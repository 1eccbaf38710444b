//! Bytes flipped in copies of a database, by the kind of page: a start refuses, or calls are told that the store is
//! unavailable; the file is never made anew.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::super::caller::{Caller, Said};
use super::super::case::{Draw, Running};
use super::super::scene::Scene;
use super::super::trouble::Part;
use crate::fault::Fault;
use crate::harness::server::{Launch, Server};

/// A page of the databases that the server makes.
const PAGE: usize = 4096;

/// What is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The first bytes of the file, which say what it is.
    Mark,
    /// The page of the schema, beyond the header of the file.
    Schema,
    /// The head of a page inside a tree.
    Interior,
    /// The head of a page with rows.
    Leaf,
    /// A frame of the log: SQLite takes the log to end before it, so this start serves a true, shorter history.
    Log,
}

/// What came of starting on a damaged copy.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    Refused,
    Served { unavailable: u32 },
}

/// See the head of this file.
pub(in super::super) fn damaged<'a>(scene: &'a mut Scene, draw: &'a Draw) -> Running<'a> {
    Box::pin(async move {
        scene.work(60, "before the damage").await?;
        let database = scene.launch.database();
        // A killed server leaves its log; a start and an orderly end carry it over.
        scene.take_server()?.kill()?;
        let log = fs::read(Part::Log.of(&database)).map_err(Fault::io("the log"))?;
        let with_log = fs::read(&database).map_err(Fault::io("the database"))?;
        scene.start()?;
        scene.stop_somehow()?;
        let whole = fs::read(&database).map_err(Fault::io("the database"))?;
        let mut random = StdRng::seed_from_u64(draw.seed);
        let mut told = BTreeMap::new();
        let places = places(&whole, &log, draw, &mut random);
        for (number, (kind, at)) in places.into_iter().enumerate() {
            let folder = scene.place.folder.join(format!("damaged-{number}"));
            fs::create_dir(&folder).map_err(Fault::io("a folder"))?;
            let launch = Launch { folder, ..scene.launch.clone() };
            let (mut file, mut beside) = match kind {
                Kind::Log => (with_log.clone(), Some(log.clone())),
                Kind::Mark | Kind::Schema | Kind::Interior | Kind::Leaf => (whole.clone(), None),
            };
            let bytes = beside.as_mut().unwrap_or(&mut file);
            for at in &at {
                bytes.iter_mut().skip(*at).take(8).for_each(|byte| *byte ^= 0xa5);
            }
            write(&launch.database(), &file)?;
            if let Some(log) = &beside {
                write(&Part::Log.of(&launch.database()), log)?;
            }
            let what = match at.as_slice() {
                [at] => format!("{kind:?} damaged at byte {at}"),
                all => format!("{kind:?} damaged in {} places", all.len()),
            };
            let came = one(scene, &launch, kind, &what).await?;
            let (refused, unavailable): &mut (u32, u32) = told.entry(kind).or_default();
            match came {
                Came::Refused => *refused += 1,
                Came::Served { unavailable: calls } => *unavailable += calls,
            }
        }
        for (kind, (refused, unavailable)) in &told {
            let line = format!("{kind:?}: {refused} starts refused, {unavailable} calls refused");
            scene.done.push(line);
            let noticed = refused + unavailable > 0;
            if !noticed && *kind != Kind::Log {
                scene.wrong(format!("no damage of kind {kind:?} was noticed"));
            }
        }
        // What was not damaged is as it was.
        scene.start()?;
        scene.work(2, "on the whole file").await?;
        scene.close()
    })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    fs::write(path, bytes).map_err(Fault::io("a damaged copy"))
}

/// Starts on one copy and calls.
async fn one(scene: &mut Scene, launch: &Launch, kind: Kind, what: &str) -> Result<Came, Fault> {
    let path = launch.database();
    let bytes = || fs::read(&path).map_err(Fault::io("a damaged copy"));
    let inode = || fs::metadata(&path).map(|m| m.ino()).ok();
    let (before, file) = (bytes()?, inode());
    let Some(server) = started(launch)? else {
        // A start carries a log over, as far as it takes it to go.
        if kind != Kind::Log && bytes()? != before {
            scene.wrong(format!("{what}: the start is refused, and yet the file was changed"));
        }
        return Ok(Came::Refused);
    };
    let mut caller = Caller::new(500, server.address(), &std::sync::Arc::default());
    let mut unavailable = 0;
    for said in [caller.look().await, caller.act().await, caller.act().await, caller.look().await] {
        match said {
            Said::Done => {}
            Said::Unavailable { .. } => unavailable += 1,
            said @ (Said::Shed | Said::Silent(_) | Said::Wrong(_)) => {
                scene.wrong(format!("{what}: a call got {said:?}"));
            }
        }
    }
    server.kill()?;
    if inode() != file || (kind != Kind::Log && bytes()?.len() < before.len()) {
        scene.wrong(format!("{what}: the file was made anew"));
    }
    Ok(Came::Served { unavailable })
}

/// A server, or nothing if it refuses to start and says so.
fn started(launch: &Launch) -> Result<Option<Server>, Fault> {
    match Server::start(launch) {
        Ok(server) => Ok(Some(server)),
        Err(Fault::Server { log, .. }) if log.contains("error:") => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Where to damage, copy by copy: of each kind all places at once, which nobody can miss, and then single ones.
fn places(whole: &[u8], log: &[u8], draw: &Draw, random: &mut StdRng) -> Vec<(Kind, Vec<usize>)> {
    let mut pages: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
    for (number, page) in whole.chunks(PAGE).enumerate().skip(1) {
        // The kinds of SQLite's file format: 2 and 5 are inside a tree, 10 and 13 hold rows; others have no head.
        let kind = match page.first() {
            Some(2 | 5) => Kind::Interior,
            Some(10 | 13) => Kind::Leaf,
            _ => continue,
        };
        pages.entry(kind).or_default().push(number * PAGE);
    }
    let mut places = vec![(Kind::Mark, vec![0]), (Kind::Mark, vec![8]), (Kind::Schema, vec![100])];
    let each = if draw.soak { 40 } else { 3 };
    for (kind, at) in pages {
        for _ in 0..each.min(at.len()) {
            places.extend(at.get(random.random_range(0..at.len())).map(|at| (kind, vec![*at])));
        }
        places.push((kind, at));
    }
    for _ in 0..each.min(log.len() / PAGE) {
        places.push((Kind::Log, vec![random.random_range(0..log.len())]));
    }
    places
}
