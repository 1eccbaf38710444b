//! A file with damaged pages: noticed when it is read, never repaired, never made anew.

use tempfile::TempDir;
use wf_backend_local::LocalStore;
use wf_core::ports::{
    Claim, CommitError, Finished, LeaseToken, ListQuery, OpenError, OutboxPurge, OutboxQuery,
    OutboxState, ReadError, Settlement, StorageBackendPort as _,
};
use wf_testkit::build::at;

use crate::cast::{open, start};
use crate::fixture::{config, meddle};

const PAGE: usize = 4096;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_pages_are_noticed_and_left_alone() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    for n in 0..20 {
        store.commit(start(n).note(&"x".repeat(3_000)).build()).await.unwrap();
    }
    store.close().await;
    let whole = std::fs::read(dir.path().join("store.db")).unwrap();
    let (mut refused, mut noticed, mut corrupt) = (0, 0, 0);
    for page in 0..whole.len() / PAGE {
        let path = dir.path().join(format!("damaged-{page}.db"));
        let mut bytes = whole.clone();
        // The head of the page: its kind and its cells.
        bytes.get_mut(page * PAGE..page * PAGE + 12).unwrap().fill(0xa5);
        std::fs::write(&path, &bytes).unwrap();
        match LocalStore::open_existing(config(&path)).await {
            Err(OpenError::Corrupt { .. } | OpenError::Refused { .. }) => refused += 1,
            Err(error) => panic!("page {page}: {error:?}"),
            Ok(store) => {
                let all = ListQuery { limit: 1_000, ..ListQuery::default() };
                let read = store.list(&all).await;
                let commit = store.commit(start(1_000).build()).await;
                corrupt += u32::from(matches!(read, Err(ReadError::Corrupt { .. })));
                corrupt += u32::from(matches!(commit, Err(CommitError::Corrupt { .. })));
                if let Err(error @ CommitError::Unavailable { .. }) = commit {
                    panic!("page {page} is damaged, not unavailable: {error:?}");
                }
                let found = store.integrity_check().await.unwrap_or_else(|e| vec![e.to_string()]);
                noticed += u32::from(!found.is_empty());
                store.close().await;
            }
        }
        assert!(path.exists());
    }
    let pages = u32::try_from(whole.len() / PAGE).unwrap();
    assert_eq!(refused + noticed, pages, "every damaged page is found by one or the other");
    assert!(refused > 0 && corrupt > 0, "{refused} {corrupt}");
}

#[tokio::test]
async fn row_that_cannot_be_read_is_corrupt_for_its_own_call_only() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let [one, two] = [start(1).build(), start(2).build()];
    store.commit(one.clone()).await.unwrap();
    meddle(&store.config().path, "UPDATE ledger SET fingerprint = 'v1:zz'").unwrap();
    let (again, other) = tokio::join!(store.commit(one), store.commit(two));
    assert!(matches!(again, Err(CommitError::Corrupt { .. })), "{again:?}");
    other.unwrap();
    assert!(store.is_healthy());
}

/// The columns say where an event stands; what the event itself says may have been meddled with.
#[tokio::test]
async fn verifying_a_history_that_says_other_numbers_than_its_rows_ends() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    let first = start(1).note("one").build();
    store.commit(first.clone()).await.unwrap();
    for seq in ["1", "9223372036854775807", "18446744073709551615"] {
        let sql = format!(
            "DROP TRIGGER IF EXISTS events_are_never_changed;
             UPDATE events SET body = json_set(body, '$.seq', json('{seq}'))"
        );
        meddle(&store.config().path, &sql).unwrap();
        let mut nobody = |_| {};
        let verifying = wf_core::engine::verify::verify(&store, None, &mut nobody);
        let report = tokio::time::timeout(std::time::Duration::from_secs(10), verifying).await;
        let report = report.expect("it ends").unwrap();
        assert!(report.findings.iter().any(|f| f.invariant == "I4"), "{:?}", report.findings);
    }
}

/// One message that cannot be read is the trouble of the outbox, not of the commits that happen to be written with it.
#[tokio::test]
async fn commits_pass_beside_work_that_meets_a_damaged_row() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    for n in 2..20 {
        store.commit(start(n).message("ops").build()).await.unwrap();
        meddle(&store.config().path, "UPDATE outbox SET message = '{}'").unwrap();
        let claim = Claim {
            now: at(10_000_000),
            lease_ms: 1_000,
            token: LeaseToken("t".to_owned()),
            limit: 16,
        };
        let claiming =
            async { tokio::join!(store.claim_outbox(&claim), store.claim_outbox(&claim)).0 };
        let (claimed, one, two) = tokio::join!(
            claiming,
            store.commit(start(n * 100).build()),
            store.commit(start(n * 100 + 1).build()),
        );
        let streams = claimed.unwrap();
        let ops = streams.iter().filter(|stream| stream.recipient == "ops");
        assert!(ops.map(|stream| stream.rows.len()).all(|rows| rows == 0), "{streams:?}");
        one.unwrap();
        two.unwrap();
    }
}

