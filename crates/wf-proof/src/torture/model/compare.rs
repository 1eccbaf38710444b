//! Holds answers and states against the model: same class, same state and revision, the same bytes for a repeat, and
//! nothing moved by what was refused.

use serde_json::{Map, Value};
use wf_core::models::Timestamp;

use super::call::Call;
use super::flaw::Flaw;
use super::play::{End, Player};
use super::world::{Answer, Predicted, Shown, World};

/// How far a time may be off, in milliseconds: real time within a case counts as none in the model.
const SLACK_MS: i64 = 120_000;

impl Player<'_> {
    /// `repeated`: the call was sent before, so that it may be told as a duplicate.
    pub(super) fn compare(
        &mut self,
        call: &Call,
        predicted: &Predicted,
        world: &World,
        text: &str,
        repeated: bool,
    ) -> Result<(), End> {
        let hidden;
        let text = if self.flaw == Some(Flaw::HidesDuplicates) {
            hidden = text.replacen(r#""duplicate":true"#, r#""duplicate":false"#, 1);
            &hidden
        } else {
            text
        };
        let wrong = |what: String| {
            End::Wrong(format!(
                "{} should be {:?}, but {what}: {text}",
                call.tool, predicted.answer
            ))
        };
        let answer: Value =
            serde_json::from_str(text).map_err(|error| wrong(format!("is no JSON ({error})")))?;
        let outcome = answer["outcome"].as_str().unwrap_or_default();
        let duplicate = answer["duplicate"].as_bool();
        let fresh = text.replacen(r#""duplicate":true"#, r#""duplicate":false"#, 1);
        match &predicted.answer {
            Answer::Refused(code) => {
                let said = answer.pointer("/error/code").and_then(Value::as_str);
                if answer["ok"] != false || said != Some(code) || duplicate != Some(false) {
                    return Err(wrong("is not".to_owned()));
                }
            }
            Answer::Again(first) => {
                if duplicate != Some(true) {
                    return Err(wrong("is no duplicate".to_owned()));
                }
                let first = self.answers.get(first);
                if first.is_none_or(|first| *first != fresh) {
                    return Err(wrong(format!("is not the first answer again ({first:?})")));
                }
            }
            Answer::Fresh(expected) => {
                let may = duplicate == Some(false) || (repeated && duplicate == Some(true));
                if answer["ok"] != true || outcome != *expected || !may {
                    return Err(wrong("is not".to_owned()));
                }
                self.fresh(call, predicted, world, &answer).map_err(&wrong)?;
            }
        }
        // A refusal shows the workflow, too, where it was looked at.
        if let (Answer::Refused(_), Some((number, work))) = (&predicted.answer, world.work(call))
            && world.last.len() == 1
            && answer.get("workflow").is_some()
        {
            self.shows(&answer, &work.shown(number)).map_err(&wrong)?;
        }
        self.answers.insert(predicted.number, fresh);
        self.count(&predicted.answer, call);
        Ok(())
    }

    /// What an answer of the right class tells besides.
    fn fresh(
        &mut self,
        call: &Call,
        predicted: &Predicted,
        world: &World,
        answer: &Value,
    ) -> Result<(), String> {
        self.learn(predicted, world, answer)?;
        let total = answer["candidates_total"].as_u64().and_then(|n| usize::try_from(n).ok());
        if predicted.total.is_some() && predicted.total != total {
            return Err(format!("candidates_total is not {:?}", predicted.total));
        }
        if let Some(shown) = &predicted.shows {
            self.shows(answer, shown)?;
        }
        let nothing = answer["outcome"] == "none";
        if call.tool == "get_status" && call.args.is_empty() && nothing {
            let told = answer.get("last_completed").is_some();
            if told != world.recent() {
                return Err(format!("last_completed there: {told}"));
            }
        }
        Ok(())
    }

    /// Keeps the ids and tokens that the server gave.
    fn learn(
        &mut self,
        predicted: &Predicted,
        world: &World,
        answer: &Value,
    ) -> Result<(), String> {
        let at = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        match predicted.answer {
            Answer::Fresh("started") => {
                let id = at("/workflow/id").ok_or("shows no workflow")?;
                match self.ids.iter().position(|known| *known == id) {
                    None => self.ids.push(id),
                    // The call was repeated through a crash.
                    Some(place) if Some(place) == predicted.shows.as_ref().map(|s| s.workflow) => {}
                    Some(_) => return Err("is a workflow that there was before".to_owned()),
                }
            }
            Answer::Fresh("needs_confirmation") => {
                // The newest token of the model; a call that is repeated through a crash may be given two for it.
                self.tokens.truncate(world.tokens.len().saturating_sub(1));
                self.tokens.push(at("/confirm/token").ok_or("has no token")?);
            }
            Answer::Fresh(_) | Answer::Refused(_) | Answer::Again(_) => {}
        }
        Ok(())
    }

    /// The view is of this workflow, and as it stands in the model.
    fn shows(&self, answer: &Value, shown: &Shown) -> Result<(), String> {
        let id = answer.pointer("/workflow/id").and_then(Value::as_str);
        if id.is_none() || id != self.ids.get(shown.workflow).map(String::as_str) {
            return Err(format!("it does not show workflow {}", shown.workflow));
        }
        let codes = answer["blocks"].as_array().map_or(&[][..], Vec::as_slice).iter();
        let found = (
            answer.pointer("/workflow/state").and_then(Value::as_str).unwrap_or_default(),
            answer.pointer("/workflow/result").and_then(Value::as_str),
            answer.pointer("/workflow/revision").and_then(Value::as_u64),
            answer.pointer("/step/id").and_then(Value::as_str),
            answer.pointer("/step/attempt").and_then(Value::as_u64),
            answer.pointer("/workflow/progress/settled").and_then(Value::as_u64),
            answer.pointer("/last_recorded/step_id").and_then(Value::as_str),
            codes.filter_map(|block| block["code"].as_str()).collect::<Vec<_>>(),
        );
        let expected = (
            shown.state,
            shown.result.as_deref(),
            Some(shown.revision),
            shown.step,
            shown.attempt.map(u64::from),
            u64::try_from(shown.settled).ok(),
            shown.recorded,
            shown.blocks.clone(),
        );
        if found == expected { Ok(()) } else { Err(format!("shows {found:?}, not {expected:?}")) }
    }

    /// Every workflow, whole: as the model says; and as before where nothing happened to it, but for what is spoken.
    pub(super) fn look_at_all(&mut self, world: &World) -> Result<(), End> {
        for (number, work) in world.works.iter().enumerate() {
            let Some(id) = self.ids.get(number).cloned() else {
                return Err(End::Wrong(format!("workflow {number} was never shown")));
            };
            let call = Call::status(number);
            let arguments = Map::from_iter([
                ("workflow_id".to_owned(), Value::from(id)),
                ("detail".to_owned(), Value::from("full")),
            ]);
            let text = self.send(&call, &arguments)?;
            let wrong = |what: String| {
                End::Wrong(format!(
                    "after the operation, get_status of workflow {number}: {what}: {text}"
                ))
            };
            let mut answer: Value =
                serde_json::from_str(&text).map_err(|e| wrong(format!("no JSON ({e})")))?;
            self.shows(&answer, &work.shown(number)).map_err(&wrong)?;
            history(&answer, work.revision).map_err(&wrong)?;
            self.updated(&answer, work.at).map_err(&wrong)?;
            let key = answer["next_idempotency_key"].as_str().unwrap_or_default().to_owned();
            self.next_keys.insert((number, work.revision), key);
            self.learn_blocks(number, world, &answer);
            // What was recorded "at 10:40" was recorded "yesterday at 10:40" once the clock has passed midnight.
            let spoken = answer.as_object_mut().and_then(|parts| parts.remove("speech"));
            if spoken.is_none() {
                return Err(wrong("it says nothing".to_owned()));
            }
            // It tells, too, whether somebody has what it lost.
            let stands = (work.revision, world.hold_of(number));
            match self.seen.get_mut(number) {
                Some((then, before)) if *then == stands && *before != answer => {
                    return Err(wrong(format!("nothing happened to it, and it was {before}")));
                }
                Some(seen) => *seen = (stands, answer),
                None => self.seen.push((stands, answer)),
            }
        }
        Ok(())
    }

    fn learn_blocks(&mut self, number: usize, world: &World, answer: &Value) {
        let open = world.works.get(number).map_or(&[][..], |work| work.blocks.as_slice());
        let shown = answer["blocks"].as_array().map_or(&[][..], Vec::as_slice);
        for (block, shown) in open.iter().zip(shown) {
            let id = shown["id"].as_str().unwrap_or_default().to_owned();
            self.blocks.insert((number, block.nth), id);
        }
    }

    /// The newest event happened when the model's clock says, which never goes back.
    fn updated(&self, answer: &Value, moved: i64) -> Result<(), String> {
        let at = answer.pointer("/workflow/updated_at").and_then(Value::as_str).unwrap_or_default();
        let at = Timestamp::parse(at).map_err(|error| error.to_string())?;
        let begun = self.begun.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let begun = i64::try_from(begun.as_millis()).unwrap_or(i64::MAX);
        let off = at.as_ms() - (begun + moved);
        if (-SLACK_MS..SLACK_MS).contains(&off) {
            Ok(())
        } else {
            Err(format!("its time is {off} ms from where the clocks were"))
        }
    }
}

/// Numbered without a gap up to the revision, and times never go back.
fn history(answer: &Value, revision: u64) -> Result<(), String> {
    let events = answer["history"].as_array().map_or(&[][..], Vec::as_slice);
    let seqs: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    let first = revision.saturating_sub(49).max(1);
    if seqs != (first..=revision).collect::<Vec<_>>() {
        return Err(format!("its history is numbered {seqs:?}"));
    }
    let times = events.iter().map(|event| event["at"].as_str().unwrap_or_default());
    let times: Result<Vec<_>, _> = times.map(Timestamp::parse).collect();
    let times = times.map_err(|error| error.to_string())?;
    if times.is_sorted() { Ok(()) } else { Err("its times go back".to_owned()) }
}
