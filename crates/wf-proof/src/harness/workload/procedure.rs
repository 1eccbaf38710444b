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

const ESCALATE: &str = "escalate: { to: maintenance-lead, severity: high }";
const NOTIFY: &str = "notify: [workflow_started, workflow_blocked, workflow_completed]";
const NOTIFY_MORE: &str = "notify: [workflow_started, step_recorded, workflow_blocked, block_resolved, workflow_completed]";

/// The text of the shipped procedure that tells subscribers of every step, and each of these people of one kind of block
/// and of work that takes longer than a second.
#[must_use]
pub fn talkative(people: [&str; 4]) -> String {
    let text = SHIPPED.replace(NOTIFY, NOTIFY_MORE);
    let text = people.iter().fold(text, |text, person| {
        text.replacen(ESCALATE, &format!("escalate: {{ to: {person}, severity: high }}"), 1)
    });
    let late =
        people.map(|who| format!("  - {{ id: {who}, after: 1s, from: start, notify: {who} }}\n"));
    text.replace("\nsteps:\n", &format!("\ndeadlines:\n{}steps:\n", late.concat()))
}

#[cfg(test)]
mod tests {
    use super::{CHANGES, ESCALATE, NOTIFY, SHIPPED, hurried, talkative};

    #[test]
    fn each_kind_of_block_and_of_lateness_is_for_somebody_else() {
        assert_eq!((SHIPPED.matches(ESCALATE).count(), SHIPPED.matches(NOTIFY).count()), (4, 1));
        let text = talkative(["lead-a", "lead-b", "lead-c", "lead-d"]);
        assert!(!text.contains(ESCALATE) && text.contains("to: lead-d"));
        assert!(text.contains("notify: lead-d"));
        let parsed = wf_procedure::parse(&text, "pump-inspection.yaml");
        assert!(parsed.is_ok(), "{:?}", parsed.err());
    }

    #[test]
    fn the_shipped_procedure_has_what_is_changed_and_can_be_used_afterwards() {
        for (from, _) in CHANGES {
            assert!(SHIPPED.contains(from), "{from}");
        }
        let parsed = wf_procedure::parse(&hurried(), "pump-inspection.yaml");
        assert!(parsed.is_ok(), "{:?}", parsed.err());
    }
}
