//! `wf-bench`: see `wf_proof::bench`.

fn main() {}
