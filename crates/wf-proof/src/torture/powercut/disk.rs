//! A disk as the log of the preload library describes it: what is surely on it, and what may or may not be.
//!
//! The model, which is harsher than any file system we know of:
//!
//! - Bytes written before a sync of their file began are on the disk when that sync has succeeded. All others may be or not,
//!   each by itself, in any order, torn at sectors. The same for a file's length.
//! - A sync that failed leaves what it should have written as it is: perhaps on the disk, and no later sync changes that.
//! - Names (a file created, removed, renamed) are on the disk when the folder was synced after them. Until then the
//!   first few of them may be, in their order, as journaling file systems do. Syncing a new file does not sync its name.
//! - Shared memory (`-shm`) does not outlive a power cut.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::fault::Fault;
use crate::harness::disk::log::{Class, Record, What};

/// Sectors are written whole or not at all.
const SECTOR: usize = 512;

/// What a power cut leaves of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing.
    Nothing,
    /// Everything.
    Everything,
    /// Each change by itself, or not.
    Some,
    /// The same, and some of the writes in part.
    Torn,
    /// What came first, up to some moment.
    Earliest,
    /// Everything in the database and nothing in its logs, or the other way round.
    OneSide,
}

/// Every way.
pub(super) const WAYS: [Left; 6] =
    [Left::Nothing, Left::Everything, Left::Some, Left::Torn, Left::Earliest, Left::OneSide];

/// The files that a power cut leaves, by name.
pub(super) type Image = BTreeMap<String, Vec<u8>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct FileId(usize);

#[derive(Debug, Clone)]
enum Change {
    Write { offset: u64, bytes: Bytes },
    Length(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The next sync makes it sure.
    Open,
    /// A sync failed: the system takes it for written.
    Doubtful,
    /// It is on the disk, and something doubtful came before it.
    Sure,
}

#[derive(Debug, Clone)]
struct Pending {
    /// The record that it is from.
    at: usize,
    change: Change,
    fate: Fate,
}

#[derive(Debug, Clone)]
struct File {
    class: Class,
    sure: Vec<u8>,
    pending: Vec<Pending>,
}

#[derive(Debug, Clone)]
enum Naming {
    Link(String, FileId),
    Unlink(String),
    Rename(String, String),
}

#[derive(Debug, Clone, Copy)]
struct Sync {
    /// `None` for the folder.
    file: Option<FileId>,
    /// Records before this one are covered.
    before: usize,
}

/// The disk after some records.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    files: Vec<File>,
    by_inode: HashMap<u64, FileId>,
    names: BTreeMap<String, FileId>,
    naming: Vec<(usize, Naming)>,
    syncs: HashMap<(u32, u64), Sync>,
    applied: usize,
}

/// A file that was there before the first record.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// Its name.
    pub(super) name: String,
    /// What it is to the database.
    pub(super) class: Class,
    /// Its inode.
    pub(super) inode: u64,
    /// What was in it.
    pub(super) bytes: Vec<u8>,
}

impl Disk {
    /// With these files, surely.
    pub(super) fn holding(found: Vec<Found>) -> Self {
        let mut disk = Self::default();
        for one in found {
            let id = disk.create(one.class, one.inode);
            if let Some(file) = disk.files.get_mut(id.0) {
                file.sure = one.bytes;
            }
            disk.names.insert(one.name, id);
        }
        disk
    }

