//! What a procedure says, in a form for programs and for `wf-cli procedure show`.

use serde::Serialize;
use wf_core::models::{Recipient, StartDeadline, Text};
use wf_core::policy::{Choice, DomainPolicyPort, SkipRule};

use crate::format::{Confirm, Order};
use crate::procedure::Procedure;
use crate::rules::{Bound, Bounds, NumberRule, StepKind, StepRule};
use crate::units::StepUnit;

/// A procedure at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: u32,
    /// SHA-256 of the RFC 8785 form of the document as written.
    pub digest: String,
    /// What people call it.
    pub title: Text,
    /// `sequence` or `any`.
    pub order: &'static str,
    /// Roles of its assets.
    pub assets: Vec<String>,
    /// Names of its inputs; optional ones end with `?`.
    pub inputs: Vec<String>,
    /// Its steps.
    pub steps: Vec<StepSummary>,
    /// Reasons for skips and corrections.
    pub reasons: Vec<Choice>,
    /// Ways to finish.
    pub results: Vec<Choice>,
    /// Time limits on the whole workflow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deadlines: Vec<StartDeadline>,
    /// Who is told of reported problems, one after another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub escalation: Vec<Recipient>,
    /// Milliseconds after which a silent holder may be relieved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_after_ms: Option<i64>,
    /// Kinds of events that are told to whoever subscribed.
    pub notify: Vec<String>,
}

/// A step at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepSummary {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: &'static str,
    /// The question.
    pub prompt: Text,
    /// The workflow cannot pass without it.
    pub required: bool,
    /// When it may be skipped.
    pub skip: SkipRule,
    /// Only somebody with this role may do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its values are never shown.
    pub sensitive: bool,
    /// `never`, `out_of_range` or `always`.
    pub confirm: &'static str,
    /// Its condition, as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Steps that its condition or bounds look at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<String>,
    /// Units an answer may come in, the step's own first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<String>,
    /// How many decimals a value may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decimals: Option<u32>,
    /// Outside is impossible: two decimals or expressions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instrument: Option<[String; 2]>,
    /// Outside is out of range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accept: Option<[String; 2]>,
    /// Outside is warned of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn: Option<[String; 2]>,
    /// What may be chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// Choices that block.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub block_on: Vec<String>,
    /// Who is told of a value that blocks, one after another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub escalation: Vec<Recipient>,
    /// How long a wait takes, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<i64>,
    /// It is for a second person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub not_performer: bool,
}

impl Procedure {
    /// What the procedure says, at a glance.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let rules = self.rules();
        let definition = self.definition();
        Summary {
            id: definition.id.to_string(),
            version: definition.version,
            digest: definition.digest.to_string(),
            title: definition.title.clone(),
            order: match rules.order {
                Order::Sequence => "sequence",
                Order::Any => "any",
            },
            assets: rules.assets.iter().map(|a| a.role.to_string()).collect(),
            inputs: rules
                .inputs
                .iter()
                .flat_map(|i| &i.inputs)
                .map(|i| {
                    let mark = if i.needed.required { "" } else { "?" };
                    format!("{}{mark}", i.needed.name)
                })
                .collect(),
            steps: rules.steps.iter().map(|s| step(&rules.steps, s)).collect(),
            reasons: rules.reasons.clone(),
            results: rules
                .results
                .iter()
                .map(|r| Choice { id: r.id.to_string(), say: r.say.clone() })
                .collect(),
            deadlines: rules.deadlines.clone(),
            escalation: rules.blocks.escalation.clone(),
            stale_after_ms: rules.stale_after_ms,
            notify: rules.notify.iter().cloned().collect(),
        }
    }
}

fn step(all: &[StepRule], step: &StepRule) -> StepSummary {
    let mut summary = StepSummary {
        id: step.id.to_string(),
        kind: step.kind.name(),
        prompt: step.prompt.clone(),
        required: step.required,
        skip: step.skip,
        role: step.role.clone(),
        sensitive: step.sensitive,
        confirm: match step.confirm {
            Confirm::Never => "never",
            Confirm::OutOfRange => "out_of_range",
            Confirm::Always => "always",
        },
        when: step.when.as_ref().map(|w| w.source.clone()),
        uses: step.uses.iter().filter_map(|i| all.get(*i).map(|s| s.id.to_string())).collect(),
        units: Vec::new(),
        decimals: None,
        instrument: None,
        accept: None,
        warn: None,
        choices: Vec::new(),
        block_on: Vec::new(),
        escalation: Vec::new(),
        wait_ms: None,
        not_performer: false,
    };
    match &step.kind {
        StepKind::Number(rule) => number(&mut summary, rule),
        StepKind::Choice(rule) => {
            summary.choices.clone_from(&rule.choices);
            summary.block_on = rule.block_on.keys().cloned().collect();
        }
        StepKind::Wait { duration_ms } => summary.wait_ms = Some(*duration_ms),
        StepKind::Sign { not_performer } => summary.not_performer = *not_performer,
        StepKind::Confirm | StepKind::Text { .. } => {}
    }
    summary
}

fn number(summary: &mut StepSummary, rule: &NumberRule) {
    summary.units = rule
        .unit
        .iter()
        .chain(&rule.other_units)
        .map(|u: &StepUnit| u.symbol().to_owned())
        .collect();
    summary.decimals = rule.decimals;
    summary.instrument = rule.instrument.as_ref().map(bounds);
    summary.accept = rule.accept.as_ref().map(bounds);
    summary.warn = rule.warn.as_ref().map(bounds);
    if let Some(block) = &rule.block {
        summary.escalation.clone_from(&block.escalation);
    }
}

fn bounds(bounds: &Bounds) -> [String; 2] {
    [&bounds.low, &bounds.high].map(|bound| match bound {
        Bound::Fixed { written, .. } => written.clone(),
        Bound::Computed(expression) => expression.source.clone(),
    })
}
