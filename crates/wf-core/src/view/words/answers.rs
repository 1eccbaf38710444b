//! English words for what was done and how things stand.

use crate::models::{Phase, Text};
use crate::view::{Acknowledger, Done, LastStep, Offeree, Stand};

use super::{OPTIONS_MAX, Words, plain, sentence};

impl Words<'_> {
    pub(super) fn done(&self, done: &Done) -> String {
        match done {
            Done::Started { label } => format!("{} is started.", self.text(label)),
            Done::Joined { label } => format!("{} is already open.", self.text(label)),
            Done::Recorded { value } => valued("Recorded", value.as_deref(), ""),
            Done::RecordedOutside { value } => {
                valued("Recorded", value.as_deref(), ", which is outside the limits")
            }
            Done::Corrected { value: Some(value) } => format!("Corrected to {value}."),
            Done::Corrected { value: None } => "Corrected.".to_owned(),
            Done::Skipped => "Skipped.".to_owned(),
            Done::Noted => "Noted.".to_owned(),
            Done::Blocked { told: Some(told) } => {
                format!("The work is stopped, and the {} is told.", plain(told))
            }
            Done::Blocked { told: None } => "The work is stopped.".to_owned(),
            Done::Resolved => "The problem is settled.".to_owned(),
            Done::Finished { label, result: Some(result) } => {
                format!("{} is finished as {}.", self.text(label), self.text(result))
            }
            Done::Finished { label, result: None } => {
                format!("{} is abandoned.", self.text(label))
            }
            Done::NotNeeded { steps } => match steps.as_slice() {
                [step] => format!("{} is no longer needed.", sentence(self.text(step))),
                _ => format!("{} are no longer needed.", sentence(&self.list(steps, "and"))),
            },
            Done::Offered { label, to } => {
                let to = match to {
                    Offeree::Anybody => "anybody",
                    Offeree::One(name) => name.as_deref().unwrap_or("somebody else"),
                };
                let label = self.text(label);
                format!("{label} is offered to {to}; until it is taken, nothing changes.")
            }
            Done::Withdrawn { label } => format!("{} is no longer offered.", self.text(label)),
            Done::OfferDeclined { label, owner } => {
                let owner = owner.as_deref().unwrap_or("whoever has it");
                format!("Declined. {} stays with {owner}.", sentence(self.text(label)))
            }
            Done::TakenOver { label } => format!("{} is yours now.", self.text(label)),
            Done::Released => "The asset is free again.".to_owned(),
            Done::WouldRecord { value } => match value {
                Some(value) => {
                    format!("{} would be accepted. It is not recorded yet.", subject(value))
                }
                None => "That would be accepted. It is not recorded yet.".to_owned(),
            },
            Done::WouldBeOutside { value, blocks } => {
                let what = value.as_deref().map_or_else(|| "That".to_owned(), subject);
                let then = if *blocks { " and would stop the work" } else { "" };
                format!("{what} is outside the limits{then}. It is not recorded yet.")
            }
        }
    }

    pub(super) fn stand(&self, stand: &Stand) -> String {
        match stand {
            Stand::Stands { label, phase, result } => self.stands(label, *phase, result.as_ref()),
            Stand::Stopped { label, told, at, until, unanswered, acknowledged } => {
                let label = self.text(label);
                match (acknowledged, until, unanswered) {
                    (Some((by, at)), _, _) => {
                        let by = match by {
                            Acknowledger::Told(who) => format!("the {}", plain(who)),
                            Acknowledger::Named(name) => name.clone(),
                            Acknowledger::Operator => "an operator".to_owned(),
                        };
                        format!("{label} is stopped; {by} acknowledged it {}.", self.when(*at))
                    }
                    (None, None, Some(since)) => format!(
                        "{label} is stopped; the {} was told {} and has not answered by {}.",
                        plain(told),
                        self.when(*at),
                        self.moment(*since)
                    ),
                    (None, Some(until), _) => format!(
                        "{label} is stopped; the {} was told {} and has until {} to answer.",
                        plain(told),
                        self.when(*at),
                        self.moment(*until)
                    ),
                    (None, None, None) => format!(
                        "{label} is stopped; the {} was told {}.",
                        plain(told),
                        self.when(*at)
                    ),
                }
            }
            Stand::Resumed { label, last } => self.resumed(label.as_ref(), last.as_ref()),
            Stand::NothingOpen => "Nothing is open.".to_owned(),
            Stand::NothingFound => {
                "I found nothing that matches. Ask what is available to see everything.".to_owned()
            }
            Stand::LastFinished { label, result, at } => {
                let how = match result {
                    Some(result) => format!("finished as {result}"),
                    None => "abandoned".to_owned(),
                };
                format!("{} was {how} {}.", self.text(label), self.when(*at))
            }
            Stand::OpenWork { labels, total } => match total {
                0 => String::new(),
                1 => format!("Open: {}.", self.list(labels, "and")),
                2..=OPTIONS_MAX => format!("{total} are open: {}.", self.list(labels, "and")),
                _ => format!("{total} are open, among them {}.", self.list(labels, "and")),
            },
            Stand::OnOffer { labels, total } => match total {
                0 => String::new(),
                1 => format!("You can take over {}.", self.list(labels, "and")),
                2..=OPTIONS_MAX => format!("You can take over {}.", self.list(labels, "or")),
                _ => format!("{total} are on offer, among them {}.", self.list(labels, "and")),
            },
            Stand::MayStart { titles, total } => match total {
                0 => String::new(),
                _ => format!("You can start {}.", self.list(titles, "or")),
            },
            Stand::AssetFree => "It is free.".to_owned(),
            Stand::AssetInUse => "It is in use.".to_owned(),
        }
    }

    fn resumed(&self, label: Option<&Text>, last: Option<&LastStep>) -> String {
        let label = label.map(|label| self.text(label));
        let Some(last) = last else {
            let label = label.unwrap_or("it");
            return format!("{label} is under way; nothing is recorded yet.");
        };
        let lead = label.map(|label| format!("{label}: ")).unwrap_or_default();
        let (step, when) = (self.text(&last.say), self.when(last.at));
        match &last.value {
            Some(value) => format!("{lead}{step} was recorded as {} {when}.", subject(value)),
            None => format!("{lead}{step} was recorded {when}."),
        }
    }

    fn stands(&self, label: &Text, phase: Phase, result: Option<&Text>) -> String {
        let label = self.text(label);
        match phase {
            Phase::Created => format!("{label} is started; nothing is recorded yet."),
            Phase::Running => format!("{label} is under way."),
            Phase::Blocked => format!("{label} is stopped."),
            Phase::Completed => match result {
                Some(result) => format!("{label} is finished as {}.", self.text(result)),
                None => format!("{label} is abandoned."),
            },
        }
    }
}

/// A value that the sentence goes on after: an apposition in it ("2 inches, that is 50.8 millimeters") is closed.
fn subject(value: &str) -> String {
    if value.contains(", ") { format!("{value},") } else { value.to_owned() }
}

fn valued(what: &str, value: Option<&str>, then: &str) -> String {
    match value {
        Some(value) => format!("{what} {value}{then}."),
        None => format!("{what}{then}."),
    }
}
