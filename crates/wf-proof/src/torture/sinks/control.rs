//! What the bench must find: messages that are marked as delivered and went nowhere, and some that nobody signed as agreed.

use std::time::Duration;

use super::lies::Manner;
use super::session::{Session, Told};
use crate::fault::Fault;
use crate::torture::{Report, Setting};

/// How long each is looked at.
const LONG: Duration = Duration::from_millis(1_200);

const HONEST: [Told; 1] = [Told { recipient: "subscribers", manner: Manner::Honest }];

/// Changes a route.
type Broken = fn(&str) -> String;

/// Empty of findings unless each of them was found.
pub(super) fn run(setting: &Setting) -> Result<Report, Fault> {
    let controls: [(&str, Broken, &str); 2] = [
        (
            "messages that are only said to be delivered",
            only_said,
            "is Delivered, and its receiver said None",
        ),
        ("messages that are signed with another secret", other_secret, "the signature"),
    ];
    let (mut report, mut all) = (Report::default(), true);
    for (what, broken, expected) in controls {
        let mut one = Report::default();
        let mut session = Session::routed(setting, "sinks-control", setting.seed, &HONEST, broken)?;
        // Nobody waits for what cannot get through: the books are held against each other as they are.
        session.lie_for(LONG)?;
        session.close(&mut one)?;
        let found = one.found.iter().find(|found| found.contains(expected));
        all &= found.is_some();
        report.done.push(format!("{what}: {}", found.map_or("NOTHING", String::as_str)));
        report.found.extend(one.found);
    }
    if !all {
        report.found.clear();
    }
    Ok(report)
}

/// The log takes them, and the receiver hears nothing.
fn only_said(route: &str) -> String {
    let to = route.lines().take(2).collect::<Vec<_>>().join("\n");
    format!("{to}\nsink = \"log\"\n")
}

fn other_secret(route: &str) -> String {
    route.replace("hook.secret", "other.secret")
}
