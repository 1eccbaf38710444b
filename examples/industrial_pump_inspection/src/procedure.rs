//! What the inspection consists of: one table, no behaviour. `policy` and `judge` read it.
//!
//! The table is also the definition document. Its digest is what a running workflow pins, so every fact that an answer
//! depends on belongs here: whoever changes one has to raise [`VERSION`], or the store refuses the change.

use serde::Serialize;
use wf_core::models::{
    AssetRole, DecisionId, IdError, ProcedureId, ReasonCode, ResultId, Severity, StepId,
};
use wf_core::policy::{Effect, SkipRule};

use crate::decimal::Decimal;

/// Raise it with every change of the table, and of the code that reads it.
pub(crate) const VERSION: u32 = 1;

/// The whole inspection.
#[derive(Debug, Serialize)]
pub(crate) struct Procedure {
    pub(crate) id: ProcedureId,
    pub(crate) version: u32,
    pub(crate) title: &'static str,
    pub(crate) pump: Pump,
    pub(crate) work_order: WorkOrder,
    pub(crate) steps: Vec<Step>,
    pub(crate) reasons: Vec<Named<ReasonCode>>,
    /// What a reported problem leads to.
    pub(crate) reported: Problem,
    pub(crate) results: Vec<Ending>,
    /// Kinds of events that subscribers are told.
    pub(crate) notify: Vec<&'static str>,
    pub(crate) stale_after_ms: i64,
}

/// The one asset: a pump, known by a number.
#[derive(Debug, Serialize)]
pub(crate) struct Pump {
    pub(crate) role: AssetRole,
    pub(crate) say: &'static str,
    pub(crate) prefix: &'static str,
    pub(crate) digits_max: usize,
    pub(crate) example: &'static str,
}

/// The one input.
#[derive(Debug, Serialize)]
pub(crate) struct WorkOrder {
    pub(crate) name: &'static str,
    pub(crate) say: &'static str,
    pub(crate) chars_max: usize,
}

/// Something with a name and the words for it.
#[derive(Debug, Serialize)]
pub(crate) struct Named<I> {
    pub(crate) id: I,
    pub(crate) say: &'static str,
}

/// One step. Steps are done in the order of the table.
#[derive(Debug, Serialize)]
pub(crate) struct Step {
    pub(crate) id: StepId,
    pub(crate) prompt: &'static str,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    pub(crate) skip: SkipRule,
    /// It applies only when this holds.
    pub(crate) only_if: Option<Above>,
    /// What a value outside the limits, or a blocking choice, leads to.
    pub(crate) problem: Option<Problem>,
}

/// A number of an earlier step is above a bound.
#[derive(Debug, Serialize)]
pub(crate) struct Above {
    pub(crate) step: StepId,
    pub(crate) bound: Decimal,
}

/// What a step asks for.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Yes, it is done.
    Confirm,
    /// A reading.
    Number(Measure),
    /// One of these; some of them block.
    Choice { choices: Vec<Named<&'static str>>, block_on: &'static str },
    /// Free words.
    Text { chars_max: usize },
}

/// How a reading is taken and judged.
#[derive(Debug, Serialize)]
pub(crate) struct Measure {
    pub(crate) unit: Unit,
    pub(crate) decimals: u32,
    /// Outside: the instrument cannot show it, so it was misheard.
    pub(crate) instrument: Range,
    /// Outside: recorded, and the work stops.
    pub(crate) accept: Range,
    /// Outside: recorded with a warning.
    pub(crate) warn: Range,
}

/// From and to, both inside.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Range {
    pub(crate) min: Decimal,
    pub(crate) max: Decimal,
}

impl Range {
    const fn tenths(min: i32, max: i32) -> Self {
        Self { min: Decimal::tenths(min), max: Decimal::tenths(max) }
    }

    pub(crate) fn holds(&self, value: Decimal) -> bool {
        self.min <= value && value <= self.max
    }
}

/// A unit as written and as spoken.
#[derive(Debug, Serialize)]
pub(crate) struct Unit {
    pub(crate) symbol: &'static str,
    pub(crate) one: &'static str,
    pub(crate) many: &'static str,
}

/// Why the work stops, who is told and what may be decided.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    pub(crate) code: ReasonCode,
    pub(crate) severity: Severity,
    pub(crate) escalate_to: &'static str,
    pub(crate) question: &'static str,
    pub(crate) decisions: Vec<Decision>,
}

/// One way out of a block.
#[derive(Debug, Serialize)]
pub(crate) struct Decision {
    pub(crate) id: DecisionId,
    pub(crate) say: &'static str,
    pub(crate) effect: Effect,
}

/// One way to finish.
#[derive(Debug, Serialize)]
pub(crate) struct Ending {
    pub(crate) id: ResultId,
    pub(crate) say: &'static str,
    /// Only while no current value is outside its limits.
    pub(crate) needs_all_inside: bool,
}

