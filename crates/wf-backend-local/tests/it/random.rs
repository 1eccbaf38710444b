//! Random command lists: the store and the reference model give the same answers.

use wf_testkit::contract::Violation;
use wf_testkit::random::agrees_with_model;

use crate::fixture::LocalFixture;

#[test]
fn answers_are_those_of_the_model() -> Result<(), Violation> {
    let fixture = LocalFixture::default();
    agrees_with_model(25, 60, async || fixture.clone())
}

#[test]
#[ignore = "takes some minutes"]
fn answers_are_those_of_the_model_for_long() -> Result<(), Violation> {
    let fixture = LocalFixture::default();
    agrees_with_model(250, 150, async || fixture.clone())
}
