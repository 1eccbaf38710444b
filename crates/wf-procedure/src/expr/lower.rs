//! The parsed tree → [`Expr`], typed. What a name means is in `expr::names`.

use std::collections::BTreeSet;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr as Cel, IdedExpr, LiteralValue, SourceInfo, operators,
};

use super::check::{Fault, Scope, TREE_DEPTH_MAX, too_deep};
use super::{Arithmetic, Compare, Expr, Quantifier, Type};
use crate::decimal::Decimal;
use crate::problem::one_of;

pub(super) type Lowered = Result<(Expr, Type), Fault>;

/// Walks a parsed tree, knowing what may be referred to.
pub(super) struct Checker<'a> {
    pub(super) scope: &'a Scope<'a>,
    source: &'a str,
    places: SourceInfo,
    pub(super) uses: BTreeSet<usize>,
    /// The variable of the quantifier around, when there is one.
    pub(super) each: Option<String>,
    /// How deep in the tree it is.
    depth: usize,
}

pub(super) const CAN: &str =
    "expressions can use && || ! == != < <= > >= + - * ?: in has() and steps.exists(id, …)";

impl<'a> Checker<'a> {
    pub(super) fn new(scope: &'a Scope<'a>, source: &'a str, places: SourceInfo) -> Self {
        Self { scope, source, places, uses: BTreeSet::new(), each: None, depth: 0 }
    }

    fn offset(&self, id: u64) -> usize {
        self.places.offset_for(id).and_then(|(start, _)| usize::try_from(start).ok()).unwrap_or(0)
    }

    pub(super) fn fault(
        &self,
        id: u64,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Fault {
        Fault::new(self.offset(id), message, hint)
    }

    /// The node and its type.
    pub(super) fn lower(&mut self, node: &IdedExpr) -> Lowered {
        if self.depth >= TREE_DEPTH_MAX {
            return Err(too_deep(self.offset(node.id)));
        }
        self.depth += 1;
        let lowered = self.lower_node(node);
        self.depth -= 1;
        lowered
    }

    fn lower_node(&mut self, node: &IdedExpr) -> Lowered {
        match &node.expr {
            Cel::Literal(literal) => self.literal(node.id, literal),
            Cel::Ident(name) => self.name(node.id, name),
            Cel::Select(select) => self.select(node.id, select),
            Cel::Call(call) => self.call(node.id, call),
            Cel::Comprehension(comprehension) => self.over_steps(node.id, comprehension),
            Cel::List(_) | Cel::Map(_) | Cel::Struct(_) | Cel::Unspecified => {
                Err(self.fault(node.id, "lists and maps are not supported here", CAN))
            }
        }
    }

    fn literal(&self, id: u64, literal: &LiteralValue) -> Lowered {
        match literal {
            LiteralValue::Boolean(b) => Ok((Expr::Bool(*b.inner()), Type::Bool)),
            LiteralValue::String(t) => Ok((Expr::Text(t.inner().to_owned()), Type::Text)),
            LiteralValue::Int(n) => self.number(id, n.inner().is_negative()),
            LiteralValue::Double(n) => self.number(id, n.inner().is_sign_negative()),
            LiteralValue::UInt(_) => {
                Err(self.fault(id, "unsigned literals are not supported", "write 3, not 3u"))
            }
            LiteralValue::Bytes(_) | LiteralValue::Null => {
                Err(self.fault(id, "null and bytes are not supported", CAN))
            }
        }
    }

    /// A number by its written digits: the parser has already made a double of it.
    fn number(&self, id: u64, negative: bool) -> Lowered {
        let digits: String = match self.places.offset_for(id) {
            Some((start, stop)) => {
                let start = usize::try_from(start).unwrap_or(usize::MAX);
                let stop = usize::try_from(stop).unwrap_or(0);
                let length = (stop + 1).saturating_sub(start);
                self.source.chars().skip(start).take(length).collect()
            }
            None => String::new(),
        };
        let unsigned = digits.strip_prefix('-').unwrap_or(&digits);
        let Some(decimal) = Decimal::parse(unsigned) else {
            return Err(self.fault(
                id,
                format!("{digits} is not a plain decimal"),
                "write digits and at most one point, like 0.5",
            ));
        };
        let exact = if negative { -decimal.exact } else { decimal.exact };
        Ok((Expr::Number(exact), Type::Number))
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Lowered {
        if call.target.is_some() {
            return Err(self.unknown_function(id, &call.func_name));
        }
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_NOT, [a]) => {
                Ok((Expr::Not(Box::new(self.typed(a, Type::Bool)?)), Type::Bool))
            }
            (operators::LOGICAL_AND, [a, b]) => {
                let (a, b) = (self.typed(a, Type::Bool)?, self.typed(b, Type::Bool)?);
                Ok((Expr::And(Box::new(a), Box::new(b)), Type::Bool))
            }
            (operators::LOGICAL_OR, [a, b]) => {
                let (a, b) = (self.typed(a, Type::Bool)?, self.typed(b, Type::Bool)?);
                Ok((Expr::Or(Box::new(a), Box::new(b)), Type::Bool))
            }
            (operators::CONDITIONAL, [condition, yes, no]) => {
                let condition = self.typed(condition, Type::Bool)?;
                let (yes, found) = self.lower(yes)?;
                let no = self.typed(no, found)?;
                Ok((Expr::If(Box::new(condition), Box::new(yes), Box::new(no)), found))
            }
            (operators::NEGATE, [a]) => {
                let a = self.typed(a, Type::Number)?;
                Ok((Expr::Negate(Box::new(a)), Type::Number))
            }
            (operators::DIVIDE | operators::MODULO, _) => Err(self.fault(
                id,
                "division is not exact and not supported",
                "multiply instead: a * 0.5 for a / 2",
            )),
            (operators::INDEX, [container, index]) => self.index(id, container, index),
            (operators::IN, [needle, list]) => self.within(id, needle, list),
            (name, [a, b]) => self.binary(id, name, a, b),
            (name, _) => Err(self.unknown_function(id, name)),
        }
    }

