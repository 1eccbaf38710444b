//! Commits that the tests share.

use wf_backend_aws::AwsStore;
use wf_core::ports::{Commit, LoadQuery, Snapshot, StorageBackendPort as _};
use wf_testkit::build::{self, CommitBuilder, at};

/// Workflow `n` starts, acquires an asset of its own, tells somebody and sets a deadline.
pub(crate) fn start(n: u32) -> CommitBuilder {
    let id = build::workflow_id(&format!("wf-{n:05}"));
    CommitBuilder::start(&build::tenant("plant"), &id, &build::user("ann"), at(60_000))
        .acquire(&build::asset(&format!("ASSET-{n}")), 1)
        .message("lead")
        .deadline(at(120_000))
}

/// Everything that a commit could have written where it could be read.
pub(crate) async fn load(store: &AwsStore, commit: &Commit) -> Snapshot {
    let query = LoadQuery {
        tenant: commit.next.tenant.clone(),
        workflow: Some(commit.next.id.clone()),
        ledger: Some(commit.ledger.key.clone()),
        assets: Vec::new(),
        count_open_of: None,
    };
    store.load(&query).await.expect("a read")
}
