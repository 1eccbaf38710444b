//! What the checks say: a violation with its place and the way out, and the report that prints them.

use std::fmt;

/// One place where a rule is broken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// Path from the root of the repository.
    path: String,
    /// Line from 1; 0 means the file as a whole.
    line: usize,
    /// What is wrong.
    what: String,
    /// What to do about it.
    fix: String,
}

impl Violation {
    /// A violation at `path:line` (line 0: the whole file).
    pub(crate) fn new(
        path: impl Into<String>,
        line: usize,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), line, what: what.into(), fix: fix.into() }
    }

    /// Place and fault without the line number, which an edit elsewhere in the file shifts.
    pub(crate) fn without_line(&self) -> String {
        format!("{}: {}", self.path, self.what)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}", self.path, self.what)?;
        } else {
            write!(f, "{}:{}: {}", self.path, self.line, self.what)?;
        }
        write!(f, " → {}", self.fix)
    }
}

/// The outcome of several checks, in the order in which they ran.
#[derive(Debug, Default)]
pub(crate) struct Report {
    outcomes: Vec<(&'static str, &'static str, Vec<Violation>)>,
}

impl Report {
    /// Adds the outcome of one check.
    pub(crate) fn add(
        &mut self,
        name: &'static str,
        rule: &'static str,
        mut found: Vec<Violation>,
    ) {
        found.sort();
        found.dedup();
        self.outcomes.push((name, rule, found));
    }

    /// Prints each check with its violations. True if there are none.
    #[must_use]
    pub(crate) fn print(&self) -> bool {
        let mut total = 0_usize;
        for (name, rule, found) in &self.outcomes {
            let verdict = if found.is_empty() { "ok " } else { "RED" };
            println!("{verdict} {name}: {rule}");
            for violation in found {
                println!("      {violation}");
            }
            total += found.len();
        }
        let checks = self.outcomes.len();
        if total == 0 {
            println!("{checks} checks, no violation");
        } else {
            println!("{checks} checks, {total} violations");
        }
        total == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, Violation};

    #[test]
    fn a_violation_names_its_place_and_the_way_out() {
        let at_line = Violation::new("a.rs", 3, "wrong", "mend it").to_string();
        let whole_file = Violation::new("a.rs", 0, "missing", "write it").to_string();
        assert_eq!(at_line, "a.rs:3: wrong → mend it");
        assert_eq!(whole_file, "a.rs: missing → write it");
    }

    #[test]
    fn a_report_is_green_only_without_violations() {
        let mut report = Report::default();
        report.add("first", "rule", Vec::new());
        assert!(report.print());
        report.add("second", "rule", vec![Violation::new("a.rs", 1, "wrong", "mend it")]);
        assert!(!report.print());
    }
}
