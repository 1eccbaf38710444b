//! What the callers work: the shipped pump inspection, and the same with deadlines of seconds.

const SHIPPED: &str = include_str!("../../../../wf-procedure/procedures/pump-inspection.yaml");
/// What is put in the place of what.
const CHANGES: [(&str, &str); 2] = [
    (
        "\nsteps:\n",
        "\ndeadlines:\n  - { id: late, after: 1s, from: start, notify: shift-lead }\n  - { id: later, after: 2s, from: start, \
         notify: plant-lead }\nsteps:\n",
    ),
    (
        "escalate: { to: maintenance-lead, severity: high }",
        "escalate: { to: maintenance-lead, severity: high, respond_within: 1s, then: plant-lead }",
    ),
];

/// The text of the shipped procedure with deadlines of seconds, so that some are due all the time.
#[must_use]
pub fn hurried() -> String {
    CHANGES.iter().fold(SHIPPED.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::{CHANGES, SHIPPED, hurried};

    #[test]
    fn the_shipped_procedure_has_what_is_changed_and_can_be_used_afterwards() {
        for (from, _) in CHANGES {
            assert!(SHIPPED.contains(from), "{from}");
        }
        let parsed = wf_procedure::parse(&hurried(), "pump-inspection.yaml");
        assert!(parsed.is_ok(), "{:?}", parsed.err());
    }
}
