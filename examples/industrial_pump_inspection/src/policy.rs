//! The policy: answers the core's questions from the table of `procedure`; values are judged in `judge`.
//!
//! This is all that a domain has to write. It is pure: no clock, no storage, no network, same input, same answer.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use thiserror::Error;
use wf_core::idempotency::{CanonicalError, canonical_bytes};
use wf_core::models::{
    AssetId, Digest, IdError, Locale, Reading, Recipient, ResultId, StepId, StepRecord, StepStatus,
    Workflow,
};
use wf_core::policy::{
    BlockRule, BlockSource, Choice, DecisionOption, Definition, DomainPolicyPort, Judgement,
    NeededAsset, NeededInput, Needs, Offered, Plan, PlannedAsset, PlannedStep, ResultOption,
    StartPlan, StartRefusal, StepDescription, UnitWords,
};

use crate::decimal::Decimal;
use crate::judge;
use crate::procedure::{self, Kind, Problem, Procedure, Step};

/// A table that cannot be a definition.
#[derive(Debug, Error)]
pub(crate) enum PolicyError {
    /// An id is malformed.
    #[error("the table has a malformed id")]
    Id(#[from] IdError),
    /// It cannot be written as JSON.
    #[error("the table cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// Its JSON has no canonical form.
    #[error("the table has no canonical form")]
    Canonical(#[from] CanonicalError),
}

/// The pump inspection.
#[derive(Debug)]
pub(crate) struct PumpInspection {
    definition: Definition,
    procedure: Procedure,
}

impl PumpInspection {
    /// Builds the policy and its definition.
    ///
    /// # Errors
    /// [`PolicyError`]: a mistake in `procedure`, never in what a caller says.
    pub(crate) fn new() -> Result<Self, PolicyError> {
        let procedure = procedure::table()?;
        let document = serde_json::to_value(&procedure)?;
        let definition = Definition {
            id: procedure.id.clone(),
            version: procedure.version,
            digest: Digest::of(&canonical_bytes(&document)?),
            document,
            title: procedure.title.into(),
        };
        Ok(Self { definition, procedure })
    }

    fn step(&self, id: &StepId) -> Option<&Step> {
        self.procedure.steps.iter().find(|step| &step.id == id)
    }

    fn needed_pump(&self) -> NeededAsset {
        let pump = &self.procedure.pump;
        NeededAsset {
            role: pump.role.clone(),
            say: pump.say.into(),
            example: Some(pump.example.to_owned()),
        }
    }

    fn needed_work_order(&self) -> NeededInput {
        let input = &self.procedure.work_order;
        NeededInput {
            name: input.name.to_owned(),
            kind: "string".to_owned(),
            required: true,
            say: input.say.into(),
            example: None,
        }
    }

    /// The digits of a pump's number without leading zeros: `PUMP-0204`, `pump 204` and `Pump-204` are one pump.
    fn pump_number(&self, raw: &str) -> Option<String> {
        let letters = |text: &str| -> String {
            let kept = text.chars().filter(|c| *c != '-' && !c.is_whitespace());
            kept.map(|c| c.to_ascii_uppercase()).collect()
        };
        let said = letters(raw);
        let digits = said.strip_prefix(&letters(self.procedure.pump.prefix))?;
        let plausible = !digits.is_empty()
            && digits.len() <= self.procedure.pump.digits_max
            && digits.bytes().all(|b| b.is_ascii_digit());
        let significant = digits.trim_start_matches('0');
        (plausible && !significant.is_empty()).then(|| significant.to_owned())
    }

    fn pump(&self, assets: &BTreeMap<String, String>) -> Result<PlannedAsset, StartRefusal> {
        let pump = &self.procedure.pump;
        let invalid = |field: &str, rule: String, say: String| StartRefusal::Invalid {
            field: format!("assets.{field}"),
            rule,
            say: say.into(),
        };
        if let Some(role) = assets.keys().find(|role| *role != pump.role.as_str()) {
            let rule = format!("the only role is {}", pump.role);
            return Err(invalid(role, rule, "This inspection needs only a pump.".to_owned()));
        }
        let Some(raw) = assets.get(pump.role.as_str()) else {
            return Err(StartRefusal::Missing { asset: Some(self.needed_pump()), input: None });
        };
        let number = self.pump_number(raw);
        let id = number.as_ref().and_then(|n| AssetId::parse(&format!("{}{n}", pump.prefix)).ok());
        match (number, id) {
            (Some(number), Some(id)) => Ok(PlannedAsset {
                role: pump.role.clone(),
                id,
                say: format!("{} {number}", pump.say).into(),
            }),
            (_, _) => Err(invalid(
                pump.role.as_str(),
                format!("a number after {}, for example {}", pump.prefix, pump.example),
                format!("I do not know that pump. A pump is for example {}.", pump.example),
            )),
        }
    }

    fn inputs(&self, inputs: &Map<String, Value>) -> Result<Map<String, Value>, StartRefusal> {
        let wanted = &self.procedure.work_order;
        let invalid = |name: &str, rule: String| StartRefusal::Invalid {
            field: format!("inputs.{name}"),
            rule,
            say: "Please say the work order again.".into(),
        };
        if let Some(name) = inputs.keys().find(|name| *name != wanted.name) {
            return Err(invalid(name, format!("the only input is {}", wanted.name)));
        }
        let Some(value) = inputs.get(wanted.name) else {
            let input = Some(self.needed_work_order());
            return Err(StartRefusal::Missing { asset: None, input });
        };
        let fits = |text: &str| !text.is_empty() && text.chars().count() <= wanted.chars_max;
        if value.as_str().is_some_and(fits) {
            return Ok(inputs.clone());
        }
        Err(invalid(wanted.name, format!("a string of 1 to {} characters", wanted.chars_max)))
    }

    fn applies(&self, step: &Step, workflow: &Workflow) -> bool {
        let Some(condition) = &step.only_if else { return true };
        let reading = workflow.reading(&condition.step);
        let value = reading.and_then(|r| Decimal::parse(&r.value, usize::MAX));
        value.is_some_and(|value| value > condition.bound)
    }
}

impl DomainPolicyPort for PumpInspection {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn needs(&self) -> Needs {
        Needs { assets: vec![self.needed_pump()], inputs: vec![self.needed_work_order()] }
    }

    fn plan_start(
        &self,
        assets: &BTreeMap<String, String>,
        inputs: &Map<String, Value>,
    ) -> Result<StartPlan, StartRefusal> {
        let pump = self.pump(assets)?;
        let inputs = self.inputs(inputs)?;
        let label = format!("{} of {}", self.procedure.title, pump.say.get(&Locale::default()));
        Ok(StartPlan {
            label: label.into(),
            assets: vec![pump],
            inputs,
            sensitive_inputs: Map::new(),
            deadlines: Vec::new(),
        })
    }

    fn canonical_asset(&self, raw: &str) -> Option<AssetId> {
        let number = self.pump_number(raw)?;
        AssetId::parse(&format!("{}{number}", self.procedure.pump.prefix)).ok()
    }

    fn plan(&self, workflow: &Workflow) -> Plan {
        let mut earlier_settled = true;
        let steps = self
            .procedure
            .steps
            .iter()
            .map(|step| {
                let applies = self.applies(step, workflow);
                let settled = workflow.steps.get(&step.id).is_some_and(StepRecord::is_settled);
                let open = applies && !settled && earlier_settled;
                earlier_settled &= settled || !applies;
                PlannedStep {
                    id: step.id.clone(),
                    applies,
                    broken: None,
                    required: step.required,
                    settled,
                    open,
                    wait_ms: None,
                }
            })
            .collect();
        Plan { steps }
    }

    fn describe(&self, _workflow: &Workflow, id: &StepId) -> Option<StepDescription> {
        let position = self.procedure.steps.iter().position(|step| &step.id == id)?;
        let step = self.procedure.steps.get(position)?;
        let measure = match &step.kind {
            Kind::Number(measure) => Some(measure),
            Kind::Confirm | Kind::Choice { .. } | Kind::Text { .. } => None,
        };
        Some(StepDescription {
            id: step.id.clone(),
            position: position + 1,
            of: self.procedure.steps.len(),
            say: step.id.as_str().replace('_', " ").into(),
            prompt: step.prompt.into(),
            kind: kind_name(&step.kind).to_owned(),
            unit: measure.map(|m| UnitWords {
                symbol: m.unit.symbol.to_owned(),
                one: m.unit.one.into(),
                many: m.unit.many.into(),
            }),
            decimals: measure.map(|m| m.decimals),
            min: measure.map(|m| m.accept.min.to_string()),
            max: measure.map(|m| m.accept.max.to_string()),
            choices: choices(&step.kind),
            wait_seconds: None,
            due_at: None,
            skip: step.skip,
            required: step.required,
            sensitive: false,
            role: None,
            signs: false,
            not_performer: false,
        })
    }

    fn judge(&self, _workflow: &Workflow, offered: &Offered<'_>) -> Judgement {
        match self.step(offered.step_id) {
            Some(step) => judge::judge(step, offered),
            None => judge::unknown_step(),
        }
    }

    fn same_value(&self, _step: &StepId, one: &Reading, other: &Reading) -> bool {
        one.value == other.value && one.exact == other.exact
    }

    fn dependants(&self, step: &StepId) -> Vec<StepId> {
        let uses = |s: &&Step| s.only_if.as_ref().is_some_and(|condition| &condition.step == step);
        self.procedure.steps.iter().filter(uses).map(|s| s.id.clone()).collect()
    }

    fn reasons(&self) -> Vec<Choice> {
        let reasons = self.procedure.reasons.iter();
        reasons.map(|r| Choice { id: r.id.to_string(), say: r.say.into() }).collect()
    }

    fn block_rule(&self, source: BlockSource<'_>) -> BlockRule {
        let own = source.step_id.and_then(|id| self.step(id)).and_then(|s| s.problem.as_ref());
        let value = own.filter(|_| !source.reported);
        block_rule(value.unwrap_or(&self.procedure.reported))
    }

    fn results(&self, workflow: &Workflow) -> Vec<ResultOption> {
        let is_outside = |record: &StepRecord| match record.status {
            StepStatus::Recorded | StepStatus::Recheck => record.out_of_range,
            StepStatus::Reopened | StepStatus::Skipped => false,
        };
        let outside = workflow.steps.values().any(is_outside);
        let ending = |e: &procedure::Ending| ResultOption {
            id: e.id.clone(),
            say: e.say.into(),
            available: !(e.needs_all_inside && outside),
        };
        let abandoned =
            ResultOption { id: ResultId::abandoned(), say: "abandoned".into(), available: true };
        self.procedure.results.iter().map(ending).chain([abandoned]).collect()
    }

    fn notifies(&self, event_kind: &str) -> bool {
        self.procedure.notify.contains(&event_kind)
    }

    fn stale_after_ms(&self) -> Option<i64> {
        Some(self.procedure.stale_after_ms)
    }

    fn timezone(&self) -> Option<&str> {
        None
    }

    fn spoken(&self, step: &StepId, reading: &Reading, _locale: &Locale) -> String {
        self.step(step).map_or_else(String::new, |step| judge::spoken(step, &reading.value))
    }
}

fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Confirm => "confirm",
        Kind::Number(_) => "number",
        Kind::Choice { .. } => "choice",
        Kind::Text { .. } => "text",
    }
}

fn choices(kind: &Kind) -> Vec<Choice> {
    match kind {
        Kind::Choice { choices, .. } => {
            choices.iter().map(|c| Choice { id: c.id.to_owned(), say: c.say.into() }).collect()
        }
        Kind::Confirm | Kind::Number(_) | Kind::Text { .. } => Vec::new(),
    }
}

fn block_rule(problem: &Problem) -> BlockRule {
    let decisions = problem.decisions.iter().map(|d| DecisionOption {
        id: d.id.clone(),
        say: d.say.into(),
        effect: d.effect,
    });
    BlockRule {
        code: problem.code.clone(),
        question: problem.question.into(),
        decisions: decisions.collect(),
        escalation: vec![Recipient::last(problem.escalate_to)],
        severity: problem.severity,
    }
}

#[cfg(test)]
mod tests;
