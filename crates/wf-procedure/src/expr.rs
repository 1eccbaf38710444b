//! Conditions and computed bounds: a typed, exact subset of CEL.
//!
//! The text is parsed by the `cel` crate, so what is accepted here is valid CEL. It is not *evaluated* by that crate:
//! its numbers are doubles and its user-defined values compare for equality only. Instead the parsed tree is checked
//! and turned into [`Expr`] once, at load (`expr::check`, `expr::lower`, `expr::names`), and evaluated here (`expr::eval`) with exact rationals.
//!
//! The subset: `inputs`, `assets`, `steps`; decimals, texts, booleans; `&& || !`, comparisons, `+ - *`, `?:`, `in`
//! over a written list, `has()`, and `exists`, `all`, `exists_one` over `steps`. Division and everything that needs
//! doubles is refused at load. Evaluation visits each node once per step at most, so its cost is bounded by the size
//! of the text and the number of steps.

mod check;
mod eval;
mod lower;
mod names;

use std::collections::BTreeSet;

pub(crate) use check::{Fault, InputType, Scope, StepType};
pub(crate) use eval::{Facts, Kept, Missing, StepFacts, exact};

use crate::decimal::Exact;

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    /// `true` or `false`.
    Bool,
    /// An exact decimal.
    Number,
    /// Text.
    Text,
}

impl Type {
    /// The type in words, for messages.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text => "text",
        }
    }
}

/// A checked expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expression {
    /// As written.
    pub(crate) source: String,
    root: Expr,
    /// Steps it looks at, by index.
    pub(crate) uses: BTreeSet<usize>,
}

/// Which step an expression looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// The one with this index.
    Fixed(usize),
    /// The one that `exists`, `all` or `exists_one` has come to.
    Each,
}

/// What can be asked of every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flag {
    OutOfRange,
    Skipped,
    Recorded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arithmetic {
    Add,
    Subtract,
    Multiply,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantifier {
    Exists,
    All,
    ExistsOne,
}

/// The tree that is evaluated. Types were checked when it was built.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expr {
    Bool(bool),
    Number(Exact),
    Text(String),
    Input(String),
    HasInput(String),
    Asset(String),
    StepId,
    StepValue(usize),
    HasStepValue(usize),
    StepFlag(Which, Flag),
    Not(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    Compare(Compare, Box<Expr>, Box<Expr>),
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    Negate(Box<Expr>),
    In(Box<Expr>, Vec<Expr>),
    OverSteps {
        quantifier: Quantifier,
        /// Steps before this index are looked at.
        before: usize,
        body: Box<Expr>,
    },
}
