//! One fault for every check. A check that does not turn red on its fault proves nothing when it is green.
//!
//! [`memory`] edits a copy of what the checks read and needs nothing else; [`cargo_deny`] and [`clippy`] put stubs
//! and faulty sources into a small copy under `target/selftest` and run the real programs over it.

mod cargo_deny;
mod clippy;
mod clippy_faults;
mod manifest_mutants;
mod memory;
mod shape_mutants;

use std::collections::BTreeSet;
use std::path::Path;

use crate::fault::Fault;
use crate::{Check, Workspace};

/// One fault, and whether its check saw it.
#[derive(Debug)]
struct Outcome {
    check: String,
    fault: String,
    /// `None`: killed. Otherwise why it survived.
    survived: Option<String>,
}

impl Outcome {
    /// Killed if `survived` is `None`.
    fn new(check: impl Into<String>, fault: impl Into<String>, survived: Option<String>) -> Self {
        Self { check: check.into(), fault: fault.into(), survived }
    }
}

/// Runs every mutant and prints each as killed or SURVIVED. False if one survived.
pub(crate) fn task(root: &Path, fast: bool) -> Result<bool, Fault> {
    let workspace = Workspace::read(root)?;
    let mut outcomes = memory::run(&workspace);
    outcomes.extend(without_mutant(&outcomes));
    if !fast {
        let program = crate::deny::installed(root)?;
        outcomes.extend(cargo_deny::run(root, &workspace, &program)?);
        outcomes.extend(clippy::run(root, &workspace)?);
    }
    let mut survivors = 0_usize;
    for outcome in &outcomes {
        match &outcome.survived {
            None => println!("killed   {}: {}", outcome.check, outcome.fault),
            Some(why) => {
                survivors += 1;
                println!("SURVIVED {}: {} ({why})", outcome.check, outcome.fault);
            }
        }
    }
    println!("{} mutants, {survivors} survived", outcomes.len());
    Ok(survivors == 0)
}

/// Every check of the three tasks.
fn all_checks() -> impl Iterator<Item = Check> {
    crate::layering::CHECKS.into_iter().chain(crate::deny::CHECKS).chain(crate::tidy::CHECKS)
}

/// A survivor for each check that no mutant is for.
fn without_mutant(outcomes: &[Outcome]) -> Vec<Outcome> {
    let covered: BTreeSet<&str> = outcomes.iter().map(|outcome| outcome.check.as_str()).collect();
    all_checks()
        .filter(|check| !covered.contains(check.name))
        .map(|check| {
            Outcome::new(check.name, "any fault", Some("the check has no mutant".to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Outcome, all_checks, without_mutant};

    #[test]
    fn a_check_without_a_mutant_is_a_survivor() {
        let all = without_mutant(&[]);
        assert_eq!(all.len(), all_checks().count());
        let one_covered = without_mutant(&[Outcome::new("headers", "fault", None)]);
        assert_eq!(one_covered.len() + 1, all.len());
    }
}
