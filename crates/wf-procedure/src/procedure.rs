//! [`Procedure`]: a definition and its meaning, as the core asks for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use wf_core::idempotency::canonical_bytes;
use wf_core::models::{AssetId, Digest, Locale, ProcedureId, Reading, StepId, Text, Workflow};
use wf_core::policy::{
    BlockRule, BlockSource, Choice, Definition, DomainPolicyPort, Judgement, Needs, Offered, Plan,
    PolicyCompilerPort, ResultOption, StartPlan, StartRefusal, StepDescription,
};

use crate::format::{self, Document};
use crate::problem::{Position, Problem, Problems};
use crate::range::Span;
use crate::rules::{Block, NumberRule, Rules, StepKind, StepRule};
use crate::standing::Standing;
use crate::tree::{Node, yaml};
use crate::{compile, judge, speech, start, words};

/// A procedure that was read and checked.
#[derive(Debug)]
pub struct Procedure {
    definition: Definition,
    rules: Rules,
    /// Where its id stands, for problems that only show beside other files.
    id_at: Position,
}

/// Reads and checks one procedure, written as YAML or JSON.
///
/// `name` is how messages call the file.
///
/// # Errors
/// Everything that is wrong with it, in the order of the file, each with its place and what to write instead. When the
/// text is no YAML, or a part has the wrong shape, the meaning of the rest is not looked at.
pub fn parse(source: &str, name: &str) -> Result<Procedure, Vec<Problem>> {
    let mut problems = Problems::of(name);
    let procedure = yaml::read(source, &mut problems).and_then(|tree| build(&tree, &mut problems));
    match procedure {
        Some(procedure) if problems.is_empty() => Ok(procedure),
        Some(_) | None => Err(problems.into_list()),
    }
}

fn build(tree: &Node, problems: &mut Problems) -> Option<Procedure> {
    let document = format::read::document(tree, problems)?;
    if !problems.is_empty() {
        return None;
    }
    let rules = compile::compile(&document, problems)?;
    let definition = define(tree, &document, problems)?;
    Some(Procedure { definition, rules, id_at: document.id.at })
}

/// The definition with its digest: SHA-256 of the RFC 8785 form of the document as written.
fn define(tree: &Node, document: &Document, problems: &mut Problems) -> Option<Definition> {
    let json = tree.to_json();
    let bytes = match canonical_bytes(&json) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("the document has no canonical form: {error}");
            problems.add(tree.at, message, "write that part in another way, or leave it out");
            return None;
        }
    };
    Some(Definition {
        id: ProcedureId::parse(&document.id.value.0).ok()?,
        version: document.version.value,
        digest: Digest::of(&bytes),
        document: json,
        title: document.title.value.0.clone(),
    })
}

impl Procedure {
    /// What it says, for programs that check and compare.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// A problem at the place of its id.
    pub(crate) fn problem_at_id(&self, file: &str, message: String, hint: String) -> Problem {
        Problem {
            file: file.to_owned(),
            line: self.id_at.line,
            column: self.id_at.column,
            message,
            hint,
        }
    }

    fn block_of<'a>(&'a self, step: Option<&'a StepRule>, reported: bool) -> &'a Block {
        let of_step = step.filter(|_| !reported).and_then(|step| match &step.kind {
            StepKind::Number(number) => number.block.as_ref(),
            StepKind::Confirm
            | StepKind::Choice(_)
            | StepKind::Text { .. }
            | StepKind::Wait { .. }
            | StepKind::Sign { .. } => None,
        });
        of_step.unwrap_or(&self.rules.blocks)
    }
}

/// The question of a block that the file does not word.
fn question(step: Option<&StepRule>, reported: bool) -> Text {
    match (step, reported) {
        (None, _) => Text::from("A problem was reported. What is decided?"),
        (Some(step), true) => words::map(&step.say, |w| {
            format!("A problem was reported with the {w}. What is decided?")
        }),
        (Some(step), false) => {
            let state = match &step.kind {
                StepKind::Number(_) => "out of range",
                StepKind::Confirm
                | StepKind::Choice(_)
                | StepKind::Text { .. }
                | StepKind::Wait { .. }
                | StepKind::Sign { .. } => "not as it should be",
            };
            words::map(&step.say, |w| {
                format!("{} is {state}. What is decided?", words::sentence(w))
            })
        }
    }
}

impl DomainPolicyPort for Procedure {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn needs(&self) -> Needs {
        start::needs(&self.rules)
    }

    fn plan_start(
        &self,
        assets: &BTreeMap<String, String>,
        inputs: &Map<String, Value>,
    ) -> Result<StartPlan, StartRefusal> {
        start::plan(&self.rules, assets, inputs)
    }

    fn canonical_asset(&self, raw: &str) -> Option<AssetId> {
        self.rules
            .assets
            .iter()
            .find_map(|asset| asset.id.canonical(raw, &asset.say))
            .map(|named| named.id)
    }

    fn plan(&self, workflow: &Workflow) -> Plan {
        Standing::of(&self.rules, workflow).plan(&self.rules, workflow)
    }

