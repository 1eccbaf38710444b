//! Random command lists: the store and the reference model give the same answers.

use wf_testkit::contract::Violation;
use wf_testkit::random::agrees_with_model;

use crate::fixture::AwsFixture;

#[test]
#[ignore = "needs WF_AWS_ENDPOINT: cargo xtask aws"]
fn answers_are_those_of_the_model() -> Result<(), Violation> {
    let fixture = AwsFixture::default();
    agrees_with_model(12, 60, async || fixture.clone())
}