    fn create(&mut self, class: Class, inode: u64) -> FileId {
        let id = FileId(self.files.len());
        self.files.push(File { class, sure: Vec::new(), pending: Vec::new() });
        self.by_inode.insert(inode, id);
        id
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// When the record is about a file that no record before it made known: then something was not logged.
    pub(super) fn apply(&mut self, record: &Record) -> Result<(), Fault> {
        let at = self.applied;
        self.applied += 1;
        let Some(class) = record.class.filter(|class| *class != Class::Shm) else {
            return Ok(());
        };
        if let What::SyncEnd { token } = record.what {
            self.sync_ended((record.process, token), record.errno == 0);
            return Ok(());
        }
        // A call that failed changed nothing; one that fell short says which bytes it took.
        if record.errno != 0 {
            return Ok(());
        }
        let file = self.by_inode.get(&record.inode).copied();
        match &record.what {
            What::Open { .. } | What::SyncBegin { .. } if class == Class::Folder => {
                if let What::SyncBegin { token } = record.what {
                    let sync = Sync { file: None, before: at };
                    self.syncs.insert((record.process, token), sync);
                }
            }
            What::Open { name, created: true, .. } => {
                let id = self.create(class, record.inode);
                self.naming.push((at, Naming::Link(name.clone(), id)));
            }
            What::Open { name, emptied, .. } => {
                let file = known(file, name, at)?;
                if *emptied {
                    self.change(file, at, Change::Length(0));
                }
            }
            What::Write { offset, bytes } => {
                let change = Change::Write { offset: *offset, bytes: bytes.clone() };
                self.change(known(file, "a file", at)?, at, change);
            }
            What::Truncate { length } => {
                self.change(known(file, "a file", at)?, at, Change::Length(*length));
            }
            What::SyncBegin { token } => {
                let sync = Sync { file: Some(known(file, "a file", at)?), before: at };
                self.syncs.insert((record.process, *token), sync);
            }
            What::Unlink { name } => self.naming.push((at, Naming::Unlink(name.clone()))),
            What::Rename { from, to } => {
                self.naming.push((at, Naming::Rename(from.clone(), to.clone())));
            }
            What::Start
            | What::SyncEnd { .. }
            | What::Leaving { .. }
            | What::Left { .. }
            | What::Hangup
            | What::Read { .. } => {}
        }
        Ok(())
    }

    fn change(&mut self, id: FileId, at: usize, change: Change) {
        if let Some(file) = self.files.get_mut(id.0) {
            file.pending.push(Pending { at, change, fate: Fate::Open });
        }
    }

    fn sync_ended(&mut self, key: (u32, u64), succeeded: bool) {
        let Some(sync) = self.syncs.remove(&key) else { return };
        match sync.file.map(|id| self.files.get_mut(id.0)) {
            Some(Some(file)) => file.synced(sync.before, succeeded),
            Some(None) => {}
            None if succeeded => {
                let later = self.naming.partition_point(|(at, _)| *at < sync.before);
                for (_, naming) in self.naming.drain(..later) {
                    rename(&mut self.names, naming);
                }
            }
            None => {}
        }
    }

    /// What a power cut leaves now.
    pub(super) fn cut(&self, left: Left, random: &mut StdRng) -> Image {
        let mut keep = Keep::new(left, self, random);
        let mut names = self.names.clone();
        let naming = keep.names(&self.naming, random);
        for (_, one) in self.naming.iter().take(naming) {
            rename(&mut names, one.clone());
        }
        let file = |id: FileId| self.files.get(id.0);
        names
            .into_iter()
            .filter_map(|(name, id)| Some((name, file(id)?.after(&mut keep, random))))
            .collect()
    }

    /// True if a power cut would leave the same, whatever is left of what was not synced.
    pub(super) fn is_settled(&self) -> bool {
        self.naming.is_empty()
            && self
                .names
                .values()
                .all(|id| self.files.get(id.0).is_none_or(|file| file.pending.is_empty()))
    }
}

fn known(file: Option<FileId>, name: &str, at: usize) -> Result<FileId, Fault> {
    file.ok_or_else(|| Fault::Run(format!("record {at} is about {name} that is not known")))
}

fn rename(names: &mut BTreeMap<String, FileId>, naming: Naming) {
    match naming {
        Naming::Link(name, id) => {
            names.insert(name, id);
        }
        Naming::Unlink(name) => {
            names.remove(&name);
        }
        Naming::Rename(from, to) => {
            if let Some(id) = names.remove(&from) {
                names.insert(to, id);
            }
        }
    }
}

impl File {
    fn synced(&mut self, before: usize, succeeded: bool) {
        let fate = if succeeded { Fate::Sure } else { Fate::Doubtful };
        let covered = self.pending.iter_mut().filter(|p| p.at < before && p.fate == Fate::Open);
        covered.for_each(|pending| pending.fate = fate);
        let sure = self.pending.iter().take_while(|pending| pending.fate == Fate::Sure).count();
        for pending in self.pending.drain(..sure) {
            pending.change.make(&mut self.sure);
        }
    }

