//! The catalogue: our own few words, per language. English is the first; a language that is missing gets English.
//!
//! Rules of speech (mcp.md): at most 240 characters, one next step, at most three options, no ids, no tool names.

use crate::limits::SPEECH_CHARS_MAX;
use crate::models::{Locale, Text, Timestamp};

use super::Saying;

mod answers;
mod questions;
mod refusals;

/// How many options speech names.
const OPTIONS_MAX: usize = 3;

/// The words of one language and the clock of one time zone.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a> {
    locale: &'a Locale,
    zone: &'a str,
    now: Option<Timestamp>,
}

impl<'a> Words<'a> {
    /// Words for `locale`, times in the IANA zone `zone`.
    #[must_use]
    pub const fn new(locale: &'a Locale, zone: &'a str) -> Self {
        Self { locale, zone, now: None }
    }

    /// The same for an answer of this time: what happened on another day is told with its day.
    #[must_use]
    pub const fn at(self, now: Timestamp) -> Self {
        Self { now: Some(now), ..self }
    }

    /// The language.
    #[must_use]
    pub const fn locale(&self) -> &'a Locale {
        self.locale
    }

    /// One speech out of several sentences, shortened to the limit: what happened and what is next are kept.
    #[must_use]
    pub fn speech(&self, sayings: &[Saying]) -> String {
        let mut said: Vec<String> = sayings.iter().map(|s| sentence(&self.say(s))).collect();
        said.retain(|s| !s.is_empty());
        while said.len() > 2 && length(&said) > SPEECH_CHARS_MAX {
            said.remove(1);
        }
        if length(&said) > SPEECH_CHARS_MAX && said.len() == 2 {
            let room = SPEECH_CHARS_MAX.saturating_sub(said[1].chars().count() + 1);
            said[0] = shorten(&said[0], room);
        }
        let speech = shorten(said.join(" ").trim(), SPEECH_CHARS_MAX);
        if speech.is_empty() { "Done.".to_owned() } else { speech }
    }

    /// One sentence.
    #[must_use]
    pub fn say(&self, saying: &Saying) -> String {
        match saying {
            Saying::Policy(text) => self.text(text).to_owned(),
            Saying::Fault(fault) => self.fault(fault),
            Saying::Rule(rule) => self.rule(rule),
            Saying::Ask(ask) => self.ask(ask),
            Saying::Done(done) => self.done(done),
            Saying::Stand(stand) => self.stand(stand),
        }
    }

    /// The words of a policy.
    #[must_use]
    pub fn text<'t>(&self, text: &'t Text) -> &'t str {
        text.get(self.locale)
    }

    /// Hour and minute.
    pub(crate) fn time(&self, at: Timestamp) -> String {
        at.clock_time(self.zone)
    }

    /// A time as it goes on after "since" or "until"; with its day when that is not today's.
    fn moment(&self, at: Timestamp) -> String {
        let time = self.time(at);
        match self.days_away(at) {
            0 => time,
            1 => format!("tomorrow at {time}"),
            -1 => format!("yesterday at {time}"),
            _ => format!("{} at {time}", at.day_and_month(self.zone)),
        }
    }

    /// A time as it goes on after what happened then.
    fn when(&self, at: Timestamp) -> String {
        match self.days_away(at) {
            0 => format!("at {}", self.time(at)),
            1 | -1 => self.moment(at),
            _ => format!("on {}", self.moment(at)),
        }
    }

    fn days_away(&self, at: Timestamp) -> i64 {
        self.now.map_or(0, |now| at.days_after(now, self.zone))
    }

    fn list(&self, options: &[Text], last: &str) -> String {
        let said: Vec<&str> = options.iter().take(OPTIONS_MAX).map(|o| self.text(o)).collect();
        match said.as_slice() {
            [] => String::new(),
            [one] => (*one).to_owned(),
            [init @ .., end] => format!("{} {last} {end}", init.join(", ")),
        }
    }
}

