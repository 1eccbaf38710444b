//! What a claim brings: due streams, their rows in order, at most as many as asked for.

use std::collections::BTreeSet;

use wf_core::ports::{Claim, OutboxState, Settled};

use super::{ids, message_ids, messages, no_stream, one_stream, settlement};
use crate::build::at;
use crate::contract::cast::start;
use crate::contract::{ContractFixture, Verdict, check, check_eq, look};

/// A stream is claimed when its message is due, and brings it as it was committed.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_claim_brings_due_streams(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let first = start(1).message("log").build();
    let second = start(2).message("log").build();
    store.commit(first.clone()).await?;
    store.commit(second.clone()).await?;
    no_stream(&store, 59_000, "nothing is due yet").await?;

    let stream = one_stream(&store, 90_000, "t").await?;
    check_eq!(stream.tenant, first.next.tenant, "the tenant");
    check_eq!(stream.workflow_id, first.next.id, "the workflow");
    check_eq!(stream.recipient, "log", "the recipient");
    check_eq!(stream.token.0, "t", "the token");
    let brought: Vec<_> = stream.rows.iter().map(|row| row.message.clone()).collect();
    check_eq!(brought, first.outbox, "the messages");
    let status: Vec<_> = stream.rows.iter().map(|r| (r.status.state, r.status.attempts)).collect();
    check_eq!(status, [(OutboxState::Pending, 0)], "their status");
    let stream = one_stream(&store, 121_000, "u").await?;
    check_eq!(stream.workflow_id, second.next.id, "the workflow that is due later");
    Ok(())
}

/// A history may be ahead of the clock, because a clock was that wrote it. What is told of it is due when it is committed.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_message_of_a_history_ahead_is_due(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let mut commit = start(1).message("log").build();
    for message in &mut commit.outbox {
        message.time = message.time.plus_ms(18_000_000);
    }
    store.commit(commit.clone()).await?;
    no_stream(&store, 59_000, "the commit is later").await?;
    let stream = one_stream(&store, 61_000, "t").await?;
    let brought: Vec<_> = stream.rows.iter().map(|row| row.message.clone()).collect();
    check_eq!(brought, commit.outbox, "the messages");
    Ok(())
}

/// Rows come in the order of their events, at most 16 of them; the rest comes next time.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_rows_come_in_order(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = messages(&store, 20).await?;
    let all = message_ids(&commits);
    let (most, rest) = all.split_at(16);
    let stream = one_stream(&store, 200_000, "t").await?;
    check_eq!(ids(&stream.rows), most, "the first rows");
    let delivered: Vec<_> = most.iter().map(|id| (*id, Settled::Delivered)).collect();
    store.settle_outbox(&settlement(&stream, 200_000, &delivered)).await?;
    let stream = one_stream(&store, 200_001, "u").await?;
    check_eq!(ids(&stream.rows), rest, "the other rows");
    Ok(())
}

/// A row that waits hides the rows behind it, and does not hide those before it.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_waiting_row_hides_those_behind(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = messages(&store, 3).await?;
    let all = message_ids(&commits);
    let retry = || Settled::Retry { at: at(1_000_000), error: "busy".to_owned() };
    let [first, second, _] = all.as_slice() else {
        check_eq!(all.len(), 3, "messages");
        return Ok(());
    };
    let stream = one_stream(&store, 200_000, "t").await?;
    check_eq!(ids(&stream.rows), all, "all three");
    store.settle_outbox(&settlement(&stream, 200_000, &[(second, retry())])).await?;
    let stream = one_stream(&store, 300_000, "u").await?;
    check_eq!(ids(&stream.rows), [*first], "the row before the one that waits");
    store.settle_outbox(&settlement(&stream, 300_000, &[(first, Settled::Delivered)])).await?;
    no_stream(&store, 400_000, "its first row waits").await?;
    let stream = one_stream(&store, 1_000_001, "v").await?;
    check_eq!(ids(&stream.rows), &all[1..], "the rows after the wait");
    Ok(())
}

/// The streams of one workflow do not wait for each other.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_streams_do_not_wait_for_each_other(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    store.commit(start(1).message("first-aid").message("log").build()).await?;
    let mut streams = store.claim_outbox(&look::claim(200_000, "t")).await?;
    streams.sort_by(|a, b| a.recipient.cmp(&b.recipient));
    let recipients: Vec<_> = streams.iter().map(|s| s.recipient.as_str()).collect();
    check_eq!(recipients, ["first-aid", "log"], "the streams");
    for stream in &streams {
        check_eq!(stream.rows.len(), 1, "rows of {}", stream.recipient);
    }
    let Some(first_aid) = streams.first() else {
        return Ok(());
    };
    store.settle_outbox(&settlement(first_aid, 200_000, &[])).await?;
    let stream = one_stream(&store, 200_001, "u").await?;
    check_eq!(stream.recipient, "first-aid", "the stream whose lease was given back");
    Ok(())
}

/// A claim brings at most as many streams as it asked for; further claims bring the others.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_claim_keeps_its_limit(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    for n in 1..=5 {
        store.commit(start(n).message("log").build()).await?;
    }
    let mut seen = BTreeSet::new();
    for (token, count) in [("a", 2), ("b", 2), ("c", 1), ("d", 0)] {
        let claim = Claim { limit: 2, ..look::claim(400_000, token) };
        let streams = store.claim_outbox(&claim).await?;
        check_eq!(streams.len(), count, "streams of claim {token}");
        for stream in streams {
            let again = !seen.insert(stream.workflow_id.clone());
            check!(!again, "claimed twice under live leases: {stream:?}");
        }
    }
    check_eq!(seen.len(), 5, "streams in all");
    Ok(())
}
