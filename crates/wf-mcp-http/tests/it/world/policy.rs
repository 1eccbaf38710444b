//! A procedure without any domain: two steps that take text, and any inputs, of which `hush` is sensitive. `outside` blocks, `twice` is read back first.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use wf_core::errors::ErrorCode;
use wf_core::models::{
    AssetId, AssetRole, DecisionId, Digest, Locale, ProcedureId, Reading, ReasonCode, Recipient,
    ResultId, Severity, StepId, StepStatus, Text, Workflow,
};
use wf_core::policy::{
    Accepted, BlockCause, BlockRule, BlockSource, Choice, DecisionOption, Definition,
    DomainPolicyPort, Effect, Judgement, NeededAsset, Needs, Offered, Plan, PlannedAsset,
    PlannedStep, Refusal, ResultOption, SkipRule, StartPlan, StartRefusal, StepDescription,
};

static STEPS: LazyLock<[StepId; 2]> =
    LazyLock::new(|| ["step-1", "step-2"].map(|id| StepId::parse(id).expect("an id")));

#[derive(Debug)]
pub(crate) struct TwoSteps(Definition);

impl TwoSteps {
    pub(crate) fn new() -> Self {
        let document = json!({"id": "routine-one", "version": 1});
        Self(Definition {
            id: ProcedureId::parse("routine-one").expect("an id"),
            version: 1,
            digest: Digest::of(document.to_string().as_bytes()),
            document,
            title: "Routine one".into(),
        })
    }

    fn needed() -> NeededAsset {
        NeededAsset {
            role: AssetRole::parse("main").expect("a role"),
            say: "the asset".into(),
            example: Some("ASSET-A".to_owned()),
        }
    }
}

fn choice(id: &str, say: &str) -> Choice {
    Choice { id: id.to_owned(), say: say.into() }
}

impl DomainPolicyPort for TwoSteps {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn needs(&self) -> Needs {
        Needs { assets: vec![Self::needed()], inputs: Vec::new() }
    }

    fn plan_start(
        &self,
        assets: &BTreeMap<String, String>,
        inputs: &Map<String, Value>,
    ) -> Result<StartPlan, StartRefusal> {
        let Some(raw) = assets.get("main") else {
            return Err(StartRefusal::Missing { asset: Some(Self::needed()), input: None });
        };
        let id = self.canonical_asset(raw).ok_or_else(|| StartRefusal::Invalid {
            field: "assets.main".to_owned(),
            rule: "must be an asset id".to_owned(),
            say: "I do not know that asset.".into(),
        })?;
        let (sensitive_inputs, inputs) =
            inputs.clone().into_iter().partition(|(name, _)| name == "hush");
        Ok(StartPlan {
            label: Text::from(format!("Routine one on {id}")),
            assets: vec![PlannedAsset {
                role: Self::needed().role,
                say: Text::from(id.to_string()),
                id,
            }],
            inputs,
            sensitive_inputs,
            deadlines: Vec::new(),
        })
    }

    fn canonical_asset(&self, raw: &str) -> Option<AssetId> {
        assert_ne!(raw, "breaks", "a planted bug");
        AssetId::parse(&raw.to_ascii_uppercase()).ok()
    }

    fn plan(&self, workflow: &Workflow) -> Plan {
        let mut open = true;
        let steps = STEPS.iter().map(|id| {
            let status = workflow.steps.get(id).map(|record| record.status);
            let settled = matches!(status, Some(StepStatus::Recorded | StepStatus::Skipped));
            let step = PlannedStep {
                id: id.clone(),
                applies: true,
                broken: None,
                required: true,
                settled,
                open: open && !settled,
                wait_ms: None,
            };
            open &= settled;
            step
        });
        Plan { steps: steps.collect() }
    }

    fn describe(&self, _: &Workflow, step: &StepId) -> Option<StepDescription> {
        let at = STEPS.iter().position(|id| id == step)?;
        Some(StepDescription {
            id: step.clone(),
            position: at + 1,
            of: STEPS.len(),
            say: Text::from(format!("step {}", at + 1)),
            prompt: Text::from(format!("What is the value of step {}?", at + 1)),
            kind: "text".to_owned(),
            unit: None,
            decimals: None,
            min: None,
            max: None,
            choices: Vec::new(),
            wait_seconds: None,
            due_at: None,
            skip: SkipRule::Reason,
            required: true,
            sensitive: false,
            role: None,
            signs: false,
            not_performer: false,
        })
    }

    fn judge(&self, _: &Workflow, offered: &Offered<'_>) -> Judgement {
        if offered.value.is_empty() {
            return Judgement::Reject(Refusal {
                code: ErrorCode::ValidationError,
                message: "value: is required".to_owned(),
                say: "I did not get a value.".into(),
                details: Map::new(),
                after_ms: None,
            });
        }
        let accepted = Accepted {
            reading: Reading {
                given: offered.value.to_owned(),
                value: offered.value.to_owned(),
                ..Reading::default()
            },
            out_of_range: offered.value == "outside",
            deviation: None,
            warnings: Vec::new(),
            read_back: (offered.value == "twice").then(|| "Did you say twice?".into()),
            spoken: offered.value.into(),
        };
        if offered.value == "outside" {
            let cause = BlockCause {
                code: ReasonCode::parse("OUTSIDE").expect("a code"),
                severity: Severity::Low,
                escalation: Vec::new(),
            };
            return Judgement::Block(accepted, cause);
        }
        Judgement::Accept(accepted)
    }

    fn same_value(&self, _: &StepId, one: &Reading, other: &Reading) -> bool {
        one.value == other.value
    }

    fn dependants(&self, _: &StepId) -> Vec<StepId> {
        Vec::new()
    }

    fn reasons(&self) -> Vec<Choice> {
        vec![choice("REASON_ONE", "reason one")]
    }

    fn block_rule(&self, _: BlockSource<'_>) -> BlockRule {
        let option = |id: &str, effect| DecisionOption {
            id: DecisionId::parse(id).expect("a decision"),
            say: id.into(),
            effect,
        };
        BlockRule {
            code: ReasonCode::parse("REPORTED").expect("a code"),
            question: "How shall it go on?".into(),
            decisions: vec![option("continue", Effect::Continue), option("redo", Effect::Redo)],
            escalation: vec![
                Recipient { to: "duty".to_owned(), respond_within_ms: Some(900_000) },
                Recipient::last("chief"),
            ],
            severity: Severity::Low,
        }
    }

    fn results(&self, workflow: &Workflow) -> Vec<ResultOption> {
        let done = self.plan(workflow).unsettled().next().is_none();
        vec![
            ResultOption {
                id: ResultId::parse("good").expect("a result"),
                say: "good".into(),
                available: done,
            },
            ResultOption { id: ResultId::abandoned(), say: "abandoned".into(), available: true },
        ]
    }

    fn notifies(&self, _: &str) -> bool {
        false
    }

    fn stale_after_ms(&self) -> Option<i64> {
        None
    }

    fn timezone(&self) -> Option<&str> {
        None
    }

    fn spoken(&self, _: &StepId, reading: &Reading, _: &Locale) -> String {
        reading.value.clone()
    }
}
