//! Who may do what (domain.md), as two tables: which workflows a caller sees, and who may do which command. Ownership and
//! roles are decided here without an engine; what scopes allow before that is tested with one, in wf-testkit.

use serde_json::json;
use wf_core::access::{Visibility, may_read, may_release, may_supervise, may_write};
use wf_core::errors::ErrorCode;
use wf_core::models::Severity;
use wf_core::models::{Actor, Offer, Person, Phase, Principal, Scopes, TenantId, Workflow};
use wf_core::state_machine::{CommandKind, Rejection, Verdict};

use crate::drive::{
    Desk, correct, finish, operator, owner, release, report, resolve, skip, start, stranger,
    submit, supervisor,
};
use crate::plain_policy::PlainPolicy;

const NOTHING: Scopes = Scopes { read: false, write: false, supervise: false };

/// Every combination of scopes that a token may carry.
const SCOPES: [(&str, Scopes); 6] = [
    ("none", NOTHING),
    ("read", Scopes { read: true, ..NOTHING }),
    ("write", Scopes { write: true, ..NOTHING }),
    ("read+write", Scopes { read: true, write: true, supervise: false }),
    ("supervise", Scopes { supervise: true, ..NOTHING }),
    ("all", Scopes::ALL),
];

/// The desk's workflow, offered to `to`: nobody, somebody, or anybody.
fn offered(desk: &Desk, to: Option<Option<&Principal>>) -> Workflow {
    let offer = to.map(|to| Offer { to: to.map(Principal::person), at: desk.now });
    Workflow { offer, ..desk.workflow().clone() }
}

/// Per combination of scopes, in their order: `x` where the workflow is seen.
fn seen(visibility: Visibility, by: &Principal, workflow: &Workflow) -> String {
    let sees = |scopes| visibility.sees(&Principal { scopes, ..by.clone() }, workflow);
    SCOPES.iter().map(|(_, scopes)| if sees(*scopes) { 'x' } else { '-' }).collect()
}

#[test]
fn what_a_caller_sees() {
    let desk = Desk::running();
    let kept = offered(&desk, None);
    let to_bob = offered(&desk, Some(Some(&stranger())));
    let to_anybody = offered(&desk, Some(None));
    let over = Workflow { phase: Phase::Completed, ..to_bob.clone() };
    let carl = Principal { actor: Actor::User("carl".to_owned()), ..stranger() };
    let far = |by: Principal| Principal { tenant: TenantId::parse("abroad").expect("an id"), ..by };
    let (tenant, own) = (Visibility::Tenant, Visibility::Own);
    // Columns: none, read, write, read+write, supervise, all.
    for (who, by, workflow, of_tenant, of_own) in [
        ("the owner", owner(), &kept, "xxxxxx", "xxxxxx"),
        ("the owner with a role", checker(owner()), &kept, "xxxxxx", "xxxxxx"),
        ("somebody", stranger(), &kept, "-x-xxx", "----xx"),
        ("somebody with a role", checker(stranger()), &kept, "-x-xxx", "----xx"),
        ("the offeree", stranger(), &to_bob, "xxxxxx", "xxxxxx"),
        ("somebody, offered to another", carl.clone(), &to_bob, "-x-xxx", "----xx"),
        ("somebody, offered to anybody", carl, &to_anybody, "xxxxxx", "xxxxxx"),
        ("the offeree, when it is over", stranger(), &over, "-x-xxx", "----xx"),
        ("an operator", operator(), &kept, "xxxxxx", "xxxxxx"),
        ("the owner of another tenant", far(owner()), &kept, "------", "------"),
        ("the offeree of another tenant", far(stranger()), &to_bob, "------", "------"),
        ("an operator of another tenant", far(operator()), &kept, "------", "------"),
    ] {
        assert_eq!(seen(tenant, &by, workflow), of_tenant, "{who}, visibility tenant");
        assert_eq!(seen(own, &by, workflow), of_own, "{who}, visibility own");
    }
    assert_eq!(Visibility::default(), Visibility::Tenant);
}

#[test]
fn what_a_scope_allows() {
    type Needs = fn(&Principal) -> Result<(), Rejection>;
    let needs: [(&str, Needs, &str); 4] = [
        ("workflow:read", may_read, "-x-xxx"),
        ("workflow:write", may_write, "--xxxx"),
        ("workflow:supervise", may_supervise, "----xx"),
        ("workflow:supervise", may_release, "----xx"),
    ];
    for (scope, may, table) in needs {
        for ((name, scopes), allowed) in SCOPES.iter().zip(table.chars()) {
            let answer = may(&Principal { scopes: *scopes, ..owner() });
            assert_eq!(answer.is_ok(), allowed == 'x', "{scope} with {name}");
            let Err(rejection) = answer else { continue };
            assert_eq!(rejection.code, ErrorCode::NotAllowed);
            assert_eq!(rejection.details["scope"], scope);
        }
    }
    for by in [operator(), Principal { scopes: NOTHING, ..operator() }] {
        assert!(may_release(&by).is_ok(), "the command line needs no scope to free an asset");
        assert!(may_supervise(&by).is_err());
    }
}

/// The same with the role that `remark` asks for.
fn checker(by: Principal) -> Principal {
    Principal { roles: ["checker".to_owned()].into(), ..by }
}

