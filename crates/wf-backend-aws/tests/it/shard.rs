//! The lease of a shard of the reconciler: one holder, renewed by it, taken over after it ended, with an epoch that grows.

use wf_backend_aws::execution::{Epoch, ShardLease};
use wf_core::ports::LeaseToken;
use wf_testkit::build::at;

use crate::fixture::{meddle_number, store};
use crate::wire::Fault;

fn token(token: &str) -> LeaseToken {
    LeaseToken(token.to_owned())
}

fn lease(holder: &str, ms: i64) -> ShardLease {
    ShardLease::new(3, token(holder), at(ms), 30_000)
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_shard_has_one_holder() {
    let (store, _, _) = store().await;
    let rows = store.bindings();
    let held =
        async |token: &str, ms| rows.hold(&lease(token, ms)).await.expect("a lease").is_some();
    assert!(held("a", 0).await);
    assert!(!held("b", 29_999).await);
    assert!(held("a", 20_000).await, "renewed");
    assert!(!held("b", 31_000).await);
    assert!(held("b", 50_000).await, "after its end");
    assert!(!held("a", 50_001).await, "the late holder");
    assert!(!rows.release(3, &token("a")).await.expect("an answer"));
    assert!(rows.release(3, &token("b")).await.expect("an answer"));
    assert!(held("a", 50_002).await, "given back");
    assert!(held("c", -50_000).await, "a lease from the future is over");
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn the_epoch_grows_whenever_the_lease_changes_hands() {
    let (store, wire, config) = store().await;
    let rows = store.bindings();
    let hold = async |token: &str, ms| rows.hold(&lease(token, ms)).await.expect("an answer");
    let first = hold("a", 1_000).await.expect("a lease");
    assert_eq!(hold("a", 20_000).await, Some(first), "renewed");
    assert_eq!(hold("a", 90_000).await, Some(first), "renewed late, when nobody else came");
    let second = hold("b", 200_000).await.expect("a lease");
    assert!(second > first);
    assert!(rows.release(3, &token("b")).await.expect("an answer"));
    let third = hold("a", 200_001).await.expect("a lease");
    assert!(third > second, "given back, it is another one all the same");
    // The answer is lost: the lease is ours, and its epoch is the one that was written.
    wire.next("UpdateItem", [Fault::Lost]);
    let fourth = hold("c", 300_000).await.expect("a lease");
    assert!(fourth > third);
    assert_eq!(hold("c", 300_001).await, Some(fourth));
    // A clock that goes back takes nothing back.
    assert_eq!(hold("d", 300_002).await, None::<Epoch>);
    meddle_number(&config, "RECON#3", "LEASE", "lease_until", "0").await;
    let fifth = hold("d", 5).await.expect("a lease");
    assert!(fifth > fourth);
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn of_many_that_take_a_lease_at_once_one_has_it() {
    let (store, _, _) = store().await;
    let mut tries = tokio::task::JoinSet::new();
    for n in 0..12 {
        let rows = store.bindings();
        tries.spawn(async move { rows.hold(&lease(&n.to_string(), 1_000)).await });
    }
    let held = tries.join_all().await;
    assert_eq!(held.into_iter().filter(|held| matches!(held, Ok(Some(_)))).count(), 1);
}