    fn after(&self, keep: &mut Keep, random: &mut StdRng) -> Vec<u8> {
        let mut bytes = self.sure.clone();
        for pending in &self.pending {
            if pending.fate == Fate::Sure {
                pending.change.make(&mut bytes);
            } else {
                keep.change(self.class, pending, &mut bytes, random);
            }
        }
        bytes
    }
}

impl Change {
    fn make(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes: new } => put(bytes, *offset, new),
            Self::Length(length) => {
                bytes.resize(usize::try_from(*length).unwrap_or(usize::MAX), 0);
            }
        }
    }
}

fn put(bytes: &mut Vec<u8>, offset: u64, new: &[u8]) {
    let from = usize::try_from(offset).unwrap_or(usize::MAX);
    let to = from.saturating_add(new.len());
    if bytes.len() < to {
        bytes.resize(to, 0);
    }
    if let Some(place) = bytes.get_mut(from..to) {
        place.copy_from_slice(new);
    }
}

/// Decides about each change of one cut.
struct Keep {
    left: Left,
    /// For the earliest: records before this one.
    before: usize,
    /// For one side: the database's.
    database: bool,
}

impl Keep {
    fn new(left: Left, disk: &Disk, random: &mut StdRng) -> Self {
        let mut all: Vec<usize> = disk.naming.iter().map(|(at, _)| *at).collect();
        all.extend(disk.files.iter().flat_map(|file| &file.pending).map(|pending| pending.at));
        all.sort_unstable();
        let before = match all.len() {
            0 => 0,
            count => all.get(random.random_range(0..count)).copied().unwrap_or(0),
        };
        Self { left, before, database: random.random_bool(0.5) }
    }

    /// How many of the new names.
    fn names(&self, naming: &[(usize, Naming)], random: &mut StdRng) -> usize {
        match self.left {
            Left::Nothing => 0,
            Left::Everything => naming.len(),
            Left::Some | Left::Torn | Left::OneSide => random.random_range(0..=naming.len()),
            Left::Earliest => naming.partition_point(|(at, _)| *at < self.before),
        }
    }

    fn change(&mut self, class: Class, one: &Pending, bytes: &mut Vec<u8>, random: &mut StdRng) {
        let whole = match self.left {
            Left::Nothing => false,
            Left::Everything => true,
            Left::Some => random.random_bool(0.5),
            Left::Earliest => one.at < self.before,
            Left::OneSide => (class == Class::Database) == self.database,
            Left::Torn => match &one.change {
                Change::Write { offset, bytes: new } if random.random_bool(0.4) => {
                    return torn(*offset, new, bytes, random);
                }
                Change::Write { .. } | Change::Length(_) => random.random_bool(0.5),
            },
        };
        if whole {
            one.change.make(bytes);
        }
    }
}

/// Some of the sectors of a write: the first ones, or any.
fn torn(offset: u64, new: &[u8], bytes: &mut Vec<u8>, random: &mut StdRng) {
    let first = SECTOR - usize::try_from(offset % 512).unwrap_or(0);
    let (head, rest) = new.split_at(first.min(new.len()));
    let sectors: Vec<&[u8]> = std::iter::once(head).chain(rest.chunks(SECTOR)).collect();
    let until = random.random_bool(0.5).then(|| random.random_range(0..=sectors.len()));
    let mut at = offset;
    for (number, sector) in sectors.into_iter().enumerate() {
        if until.map_or_else(|| random.random_bool(0.5), |until| number < until) {
            put(bytes, at, sector);
        }
        at += u64::try_from(sector.len()).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests;
