//! A small neutral procedure for tests, written as a `DomainPolicyPort`: every rule of the core has a step that meets it.
//!
//! `ready` (confirm) · `amount` (number: instrument 0..100, accepted 10..60, warned outside 20..50; outside blocks, read
//! back first) · `share` (number, only when the amount is above 30, accepted up to the amount; outside is recorded and
//! does not block) · `shape` (choice; one blocks) · `remark` (optional text) · `whisper` (sensitive text). An amount of
//! exactly 33 makes the condition of `share` impossible to evaluate. The tests of the engine include this file.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wf_core::errors::ErrorCode;
use wf_core::models::{
    AssetId, AssetRole, DecisionId, Digest, Locale, ProcedureId, Reading, ReasonCode, Recipient,
    ResultId, Severity, StartDeadline, StepId, StepStatus, Text, Workflow,
};
use wf_core::policy::{
    Accepted, BlockCause, BlockRule, BlockSource, Choice, DecisionOption, Definition,
    DomainPolicyPort, Effect, Judgement, NeededAsset, NeededInput, Needs, Offered, Plan,
    PlannedAsset, PlannedStep, Refusal, ResultOption, SkipRule, StartPlan, StartRefusal,
    StepDescription, UnitWords,
};

/// The steps, in order.
pub(crate) const STEPS: [&str; 6] = ["ready", "amount", "share", "shape", "remark", "whisper"];

/// The reason that a block of an amount outside the accepted range has.
const AMOUNT_OUTSIDE: &str = "AMOUNT_OUTSIDE";

/// Reads an identifier that the test names.
#[expect(clippy::expect_used, reason = "an identifier of a test that does not parse is its bug")]
pub(crate) fn id<T: std::str::FromStr<Err = wf_core::models::IdError>>(text: &str) -> T {
    text.parse().expect("an identifier of a test")
}

/// The procedure. Its digest follows its settings.
#[derive(Debug, Clone)]
pub(crate) struct PlainPolicy {
    definition: Definition,
    /// It needs assets.
    assets: bool,
    /// So many further optional steps use the amount.
    wide: usize,
    /// Every event is told to the subscribers.
    noisy: bool,
    /// Steps may be taken in any order.
    loose: bool,
    /// Only somebody with the role `checker` may do `remark`.
    checked: bool,
    /// At the end `rest` waits, and `approve` is signed by a second person.
    paired: bool,
    /// Blocks are escalated from one to the next.
    timed: bool,
    /// What a start sets.
    deadlines: Vec<StartDeadline>,
}

/// A minute, in milliseconds.
pub(crate) const MINUTE_MS: i64 = 60_000;

fn deadlines() -> Vec<StartDeadline> {
    let deadline = |id: &str, hours: i64| StartDeadline {
        id: id.to_owned(),
        after_ms: hours * 60 * MINUTE_MS,
        notify: "shift-lead".to_owned(),
    };
    vec![deadline("overdue", 4), deadline("late", 6)]
}

/// Who is told of a block of the procedure `timed`.
pub(crate) fn chain() -> Vec<Recipient> {
    let told = |to: &str, minutes: i64| Recipient {
        to: to.to_owned(),
        respond_within_ms: Some(minutes * MINUTE_MS),
    };
    vec![told("duty", 15), told("chief", 30), Recipient::last("boss")]
}

/// How long `rest` waits, in milliseconds.
pub(crate) const REST_MS: i64 = 10 * 60 * 1_000;

/// After how long a silent holder of `paired` may be relieved, in milliseconds.
pub(crate) const STALE_MS: i64 = 8 * 60 * 60 * 1_000;

impl PlainPolicy {
    /// The procedure `plain`, version 1.
    pub(crate) fn new() -> Self {
        Self::of("plain", 1, true, 0, false)
    }

    /// The same with steps in any order.
    pub(crate) fn loose() -> Self {
        Self { loose: true, ..Self::of("loose", 1, true, 0, false) }
    }

    /// The procedure `checked`: `remark` is for the role `checker`; in any order, so that it is open at once.
    pub(crate) fn checked() -> Self {
        Self { checked: true, loose: true, ..Self::of("checked", 1, true, 0, false) }
    }

