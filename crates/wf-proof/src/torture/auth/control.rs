//! Servers that are set up so that they let the wrong ones in, or ask too often: the bench must find each of them.

use std::time::Duration;

use super::issuer::Mood;
use super::phase;
use super::session::Session;
use super::shown::{Kind, OTHER_AUDIENCE};
use crate::fault::Fault;
use crate::torture::{Report, Setting};

/// How long each is looked at.
const LONG: Duration = Duration::from_millis(600);

/// One that is wrong.
struct Broken {
    what: &'static str,
    settings: &'static [(&'static str, &'static str)],
    /// The issuer publishes the stranger's key.
    tells_of_the_stranger: bool,
    /// What the finding must say.
    found: &'static str,
}

const BROKEN: [Broken; 4] = [
    Broken {
        what: "a server that takes tokens of another",
        settings: &[("WF_AUTH_AUDIENCE", OTHER_AUDIENCE)],
        tells_of_the_stranger: false,
        found: "OtherAudience: was let in",
    },
    Broken {
        what: "a server with another idea of time",
        settings: &[("WF_AUTH_CLOCK_SKEW", "5m")],
        tells_of_the_stranger: false,
        found: "Expired: was let in",
    },
    Broken {
        what: "an issuer that vouches for strangers",
        settings: &[],
        tells_of_the_stranger: true,
        found: "StrangersKey: was let in",
    },
    Broken {
        what: "a server that asks for keys whenever it does not know one",
        settings: &[("FAILPOINTS", "keys.faster=return(1000000)")],
        tells_of_the_stranger: false,
        found: "the issuer was asked",
    },
];

/// Empty of findings unless every one of them was found, and left its trace.
pub(super) fn run(setting: &Setting) -> Result<Report, Fault> {
    let mut report = Report::default();
    let mut all = true;
    for broken in BROKEN {
        let mut one = Report::default();
        let mut session = Session::open(setting, "auth-control", Mood::Well, broken.settings)?;
        if broken.tells_of_the_stranger {
            session.issuer.publishes(&[&session.mint.lasting, &session.mint.stranger]);
            session.is_answered(Kind::StrangersKey, 200, super::PAUSE + super::SLACK)?;
        }
        phase(&mut session, broken.what, Mood::Well, LONG);
        session.close(&mut one)?;
        let found = one.found.iter().find(|found| found.contains(broken.found));
        // Who was let in did something, and the audit must know that nobody asked for it.
        let let_in = broken.found.ends_with("let in");
        let traced = !let_in || one.found.iter().any(|found| found.starts_with("I2"));
        all &= found.is_some() && traced;
        let first = found.map_or("NOTHING", String::as_str);
        let trace = if traced { "" } else { ", and NOTHING in the audit" };
        report.done.push(format!("{}: {first}{trace}", broken.what));
        report.found.extend(one.found);
    }
    if !all {
        report.found.clear();
    }
    Ok(report)
}
