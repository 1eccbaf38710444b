//! Every clause of the storage port's law.

use crate::fixture::AwsFixture;

wf_testkit::storage_contract!(
    #[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
    AwsFixture::default()
);