    /// The procedure `timed`: `overdue` after four hours, `late` after six, and blocks that are escalated.
    pub(crate) fn timed() -> Self {
        Self::timed_with(deadlines())
    }

    /// The same with other deadlines.
    pub(crate) fn timed_with(deadlines: Vec<StartDeadline>) -> Self {
        Self { timed: true, deadlines, ..Self::of("timed", 1, true, 0, false) }
    }

    /// The procedure `paired`: after the other steps `rest` waits ten minutes, then `approve` is signed by a second person
    /// with the role `checker`. Whoever is silent for eight hours may be relieved.
    pub(crate) fn paired() -> Self {
        Self { paired: true, ..Self::of("paired", 1, true, 0, false) }
    }

    /// Another version of the same, with a step more.
    pub(crate) fn version(version: u32) -> Self {
        Self::of("plain", version, true, 1, false)
    }

    /// The procedure `bare`, which needs no asset.
    pub(crate) fn bare() -> Self {
        Self::of("bare", 1, false, 0, false)
    }

    /// The procedure `wide`: `wide` more steps use the amount, and every event is told.
    pub(crate) fn wide(wide: usize) -> Self {
        Self::of("wide", 1, true, wide, true)
    }

    /// Reads the document of a definition back.
    pub(crate) fn compiled(definition: &Definition) -> Option<Self> {
        let document = &definition.document;
        let wide = usize::try_from(document.get("wide")?.as_u64()?).ok()?;
        Some(Self {
            definition: definition.clone(),
            assets: document.get("assets")?.as_bool()?,
            wide,
            noisy: document.get("noisy")?.as_bool()?,
            loose: false,
            paired: definition.id.as_str() == "paired",
            checked: false,
            timed: definition.id.as_str() == "timed",
            deadlines: if definition.id.as_str() == "timed" { deadlines() } else { Vec::new() },
        })
    }

    fn of(name: &str, version: u32, assets: bool, wide: usize, noisy: bool) -> Self {
        let document =
            json!({"id": name, "version": version, "assets": assets, "wide": wide, "noisy": noisy});
        let canonical = wf_core::idempotency::canonical_bytes(&document).unwrap_or_default();
        let definition = Definition {
            id: id::<ProcedureId>(name),
            version,
            digest: Digest::of(&canonical),
            document,
            title: Text::from(format!("{name} work")),
        };
        Self {
            definition,
            assets,
            wide,
            noisy,
            loose: false,
            paired: false,
            checked: false,
            timed: false,
            deadlines: Vec::new(),
        }
    }

    /// A block with everybody who is told of it.
    fn escalated(&self, judgement: Judgement) -> Judgement {
        let Judgement::Block(accepted, cause) = judgement else { return judgement };
        let escalation = if self.timed { chain() } else { cause.escalation };
        Judgement::Block(accepted, BlockCause { escalation, ..cause })
    }

    fn step_ids(&self) -> Vec<StepId> {
        let more = (0..self.wide).map(|n| id(&format!("more-{n}")));
        let last = ["rest", "approve"].into_iter().filter(|_| self.paired);
        STEPS.into_iter().map(id).chain(more).chain(last.map(id)).collect()
    }

    fn applies(workflow: &Workflow, step: &StepId) -> Result<bool, ReasonCode> {
        if step.as_str() != "share" {
            return Ok(true);
        }
        match hundredths_of(workflow, "amount") {
            Some(3_300) => Err(id("CONDITION_UNCLEAR")),
            Some(amount) => Ok(amount > 3_000),
            None => Ok(false),
        }
    }

    fn required(step: &StepId) -> bool {
        step.as_str() != "remark" && !step.as_str().starts_with("more-")
    }

    fn skip_rule(step: &StepId) -> SkipRule {
        match step.as_str() {
            "ready" | "rest" | "approve" => SkipRule::Never,
            "amount" | "share" => SkipRule::Reason,
            "shape" => SkipRule::Supervisor,
            _ => SkipRule::Free,
        }
    }

