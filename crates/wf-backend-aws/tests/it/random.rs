//! Random command lists: the store and the reference model give the same answers.

use wf_testkit::contract::Violation;
use wf_testkit::random::{agrees_with_model, has_recorded_history};

use crate::fixture::AwsFixture;

/// As the reference model and SQLite do, in their tests.
#[tokio::test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
async fn the_recorded_lists_make_the_recorded_history() -> Result<(), Violation> {
    has_recorded_history(&AwsFixture::default()).await
}

#[test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
fn answers_are_those_of_the_model() -> Result<(), Violation> {
    let fixture = AwsFixture::default();
    agrees_with_model(12, 60, async || fixture.clone())
}