/// A subject may hold any character that JSON can write.
#[tokio::test]
async fn actors_with_odd_characters_are_different_actors() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    for (n, actor) in
        ["a", "a\0", "a\0b", "a\"b", "a\\b", "a\u{1}", "\u{10ffff}"].iter().enumerate()
    {
        let mut commit = start(u32::try_from(n).unwrap() + 1).build();
        commit.ledger.key.actor = wf_core::models::Actor::User((*actor).to_owned());
        commit.ledger.key.key = wf_core::idempotency::IdempotencyKey::parse("k").unwrap();
        store.commit(commit.clone()).await.unwrap();
        let again = store.commit(commit.clone()).await;
        let Err(CommitError::Conflict(wf_core::ports::Conflict::Ledger(row))) = again else {
            panic!("{actor:?}: {again:?}");
        };
        assert_eq!(*row, commit.ledger, "{actor:?}");
    }
}

/// One message, and one stream, that cannot be read: everything else is still delivered.
#[tokio::test]
async fn a_damaged_message_is_put_aside_and_keeps_no_other_waiting() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    // One message of each start, and two more.
    for n in 1..=3 {
        store.commit(start(n).message("log").message("duty").build()).await.unwrap();
    }
    let damage = "UPDATE outbox SET message = '{' WHERE oid = (SELECT min(oid) FROM outbox);
         UPDATE streams SET workflow_id = '' WHERE sid = (SELECT max(sid) FROM streams)";
    meddle(&store.config().path, damage).unwrap();
    let claim = |token: &str| Claim {
        now: at(10_000_000),
        lease_ms: 60_000,
        token: LeaseToken(token.to_owned()),
        limit: 100,
    };
    let streams = store.claim_outbox(&claim("t")).await.unwrap();
    let rows: usize = streams.iter().map(|stream| stream.rows.len()).sum();
    assert_eq!((streams.len(), rows), (8, 7), "{streams:?}");
    for stream in &streams {
        let settlement = Settlement {
            tenant: stream.tenant.clone(),
            workflow_id: stream.workflow_id.clone(),
            recipient: stream.recipient.clone(),
            token: stream.token.clone(),
            now: at(10_000_001),
            results: Vec::new(),
        };
        store.settle_outbox(&settlement).await.unwrap();
    }
    let again = store.claim_outbox(&claim("u")).await.unwrap();
    assert_eq!(again.len(), 7, "the damaged message is not looked at again: {again:?}");
    let dead = OutboxQuery { state: Some(OutboxState::Dead), after: None, limit: 10 };
    let page = store.list_outbox(&dead).await.unwrap();
    let [damaged] = page.damaged.as_slice() else { unreachable!("one, and seen: {page:?}") };
    assert_eq!((page.items.len(), damaged.state), (0, Some(OutboxState::Dead)), "{damaged:?}");
    assert!(damaged.error.contains("a message"), "{damaged:?}");
    assert!(store.is_healthy());
}

#[tokio::test]
async fn a_damaged_message_hides_no_other_of_a_list_and_goes_with_a_purge() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir).await;
    for n in 1..=4 {
        store.commit(start(n).message("log").build()).await.unwrap();
    }
    let all = OutboxQuery { state: None, after: None, limit: 100 };
    let whole = store.list_outbox(&all).await.unwrap().items;
    let damage =
        "UPDATE outbox SET message = '{', state = 'dead' WHERE oid = (SELECT min(oid) FROM outbox)";
    meddle(&store.config().path, damage).unwrap();
    // Page by page, each with one row: the damaged one counts for the limit, and the cursor goes past it.
    let (mut seen, mut damaged, mut query) =
        (Vec::new(), Vec::new(), OutboxQuery { limit: 1, ..all.clone() });
    loop {
        let page = store.list_outbox(&query).await.unwrap();
        assert_eq!(page.items.len() + page.damaged.len(), 1, "{page:?}");
        seen.extend(page.items);
        damaged.extend(page.damaged);
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    assert_eq!((seen.as_slice(), damaged.len()), (&whole[1..], 1));
    assert_eq!(damaged[0].id, whole[0].message.id);
    let backlog = store.outbox_backlog(100).await.unwrap();
    assert_eq!((backlog.pending, backlog.dead), (u64::try_from(whole.len() - 1).unwrap(), 1));
    let purge =
        OutboxPurge { which: Finished::Dead, until: at(10_000_000), limit: 100, count_only: false };
    assert_eq!(store.purge_outbox(&purge).await.unwrap(), 1);
    let left = store.list_outbox(&all).await.unwrap();
    assert_eq!((left.items.as_slice(), left.damaged.len()), (&whole[1..], 0));
}