    fn planned(workflow: &Workflow, step: StepId) -> PlannedStep {
        let (applies, broken) = match Self::applies(workflow, &step) {
            Ok(applies) => (applies, None),
            Err(code) => (true, Some(code)),
        };
        let settled = workflow.steps.get(&step).is_some_and(|s| match s.status {
            StepStatus::Recorded | StepStatus::Skipped => true,
            StepStatus::Reopened | StepStatus::Recheck => false,
        });
        let required = Self::required(&step);
        let wait_ms = (step.as_str() == "rest").then_some(REST_MS);
        PlannedStep { id: step, applies, broken, required, settled, open: false, wait_ms }
    }
}

/// The current value of a number step, in hundredths.
fn hundredths_of(workflow: &Workflow, step: &str) -> Option<i64> {
    hundredths(&workflow.reading(&id(step))?.value)
}

/// `12`, `12.5`, `-3.25` as hundredths; nothing else is a number.
pub(crate) fn hundredths(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if !plain(whole) || !plain(part) || part.len() > 2 || whole.len() > 9 {
        return None;
    }
    let part = if part.len() == 1 { format!("{part}0") } else { part.to_owned() };
    Some(sign * (whole.parse::<i64>().ok()? * 100 + part.parse::<i64>().ok()?))
}

fn shown(hundredths: i64) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    let positive = hundredths.abs();
    format!("{sign}{}.{:02}", positive / 100, positive % 100)
}

fn refusal(code: ErrorCode, message: &str, say: &str) -> Judgement {
    Judgement::Reject(Refusal {
        code,
        message: message.to_owned(),
        say: say.into(),
        details: Map::from_iter([("field".to_owned(), Value::from("value"))]),
        after_ms: None,
    })
}

fn accepted(reading: Reading, spoken: &str) -> Accepted {
    Accepted {
        reading,
        out_of_range: false,
        deviation: None,
        warnings: Vec::new(),
        read_back: None,
        spoken: spoken.into(),
    }
}

fn text_reading(value: &str) -> Reading {
    Reading { given: value.to_owned(), value: value.to_owned(), ..Reading::default() }
}

fn number(workflow: &Workflow, offered: &Offered<'_>) -> Judgement {
    let unit = offered.unit.unwrap_or("mark");
    let Some(given) = hundredths(offered.value) else {
        return refusal(ErrorCode::ValidationError, "value: a number", "Please say a number.");
    };
    let amount = match unit {
        "mark" => given,
        "dash" => given / 10,
        _ => return refusal(ErrorCode::UnitMismatch, "unit: mark or dash", "In marks, please."),
    };
    if !(0..=10_000).contains(&amount) {
        return refusal(
            ErrorCode::ImplausibleValue,
            "value: 0 to 100",
            "That cannot be. Look again.",
        );
    }
    let reading = Reading {
        given: offered.value.to_owned(),
        given_unit: Some(unit.to_owned()),
        value: shown(amount),
        unit: Some("mark".to_owned()),
        exact: None,
        withheld: false,
    };
    let mut accepted = accepted(reading, &format!("{} marks", offered.value));
    if offered.step_id.as_str() == "share" {
        accepted.out_of_range = amount > hundredths_of(workflow, "amount").unwrap_or(0);
        return Judgement::Accept(accepted);
    }
    if !(2_000..=5_000).contains(&amount) {
        accepted.warnings.push("That is near the limit.".into());
    }
    if (1_000..=6_000).contains(&amount) {
        return Judgement::Accept(accepted);
    }
    accepted.out_of_range = true;
    accepted.read_back = Some(format!("{} marks is outside. Is that right?", offered.value).into());
    let cause = BlockCause {
        code: id(AMOUNT_OUTSIDE),
        severity: Severity::High,
        escalation: vec![Recipient::last("duty")],
    };
    Judgement::Block(accepted, cause)
}

fn choice(offered: &Offered<'_>) -> Judgement {
    let accept = || accepted(text_reading(offered.value), offered.value);
    match offered.value {
        "round" | "flat" => Judgement::Accept(accept()),
        "torn" => {
            let cause = BlockCause {
                code: id("SHAPE_TORN"),
                severity: Severity::Low,
                escalation: Vec::new(),
            };
            Judgement::Block(accept(), cause)
        }
        _ => {
            refusal(ErrorCode::ValidationError, "value: round, flat, torn", "Round, flat or torn?")
        }
    }
}

