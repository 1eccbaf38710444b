//! The lease of a shard of the reconciler: one holder, renewed by it, taken over after it ended.

use wf_backend_aws::ShardLease;
use wf_core::ports::LeaseToken;
use wf_testkit::build::at;

use crate::fixture::store;

fn lease(token: &str, ms: i64) -> ShardLease {
    ShardLease::new(3, LeaseToken(token.to_owned()), at(ms), 30_000)
}

#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn a_shard_has_one_holder() {
    let (store, _, _) = store().await;
    let held = async |token: &str, ms| store.hold_shard(&lease(token, ms)).await.expect("a lease");
    assert!(held("a", 0).await);
    assert!(!held("b", 29_999).await);
    assert!(held("a", 20_000).await, "renewed");
    assert!(!held("b", 31_000).await);
    assert!(held("b", 50_000).await, "after its end");
    assert!(!held("a", 50_001).await, "the late holder");
    let a = LeaseToken("a".to_owned());
    assert!(!store.release_shard(3, &a).await.expect("an answer"));
    assert!(store.release_shard(3, &LeaseToken("b".to_owned())).await.expect("an answer"));
    assert!(held("a", 50_002).await, "given back");
    assert!(held("c", -50_000).await, "a lease from the future is over");
}
