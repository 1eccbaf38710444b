//! Rules about the pure part of wf-core: nothing asynchronous, and matches that a new variant breaks.
//!
//! The compiler lints against wildcards see neither tuple matches nor `matches!` nor `if let`, and only lint
//! enums; here the token patterns are read, so the rule does not depend on types.

use std::ops::Range;

use crate::Workspace;
use crate::report::Violation;
use crate::rust::{Kind, Source};

/// Modules of wf-core that decide and never await.
const DECISION_MODULES: [&str; 8] =
    ["state_machine", "locks", "deadlines", "reconcile", "redaction", "view", "models", "policy"];

/// Patterns over these say nothing about our own enums.
const STANDARD: [&str; 4] = ["Some", "None", "Ok", "Err"];

pub(super) fn sync_decisions(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    for module in DECISION_MODULES {
        let prefix = format!("crates/wf-core/src/{module}");
        for (path, source) in
            workspace.tree.sources(&prefix).filter(|(path, _)| is_module(path, &prefix))
        {
            for (_, token) in source.product() {
                if token.kind == Kind::Ident && (token.text == "async" || token.text == "await") {
                    let fix =
                        "decisions are pure: await in the engine and pass the result in as data";
                    found.push(Violation::new(
                        path,
                        token.line,
                        format!("`{}` in a decision module", token.text),
                        fix,
                    ));
                }
            }
        }
        if workspace.tree.sources(&prefix).next().is_none() && module == "state_machine" {
            found.push(missing(&prefix));
        }
    }
    found
}

