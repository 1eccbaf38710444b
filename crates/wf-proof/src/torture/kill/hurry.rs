//! The hurried procedure, and several people who work it by tokens of `--auth dev`, so that deadlines are due and work
//! changes hands all the time.

use crate::fault::Fault;
use crate::harness::server::Launch;
use crate::harness::workload::{Someone, hurried};

/// Subjects. Each may decide on blocks, as the one principal of a server without authentication may.
const PEOPLE: [&str; 3] = ["ann", "bob", "eve"];
const SCOPE: &str = "workflow:read workflow:write workflow:supervise";

/// Lets the server have the procedure and take tokens. Answers the people, each with one.
pub(super) fn prepare(launch: &mut Launch) -> Result<Vec<Someone>, Fault> {
    procedure(launch)?;
    people(launch)
}

/// Lets the server have the procedure.
pub(in crate::torture) fn procedure(launch: &mut Launch) -> Result<(), Fault> {
    let procedures = launch.folder.join("procedures");
    std::fs::create_dir_all(&procedures)
        .and_then(|()| std::fs::write(procedures.join("pump-inspection.yaml"), hurried()))
        .map_err(Fault::io("the procedure"))?;
    launch.arguments.extend(["--procedures", "procedures"].map(str::to_owned));
    Ok(())
}

/// Lets the server take tokens. Answers the people, each with one.
pub(in crate::torture) fn people(launch: &mut Launch) -> Result<Vec<Someone>, Fault> {
    launch.arguments.extend(["--auth", "dev"].map(str::to_owned));
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
