//! English words for what is wrong and for rules that say no; each names one next step.

use crate::models::{Phase, Text, Timestamp};
use crate::view::{Fault, Rule};

use super::{Words, plain};

impl Words<'_> {
    pub(super) fn fault(&self, fault: &Fault) -> String {
        match fault {
            Fault::InvalidArgument { field } => {
                return format!("I could not use the {}. Please say it again.", plain(field));
            }
            Fault::ProcedureNotFound { available } => return self.unknown_procedure(available),
            Fault::NotDue { at } => {
                return format!("That is due at {}, and not before.", self.moment(*at));
            }
            Fault::NotNext { at } => {
                return format!("What was due at {} comes first.", self.moment(*at));
            }
            Fault::UnknownReason { reasons } => {
                return self.options("I do not know that reason.", "Say for example:", reasons);
            }
            Fault::WorkflowNotFound => "I cannot find that work. Ask what is open to see yours.",
            Fault::DefinitionUnknown => {
                "The procedure of this work is not installed here. Tell your supervisor."
            }
            Fault::UnknownBlock => {
                "I cannot find that problem. Ask for the status to see what is open."
            }
            Fault::UnknownPerson => {
                "I know nobody of that name here. Say another name, or offer it to anybody."
            }
            Fault::LimitExceeded => {
                "That is more than is allowed. Finish something first, or say less."
            }
            Fault::KeyNeeded => "I need a key for this start, so that it cannot happen twice.",
            Fault::KeyConflict => {
                "That call was already used for something else. Did you mean another action?"
            }
            Fault::VersionConflict => {
                "Something changed in the meantime. Ask for the status first."
            }
            Fault::Unavailable => {
                "I could not reach the records. Nothing confirmed is lost; please try again."
            }
            Fault::Internal => {
                "Something went wrong on my side. Nothing confirmed is lost; please try again."
            }
        }
        .to_owned()
    }

    pub(super) fn rule(&self, rule: &Rule) -> String {
        match rule {
            Rule::NotAllowed => "You are not allowed to do that. Ask your supervisor.".to_owned(),
            Rule::SupervisorNeeded => "Only a supervisor may do that. Ask yours.".to_owned(),
            Rule::NotOwner { owner } => not_owner(owner.as_deref()),
            Rule::RoleNeeded { role } => {
                format!("That step is for the {}. Ask one of them.", plain(role))
            }
            Rule::CannotSkip => {
                "That step cannot be skipped. If it cannot be done, report a problem.".to_owned()
            }
            Rule::AssetInUse { asset, holder, since } => {
                self.in_use(asset, holder.as_deref(), *since)
            }
            // Work is often called by its only asset.
            Rule::AssetInOwnUse { asset, label } if self.text(asset) == self.text(label) => {
                format!("You already have {} open. Finish that first.", self.text(asset))
            }
            Rule::AssetInOwnUse { asset, label } => {
                let (asset, label) = (self.text(asset), self.text(label));
                format!("You already use {asset} for {label}. Finish that first.")
            }
            Rule::LockLost { asset, taken, holder } => self.lost(asset, *taken, holder.as_deref()),
            Rule::SecondPersonNeeded => SECOND_PERSON_NEEDED.to_owned(),
            Rule::TooEarly { until } => format!("Please wait until {}.", self.moment(*until)),
            Rule::NoOffer => "This work is not on offer. Ask for the status.".to_owned(),
            Rule::OfferedToOther { to } => offered_to(to.as_deref()),
            Rule::OfferedToAll => OFFERED_TO_ALL.to_owned(),
            Rule::YoursAlready => "This work is yours already. Go on with it.".to_owned(),
            Rule::TheirsAlready { name } => theirs_already(name.as_deref()),
            Rule::NotSilent { owner, from } => not_silent(owner.as_deref(), &self.moment(*from)),
            Rule::WrongState { phase } => wrong_state(*phase).to_owned(),
            Rule::StepNotOpen { prompt } => self.then(
                "That is not next.",
                prompt.as_ref(),
                "That step is not open, and nothing else is. You can finish.",
            ),
            Rule::StepAlreadyRecorded { value: Some(value) } => {
                format!("That is already recorded as {value}. Say if it must be corrected.")
            }
            Rule::StepAlreadyRecorded { value: None } => {
                "That is already recorded. Say if it must be corrected.".to_owned()
            }
            Rule::NothingToCorrect => NOTHING_TO_CORRECT.to_owned(),
            Rule::ReasonRequired { reasons } => {
                self.options("A reason is needed.", "For example:", reasons)
            }
            Rule::DecisionNotAllowed { decisions } => {
                self.options("That cannot be decided here.", "You can say:", decisions)
            }
            Rule::ResultNotAvailable { results } => {
                self.options("That result is not possible.", "You can say:", results)
            }
            Rule::StepsUnsettled { prompt } => self.then(
                "Something is still to be done.",
                prompt.as_ref(),
                "Something is still to be done. Ask for the status.",
            ),
        }
    }

    fn unknown_procedure(&self, available: &[Text]) -> String {
        if available.is_empty() {
            "I do not know that procedure, and none is installed. Tell your supervisor.".to_owned()
        } else {
            let options = self.list(available, "or");
            format!("I do not know that procedure. You can start {options}.")
        }
    }

    fn options(&self, what: &str, lead: &str, options: &[Text]) -> String {
        if options.is_empty() {
            format!("{what} There is none to choose from; report a problem instead.")
        } else {
            format!("{what} {lead} {}.", self.list(options, "or"))
        }
    }

    fn then(&self, what: &str, prompt: Option<&Text>, otherwise: &str) -> String {
        prompt.map_or_else(|| otherwise.to_owned(), |p| format!("{what} {}", self.text(p)))
    }

    fn lost(&self, asset: &Text, taken: bool, holder: Option<&str>) -> String {
        let asset = self.text(asset);
        if taken {
            let holder = holder.unwrap_or("somebody else");
            format!("This work no longer holds {asset}, {holder} has it; you can only abandon it.")
        } else {
            format!("This work no longer holds {asset}; take it over again, or abandon it.")
        }
    }

    fn in_use(&self, asset: &Text, holder: Option<&str>, since: Option<Timestamp>) -> String {
        let asset = self.text(asset);
        match (holder, since) {
            (Some(holder), Some(since)) => format!(
                "{asset} is in use by {holder} since {}. Ask them, or take another.",
                self.moment(since)
            ),
            (Some(holder), None) => {
                format!("{asset} is in use by {holder}. Ask them, or take another.")
            }
            (None, Some(since)) => format!(
                "{asset} is in use by somebody else since {}. Ask them, or take another.",
                self.moment(since)
            ),
            (None, None) => format!("{asset} is in use. Take another."),
        }
    }
}

