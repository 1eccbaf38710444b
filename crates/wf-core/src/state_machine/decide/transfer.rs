//! `transfer_workflow`: work is offered, taken, declined, or taken over from a holder who is silent or lost its asset.
//!
//! Locks go with the work in the commit that changes its owner, each with the next fence, so that whatever was decided
//! under the old one is refused.

use crate::errors::ErrorCode;
use crate::locks::LockChange;
use crate::models::{
    Actor, HeldAsset, Offer, Person, Phase, ReasonCode, StepId, StepRecord, Timestamp, Workflow,
};
use crate::policy::DomainPolicyPort;
use crate::search;
use crate::view::{Fault, Rule, shape};

use super::super::command::{Command, Facts, Transfer};
use super::super::decision::{Draft, Outcome, Rejection, Unrecorded, Verdict};
use super::super::event::EventBody;
use super::{commit, guard, people};

pub(super) fn decide(
    workflow: &Workflow,
    command: &Command,
    transfer: &Transfer,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    match transfer {
        Transfer::Offer { .. } | Transfer::Withdraw => people::owner(workflow, &command.principal)?,
        Transfer::Decline | Transfer::Accept | Transfer::TakeOver { .. } => {}
    }
    match workflow.phase {
        Phase::Created | Phase::Running | Phase::Blocked => {}
        Phase::Completed => return Err(guard::wrong_state(workflow, command)),
    }
    match transfer {
        Transfer::Offer { to } => offer(workflow, to.as_deref(), facts.people),
        Transfer::Withdraw => {
            open_offer(workflow, command)?;
            Ok(told(EventBody::OfferWithdrawn { declined: false }))
        }
        Transfer::Decline => decline(workflow, command),
        Transfer::Accept => accept(workflow, command, facts),
        Transfer::TakeOver { reason_code } => {
            take_over(workflow, command, reason_code.as_ref(), facts)
        }
    }
}

fn told(body: EventBody) -> Verdict {
    commit(Outcome::Transferred, vec![Draft::new(body)], Vec::new())
}

fn offer(workflow: &Workflow, to: Option<&str>, known: &[Person]) -> Result<Verdict, Rejection> {
    let Some(said) = to else { return Ok(told(EventBody::OwnershipOffered { to: None })) };
    match meant(said, &workflow.owner, known).as_slice() {
        [] => {
            let mut rejection = Rejection::invalid(
                "to",
                "nobody is known here by this name or subject; user:<subject> offers to anybody at all",
            );
            rejection.saying = Fault::UnknownPerson.into();
            Err(rejection)
        }
        [one] if one.id == workflow.owner.id => {
            let mut rejection = Rejection::invalid("to", "the work is theirs already");
            rejection.saying = Rule::TheirsAlready { name: one.name.clone() }.into();
            Err(rejection)
        }
        [one] => Ok(told(EventBody::OwnershipOffered { to: Some(one.clone()) })),
        people @ [_, _, ..] => {
            Ok(Verdict::Unrecorded(Unrecorded::WhichPerson { people: people.to_vec() }))
        }
    }
}

/// Who may be meant: the subject, else those with exactly this name, else those with a name like it. The owner only when
/// it is nobody else. A subject that nobody was seen with must be written as an actor, `user:<subject>`: speech that was
/// misheard would otherwise be an offer to nobody.
fn meant(said: &str, owner: &Person, known: &[Person]) -> Vec<Person> {
    let said = said.trim();
    let is = |actor: &Actor| known.iter().find(|person| &person.id == actor).cloned();
    if let Some(person) = is(&Actor::User(said.to_owned())) {
        return vec![person];
    }
    if let Ok(actor @ Actor::User(_)) = Actor::parse(said) {
        return vec![is(&actor).unwrap_or(Person { id: actor, name: None })];
    }
    let asked = search::words(said);
    if asked.is_empty() {
        return Vec::new();
    }
    let named = || known.iter().filter_map(|p| Some((p, search::words(p.name.as_deref()?))));
    let exactly: Vec<&Person> =
        named().filter(|(_, words)| *words == asked).map(|(p, _)| p).collect();
    let like = || named().filter(|(_, words)| search::matches(&asked, words)).map(|(p, _)| p);
    let mut found = if exactly.is_empty() { like().collect() } else { exactly };
    if found.iter().any(|person| person.id != owner.id) {
        found.retain(|person| person.id != owner.id);
    }
    found.into_iter().cloned().collect()
}

fn open_offer<'w>(workflow: &'w Workflow, command: &Command) -> Result<&'w Offer, Rejection> {
    workflow.offer.as_ref().ok_or_else(|| {
        let mut rejection = guard::wrong_state(workflow, command);
        "the work is not on offer".clone_into(&mut rejection.message);
        rejection.saying = Rule::NoOffer.into();
        rejection
    })
}

fn decline(workflow: &Workflow, command: &Command) -> Result<Verdict, Rejection> {
    let offer = open_offer(workflow, command)?;
    match &offer.to {
        Some(to) if to.id == command.principal.actor => {
            Ok(told(EventBody::OfferWithdrawn { declined: true }))
        }
        Some(to) => Err(not_theirs(to)),
        // One who does not want it must not take it from the others.
        None => Err(Rejection::new(
            ErrorCode::NotAllowed,
            "the work is offered to anybody; only whoever offered it can withdraw it",
            Rule::OfferedToAll,
        )),
    }
}

