//! Every clause of the storage port's law.

use crate::fixture::LocalFixture;

wf_testkit::storage_contract!(LocalFixture::default());
