//! Each clause is red on a store that is broken for it.

use wf_testkit::contract::{self, CLAUSES};
use wf_testkit::mutants::{MUTATIONS, MutantFixture};

#[test]
fn clauses_are_red_on_the_stores_that_are_broken_for_them() {
    let mut survivors = Vec::new();
    for (mutation, clauses) in MUTATIONS {
        for clause in *clauses {
            let verdict = contract::run(clause, async || MutantFixture::new(Some(*mutation)));
            if verdict.is_ok() {
                survivors.push((mutation, clause));
            }
        }
    }
    assert!(survivors.is_empty(), "green although broken: {survivors:#?}");
}

#[test]
fn every_clause_has_a_store_that_is_broken_for_it() {
    let red: Vec<&str> = MUTATIONS.iter().flat_map(|(_, clauses)| *clauses).copied().collect();
    let without: Vec<_> = CLAUSES.iter().filter(|clause| !red.contains(clause)).collect();
    assert!(without.is_empty(), "no mutation for {without:#?}");
}

#[test]
fn a_mutant_without_a_mutation_keeps_every_clause() {
    for clause in CLAUSES {
        let verdict = contract::run(clause, async || MutantFixture::new(None));
        assert!(verdict.is_ok(), "{clause}: {verdict:?}");
    }
}