fn not_theirs(to: &Person) -> Rejection {
    let rule = Rule::OfferedToOther { to: to.name.clone() };
    Rejection::new(ErrorCode::NotAllowed, "the work is offered to somebody else", rule)
        .with("offered_to", shape::person(to))
}

fn already_theirs(workflow: &Workflow, command: &Command) -> Rejection {
    let mut rejection = guard::wrong_state(workflow, command);
    "the caller drives the workflow, and it holds its assets".clone_into(&mut rejection.message);
    rejection.saying = Rule::YoursAlready.into();
    rejection
}

fn accept(workflow: &Workflow, command: &Command, facts: &Facts<'_>) -> Result<Verdict, Rejection> {
    let by = &command.principal;
    let offer = open_offer(workflow, command)?;
    if let Some(to) = offer.to.as_ref().filter(|to| to.id != by.actor) {
        return Err(not_theirs(to));
    }
    if workflow.owner.id == by.actor {
        return Err(already_theirs(workflow, command));
    }
    // Nobody takes on, unsaid, what was taken away from the work: its owner takes it back first.
    guard::locks(workflow, facts)?;
    guard::room_for_another(facts)?;
    moved(workflow, by.person(), None, facts)
}

fn take_over(
    workflow: &Workflow,
    command: &Command,
    reason: Option<&ReasonCode>,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    let by = &command.principal;
    let own = workflow.owner.id == by.actor;
    if own {
        let lost = workflow.assets.iter().any(|asset| !guard::is_held(workflow, asset, facts));
        if !lost {
            return Err(already_theirs(workflow, command));
        }
    } else if !by.scopes.supervise {
        relieved(workflow, facts)?;
    }
    let reason = guard::required_reason(reason, facts.policy)?;
    if !own {
        guard::room_for_another(facts)?;
    }
    moved(workflow, by.person(), Some(reason), facts)
}

/// The holder has been silent for as long as the procedure says.
fn relieved(workflow: &Workflow, facts: &Facts<'_>) -> Result<(), Rejection> {
    let owner = workflow.owner.name.clone();
    match stale_at(workflow, facts.policy) {
        Some(at) if at <= facts.at => Ok(()),
        Some(at) => {
            let rule = Rule::NotSilent { owner, from: at };
            Err(people::not_owner(workflow, rule).with("free_at", at.to_string()))
        }
        None => Err(people::not_owner(workflow, Rule::NotOwner { owner })),
    }
}

/// From when on a silent holder may be relieved: so long after the last activity, or after the end of a wait that runs.
/// While it is blocked the work waits for others, so never; without a rule of the policy neither.
fn stale_at(workflow: &Workflow, policy: &dyn DomainPolicyPort) -> Option<Timestamp> {
    let after = policy.stale_after_ms()?;
    match workflow.phase {
        Phase::Created | Phase::Running => {}
        Phase::Blocked | Phase::Completed => return None,
    }
    let settled = |step: &StepId| workflow.steps.get(step).is_some_and(StepRecord::is_settled);
    let running = workflow.waits.iter().filter(|(step, _)| !settled(step)).map(|(_, w)| w.until);
    Some(running.fold(workflow.last_activity, Timestamp::max).plus_ms(after))
}

/// The work is somebody's now, with every asset under a new fence; taken over with a `reason`, accepted without.
fn moved(
    workflow: &Workflow,
    to: Person,
    reason_code: Option<ReasonCode>,
    facts: &Facts<'_>,
) -> Result<Verdict, Rejection> {
    let mut locks = Vec::with_capacity(workflow.assets.len());
    let mut assets = Vec::with_capacity(workflow.assets.len());
    for asset in &workflow.assets {
        let lock = facts.locks.get(&asset.id);
        if let Some(lock) = lock.filter(|lock| is_others(lock.workflow_id.as_ref(), workflow)) {
            return Err(in_use(asset, lock.owner.as_ref()));
        }
        let fence = lock.map_or(0, |lock| lock.fence) + 1;
        locks.push(LockChange::Take { asset_id: asset.id.clone(), fence });
        assets.push(HeldAsset { fence, ..asset.clone() });
    }
    let taken_over = reason_code.is_some();
    let body = EventBody::OwnershipTransferred { to, taken_over, reason_code, assets };
    Ok(commit(Outcome::Transferred, vec![Draft::new(body)], locks))
}

fn is_others(holder: Option<&crate::models::WorkflowId>, workflow: &Workflow) -> bool {
    holder.is_some_and(|holder| holder != &workflow.id)
}

fn in_use(asset: &HeldAsset, owner: Option<&Person>) -> Rejection {
    let holder = owner.and_then(|person| person.name.clone());
    let saying = Rule::AssetInUse { asset: asset.say.clone(), holder, since: None };
    let rejection =
        Rejection::new(ErrorCode::AssetLocked, "another workflow holds the asset", saying)
            .with("asset_id", asset.id.as_str());
    match owner {
        Some(owner) => rejection.with("holder", shape::person(owner)),
        None => rejection,
    }
}
