//! Commits that the tests share.

use std::sync::LazyLock;

use wf_backend_aws::AwsStore;
use wf_core::models::TenantId;
use wf_core::ports::{Commit, LoadQuery, Snapshot, StorageBackendPort as _};
use wf_testkit::build::{self, CommitBuilder, at};

/// Whose everything is.
pub(crate) fn tenant() -> &'static TenantId {
    static TENANT: LazyLock<TenantId> = LazyLock::new(|| build::tenant("plant"));
    &TENANT
}

/// A start that may be given another asset than its own.
pub(crate) struct Start {
    n: u32,
    asset: u32,
}

/// Workflow `n` starts, acquires an asset of its own, tells somebody and sets a deadline.
pub(crate) fn start(n: u32) -> Start {
    Start { n, asset: n }
}

impl Start {
    /// The asset that workflow `n` would acquire.
    pub(crate) fn asset_of(mut self, n: u32) -> Self {
        self.asset = n;
        self
    }

    pub(crate) fn build(self) -> Commit {
        let id = build::workflow_id(&format!("wf-{:05}", self.n));
        CommitBuilder::start(tenant(), &id, &build::user("ann"), at(60_000))
            .acquire(&build::asset(&format!("ASSET-{}", self.asset)), 1)
            .message("lead")
            .deadline(at(120_000))
            .build()
    }
}

/// Asks for everything that a commit could have written where it can be read.
pub(crate) fn load_query(commit: &Commit) -> LoadQuery {
    LoadQuery {
        tenant: commit.next.tenant.clone(),
        workflow: Some(commit.next.id.clone()),
        ledger: Some(commit.ledger.key.clone()),
        assets: Vec::new(),
        answered_as: None,
        count_open_of: None,
    }
}

/// Everything that a commit could have written where it can be read.
pub(crate) async fn load(store: &AwsStore, commit: &Commit) -> Snapshot {
    store.load(&load_query(commit)).await.expect("a read")
}