/// The table.
///
/// # Errors
/// [`IdError`] when an id of it is malformed; `policy`'s tests show that none is.
pub(crate) fn table() -> Result<Procedure, IdError> {
    Ok(Procedure {
        id: ProcedureId::parse("pump-inspection")?,
        version: VERSION,
        title: "Industrial pump inspection",
        pump: Pump {
            role: AssetRole::parse("pump")?,
            say: "pump",
            prefix: "PUMP-",
            digits_max: 6,
            example: "PUMP-204",
        },
        work_order: WorkOrder { name: "work_order", say: "work order", chars_max: 40 },
        steps: steps()?,
        reasons: vec![
            Named { id: ReasonCode::parse("SENSOR_MISSING")?, say: "sensor missing" },
            Named { id: ReasonCode::parse("MISHEARD")?, say: "value was misheard" },
        ],
        reported: Problem {
            code: ReasonCode::parse("REPORTED_PROBLEM")?,
            severity: Severity::High,
            escalate_to: "maintenance-lead",
            question: "A problem was reported. How do we go on?",
            decisions: vec![decision("carry_on", "carry on", Effect::Continue)?, abort()?],
        },
        results: vec![
            Ending { id: ResultId::parse("passed")?, say: "passed", needs_all_inside: true },
            Ending { id: ResultId::parse("failed")?, say: "failed", needs_all_inside: false },
        ],
        notify: vec!["workflow_started", "workflow_completed"],
        stale_after_ms: 8 * 60 * 60 * 1_000,
    })
}

fn steps() -> Result<Vec<Step>, IdError> {
    let isolate = Step {
        skip: SkipRule::Never,
        ..step("isolate", "Confirm the pump is locked out and tagged out.", Kind::Confirm)?
    };
    let pressure = Measure {
        unit: Unit { symbol: "bar", one: "bar", many: "bar" },
        decimals: 2,
        instrument: Range::tenths(0, 250),
        accept: Range::tenths(15, 60),
        warn: Range::tenths(20, 55),
    };
    let pressure = Step {
        problem: Some(outside("PRESSURE_OUT_OF_RANGE", "The suction pressure is outside.")?),
        ..step("suction_pressure", "What is the suction pressure?", Kind::Number(pressure))?
    };
    let vibration = Measure {
        unit: Unit { symbol: "mm/s", one: "millimetre per second", many: "millimetres per second" },
        decimals: 1,
        instrument: Range::tenths(0, 1_000),
        accept: Range::tenths(0, 71),
        warn: Range::tenths(0, 45),
    };
    let vibration = Step {
        only_if: Some(Above { step: pressure.id.clone(), bound: Decimal::tenths(30) }),
        problem: Some(outside("VIBRATION_OUT_OF_RANGE", "The vibration is too high.")?),
        ..step("vibration", "What is the vibration at the drive end?", Kind::Number(vibration))?
    };
    let temperature = Measure {
        unit: Unit { symbol: "°C", one: "degree Celsius", many: "degrees Celsius" },
        decimals: 1,
        instrument: Range::tenths(-400, 2_000),
        accept: Range::tenths(-100, 800),
        warn: Range::tenths(-100, 700),
    };
    let temperature = Step {
        problem: Some(outside("BEARING_TOO_HOT", "The bearing temperature is outside.")?),
        ..step("bearing_temperature", "How warm is the bearing?", Kind::Number(temperature))?
    };
    let seal = Kind::Choice {
        choices: ["dry", "weeping", "leaking"].map(|id| Named { id, say: id }).into(),
        block_on: "leaking",
    };
    let seal = Step {
        problem: Some(outside("SEAL_LEAKING", "The shaft seal is leaking.")?),
        ..step("seal", "How does the shaft seal look: dry, weeping or leaking?", seal)?
    };
    let remarks = Step {
        required: false,
        skip: SkipRule::Free,
        ..step("remarks", "Anything to remark?", Kind::Text { chars_max: 200 })?
    };
    Ok(vec![isolate, pressure, vibration, temperature, seal, remarks])
}

fn step(id: &str, prompt: &'static str, kind: Kind) -> Result<Step, IdError> {
    let id = StepId::parse(id)?;
    Ok(Step {
        id,
        prompt,
        kind,
        required: true,
        skip: SkipRule::Reason,
        only_if: None,
        problem: None,
    })
}

fn outside(code: &str, question: &'static str) -> Result<Problem, IdError> {
    Ok(Problem {
        code: ReasonCode::parse(code)?,
        severity: Severity::High,
        escalate_to: "maintenance-lead",
        question,
        decisions: vec![
            decision("accept_deviation", "accept the deviation", Effect::Continue)?,
            decision("require_redo", "measure again", Effect::Redo)?,
            abort()?,
        ],
    })
}

fn abort() -> Result<Decision, IdError> {
    decision("abort", "stop the inspection", Effect::Abort)
}

fn decision(id: &str, say: &'static str, effect: Effect) -> Result<Decision, IdError> {
    Ok(Decision { id: DecisionId::parse(id)?, say, effect })
}
