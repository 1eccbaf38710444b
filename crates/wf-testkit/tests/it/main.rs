//! The kit tested with itself: the model keeps the law, each clause is red on a store that breaks it, and the doubles
//! do what they say. The engine of wf-core is tested here too (`engine_*`), because it needs the doubles.

#![expect(clippy::unwrap_used, reason = "tests")]

mod audit_clean;
mod audit_controls;
mod audit_deadlines;
mod audit_deliveries;
mod audit_linear;
mod audit_story;
mod build;
mod clauses;
mod contract;
mod doubles;
mod engine_access;
mod engine_bench;
mod engine_deadlines;
mod engine_erase;
mod engine_faults;
mod engine_find;
mod engine_flow;
mod engine_guess;
mod engine_keyless;
mod engine_ledger;
mod engine_orchestrate;
mod engine_outbox;
mod engine_people;
mod engine_shape;
mod engine_tenants;
mod engine_twice;
mod engine_verify;
mod fault;
mod mutants;
#[path = "../../../wf-core/tests/it/plain_policy.rs"]
mod plain_policy;
mod random;
mod step_functions;