    fn describe(&self, workflow: &Workflow, step: &StepId) -> Option<StepDescription> {
        let (index, step) = self.rules.step(step)?;
        let mut description = StepDescription {
            id: step.id.clone(),
            position: index + 1,
            of: self.rules.steps.len(),
            say: step.say.clone(),
            prompt: step.prompt.clone(),
            kind: step.kind.name().to_owned(),
            unit: None,
            decimals: None,
            min: None,
            max: None,
            choices: Vec::new(),
            wait_seconds: None,
            due_at: None,
            skip: step.skip,
            required: step.required,
            sensitive: step.sensitive,
            role: step.role.clone(),
            signs: false,
            not_performer: false,
        };
        match &step.kind {
            StepKind::Number(number) => {
                describe_number(&self.rules, number, workflow, &mut description);
            }
            StepKind::Choice(choice) => description.choices.clone_from(&choice.choices),
            StepKind::Wait { duration_ms } => {
                description.wait_seconds = u64::try_from(duration_ms / 1_000).ok();
                description.due_at = workflow.waits.get(&step.id).map(|wait| wait.until);
            }
            StepKind::Sign { not_performer } => {
                description.signs = true;
                description.not_performer = *not_performer;
            }
            StepKind::Confirm | StepKind::Text { .. } => {}
        }
        Some(description)
    }

    fn judge(&self, workflow: &Workflow, offered: &Offered<'_>) -> Judgement {
        match judge::judge(&self.rules, workflow, offered) {
            // A choice has no block of its own: the procedure's default says how bad it is and who is told.
            Judgement::Block(accepted, mut cause) => {
                let step = self.rules.step(offered.step_id).map(|(_, step)| step);
                let block = self.block_of(step, false);
                cause.severity = block.severity;
                cause.escalation.clone_from(&block.escalation);
                Judgement::Block(accepted, cause)
            }
            other @ (Judgement::Accept(_) | Judgement::Decline | Judgement::Reject(_)) => other,
        }
    }

    fn same_value(&self, step: &StepId, one: &Reading, other: &Reading) -> bool {
        self.rules.step(step).is_some_and(|(_, step)| judge::same(step, one, other))
    }

    fn dependants(&self, step: &StepId) -> Vec<StepId> {
        let Some((index, _)) = self.rules.step(step) else {
            return Vec::new();
        };
        self.rules.steps.iter().filter(|s| s.uses.contains(&index)).map(|s| s.id.clone()).collect()
    }

    fn reasons(&self) -> Vec<Choice> {
        self.rules.reasons.clone()
    }

    fn block_rule(&self, source: BlockSource<'_>) -> BlockRule {
        let step = source.step_id.and_then(|id| self.rules.step(id)).map(|(_, step)| step);
        let block = self.block_of(step, source.reported);
        BlockRule {
            code: block.code.clone(),
            question: block.question.clone().unwrap_or_else(|| question(step, source.reported)),
            decisions: block.decisions.clone(),
            escalation: block.escalation.clone(),
            severity: block.severity,
        }
    }

    fn results(&self, workflow: &Workflow) -> Vec<ResultOption> {
        let standing = Standing::of(&self.rules, workflow);
        self.rules
            .results
            .iter()
            .map(|result| ResultOption {
                id: result.id.clone(),
                say: result.say.clone(),
                available: result
                    .when
                    .as_ref()
                    .is_none_or(|when| when.holds(&standing.facts) == Ok(true)),
            })
            .collect()
    }

    fn notifies(&self, event_kind: &str) -> bool {
        self.rules.notify.contains(event_kind)
    }

    fn stale_after_ms(&self) -> Option<i64> {
        self.rules.stale_after_ms
    }

    fn timezone(&self) -> Option<&str> {
        self.rules.timezone.as_deref()
    }

    fn spoken(&self, step: &StepId, reading: &Reading, locale: &Locale) -> String {
        match self.rules.step(step) {
            Some((_, step)) => speech::reading(step, reading).get(locale).to_owned(),
            None => String::new(),
        }
    }
}

fn describe_number(
    rules: &Rules,
    number: &NumberRule,
    workflow: &Workflow,
    description: &mut StepDescription,
) {
    description.unit = number.unit.as_ref().map(|u| u.words.clone());
    description.decimals = number.decimals;
    if let Some(accept) = &number.accept {
        let standing = Standing::of(rules, workflow);
        if let Ok(span) = Span::of(accept, &standing.facts, number.decimals) {
            description.min = Some(span.low_shown);
            description.max = Some(span.high_shown);
        }
    }
}

/// Compiles stored definition documents.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compiler;

impl PolicyCompilerPort for Compiler {
    fn compile(&self, definition: &Definition) -> Option<Arc<dyn DomainPolicyPort>> {
        let mut problems = Problems::of("");
        let procedure = build(&Node::from_json(&definition.document), &mut problems)?;
        // A document that does not have the digest it is stored under is not the one that was accepted.
        (procedure.definition.digest == definition.digest)
            .then(|| Arc::new(procedure) as Arc<dyn DomainPolicyPort>)
    }
}
