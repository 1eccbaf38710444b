//! What state machines say with `$`: paths into the input and the context, templates whose keys end in `.$`,
//! `States.Format`, and `ResultPath`. Only what is written here can be said; the rest is refused when a definition arrives.
//! <https://docs.aws.amazon.com/step-functions/latest/dg/amazon-states-language-paths.html>

use serde_json::{Map, Value, json};

/// Why a state fails: the name that `Retry` and `Catch` look for, and words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) error: String,
    pub(super) cause: String,
}

impl Failure {
    pub(super) fn new(error: &str, cause: impl Into<String>) -> Self {
        Self { error: error.to_owned(), cause: cause.into() }
    }

    fn path(text: &str) -> Self {
        Self::new("States.ParameterPathFailure", format!("nothing is found at {text}"))
    }
}

/// What expressions see.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) input: &'a Value,
    pub(super) context: &'a Value,
}

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    /// `$.a.b`, or `$$.a.b` of the context.
    Path { context: bool, steps: Vec<String> },
    /// `'text'` in an argument.
    Text(String),
    /// `States.Format('a {} b', …)`.
    Format { text: String, arguments: Vec<Self> },
}

const FORMAT: &str = "States.Format(";

impl Expression {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix(FORMAT) else { return path(text) };
        let Some(inside) = rest.strip_suffix(')') else {
            return Err(format!("{text}: no closing bracket"));
        };
        let mut arguments = arguments(inside)?.into_iter();
        match arguments.next() {
            Some(Self::Text(text)) => {
                let arguments: Vec<Self> = arguments.collect();
                if text.matches("{}").count() == arguments.len() {
                    return Ok(Self::Format { text, arguments });
                }
                Err(format!("{text}: as many arguments as places"))
            }
            Some(Self::Path { .. } | Self::Format { .. }) | None => {
                Err(format!("{text}: a text comes first"))
            }
        }
    }

    pub(super) fn value(&self, scope: Scope<'_>) -> Result<Value, Failure> {
        match self {
            Self::Text(text) => Ok(json!(text)),
            Self::Path { context, steps } => {
                let root = if *context { scope.context } else { scope.input };
                let found = steps.iter().try_fold(root, |value, step| value.get(step));
                found.cloned().ok_or_else(|| Failure::path(&steps.join(".")))
            }
            Self::Format { text, arguments } => {
                let mut pieces = text.split("{}");
                let mut written = pieces.next().unwrap_or_default().to_owned();
                for (argument, piece) in arguments.iter().zip(pieces) {
                    written.push_str(&plain(&argument.value(scope)?)?);
                    written.push_str(piece);
                }
                Ok(json!(written))
            }
        }
    }
}

/// How a value stands in a text.
fn plain(value: &Value) -> Result<String, Failure> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::Array(_) | Value::Object(_) => {
            Err(Failure::new("States.IntrinsicFailure", "only plain values are formatted"))
        }
    }
}

/// `$`, `$.a.b`, `$$.a.b`; names of letters, digits, `_` and `-`.
fn path(text: &str) -> Result<Expression, String> {
    let wrong = || format!("{text}: a path of names, or States.Format");
    let rest = text.strip_prefix('$').ok_or_else(wrong)?;
    let (context, rest) = rest.strip_prefix('$').map_or((false, rest), |rest| (true, rest));
    let steps = steps(rest).ok_or_else(wrong)?;
    Ok(Expression::Path { context, steps })
}

fn steps(rest: &str) -> Option<Vec<String>> {
    if rest.is_empty() {
        return Some(Vec::new());
    }
    let usual = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let named = |step: &str| !step.is_empty() && step.chars().all(usual);
    let steps: Vec<&str> = rest.strip_prefix('.')?.split('.').collect();
    steps.iter().all(|step| named(step)).then(|| steps.into_iter().map(str::to_owned).collect())
}

/// Arguments between commas; texts in single quotes have no quotes, commas or brackets of their own.
fn arguments(inside: &str) -> Result<Vec<Expression>, String> {
    let parse = |argument: &str| {
        let argument = argument.trim();
        let quoted = argument.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        match quoted {
            Some(text) if text.contains(['\'', '\\']) => Err(format!("{text}: no escapes here")),
            Some(text) => Ok(Expression::Text(text.to_owned())),
            None => path(argument),
        }
    };
    inside.split(',').map(parse).collect()
}

/// Fills a template: a key that ends in `.$` holds an expression.
pub(super) fn fill(template: &Value, scope: Scope<'_>) -> Result<Value, Failure> {
    match template {
        Value::Object(members) => {
            let mut filled = Map::new();
            for (key, value) in members {
                let (key, value) = match key.strip_suffix(".$") {
                    Some(key) => (key, said(value)?.value(scope)?),
                    None => (key.as_str(), fill(value, scope)?),
                };
                filled.insert(key.to_owned(), value);
            }
            Ok(Value::Object(filled))
        }
        Value::Array(items) => items.iter().map(|item| fill(item, scope)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(template.clone()),
    }
}

fn said(value: &Value) -> Result<Expression, Failure> {
    let text = value.as_str().unwrap_or_default();
    Expression::parse(text).map_err(|why| Failure::new("States.Runtime", why))
}

/// What is wrong with the expressions of a template, and whether one of them is the token of the task.
pub(super) fn check(template: &Value) -> Result<bool, String> {
    match template {
        Value::Object(members) => {
            let mut token = false;
            for (key, value) in members {
                token |= match key.strip_suffix(".$") {
                    Some(_) => {
                        let text = value.as_str().ok_or_else(|| format!("{key}: no text"))?;
                        Expression::parse(text)?;
                        text == "$$.Task.Token"
                    }
                    None => check(value)?,
                };
            }
            Ok(token)
        }
        Value::Array(items) => {
            items.iter().try_fold(false, |token, item| Ok(check(item)? || token))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(false),
    }
}

/// Puts a result where `ResultPath` says: `None` drops it, `$` takes it for everything, `$.a.b` makes what is missing.
pub(super) fn put(input: &Value, at: Option<&str>, result: Value) -> Result<Value, Failure> {
    let Some(at) = at else { return Ok(input.clone()) };
    let wrong = || Failure::new("States.ResultPathMatchFailure", format!("{at} is no place"));
    let steps = at.strip_prefix('$').and_then(steps).ok_or_else(wrong)?;
    let mut whole = input.clone();
    let mut place = &mut whole;
    for step in steps {
        if place.is_null() {
            *place = json!({});
        }
        let members = place.as_object_mut().ok_or_else(wrong)?;
        place = members.entry(step).or_insert(Value::Null);
    }
    *place = result;
    Ok(whole)
}

/// Whether a `ResultPath` is a place.
pub(super) fn is_place(at: &str) -> bool {
    at.strip_prefix('$').is_some_and(|rest| steps(rest).is_some())
}
