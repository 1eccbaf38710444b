//! CEL text → checked expression. Everything that could fail or be inexact at run time is refused here, with words.

use std::collections::{BTreeMap, BTreeSet};

use cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr as Cel, IdedExpr, LiteralValue, SelectExpr, SourceInfo,
    operators,
};

use super::{Arithmetic, Compare, Expr, Expression, Flag, Quantifier, Type, Which};
use crate::decimal::Decimal;
use crate::problem::{did_you_mean, one_of};

/// Longest expression, in characters.
pub(crate) const EXPRESSION_CHARS_MAX: usize = 1_000;
/// Deepest nesting of brackets.
const BRACKETS_MAX: usize = 24;
/// Deepest nesting of what the parser recognises; brackets are only some of it.
const PARSER_DEPTH_MAX: u16 = 256;
/// Deepest tree that is evaluated, on whichever thread asks.
const TREE_DEPTH_MAX: usize = 100;
/// Stack of the thread that parses; pages are used only as far as it grows.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// A step as expressions may refer to it.
#[derive(Debug, Clone)]
pub(crate) struct StepType {
    /// Its id.
    pub(crate) id: String,
    /// The type of its value.
    pub(crate) value: Type,
    /// What its value can be, when that is a closed list.
    pub(crate) choices: Option<Vec<String>>,
    /// Its values are never looked at.
    pub(crate) sensitive: bool,
}

/// An input as expressions may refer to it.
#[derive(Debug, Clone)]
pub(crate) struct InputType {
    /// Its type, when it is one that expressions know.
    pub(crate) value: Option<Type>,
    /// Its values are never looked at.
    pub(crate) sensitive: bool,
}

/// What an expression may refer to.
#[derive(Debug, Clone)]
pub(crate) struct Scope<'a> {
    /// All steps of the procedure.
    pub(crate) steps: &'a [StepType],
    /// Steps before this index may be referred to.
    pub(crate) before: usize,
    /// The inputs.
    pub(crate) inputs: &'a BTreeMap<String, InputType>,
    /// The asset roles.
    pub(crate) roles: &'a [String],
}

/// Why an expression is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where, in characters from the start of the expression.
    pub(crate) offset: usize,
    /// What is wrong.
    pub(crate) message: String,
    /// What to write instead.
    pub(crate) hint: String,
}

impl Fault {
    fn new(offset: usize, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { offset, message: message.into(), hint: hint.into() }
    }
}

impl Expression {
    /// Reads and checks an expression that must have the type `expected`.
    ///
    /// The parser recurses with frames of tens of kilobytes in a debug build: thirty brackets overflow the two
    /// megabytes of an ordinary thread. So the length and the nesting are bounded first, and the work is done on a thread
    /// whose stack holds any text within those bounds. A panic of the parser ends that thread only.
    pub(crate) fn check(source: &str, expected: Type, scope: &Scope<'_>) -> Result<Self, Fault> {
        if source.chars().count() > EXPRESSION_CHARS_MAX {
            let hint = format!("an expression has at most {EXPRESSION_CHARS_MAX} characters");
            return Err(Fault::new(0, "the expression is too long", hint));
        }
        if let Some(offset) = too_many_brackets(source) {
            return Err(too_deep(offset));
        }
        let failed =
            || Fault::new(0, "the expression could not be looked at", "write it more simply");
        std::thread::scope(|threads| {
            std::thread::Builder::new()
                .name("expression".to_owned())
                .stack_size(STACK_BYTES)
                .spawn_scoped(threads, || Self::check_here(source, expected, scope))
                .map_err(|_| failed())
                .and_then(|thread| thread.join().unwrap_or_else(|_| Err(failed())))
        })
    }

