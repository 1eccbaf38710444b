//! What a settlement does to rows: delivered, to be tried again, given up, made pending again.

use wf_core::ports::{OutboxQuery, OutboxState, Settled};

use super::{ids, message_ids, messages, no_stream, one_stream, settlement};
use crate::build::at;
use crate::contract::look::{self, MANY, Store};
use crate::contract::{ContractFixture, Verdict, Violation, check, check_eq};

fn dead() -> Settled {
    Settled::Dead { error: "no such hook".to_owned() }
}

/// How a row stands: state, attempts, last error.
async fn standing(
    store: &Store,
    id: &str,
) -> Result<(OutboxState, u32, Option<String>), Violation> {
    let row = look::outbox_row(store, id).await?;
    let row = row.ok_or_else(|| Violation::new(format!("message {id} is gone")))?;
    Ok((row.status.state, row.status.attempts, row.status.last_error))
}

/// A delivered row is not brought again, and is listed as delivered.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_delivered_row_is_not_brought_again(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = messages(&store, 2).await?;
    let all = message_ids(&commits);
    let stream = one_stream(&store, 200_000, "t").await?;
    let results: Vec<_> = all.iter().map(|id| (*id, Settled::Delivered)).collect();
    store.settle_outbox(&settlement(&stream, 200_000, &results)).await?;
    no_stream(&store, 900_000, "everything was delivered").await?;
    for id in &all {
        check_eq!(standing(&store, id).await?, (OutboxState::Delivered, 0, None), "{id}");
    }
    let query = OutboxQuery { state: Some(OutboxState::Delivered), after: None, limit: MANY };
    let page = store.list_outbox(&query).await?;
    check_eq!(ids(&page.items), all, "the delivered rows");
    Ok(())
}

/// Messages that a settlement does not name stay as they are, and come again at once.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_unnamed_messages_stay(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = messages(&store, 3).await?;
    let all = message_ids(&commits);
    let [first, others @ ..] = all.as_slice() else {
        return Err(Violation::new("three messages"));
    };
    let stream = one_stream(&store, 200_000, "t").await?;
    let results = [(*first, Settled::Delivered), ("nobody/1/log", Settled::Delivered)];
    store.settle_outbox(&settlement(&stream, 200_000, &results)).await?;
    let stream = one_stream(&store, 200_001, "u").await?;
    check_eq!(ids(&stream.rows), others, "the messages that were not named");
    for id in others {
        check_eq!(standing(&store, id).await?, (OutboxState::Pending, 0, None), "{id}");
    }
    Ok(())
}

/// A row to be tried again waits until its time; attempts are counted and the last error is kept.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_retry_waits_and_counts(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = messages(&store, 1).await?;
    let all = message_ids(&commits);
    let id = all.first().copied().unwrap_or_default();
    let mut now = 200_000;
    for attempt in 1..=3 {
        let stream = one_stream(&store, now, &format!("t{attempt}")).await?;
        let error = format!("status 50{attempt}");
        let wait = Settled::Retry { at: at(now + 500_000), error: error.clone() };
        store.settle_outbox(&settlement(&stream, now, &[(id, wait)])).await?;
        let pending = (OutboxState::Pending, attempt, Some(error));
        check_eq!(standing(&store, id).await?, pending, "after attempt {attempt}");
        let row = look::outbox_row(&store, id).await?;
        let next = row.map(|row| row.status.next_attempt_at);
        check_eq!(next, Some(at(now + 500_000)), "the time of the next attempt");
        no_stream(&store, now + 499_000, "its row waits").await?;
        now += 501_000;
    }
    let stream = one_stream(&store, now, "last").await?;
    let status = stream.rows.first().map(|row| row.status.attempts);
    check_eq!(status, Some(3), "the attempts that a claim shows");
    store.settle_outbox(&settlement(&stream, now, &[(id, Settled::Delivered)])).await?;
    let (state, attempts, _) = standing(&store, id).await?;
    check_eq!((state, attempts), (OutboxState::Delivered, 3), "the delivered row");
    Ok(())
}

/// A row that was given up is passed over and stays visible.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_dead_row_is_passed_over(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = messages(&store, 3).await?;
    let all = message_ids(&commits);
    let [first, others @ ..] = all.as_slice() else {
        return Err(Violation::new("three messages"));
    };
    let stream = one_stream(&store, 200_000, "t").await?;
    store.settle_outbox(&settlement(&stream, 200_000, &[(first, dead())])).await?;
    let stream = one_stream(&store, 200_001, "u").await?;
    check_eq!(ids(&stream.rows), others, "the rows behind the dead one");
    let expected = (OutboxState::Dead, 1, Some("no such hook".to_owned()));
    check_eq!(standing(&store, first).await?, expected, "the dead row");
    let query = OutboxQuery { state: Some(OutboxState::Dead), after: None, limit: MANY };
    let page = store.list_outbox(&query).await?;
    check_eq!(ids(&page.items), [*first], "the dead rows");
    Ok(())
}

/// A dead row can be made pending again: under its old id, due at once, in its old place. Nothing else can.
///
/// # Errors
/// When the store breaks the law.
pub async fn s10_dead_row_can_be_revived(fixture: &dyn ContractFixture) -> Verdict {
    let store = fixture.open().await?;
    let commits = messages(&store, 3).await?;
    let all = message_ids(&commits);
    let [first, second, third] = all.as_slice() else {
        return Err(Violation::new("three messages"));
    };
    let stream = one_stream(&store, 200_000, "t").await?;
    let results = [(*first, dead()), (*second, Settled::Delivered)];
    store.settle_outbox(&settlement(&stream, 200_000, &results)).await?;

    for (id, what) in [(*second, "delivered"), (*third, "pending"), ("no/1/log", "unknown")] {
        let revived = store.revive_outbox(id, at(300_000)).await?;
        check!(!revived, "a message that is {what} was revived");
    }
    check!(store.revive_outbox(first, at(300_000)).await?, "the dead row was not revived");
    check!(!store.revive_outbox(first, at(300_000)).await?, "a pending row was revived");
    check_eq!(standing(&store, first).await?.0, OutboxState::Pending, "the revived row");

    let stream = one_stream(&store, 300_001, "u").await?;
    check_eq!(ids(&stream.rows), [*first, *third], "the pending rows");
    let brought: Vec<_> = stream.rows.iter().map(|row| row.message.clone()).collect();
    let sent: Vec<_> = commits.iter().flat_map(|c| c.outbox.clone()).collect();
    check_eq!(brought.first(), sent.first(), "the revived message");
    Ok(())
}
