//! The DynamoDB table: whether it answers and what time it is there, its shape, what guards its data, and what our
//! credentials may do with it.

use crate::ambient::SystemClock;
use crate::compose::aws::{
    self, Answer, Deployed, Examination, Guard, Permission, Trouble, Verdict,
};
use crate::config::backend::AwsTable;
use crate::exit::chain;

use super::{Check, State};

/// Clocks may differ by this much, in milliseconds, before it is worth a look: the `Date` header has no fractions.
const SKEW_SMALL_MS: u64 = 2_000;
/// From here on leases of servers (30 s) mean nothing to each other, in milliseconds. DynamoDB itself refuses signatures
/// that are five minutes off.
const SKEW_LARGE_MS: u64 = 30_000;

/// What was looked at, and whether there is a store to read.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) checks: Vec<Check>,
    pub(super) has_store: bool,
}

/// Looks at the table. Nothing is written.
pub(super) async fn look(table: &AwsTable) -> Looked {
    match aws::examine(table, &SystemClock).await {
        Ok(found) => {
            let mut looked = checks(table, &found);
            looked.checks.extend(aws::deployed(table).await.map(|found| machine(&found)));
            looked
        }
        Err(trouble) => Looked { checks: vec![silent(table, &trouble)], has_store: false },
    }
}

fn checks(table: &AwsTable, found: &Examination) -> Looked {
    let mut checks =
        vec![Check::ok("table", format!("{table} answers after {} ms", found.answer.after_ms))];
    checks.push(skew(found.answer));
    checks.push(shape(&found.shape));
    checks.extend(found.guards.iter().map(guard));
    checks.extend(permissions(&found.permissions));
    let has_store = match &found.store {
        Ok(Some(id)) => {
            checks.push(Check::ok("store", id));
            true
        }
        Ok(None) => {
            checks.push(Check::ok("store", "none is in the table yet; serve makes it"));
            false
        }
        Err(error) => {
            let check = Check::new("store", State::Fail, chain(error));
            checks.push(check.advise("see the other lines; a newer schema needs a newer wf-cli"));
            false
        }
    };
    Looked { checks, has_store }
}

/// Whether the state machine does what this build expects of it.
fn machine(found: &Deployed) -> Check {
    const NAME: &str = "state machine";
    let advice = "deploy the stack of this build's `wf-cli aws template`, or run `wf-cli aws init`";
    match found {
        Deployed::Same => Check::ok(NAME, "has the definition of this build"),
        Deployed::Other(what) => {
            let says = format!("has not the definition of this build: {}", what.join("; "));
            Check::new(NAME, State::Fail, says).advise(advice)
        }
        Deployed::Absent => Check::new(NAME, State::Fail, "is not there")
            .advise(format!("{advice}; or correct backend.aws.state_machine_arn")),
        Deployed::Unknown(why) => {
            Check::new(NAME, State::Warn, format!("could not be looked at: {why}"))
                .advise("for doctor, use the OperatorRole of `wf-cli aws template`")
        }
    }
}

fn silent(table: &AwsTable, trouble: &Trouble) -> Check {
    let to_do = match trouble {
        Trouble::NoTable(_) => {
            "make it with `wf-cli aws init`, or from `wf-cli aws template`; or set backend.aws.table and \
             backend.aws.region to where it is"
        }
        Trouble::Denied(_) => {
            "give this process credentials of the table's account: environment, profile, web identity, or the role of \
             the container or machine"
        }
        Trouble::Throttled(_) | Trouble::Contended(_) => "try again later",
        Trouble::Newer { .. } | Trouble::Replaced => "start the newest build again",
        Trouble::Silent(_)
        | Trouble::Refused(_)
        | Trouble::Malformed(_)
        | Trouble::TooMuch(_)
        | Trouble::BadCursor => {
            "set backend.aws.region (or AWS_REGION), and look whether this machine reaches DynamoDB there: network, \
             proxy, endpoint, credentials"
        }
    };
    Check::new("table", State::Fail, format!("{table}: {}", chain(trouble))).advise(to_do)
}

fn skew(answer: Answer) -> Check {
    const NAME: &str = "clock skew";
    let Some(ahead) = answer.clock_ahead_ms else {
        return Check::new(NAME, State::Warn, "DynamoDB did not say what time it is");
    };
    let off = ahead.unsigned_abs();
    if off < SKEW_SMALL_MS {
        return Check::ok(NAME, "less than two seconds from DynamoDB");
    }
    let side = if ahead > 0 { "ahead of" } else { "behind" };
    let state = if off < SKEW_LARGE_MS { State::Warn } else { State::Fail };
    Check::new(NAME, state, format!("this machine is {} s {side} DynamoDB", off / 1_000)).advise(
        "set the clock, for example with NTP: servers that share a table judge leases, deadlines and expiry by their own",
    )
}

fn shape(found: &Result<Vec<String>, Trouble>) -> Check {
    const NAME: &str = "table shape";
    match found {
        Ok(wrong) if wrong.is_empty() => Check::ok(NAME, "keys and indexes of this build"),
        Ok(wrong) => Check::new(NAME, State::Fail, wrong.join("; ")).advise(
            "wait until it is active, or make a table of the right shape: `wf-cli aws template`",
        ),
        Err(trouble) => unknown(NAME, trouble),
    }
}