fn text(offered: &Offered<'_>) -> Judgement {
    if offered.value.is_empty() {
        return refusal(ErrorCode::ValidationError, "value: not empty", "Please say something.");
    }
    Judgement::Accept(accepted(text_reading(offered.value), "that"))
}

impl DomainPolicyPort for PlainPolicy {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn needs(&self) -> Needs {
        let asset = |role: &str, example: &str| NeededAsset {
            role: id::<AssetRole>(role),
            say: role.into(),
            example: Some(example.to_owned()),
        };
        let input = |name: &str, required| NeededInput {
            name: name.to_owned(),
            kind: "string".to_owned(),
            required,
            say: name.into(),
            example: None,
        };
        Needs {
            assets: if self.assets { vec![asset("unit", "U-7")] } else { Vec::new() },
            inputs: vec![input("order", true), input("hush", false)],
        }
    }

    fn plan_start(
        &self,
        assets: &BTreeMap<String, String>,
        inputs: &Map<String, Value>,
    ) -> Result<StartPlan, StartRefusal> {
        let needs = self.needs();
        let invalid = |field: String, rule: &str| {
            let say = "That is not right.".into();
            StartRefusal::Invalid { field, rule: rule.to_owned(), say }
        };
        let mut planned = Vec::new();
        for (role, raw) in assets {
            if !self.assets || !["unit", "spare"].contains(&role.as_str()) {
                return Err(invalid(format!("assets.{role}"), "no such role"));
            }
            let Some(asset) = self.canonical_asset(raw) else {
                return Err(invalid(format!("assets.{role}"), "U- and digits"));
            };
            planned.push(PlannedAsset {
                role: id(role),
                say: format!("unit {}", asset.as_str().trim_start_matches("U-")).into(),
                id: asset,
            });
        }
        if self.assets && !assets.contains_key("unit") {
            let asset = needs.assets.first().cloned();
            return Err(StartRefusal::Missing { asset, input: None });
        }
        let Some(order) = inputs.get("order") else {
            let input = needs.inputs.first().cloned();
            return Err(StartRefusal::Missing { asset: None, input });
        };
        if !order.is_string() {
            return Err(invalid("inputs.order".to_owned(), "a string"));
        }
        let (sensitive_inputs, inputs) =
            inputs.clone().into_iter().partition(|(name, _)| name == "hush");
        let on = planned
            .last()
            .map_or_else(String::new, |a| format!(" on unit {}", &a.id.as_str()[2..]));
        let label = Text::from(format!("{} work{on}", self.definition.id));
        Ok(StartPlan {
            label,
            assets: planned,
            inputs,
            sensitive_inputs,
            deadlines: self.deadlines.clone(),
        })
    }

    fn canonical_asset(&self, raw: &str) -> Option<AssetId> {
        if !self.assets {
            return None;
        }
        let plain: String =
            raw.chars().filter(|c| !c.is_whitespace() && *c != '-').collect::<String>();
        let digits = plain.strip_prefix(['u', 'U'])?;
        let number: u32 = digits.parse().ok()?;
        AssetId::parse(&format!("U-{number}")).ok()
    }

    fn plan(&self, workflow: &Workflow) -> Plan {
        let mut steps: Vec<PlannedStep> =
            self.step_ids().into_iter().map(|step| Self::planned(workflow, step)).collect();
        // In order: everything optional up to the first required step that is not settled.
        for step in &mut steps {
            step.open = step.applies && !step.settled && step.broken.is_none();
            if !self.loose && step.applies && step.required && !step.settled {
                break;
            }
        }
        Plan { steps }
    }

