//! `check_value`: what recording a value would say. Nothing is recorded.

use serde_json::{Map, Value, json};

use crate::access;
use crate::models::Principal;
use crate::policy::{Accepted, Judgement, Offered};
use crate::state_machine::{Outcome, Rejection};
use crate::view::{Ask, Done, Frame, Saying};

use super::Engine;
use super::call::{CallMeta, CheckValue, Reply};

impl Engine {
    /// Answers `check_value`: what recording the value would say. Nothing is recorded.
    pub async fn check_value(
        &self,
        principal: &Principal,
        query: &CheckValue,
        meta: &CallMeta,
    ) -> Reply {
        match self.check(principal, query, meta).await {
            Ok(reply) => reply,
            Err(rejection) => self.refuse(&rejection, meta),
        }
    }

    async fn check(
        &self,
        principal: &Principal,
        query: &CheckValue,
        meta: &CallMeta,
    ) -> Result<Reply, Rejection> {
        access::may_read(principal)?;
        let workflow =
            self.seen(principal, &query.workflow_id).await?.ok_or_else(Rejection::not_found)?;
        let policy = self.pinned(&workflow).await?.ok_or_else(Rejection::definition_unknown)?;
        let described = policy.describe(&workflow, &query.step_id).ok_or_else(|| {
            let plan = policy.plan(&workflow);
            let valid: Vec<&str> = plan.steps.iter().map(|s| s.id.as_str()).collect();
            Rejection::invalid("step_id", "there is no such step in this procedure")
                .with("valid", valid)
        })?;
        let offered = Offered {
            step_id: &query.step_id,
            value: &query.value,
            unit: query.unit.as_deref(),
            at: self.parts.clock.now(),
        };
        let frame = self.frame(Some(policy.as_ref()), meta);
        let (accepted, blocks) = match policy.judge(&workflow, &offered) {
            Judgement::Accept(accepted) => (accepted, false),
            Judgement::Block(accepted, _) => (accepted, true),
            Judgement::Decline => {
                let saying: Saying = Ask::Declined.into();
                return Ok(frame.reply(Outcome::Verdict, &[saying], Map::new()));
            }
            Judgement::Reject(refusal) => return Err(refusal.into()),
        };
        Ok(verdict(&frame, &accepted, blocks, described.sensitive))
    }
}

fn verdict(frame: &Frame<'_>, accepted: &Accepted, blocks: bool, sensitive: bool) -> Reply {
    let value = (!sensitive).then(|| frame.words.text(&accepted.spoken).to_owned());
    let saying = if accepted.out_of_range || blocks {
        Done::WouldBeOutside { value, blocks }
    } else {
        Done::WouldRecord { value }
    };
    let mut sayings: Vec<Saying> = vec![saying.into()];
    sayings.extend(accepted.warnings.iter().cloned().map(Saying::Policy));
    let warnings: Vec<&str> = accepted.warnings.iter().map(|w| frame.words.text(w)).collect();
    let verdict = json!({
        "out_of_range": accepted.out_of_range,
        "blocks": blocks,
        "confirm": accepted.read_back.is_some(),
    });
    let mut parts = Map::from_iter([("verdict".to_owned(), verdict)]);
    if !warnings.is_empty() {
        parts.insert("warnings".to_owned(), Value::from(warnings));
    }
    frame.reply(Outcome::Verdict, &sayings, parts)
}
