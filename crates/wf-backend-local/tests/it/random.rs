//! Random command lists: the store and the reference model give the same answers.

use wf_testkit::contract::Violation;
use wf_testkit::random::{agrees_with_model, has_recorded_history};

use crate::fixture::LocalFixture;

#[test]
fn answers_are_those_of_the_model() -> Result<(), Violation> {
    let fixture = LocalFixture::default();
    agrees_with_model(25, 60, async || fixture.clone())
}

/// As the reference model and DynamoDB do, in their tests.
#[tokio::test]
async fn the_recorded_lists_make_the_recorded_history() -> Result<(), Violation> {
    has_recorded_history(&LocalFixture::default()).await
}

#[test]
#[ignore = "takes some minutes"]
fn answers_are_those_of_the_model_for_long() -> Result<(), Violation> {
    let fixture = LocalFixture::default();
    agrees_with_model(250, 150, async || fixture.clone())
}
