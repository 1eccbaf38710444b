//! The procedures that come with the product.

use wf_core::policy::DomainPolicyPort;

#[test]
fn built_in_procedures_load() {
    let procedures = wf_procedure::builtin().unwrap_or_else(|error| panic!("{error}"));
    let ids: Vec<&str> = procedures.iter().map(|p| p.definition().id.as_str()).collect();
    assert_eq!(ids, ["pump-inspection", "analytical-balance-calibration"]);
}
