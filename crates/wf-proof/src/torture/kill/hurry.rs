//! The shipped procedure with deadlines of seconds, and several people who work it by tokens of `--auth dev`, so that
//! deadlines are due and work changes hands all the time.

use crate::fault::Fault;
use crate::harness::server::Launch;
use crate::harness::workload::Someone;

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
/// Subjects. Each may decide on blocks, as the one principal of a server without authentication may.
const PEOPLE: [&str; 3] = ["ann", "bob", "eve"];
const SCOPE: &str = "workflow:read workflow:write workflow:supervise";

/// Lets the server have the procedure and take tokens. Answers the people, each with one.
pub(super) fn prepare(launch: &mut Launch) -> Result<Vec<Someone>, Fault> {
    let procedures = launch.folder.join("procedures");
    std::fs::create_dir_all(&procedures)
        .and_then(|()| std::fs::write(procedures.join("pump-inspection.yaml"), hurried()))
        .map_err(Fault::io("the procedure"))?;
    let arguments = ["--auth", "dev", "--procedures", "procedures"];
    launch.arguments.extend(arguments.map(str::to_owned));
    PEOPLE.iter().map(|subject| someone(launch, subject)).collect()
}

fn someone(launch: &Launch, subject: &str) -> Result<Someone, Fault> {
    let arguments = ["token", "issue", "--sub", subject, "--scope", SCOPE, "--ttl", "24h"];
    let issued = launch.command(&arguments)?;
    if !issued.status.success() {
        let said = String::from_utf8_lossy(&issued.stderr).into_owned();
        return Err(Fault::Run(format!("no token for {subject}: {said}")));
    }
    let token = String::from_utf8_lossy(&issued.stdout).trim().to_owned();
    Ok(Someone { subject: subject.to_owned(), token })
}

fn hurried() -> String {
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