fn wrong_state(phase: Phase) -> &'static str {
    match phase {
        Phase::Created => "Nothing is recorded yet. Begin with the first step.",
        Phase::Running => "That is not possible now. Go on with the next step.",
        Phase::Blocked => "The work is stopped until somebody decides. Ask for the status.",
        Phase::Completed => "That work is already over. You can start a new one.",
    }
}

const SECOND_PERSON_NEEDED: &str =
    "That needs a second person, who has not worked on this. Ask a colleague.";
const OFFERED_TO_ALL: &str =
    "This work is offered to everybody. Leave it, and somebody else can take it.";
const NOTHING_TO_CORRECT: &str =
    "Nothing is recorded for that step yet, so there is nothing to correct. Say the value.";

fn not_owner(name: Option<&str>) -> String {
    let name = name.unwrap_or("Somebody else");
    format!("{name} is doing this work. Ask them to hand it over.")
}

fn not_silent(name: Option<&str>, from: &str) -> String {
    let name = name.unwrap_or("Somebody else");
    format!("{name} is doing this work. Ask them, or take it over after {from}.")
}

fn offered_to(name: Option<&str>) -> String {
    let name = name.unwrap_or("somebody else");
    format!("This work is offered to {name}, not to you. Ask for a new offer.")
}

fn theirs_already(name: Option<&str>) -> String {
    let name = name.unwrap_or("them");
    format!("This is the work of {name} already. Say somebody else.")
}