    fn binary(&mut self, id: u64, name: &str, a: &IdedExpr, b: &IdedExpr) -> Lowered {
        let arithmetic = match name {
            operators::ADD => Some(Arithmetic::Add),
            operators::SUBSTRACT => Some(Arithmetic::Subtract),
            operators::MULTIPLY => Some(Arithmetic::Multiply),
            _ => None,
        };
        if let Some(op) = arithmetic {
            let (a, b) = (self.typed(a, Type::Number)?, self.typed(b, Type::Number)?);
            return Ok((Expr::Arithmetic(op, Box::new(a), Box::new(b)), Type::Number));
        }
        let compare = match name {
            operators::EQUALS => Compare::Equal,
            operators::NOT_EQUALS => Compare::NotEqual,
            operators::LESS => Compare::Less,
            operators::LESS_EQUALS => Compare::LessOrEqual,
            operators::GREATER => Compare::Greater,
            operators::GREATER_EQUALS => Compare::GreaterOrEqual,
            _ => return Err(self.unknown_function(id, name)),
        };
        let (left, found) = self.lower(a)?;
        let right = self.typed(b, found)?;
        let ordered = !matches!(compare, Compare::Equal | Compare::NotEqual);
        if ordered && found != Type::Number {
            let message = format!("only numbers are larger or smaller; this is {}", found.what());
            return Err(self.fault(a.id, message, "compare with == or !="));
        }
        self.known_choice(&left, b)?;
        self.known_choice(&right, a)?;
        Ok((Expr::Compare(compare, Box::new(left), Box::new(right)), Type::Bool))
    }

    /// A literal that is compared with a choice must be one of its choices.
    fn known_choice(&self, value: &Expr, literal: &IdedExpr) -> Result<(), Fault> {
        let (Expr::StepValue(index), Some(text)) = (value, text_literal(literal)) else {
            return Ok(());
        };
        let step = &self.scope.steps[*index];
        let Some(choices) = &step.choices else {
            return Ok(());
        };
        if choices.iter().any(|c| c == text) {
            return Ok(());
        }
        let known: Vec<&str> = choices.iter().map(String::as_str).collect();
        let message = format!("\"{text}\" is no choice of step \"{}\"", step.id);
        Err(self.fault(literal.id, message, one_of(text, &known)))
    }