    fn check_here(source: &str, expected: Type, scope: &Scope<'_>) -> Result<Self, Fault> {
        let (tree, places) = cel::parser::Parser::new()
            .max_recursion_depth(PARSER_DEPTH_MAX)
            .parse_with_source_info(source)
            .map_err(|errors| syntax_fault(source, &errors))?;
        let mut checker =
            Checker { scope, source, places, uses: BTreeSet::new(), each: None, depth: 0 };
        let (root, found) = checker.lower(&tree)?;
        if found != expected {
            let message = format!("this is {}", found.what());
            let hint = format!("write an expression that is {}", expected.what());
            return Err(Fault::new(0, message, hint));
        }
        Ok(Self { source: source.to_owned(), root, uses: checker.uses })
    }
}

/// Where the brackets are nested deeper than allowed; those inside quotes count, too.
fn too_many_brackets(source: &str) -> Option<usize> {
    let mut depth = 0_usize;
    source.chars().position(|c| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > BRACKETS_MAX
    })
}

fn too_deep(offset: usize) -> Fault {
    Fault::new(
        offset,
        "the expression is nested too deeply",
        "write it more simply, or split the step",
    )
}

/// The first error of the parser, with the line and column turned into an offset.
fn syntax_fault(source: &str, errors: &cel::ParseErrors) -> Fault {
    let Some(first) = errors.errors.first() else {
        return Fault::new(0, "not a CEL expression", "");
    };
    let line = usize::try_from(first.pos.0).unwrap_or(1).max(1);
    let column = usize::try_from(first.pos.1).unwrap_or(1).max(1);
    let before: usize =
        source.split_inclusive('\n').take(line - 1).map(|l| l.chars().count()).sum();
    // The parser lists every token it would have taken; what it found is what helps.
    let found = first.msg.split(" expecting ").next().unwrap_or_default();
    let found = found.trim_start_matches("Syntax error: ");
    if found.contains("Recursion limit") {
        return too_deep(0);
    }
    let message = if found.contains("'<EOF>'") {
        "it ends too early".to_owned()
    } else {
        crate::words::cut(&found.replace(['\n', '\r'], " "), 120)
    };
    Fault::new(
        before + column - 1,
        format!("not a CEL expression: {message}"),
        "see https://github.com/google/cel-spec/blob/master/doc/langdef.md",
    )
}

type Lowered = Result<(Expr, Type), Fault>;

struct Checker<'a> {
    scope: &'a Scope<'a>,
    source: &'a str,
    places: SourceInfo,
    uses: BTreeSet<usize>,
    /// The variable of the quantifier around, when there is one.
    each: Option<String>,
    /// How deep in the tree it is.
    depth: usize,
}

const CAN: &str =
    "expressions can use && || ! == != < <= > >= + - * ?: in has() and steps.exists(id, …)";
const FLAGS: [&str; 4] = ["value", "out_of_range", "skipped", "recorded"];