/// Names of things are written small; a sentence begins with a capital.
fn sentence(text: &str) -> String {
    let mut rest = text.trim().chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

fn length(said: &[String]) -> usize {
    said.iter().map(|s| s.chars().count() + 1).sum::<usize>().saturating_sub(1)
}

/// At most `max` characters, cut at a word with an ellipsis.
fn shorten(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let cut: String = text.chars().take(max.saturating_sub(1)).collect();
    let whole = cut.rsplit_once(char::is_whitespace).map_or(cut.as_str(), |(init, _)| init);
    format!("{}…", whole.trim_end_matches([',', '.', ' ']))
}

/// A name of ours or of the configuration, made speakable.
fn plain(name: &str) -> String {
    name.replace(['_', '-', '.'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Timestamp;
    use crate::view::{Acknowledger, Ask, Done, Fault, Rule, Stand};

    fn speech(sayings: &[Saying]) -> String {
        Words::new(&Locale::default(), "UTC").speech(sayings)
    }

    #[test]
    fn long_speech_keeps_what_happened_and_what_is_next() {
        let long = "word ".repeat(60);
        let said = speech(&[
            Done::Recorded { value: Some(long.clone()) }.into(),
            Saying::Policy(long.clone().into()),
            Ask::Next { prompt: "And now?".into() }.into(),
        ]);
        assert!(said.chars().count() <= SPEECH_CHARS_MAX, "{said}");
        assert!(said.ends_with("And now?"), "{said}");
        assert!(said.starts_with("Recorded"), "{said}");
    }

    #[test]
    fn names_of_arguments_are_spoken_as_words() {
        let said = speech(&[Fault::InvalidArgument { field: "inputs.work_order".into() }.into()]);
        assert_eq!(said, "I could not use the inputs work order. Please say it again.");
    }

    #[test]
    fn a_sentence_closes_the_conversion_that_it_goes_on_after() {
        let value = || Some("2 inches, that is 50.8 millimeters".to_owned());
        assert_eq!(
            speech(&[Done::WouldRecord { value: value() }.into()]),
            "2 inches, that is 50.8 millimeters, would be accepted. It is not recorded yet."
        );
        assert_eq!(
            speech(&[Done::WouldBeOutside { value: value(), blocks: false }.into()]),
            "2 inches, that is 50.8 millimeters, is outside the limits. It is not recorded yet."
        );
        assert_eq!(
            speech(&[Done::Corrected { value: value() }.into()]),
            "Corrected to 2 inches, that is 50.8 millimeters."
        );
        assert_eq!(speech(&[Done::Corrected { value: None }.into()]), "Corrected.");
    }

    #[test]
    fn a_time_to_answer_that_passed_is_told_and_nothing_after_an_answer() {
        let at = |minute: i64| Timestamp::from_ms(minute * 60_000);
        let stopped = |until, unanswered, acknowledged| {
            let (label, told) = ("unit 7".into(), "shift-lead".to_owned());
            speech(&[
                Stand::Stopped { label, told, at: at(1), until, unanswered, acknowledged }.into()
            ])
        };
        let asked = stopped(Some(at(16)), None, None);
        assert!(asked.ends_with(" to answer."), "{asked}");
        let missed = stopped(None, Some(at(16)), None);
        assert!(missed.starts_with("Unit 7 is stopped; the shift lead was told "), "{missed}");
        assert!(missed.contains(" and has not answered by "), "{missed}");
        let late = stopped(None, Some(at(16)), Some((Acknowledger::Operator, at(20))));
        assert!(late.contains("an operator acknowledged it"), "{late}");
    }

    #[test]
    fn an_asset_is_not_in_use_for_itself() {
        let in_use = |label: &str| {
            let (asset, label) = ("unit 7".into(), label.to_owned().into());
            speech(&[Rule::AssetInOwnUse { asset, label }.into()])
        };
        assert_eq!(in_use("unit 7"), "You already have unit 7 open. Finish that first.");
        assert_eq!(
            in_use("unit 7, probe 1"),
            "You already use unit 7 for unit 7, probe 1. Finish that first."
        );
    }

    #[test]
    fn some_are_named_among_many_and_few_are_named_all() {
        let open = |total: usize| {
            let labels = (1..=total).map(|n| format!("unit {n}").into()).collect();
            speech(&[Stand::OpenWork { labels, total }.into()])
        };
        assert_eq!(open(1), "Open: unit 1.");
        assert_eq!(open(3), "3 are open: unit 1, unit 2 and unit 3.");
        assert_eq!(open(4), "4 are open, among them unit 1, unit 2 and unit 3.");
    }

    #[test]
    fn a_time_of_another_day_is_told_with_its_day() {
        let now = Timestamp::parse("2026-11-30T12:00:00Z").expect("a time");
        let locale = Locale::default();
        let words = Words::new(&locale, "UTC").at(now);
        let hours = |n: i64| now.plus_ms(n * 3_600_000);
        for (n, when, moment) in [
            (-2, "at 10:00", "10:00"),
            (-13, "yesterday at 23:00", "yesterday at 23:00"),
            (13, "tomorrow at 01:00", "tomorrow at 01:00"),
            (-72, "on 27 November at 12:00", "27 November at 12:00"),
        ] {
            assert_eq!(words.when(hours(n)), when);
            assert_eq!(words.moment(hours(n)), moment);
        }
        assert_eq!(Words::new(&locale, "UTC").when(hours(-72)), "at 12:00", "now is not known");
    }

    #[test]
    fn nothing_to_say_is_still_something() {
        assert_eq!(speech(&[]), "Done.");
    }
}
