//! CEL text → checked expression: bounds, the parser, its errors. `expr::lower` turns the parsed tree into ours.
//!
//! Everything that could fail or be inexact at run time is refused here, with words.

use std::collections::BTreeMap;

use super::lower::Checker;
use super::{Expression, Type};

/// Longest expression, in characters.
pub(crate) const EXPRESSION_CHARS_MAX: usize = 1_000;
/// Deepest nesting of brackets.
const BRACKETS_MAX: usize = 24;
/// Deepest nesting of what the parser recognises; brackets are only some of it.
const PARSER_DEPTH_MAX: u16 = 256;
/// Deepest tree that is evaluated, on whichever thread asks.
pub(super) const TREE_DEPTH_MAX: usize = 100;
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
    pub(super) fn new(offset: usize, message: impl Into<String>, hint: impl Into<String>) -> Self {
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
        let mut checker = Checker::new(scope, source, places);
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

pub(super) fn too_deep(offset: usize) -> Fault {
    Fault::new(
        offset,
        "the expression is nested too deeply",
        "write it more simply, or split the step",
    )
}

/// Where the language is described.
const LANGUAGE: &str = "see https://github.com/google/cel-spec/blob/master/doc/langdef.md";

/// The first error of the parser, with the line and column turned into an offset.
fn syntax_fault(source: &str, errors: &cel::ParseErrors) -> Fault {
    let Some(first) = errors.errors.first() else {
        return Fault::new(0, "not a CEL expression", LANGUAGE);
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
    Fault::new(before + column - 1, format!("not a CEL expression: {message}"), LANGUAGE)
}