fn guard(guard: &Guard) -> Check {
    let (name, without) = match guard.name {
        "deletion protection" => {
            ("deletion", "one call could delete all histories: switch deletion protection on")
        }
        "point-in-time recovery" => {
            ("recovery", "nothing could be restored: switch point-in-time recovery on")
        }
        _ => {
            ("TTL", "old rows are collected by the servers only: `wf-cli aws init` switches TTL on")
        }
    };
    match &guard.on {
        Ok(true) => Check::ok(name, format!("{} is on", guard.name)),
        Ok(false) => Check::new(name, State::Warn, format!("{} is off", guard.name))
            .advise(format!("{without}; the table of `wf-cli aws template` has it")),
        Err(trouble) => unknown(name, trouble),
    }
}

/// Something that could not be looked at. The permissions tell whether that is for want of one.
fn unknown(name: &'static str, trouble: &Trouble) -> Check {
    Check::new(name, State::Warn, format!("could not be looked at: {}", chain(trouble)))
}

/// One line for all that is allowed, and one for each other.
fn permissions(all: &[Permission]) -> Vec<Check> {
    const NAME: &str = "permissions";
    let allowed = |p: &&Permission| matches!(p.verdict, Verdict::Allowed) && !p.for_operators;
    let wanted = all.iter().filter(|p| !p.for_operators).count();
    let allowed = all.iter().filter(allowed).count();
    let mut checks = Vec::new();
    if allowed == wanted {
        checks.push(Check::ok(NAME, format!("all {wanted} that a server needs")));
    }
    checks.extend(all.iter().filter_map(|permission| {
        let states = permission.action.starts_with("states:");
        let whole = if states { "the state machine" } else { "the table" };
        let on = permission.index.map_or(whole.to_owned(), |index| format!("index {index}"));
        let what = format!("{} on {on}", permission.action);
        match &permission.verdict {
            Verdict::Allowed => None,
            Verdict::Denied if permission.for_operators => Some(
                Check::new(
                    NAME,
                    State::Warn,
                    format!("{what} is denied; a server does not need it"),
                )
                .advise(
                    "for doctor, verify and copy, use the OperatorRole of `wf-cli aws template`",
                ),
            ),
            Verdict::Denied => {
                Some(Check::new(NAME, State::Fail, format!("{what} is denied")).advise(
                    "attach the ServerPolicy of `wf-cli aws template` to the server's role",
                ))
            }
            Verdict::Unknown(trouble) => {
                Some(Check::new(NAME, State::Warn, format!("{what}: unknown: {}", chain(trouble))))
            }
        }
    }));
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(clock_ahead_ms: Option<i64>) -> State {
        skew(Answer { after_ms: 1, clock_ahead_ms }).state
    }

    #[test]
    fn clocks_are_judged_by_how_far_they_are_apart() {
        assert_eq!(at(Some(-1_999)), State::Ok);
        assert_eq!(at(Some(2_000)), State::Warn);
        assert_eq!(at(Some(-29_999)), State::Warn);
        assert_eq!(at(Some(30_000)), State::Fail);
        assert_eq!(at(None), State::Warn);
        let behind = skew(Answer { after_ms: 1, clock_ahead_ms: Some(-61_000) });
        assert_eq!(behind.says, "this machine is 61 s behind DynamoDB");
    }

    #[test]
    fn what_a_server_lacks_is_a_failure_and_what_an_operator_lacks_a_warning() {
        let permission = |action: &str, for_operators, verdict| Permission {
            action: action.to_owned(),
            index: None,
            for_operators,
            verdict,
        };
        let states = |all: &[Permission]| {
            permissions(all).iter().map(|check| check.state).collect::<Vec<_>>()
        };
        let get = |verdict| permission("dynamodb:GetItem", false, verdict);
        let scan = |verdict| permission("dynamodb:Scan", true, verdict);
        assert_eq!(states(&[get(Verdict::Allowed), scan(Verdict::Allowed)]), [State::Ok]);
        let warned = [State::Ok, State::Warn];
        assert_eq!(states(&[get(Verdict::Allowed), scan(Verdict::Denied)]), warned);
        assert_eq!(states(&[get(Verdict::Denied), scan(Verdict::Allowed)]), [State::Fail]);
        let unknown = Verdict::Unknown(Trouble::TooMuch("x"));
        assert_eq!(states(&[get(unknown)]), [State::Warn]);
    }

    #[test]
    fn a_guard_that_is_off_is_a_warning_with_what_to_do() {
        for name in ["deletion protection", "point-in-time recovery", "TTL"] {
            assert_eq!(guard(&Guard { name, on: Ok(true) }).state, State::Ok);
            let off = guard(&Guard { name, on: Ok(false) });
            assert_eq!(off.state, State::Warn);
            assert!(off.to_do.is_some_and(|to_do| to_do.contains("wf-cli aws template")), "{name}");
        }
    }

    #[test]
    fn a_state_machine_of_another_build_is_a_failure() {
        assert_eq!(machine(&Deployed::Same).state, State::Ok);
        let other = machine(&Deployed::Other(vec!["the state Await is another".to_owned()]));
        assert_eq!(other.state, State::Fail);
        assert!(other.says.contains("the state Await is another"), "{}", other.says);
        assert_eq!(machine(&Deployed::Absent).state, State::Fail);
        assert_eq!(machine(&Deployed::Unknown("denied".to_owned())).state, State::Warn);
    }

    #[test]
    fn a_foreign_table_is_a_failure() {
        assert_eq!(shape(&Ok(Vec::new())).state, State::Ok);
        assert_eq!(shape(&Ok(vec!["the index by_id is missing".to_owned()])).state, State::Fail);
        assert_eq!(shape(&Err(Trouble::TooMuch("x"))).state, State::Warn);
    }
}