impl Checker<'_> {
    fn offset(&self, id: u64) -> usize {
        self.places.offset_for(id).and_then(|(start, _)| usize::try_from(start).ok()).unwrap_or(0)
    }

    fn fault(&self, id: u64, message: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault::new(self.offset(id), message, hint)
    }

    fn lower(&mut self, node: &IdedExpr) -> Lowered {
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

    fn name(&self, id: u64, name: &str) -> Lowered {
        if self.each.as_deref() == Some(name) {
            return Ok((Expr::StepId, Type::Text));
        }
        Err(match name {
            "steps" => self.fault(id, "steps alone has no value", "write steps.<id>.value"),
            "inputs" => self.fault(id, "inputs alone has no value", "write inputs.<name>"),
            "assets" => self.fault(id, "assets alone has no value", "write assets.<role>"),
            _ => self.fault(id, format!("\"{name}\" is not known"), self.hint_for_name(name)),
        })
    }

    fn hint_for_name(&self, name: &str) -> String {
        if self.scope.steps.iter().any(|s| s.id == name) {
            return format!("write steps.{name}.value");
        }
        if self.scope.inputs.contains_key(name) {
            return format!("write inputs.{name}");
        }
        did_you_mean(name, ["steps", "inputs", "assets"])
            .unwrap_or_else(|| "names are steps, inputs and assets".to_owned())
    }

    /// `inputs.x`, `assets.x`, `steps.x.y`, and `has()` of them.
    fn select(&mut self, id: u64, select: &SelectExpr) -> Lowered {
        let operand = &*select.operand;
        if let Cel::Ident(root) = &operand.expr {
            match root.as_str() {
                "inputs" => return self.input(id, &select.field, select.test),
                "assets" => return self.asset(id, &select.field, select.test),
                "steps" => {
                    let step = self.step(id, &select.field)?;
                    let name = &self.scope.steps[step].id;
                    let hint =
                        format!("write steps.{name}.value, .out_of_range, .skipped or .recorded");
                    return Err(self.fault(id, "a step alone has no value", hint));
                }
                _ => return self.name(operand.id, root),
            }
        }
        match self.which_step(operand)? {
            Some(which) => self.of_step(id, which, &select.field, select.test),
            None => Err(self.no_such_name(id, operand, &select.field)),
        }
    }

    /// What to say about a chain of names that means nothing: the root is most likely misspelt.
    fn no_such_name(&self, id: u64, operand: &IdedExpr, field: &str) -> Fault {
        let mut node = operand;
        while let Cel::Select(select) = &node.expr {
            node = &select.operand;
        }
        if let Cel::Ident(root) = &node.expr
            && !matches!(root.as_str(), "steps" | "inputs" | "assets")
        {
            let message = format!("\"{root}\" is not known");
            return self.fault(node.id, message, self.hint_for_name(root));
        }
        self.fault(id, format!("there is nothing called \"{field}\" here"), CAN)
    }

    /// The step that `steps.x` or `steps["x"]` or `steps[id]` means.
    fn which_step(&mut self, node: &IdedExpr) -> Result<Option<Which>, Fault> {
        if let Cel::Select(select) = &node.expr {
            if is_ident(&select.operand, "steps") && !select.test {
                return self.step(node.id, &select.field).map(|i| Some(Which::Fixed(i)));
            }
        } else if let Some((container, index)) = index_call(&node.expr) {
            if !is_ident(container, "steps") {
                return Ok(None);
            }
            if let Some(key) = text_literal(index) {
                return self.step(index.id, key).map(|i| Some(Which::Fixed(i)));
            }
            if let Cel::Ident(name) = &index.expr
                && self.each.as_deref() == Some(name.as_str())
            {
                return Ok(Some(Which::Each));
            }
            return Err(self.fault(
                index.id,
                "steps[…] takes an id in quotes or the variable of exists",
                "write steps[\"id\"] or steps.exists(id, steps[id].out_of_range)",
            ));
        }
        Ok(None)
    }

    /// The index of a step that may be referred to from here.
    fn step(&mut self, id: u64, name: &str) -> Result<usize, Fault> {
        let found = self.scope.steps.iter().position(|s| s.id == name);
        let Some(index) = found else {
            let known = &self.scope.steps[..self.scope.before.min(self.scope.steps.len())];
            let hint = did_you_mean(name, known.iter().map(|s| s.id.as_str()));
            let hint = hint.unwrap_or_else(|| match known.last() {
                Some(last) => format!("a step before this one is \"{}\"", last.id),
                None => "no step comes before this one".to_owned(),
            });
            return Err(self.fault(id, format!("there is no step \"{name}\""), hint));
        };
        if index >= self.scope.before {
            let message = if index == self.scope.before {
                format!("step \"{name}\" refers to itself")
            } else {
                format!("step \"{name}\" comes later")
            };
            return Err(self.fault(id, message, "refer to steps that stand before this one"));
        }
        self.uses.insert(index);
        Ok(index)
    }

    fn of_step(&self, id: u64, which: Which, field: &str, has: bool) -> Lowered {
        let flag = match field {
            "out_of_range" => Flag::OutOfRange,
            "skipped" => Flag::Skipped,
            "recorded" => Flag::Recorded,
            "value" => return self.value_of_step(id, which, has),
            _ => {
                let message = format!("steps have no \".{field}\"");
                return Err(self.fault(id, message, one_of(field, &FLAGS)));
            }
        };
        if has {
            let hint = format!(".{field} is always there: leave has() away");
            return Err(self.fault(id, "has() asks for values that may be absent", hint));
        }
        Ok((Expr::StepFlag(which, flag), Type::Bool))
    }

    fn value_of_step(&self, id: u64, which: Which, has: bool) -> Lowered {
        let index = match which {
            Which::Fixed(index) => index,
            Which::Each if has => {
                return Ok((Expr::StepFlag(which, Flag::Recorded), Type::Bool));
            }
            Which::Each => {
                return Err(self.fault(
                    id,
                    "values of different steps have different types",
                    "name the step, or ask for .out_of_range, .skipped or .recorded",
                ));
            }
        };
        if has {
            return Ok((Expr::HasStepValue(index), Type::Bool));
        }
        let step = &self.scope.steps[index];
        if step.sensitive {
            return Err(self.fault(
                id,
                format!("step \"{}\" is sensitive: its value is never looked at", step.id),
                "ask for .recorded or .skipped, or remove sensitive",
            ));
        }
        Ok((Expr::StepValue(index), step.value))
    }

    fn input(&self, id: u64, name: &str, has: bool) -> Lowered {
        let Some(input) = self.scope.inputs.get(name) else {
            let known: Vec<&str> = self.scope.inputs.keys().map(String::as_str).collect();
            let hint = if known.is_empty() {
                "this procedure has no inputs; describe them under inputs".to_owned()
            } else {
                one_of(name, &known)
            };
            return Err(self.fault(id, format!("there is no input \"{name}\""), hint));
        };
        if input.sensitive {
            return Err(self.fault(
                id,
                format!("input \"{name}\" is sensitive: its value is never looked at"),
                "remove sensitive, or the reference",
            ));
        }
        if has {
            return Ok((Expr::HasInput(name.to_owned()), Type::Bool));
        }
        match input.value {
            Some(found) => Ok((Expr::Input(name.to_owned()), found)),
            None => Err(self.fault(
                id,
                format!("input \"{name}\" has no type that expressions know"),
                "give it type: number, integer, string or boolean",
            )),
        }
    }

    fn asset(&self, id: u64, role: &str, has: bool) -> Lowered {
        if !self.scope.roles.iter().any(|r| r == role) {
            let known: Vec<&str> = self.scope.roles.iter().map(String::as_str).collect();
            let hint = if known.is_empty() {
                "this procedure has no assets".to_owned()
            } else {
                one_of(role, &known)
            };
            return Err(self.fault(id, format!("there is no asset \"{role}\""), hint));
        }
        if has {
            let hint = "every asset is always there: leave has() away";
            return Err(self.fault(id, "has() asks for values that may be absent", hint));
        }
        Ok((Expr::Asset(role.to_owned()), Type::Text))
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
            return Err(self.fault(id, "exists inside exists is not supported", ""));
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

fn is_ident(node: &IdedExpr, name: &str) -> bool {
    matches!(&node.expr, Cel::Ident(found) if found == name)
}

fn call_args(expr: &Cel) -> Option<(&str, &[IdedExpr])> {
    if let Cel::Call(call) = expr {
        return Some((call.func_name.as_str(), call.args.as_slice()));
    }
    None
}

fn index_call(expr: &Cel) -> Option<(&IdedExpr, &IdedExpr)> {
    match call_args(expr) {
        Some((operators::INDEX, [container, index])) => Some((container, index)),
        Some(_) | None => None,
    }
}

fn text_literal(node: &IdedExpr) -> Option<&str> {
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