/// A workflow of the owner on which each command of the table is lawful, apart from who asks.
fn checked() -> Desk {
    let mut desk =
        Desk { policy: PlainPolicy::checked(), acknowledge_at_start: true, ..Desk::new() };
    desk.must(&owner(), start("U-7", json!({"order": "A-1"})));
    desk.must(&owner(), submit("amount", "25"));
    desk
}

/// The same with `remark` recorded, so that it can be corrected.
fn remarked() -> Desk {
    let mut desk = checked();
    desk.must(&checker(owner()), submit("remark", "fine"));
    desk
}

fn stopped() -> Desk {
    let mut desk = checked();
    desk.must(&owner(), report(Severity::High, None));
    desk
}

/// What the answer to the command is, as far as people go.
fn answer(desk: &Desk, by: &Principal, kind: &CommandKind) -> String {
    let revision = desk.workflow().revision;
    match desk.clone().act(by, kind.clone(), true) {
        Ok(Verdict::Commit(_)) => "done".to_owned(),
        Ok(other) => panic!("{kind:?} by {}: {other:?}", by.actor),
        Err(rejection) => {
            assert_eq!(rejection.code, ErrorCode::NotAllowed, "{kind:?} by {}", by.actor);
            assert_eq!(desk.workflow().revision, revision);
            if let Some(person) = rejection.details.get("owner") {
                assert_eq!(person, &json!({"id": "ann-subject", "name": "ann"}));
                return "owner".to_owned();
            }
            let named = |name: &str| rejection.details.get(name).and_then(|v| v.as_str());
            named("role").or_else(|| named("scope")).expect("who may").to_owned()
        }
    }
}

/// Who is needed where somebody is refused: `owner` names her, `checker` is a role, anything else a scope.
#[test]
fn who_may_do_which_command() {
    let people = [
        owner(),
        checker(owner()),
        stranger(),
        checker(stranger()),
        supervisor(),
        checker(supervisor()),
        operator(),
    ];
    let supervise = "workflow:supervise";
    // Columns: the owner, the owner with the role, somebody, somebody with the role, a supervisor, one with the role, an
    // operator at the command line.
    #[rustfmt::skip]
    let table: [(&str, Desk, CommandKind, [&str; 7]); 11] = [
        ("submit", checked(), submit("ready", "yes"),
            ["done", "done", "owner", "owner", "done", "done", "owner"]),
        ("submit, for a role", checked(), submit("remark", "fine"),
            ["checker", "done", "checker", "done", "checker", "done", "checker"]),
        ("correct", checked(), correct("amount", "26"),
            ["done", "done", "owner", "owner", "done", "done", "owner"]),
        ("correct, for a role", remarked(), correct("remark", "good"),
            ["checker", "done", "checker", "done", "checker", "done", "checker"]),
        ("skip", checked(), skip("whisper", None),
            ["done", "done", "owner", "owner", "done", "done", "owner"]),
        ("skip, for a role", checked(), skip("remark", None),
            ["done", "done", "owner", "done", "done", "done", "owner"]),
        ("skip, for supervisors", checked(), skip("shape", Some("NOT_THERE")),
            [supervise, supervise, "owner", "owner", "done", "done", "owner"]),
        ("report", checked(), report(Severity::High, None),
            ["done", "done", "done", "done", "done", "done", "done"]),
        ("resolve", stopped(), resolve("block-4", "go_on"),
            [supervise, supervise, supervise, supervise, "done", "done", supervise]),
        ("abandon", checked(), finish("abandoned"),
            ["done", "done", "owner", "owner", "done", "done", "owner"]),
        ("release", checked(), release("U-7"),
            [supervise, supervise, supervise, supervise, "done", "done", "done"]),
    ];
    for (name, desk, kind, expected) in table {
        for (by, expected) in people.iter().zip(expected) {
            assert_eq!(answer(&desk, by, &kind), expected, "{name} by {} {:?}", by.actor, by.roles);
        }
    }
}

/// An unknown step asks for no role: who may not write here is told that, not which steps there are.
#[test]
fn ownership_comes_before_the_step() {
    let desk = checked();
    for kind in [submit("nowhere", "1"), correct("nowhere", "1"), skip("nowhere", None)] {
        let refused = desk.ask(&checker(stranger()), kind).expect_err("not hers");
        assert_eq!(refused.code, ErrorCode::NotAllowed);
        assert!(refused.details.contains_key("owner"));
    }
    let refused = desk.ask(&owner(), submit("nowhere", "1")).expect_err("there is no such step");
    assert_eq!(refused.code, ErrorCode::ValidationError);
}

/// A subject is taken for a subject, whatever it reads like.
#[test]
fn a_subject_never_reads_like_an_operator() {
    let shown = |actor: Actor| wf_core::view::shape::person(&Person { id: actor, name: None });
    let user = |subject: &str| Actor::User(subject.to_owned());
    assert_eq!(shown(user("auth0|ann"))["id"], "auth0|ann");
    assert_eq!(shown(Actor::Cli("root".to_owned()))["id"], "cli:root");
    assert_eq!(shown(user("cli:root"))["id"], "user:cli:root");
    assert_eq!(shown(user("system:orchestrator"))["id"], "user:system:orchestrator");
    assert_eq!(shown(user("urn:ann"))["id"], "urn:ann");
}