    fn typed(&mut self, node: &IdedExpr, expected: Type) -> Result<Expr, Fault> {
        let (expr, found) = self.lower(node)?;
        if found == expected {
            return Ok(expr);
        }
        let message = format!("this is {}", found.what());
        let hint = format!("{} is needed here", expected.what());
        Err(self.fault(node.id, message, hint))
    }

    fn index(&mut self, id: u64, container: &IdedExpr, index: &IdedExpr) -> Lowered {
        let Some(key) = text_literal(index) else {
            return Err(self.fault(id, "[…] takes a name in quotes", CAN));
        };
        if is_ident(container, "inputs") {
            self.input(index.id, key, false)
        } else if is_ident(container, "assets") {
            self.asset(index.id, key, false)
        } else {
            Err(self.fault(
                id,
                "a step alone has no value",
                "write steps[\"id\"].value, .out_of_range, .skipped or .recorded",
            ))
        }
    }

    fn within(&mut self, id: u64, needle: &IdedExpr, list: &IdedExpr) -> Lowered {
        let (value, found) = self.lower(needle)?;
        let Cel::List(list) = &list.expr else {
            return Err(self.fault(
                id,
                "\"in\" takes a written list",
                "write for example steps.seal.value in [\"dry\", \"weeping\"]",
            ));
        };
        let mut items = Vec::new();
        for item in &list.elements {
            items.push(self.typed(item, found)?);
            self.known_choice(&value, item)?;
        }
        Ok((Expr::In(Box::new(value), items), Type::Bool))
    }

    /// `exists`, `all` and `exists_one`: the parser has already expanded the macro, so its shape is recognised.
    fn over_steps(&mut self, id: u64, c: &ComprehensionExpr) -> Lowered {
        let supported = "write steps.exists(id, …), steps.all(id, …) or steps.exists_one(id, …)";
        if !is_ident(&c.iter_range, "steps") || c.iter_var2.is_some() {
            return Err(self.fault(id, "only steps can be looked through", supported));
        }
        if self.each.is_some() {
            let message = "exists inside exists is not supported";
            return Err(self.fault(id, message, "write one beside the other, with && or ||"));
        }
        let step = call_args(&c.loop_step.expr);
        let (quantifier, body) = match (&c.accu_init.expr, step) {
            (Cel::Literal(LiteralValue::Boolean(b)), Some((operators::LOGICAL_OR, [_, body])))
                if !*b.inner() =>
            {
                (Quantifier::Exists, body)
            }
            (Cel::Literal(LiteralValue::Boolean(_)), Some((operators::LOGICAL_AND, [_, body]))) => {
                (Quantifier::All, body)
            }
            (Cel::Literal(LiteralValue::Int(_)), Some((operators::CONDITIONAL, [body, _, _]))) => {
                (Quantifier::ExistsOne, body)
            }
            _ => return Err(self.fault(id, "map and filter are not supported", supported)),
        };
        self.each = Some(c.iter_var.clone());
        let body = self.typed(body, Type::Bool);
        self.each = None;
        self.uses.extend(0..self.scope.before);
        Ok((
            Expr::OverSteps { quantifier, before: self.scope.before, body: Box::new(body?) },
            Type::Bool,
        ))
    }

    fn unknown_function(&self, id: u64, name: &str) -> Fault {
        self.fault(id, format!("the function \"{name}\" is not supported"), CAN)
    }
}

pub(super) fn is_ident(node: &IdedExpr, name: &str) -> bool {
    matches!(&node.expr, Cel::Ident(found) if found == name)
}

fn call_args(expr: &Cel) -> Option<(&str, &[IdedExpr])> {
    if let Cel::Call(call) = expr {
        return Some((call.func_name.as_str(), call.args.as_slice()));
    }
    None
}

pub(super) fn index_call(expr: &Cel) -> Option<(&IdedExpr, &IdedExpr)> {
    match call_args(expr) {
        Some((operators::INDEX, [container, index])) => Some((container, index)),
        Some(_) | None => None,
    }
}

pub(super) fn text_literal(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Cel::Literal(LiteralValue::String(text)) => Some(text.inner()),
        Cel::Literal(_)
        | Cel::Unspecified
        | Cel::Call(_)
        | Cel::Comprehension(_)
        | Cel::Ident(_)
        | Cel::List(_)
        | Cel::Map(_)
        | Cel::Select(_)
        | Cel::Struct(_) => None,
    }
}
