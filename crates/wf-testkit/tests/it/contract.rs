//! The reference model keeps every clause. It stands behind a fault store without a script, which so keeps them too.

use wf_testkit::model::ModelFixture;

wf_testkit::storage_contract!(ModelFixture::default());
