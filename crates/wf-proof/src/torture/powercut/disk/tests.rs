//! What the model keeps and what it may lose.

use std::collections::BTreeSet;

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::{Disk, Found, Image, Left, WAYS};
use crate::harness::disk::log::{Class, Record, What};

const DB: &str = "x.db";
const WAL: &str = "x.db-wal";

fn record(class: Class, what: What) -> Record {
    let inode = match class {
        Class::Database => 1,
        Class::Wal => 2,
        Class::Journal | Class::Shm | Class::Folder | Class::Other => 9,
    };
    Record {
        what,
        class: Some(class),
        by_rule: false,
        errno: 0,
        process: 1,
        fd: 3,
        inode,
        at_ns: 0,
    }
}

fn write(class: Class, offset: u64, text: &str) -> Record {
    record(class, What::Write { offset, bytes: text.as_bytes().to_vec().into() })
}

fn sync(class: Class, token: u64) -> [Record; 2] {
    [record(class, What::SyncBegin { token }), record(class, What::SyncEnd { token })]
}

fn created(class: Class, name: &str) -> Record {
    record(class, What::Open { name: name.to_owned(), created: true, emptied: false })
}

fn disk(records: &[Record]) -> Disk {
    let found =
        Found { name: DB.to_owned(), class: Class::Database, inode: 1, bytes: b"....".to_vec() };
    let mut disk = Disk::holding(vec![found]);
    for record in records {
        disk.apply(record).unwrap();
    }
    disk
}

/// Every content of the database that some cut leaves.
fn contents(disk: &Disk) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for seed in 0..200 {
        for left in WAYS {
            let image = disk.cut(left, &mut StdRng::seed_from_u64(seed));
            all.insert(image.get(DB).map_or("none".to_owned(), |b| shown(b)));
        }
    }
    all
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn set(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|one| (*one).to_owned()).collect()
}

fn cut(disk: &Disk, left: Left) -> Image {
    disk.cut(left, &mut StdRng::seed_from_u64(1))
}

#[test]
fn what_is_synced_is_kept_and_the_rest_may_be() {
    let [begin, end] = sync(Class::Database, 1);
    let records = [
        write(Class::Database, 0, "a"),
        begin,
        // Written while the sync runs: not covered by it.
        write(Class::Database, 1, "b"),
        end,
        write(Class::Database, 2, "c"),
    ];
    let all = contents(&disk(&records));
    assert_eq!(all, set(&["a...", "ab..", "a.c.", "abc."]));
    assert!(!disk(&records).is_settled());
    let [begin, end] = sync(Class::Database, 2);
    let synced = disk(&[&records[..], &[begin, end]].concat());
    assert_eq!(contents(&synced), set(&["abc."]));
    assert!(synced.is_settled());
}

#[test]
fn a_sync_that_failed_stays_in_doubt_for_ever() {
    let [begin, mut end] = sync(Class::Database, 1);
    end.errno = 5;
    let [again, done] = sync(Class::Database, 2);
    let records =
        [write(Class::Database, 0, "a"), begin, end, write(Class::Database, 1, "b"), again, done];
    assert_eq!(contents(&disk(&records)), set(&[".b..", "ab.."]));
}

#[test]
fn a_write_that_failed_is_none_and_a_length_is_a_change() {
    let mut failed = write(Class::Database, 0, "a");
    failed.errno = 28;
    let shorter = record(Class::Database, What::Truncate { length: 2 });
    let all = contents(&disk(&[failed, shorter, write(Class::Database, 2, "c")]));
    assert_eq!(all, set(&["....", "..", "..c.", "..c"]));
}

#[test]
fn names_need_a_sync_of_the_folder() {
    let [begin, end] = sync(Class::Wal, 1);
    let records = [created(Class::Wal, WAL), write(Class::Wal, 0, "w"), begin, end];
    let unnamed = disk(&records);
    assert!(!cut(&unnamed, Left::Nothing).contains_key(WAL));
    assert!(cut(&unnamed, Left::Everything).contains_key(WAL));
    let [begin, end] = sync(Class::Folder, 2);
    let named = disk(&[&records[..], &[begin, end]].concat());
    assert_eq!(shown(&cut(&named, Left::Nothing)[WAL]), "w");
    // A new file of the same name, even with the same inode, is another file; the old one may be left.
    let unlink = record(Class::Wal, What::Unlink { name: WAL.to_owned() });
    let mut again = named;
    for record in [unlink, created(Class::Wal, WAL), write(Class::Wal, 0, "new")] {
        again.apply(&record).unwrap();
    }
    assert_eq!(shown(&cut(&again, Left::Nothing)[WAL]), "w");
    assert_eq!(shown(&cut(&again, Left::Everything)[WAL]), "new");
}

#[test]
fn a_torn_write_keeps_whole_sectors() {
    let found =
        Found { name: DB.to_owned(), class: Class::Database, inode: 1, bytes: vec![b'.'; 2048] };
    let mut disk = Disk::holding(vec![found]);
    disk.apply(&write(Class::Database, 500, &"x".repeat(1_000))).unwrap();
    let mut partial = 0;
    for seed in 0..200 {
        let image = disk.cut(Left::Torn, &mut StdRng::seed_from_u64(seed));
        let bytes = &image[DB];
        let mut parts = BTreeSet::new();
        for (from, to) in [(500, 512), (512, 1024), (1024, 1500)] {
            let part = &bytes[from..to];
            assert!(part.iter().all(|byte| *byte == part[0]), "{from}");
            parts.insert(part[0]);
        }
        assert!(bytes[..500].iter().chain(&bytes[1500..]).all(|byte| *byte == b'.'));
        partial += usize::from(parts.len() == 2);
    }
    assert!(partial > 20, "{partial}");
}

#[test]
fn what_was_not_logged_is_noticed() {
    let mut disk = Disk::default();
    assert!(disk.apply(&write(Class::Wal, 0, "a")).is_err());
}