/// `prefix.rs` or a file under `prefix/`.
fn is_module(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

fn missing(prefix: &str) -> Violation {
    Violation::new(
        prefix,
        0,
        "no such module, so nothing was checked",
        "name the module here as it is called now",
    )
}

pub(super) fn decide_shape(workspace: &Workspace) -> Vec<Violation> {
    let prefix = "crates/wf-core/src/state_machine/";
    let mut found = Vec::new();
    let mut seen = false;
    for (path, source) in workspace.tree.sources(prefix) {
        let name = path.strip_prefix(prefix).unwrap_or_default();
        if !(name.starts_with("decide") || name.starts_with("evolve")) {
            continue;
        }
        seen = true;
        for (index, token) in source.product().filter(|(_, token)| token.kind == Kind::Ident) {
            match token.text.as_str() {
                "match" => found.extend(judge_match(path, source, index)),
                "matches" if source.at(index + 1) == "!" => {
                    found.extend(judge_matches(path, source, index));
                }
                "let" => found.extend(judge_let(path, source, index)),
                _ => {}
            }
        }
    }
    if !seen {
        found.push(missing("crates/wf-core/src/state_machine/decide"));
    }
    found
}

/// A `match` over a tuple, or with an arm that would swallow a new variant.
fn judge_match(path: &str, source: &Source, index: usize) -> Vec<Violation> {
    let mut found = Vec::new();
    let line = source.tokens().get(index).map_or(0, |token| token.line);
    let Some(body) = match_body(source, index + 1) else { return found };
    let parenthesis = index + 1;
    if source.at(parenthesis) == "("
        && source.mate(parenthesis) + 1 == body
        && has_comma(source, parenthesis)
    {
        let fix = "match one enum at a time (command outside, state inside): no lint sees through a tuple";
        found.push(Violation::new(path, line, "a match over a tuple", fix));
    }
    let arms = arms(source, body);
    let over_values =
        arms.iter().any(|arm| pattern_words(source, arm).any(|word| is_value(source, word)));
    for arm in &arms {
        if is_catch_all(source, arm) && !over_values {
            let line = source.tokens().get(arm.start).map_or(line, |token| token.line);
            let fix =
                "write every variant, so that a new one does not compile until somebody decided";
            found.push(Violation::new(path, line, "an arm that catches every variant", fix));
        }
    }
    found
}

/// `matches!(value, Our::Variant)`.
fn judge_matches(path: &str, source: &Source, index: usize) -> Option<Violation> {
    let open = index + 2;
    let comma = (open + 1..source.mate(open)).find(|at| source.at(*at) == ",")?;
    let head = source.at(comma + 1);
    let line = source.tokens().get(index).map_or(0, |token| token.line);
    let over_values = STANDARD.contains(&head) || is_value(source, comma + 1);
    (!over_values).then(|| {
        let fix = "a `match` with every variant, or a method of the enum written as one";
        Violation::new(path, line, "`matches!` over one of our enums", fix)
    })
}

/// `if let Our::Variant = …`, `while let`, or in a chain of conditions.
///
/// `let Our::Variant { .. } = … else` is left alone: it takes apart what an exhaustive match has routed here.
fn judge_let(path: &str, source: &Source, index: usize) -> Option<Violation> {
    let condition = ["if", "while", "&"].contains(&source.at(index.wrapping_sub(1)));
    let head = source.at(index + 1);
    let is_capital = |word: &str| word.starts_with(|first: char| first.is_ascii_uppercase());
    let variant = source.reads(index + 2, &[":", ":"]) && is_capital(source.at(index + 4));
    let line = source.tokens().get(index).map_or(0, |token| token.line);
    (condition && is_capital(head) && variant).then(|| {
        let fix = "a `match` with every variant";
        Violation::new(
            path,
            line,
            format!("`let {head}::…` as a condition over one of our enums"),
            fix,
        )
    })
}

/// The `{` of the match whose scrutinee starts at `index`.
fn match_body(source: &Source, index: usize) -> Option<usize> {
    let mut at = index;
    loop {
        let token = source.tokens().get(at)?;
        match (token.kind, token.text.as_str()) {
            (Kind::Open, "{") => return Some(at),
            (Kind::Open, _) => at = token.mate + 1,
            (Kind::Close, _) => return None,
            (Kind::Ident | Kind::Punct | Kind::Literal, _) => at += 1,
        }
    }
}

/// The patterns (guards included) of the arms of the match whose `{` is at `body`.
fn arms(source: &Source, body: usize) -> Vec<Range<usize>> {
    let end = source.mate(body);
    let mut found = Vec::new();
    let mut start = body + 1;
    let mut at = start;
    while at < end {
        if source.reads(at, &["=", ">"]) {
            found.push(start..at);
            at = after_expression(source, at + 2, end);
            start = at;
        } else if source.tokens().get(at).is_some_and(|token| token.kind == Kind::Open) {
            at = source.mate(at) + 1;
        } else {
            at += 1;
        }
    }
    found
}

/// One past the arm's expression that starts at `at`: after its comma, or after its block.
fn after_expression(source: &Source, at: usize, end: usize) -> usize {
    if source.at(at) == "{" {
        let after = source.mate(at) + 1;
        return if source.at(after) == "," { after + 1 } else { after };
    }
    let mut at = at;
    while at < end {
        if source.at(at) == "," {
            return at + 1;
        }
        let open = source.tokens().get(at).is_some_and(|token| token.kind == Kind::Open);
        at = if open { source.mate(at) + 1 } else { at + 1 };
    }
    end
}

/// `_` or a plain binding, with or without a guard.
fn is_catch_all(source: &Source, arm: &Range<usize>) -> bool {
    let first = source.at(arm.start);
    let alone = arm.len() == 1 || source.at(arm.start + 1) == "if";
    let binding = first == "_"
        || first.starts_with(|c: char| c.is_ascii_lowercase())
            && !["true", "false"].contains(&first);
    alone && binding
}

/// Indices at which an alternative of the arm's pattern starts.
fn pattern_words<'a>(
    source: &'a Source,
    arm: &'a Range<usize>,
) -> impl Iterator<Item = usize> + 'a {
    arm.clone().filter(move |at| *at == arm.start || source.at(at - 1) == "|")
}

/// Is the pattern at `at` a literal, or a variant of the standard library's option and result?
fn is_value(source: &Source, at: usize) -> bool {
    let literal = source.tokens().get(at).is_some_and(|token| token.kind == Kind::Literal);
    literal || STANDARD.contains(&source.at(at)) || ["true", "false", "-"].contains(&source.at(at))
}

/// Is there a comma directly inside the group that opens at `open`?
fn has_comma(source: &Source, open: usize) -> bool {
    let end = source.mate(open);
    let mut at = open + 1;
    while at < end {
        if source.at(at) == "," {
            return true;
        }
        let nested = source.tokens().get(at).is_some_and(|token| token.kind == Kind::Open);
        at = if nested { source.mate(at) + 1 } else { at + 1 };
    }
    false
}