    fn describe(&self, _workflow: &Workflow, step: &StepId) -> Option<StepDescription> {
        let ids = self.step_ids();
        let position = ids.iter().position(|s| s == step)? + 1;
        let number = ["amount", "share"].contains(&step.as_str());
        let choice = |word: &str| Choice { id: word.to_owned(), say: word.into() };
        let unit =
            UnitWords { symbol: "mark".to_owned(), one: "mark".into(), many: "marks".into() };
        let kind = match step.as_str() {
            "ready" => "confirm",
            "amount" | "share" => "number",
            "shape" => "choice",
            "rest" => "wait",
            "approve" => "sign",
            _ => "text",
        };
        Some(StepDescription {
            id: step.clone(),
            position,
            of: ids.len(),
            say: step.as_str().replace('-', " ").into(),
            prompt: format!("Please tell the {}.", step.as_str().replace('-', " ")).into(),
            kind: kind.to_owned(),
            unit: number.then_some(unit),
            decimals: number.then_some(2),
            min: number.then(|| "10".to_owned()),
            max: number.then(|| "60".to_owned()),
            choices: if kind == "choice" {
                ["round", "flat", "torn"].map(choice).to_vec()
            } else {
                Vec::new()
            },
            wait_seconds: None,
            due_at: None,
            skip: Self::skip_rule(step),
            required: Self::required(step),
            sensitive: step.as_str() == "whisper",
            role: (step.as_str() == if self.checked { "remark" } else { "approve" })
                .then(|| "checker".to_owned()),
            signs: step.as_str() == "approve",
            not_performer: step.as_str() == "approve",
        })
    }

    fn judge(&self, workflow: &Workflow, offered: &Offered<'_>) -> Judgement {
        match offered.step_id.as_str() {
            "ready" => match offered.value {
                "yes" => Judgement::Accept(accepted(text_reading("yes"), "yes")),
                "no" => Judgement::Decline,
                _ => refusal(ErrorCode::ValidationError, "value: yes or no", "Yes or no?"),
            },
            "amount" | "share" => self.escalated(number(workflow, offered)),
            "shape" => self.escalated(choice(offered)),
            _ => text(offered),
        }
    }

    fn same_value(&self, _: &StepId, one: &Reading, other: &Reading) -> bool {
        one.value == other.value && one.exact == other.exact
    }

    fn dependants(&self, step: &StepId) -> Vec<StepId> {
        if step.as_str() != "amount" {
            return Vec::new();
        }
        let more = (0..self.wide).map(|n| id(&format!("more-{n}")));
        std::iter::once(id("share")).chain(more).collect()
    }

    fn reasons(&self) -> Vec<Choice> {
        let reason = |code: &str, say: &str| Choice { id: code.to_owned(), say: say.into() };
        vec![reason("NOT_THERE", "it is not there"), reason("HEARD_WRONG", "it was heard wrong")]
    }

    fn block_rule(&self, source: BlockSource<'_>) -> BlockRule {
        let option = |name: &str, effect| DecisionOption {
            id: id::<DecisionId>(name),
            say: name.replace('_', " ").into(),
            effect,
        };
        let mut decisions = vec![option("go_on", Effect::Continue), option("stop", Effect::Abort)];
        if !source.reported {
            decisions.insert(1, option("again", Effect::Redo));
        }
        BlockRule {
            code: id("REPORTED"),
            question: "How shall it go on?".into(),
            decisions,
            escalation: if self.timed {
                chain()
            } else {
                vec![Recipient::last(if source.reported { "desk" } else { "duty" })]
            },
            severity: Severity::High,
        }
    }

    fn results(&self, workflow: &Workflow) -> Vec<ResultOption> {
        let good = workflow.steps.values().all(|s| !s.out_of_range);
        let option = |name: &str, available| ResultOption {
            id: id::<ResultId>(name),
            say: name.into(),
            available,
        };
        vec![option("good", good), option("bad", true), option("abandoned", true)]
    }

    fn notifies(&self, event_kind: &str) -> bool {
        self.noisy
            || ["workflow_started", "workflow_blocked", "workflow_completed"].contains(&event_kind)
    }

    fn stale_after_ms(&self) -> Option<i64> {
        self.paired.then_some(STALE_MS)
    }

    fn timezone(&self) -> Option<&str> {
        None
    }

    fn spoken(&self, step: &StepId, reading: &Reading, _locale: &Locale) -> String {
        match step.as_str() {
            "amount" | "share" => format!("{} marks", reading.given),
            _ => reading.given.clone(),
        }
    }
}
