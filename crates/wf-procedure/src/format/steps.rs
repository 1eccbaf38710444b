//! Tree → [`Step`].

use super::escalate::escalate;
use super::fields::{self, Fields};
use super::read::decisions;
use super::{
    Action, Choice, ChoiceOption, Confirm, Kind, Located, LongChoice, Number, OutOfRange, Range,
    SignSpec, Skip, Step, TextSpec, UnitSpec, UnitWordsSpec, WaitSpec,
};
use crate::problem::{Problems, one_of};
use crate::tree::{Content, Node};

const CONFIRM: &[&str] =
    &["id", "kind", "prompt", "say", "required", "skip", "when", "role", "sensitive", "confirm"];
const NUMBER: &[&str] = &[
    "id",
    "kind",
    "prompt",
    "say",
    "required",
    "skip",
    "when",
    "role",
    "sensitive",
    "confirm",
    "unit",
    "accept_units",
    "decimals",
    "range",
    "out_of_range",
];
const CHOICE: &[&str] = &[
    "id",
    "kind",
    "prompt",
    "say",
    "required",
    "skip",
    "when",
    "role",
    "sensitive",
    "confirm",
    "choices",
    "block_on",
];
const TEXT: &[&str] = &[
    "id",
    "kind",
    "prompt",
    "say",
    "required",
    "skip",
    "when",
    "role",
    "sensitive",
    "confirm",
    "max_length",
];
const WAIT: &[&str] =
    &["id", "kind", "prompt", "say", "required", "skip", "when", "role", "duration"];
const SIGN: &[&str] = &[
    "id",
    "kind",
    "prompt",
    "say",
    "required",
    "skip",
    "when",
    "role",
    "confirm",
    "not_performer",
];

/// Keys that only steps of one kind have.
const OF_ONE_KIND: &[(&str, &str)] = &[
    ("unit", "steps of kind number"),
    ("accept_units", "steps of kind number"),
    ("decimals", "steps of kind number"),
    ("range", "steps of kind number"),
    ("out_of_range", "steps of kind number"),
    ("choices", "steps of kind choice"),
    ("block_on", "steps of kind choice"),
    ("max_length", "steps of kind text"),
    ("duration", "steps of kind wait"),
    ("not_performer", "steps of kind sign"),
    ("sensitive", "steps that take a value"),
    ("confirm", "steps that take a value"),
];

const KINDS: [&str; 6] = ["confirm", "number", "choice", "text", "wait", "sign"];

const SKIPS: [(&str, Skip); 3] =
    [("never", Skip::Never), ("reason", Skip::Reason), ("supervisor", Skip::Supervisor)];

const CONFIRMS: [(&str, Confirm); 3] =
    [("never", Confirm::Never), ("out_of_range", Confirm::OutOfRange), ("always", Confirm::Always)];

/// Reads a step.
pub(super) fn step(node: &Node, problems: &mut Problems) -> Option<Step> {
    let kind = node.get("kind").and_then(|n| match &n.content {
        Content::Text(kind) => Some((kind.as_str(), n)),
        Content::Null
        | Content::Bool(_)
        | Content::Number(_)
        | Content::List(_)
        | Content::Map(_) => None,
    });
    let (what, keys) = match kind {
        Some(("number", _)) => ("a step of kind number", NUMBER),
        Some(("choice", _)) => ("a step of kind choice", CHOICE),
        Some(("text", _)) => ("a step of kind text", TEXT),
        Some(("confirm", _)) => ("a step of kind confirm", CONFIRM),
        Some(("wait", _)) => ("a step of kind wait", WAIT),
        Some(("sign", _)) => ("a step of kind sign", SIGN),
        Some((other, at)) => {
            let shown = wf_core::redaction::Quoted(other);
            problems.add(at.at, format!("{shown} is no kind of step"), one_of(other, &KINDS));
            return None;
        }
        None => ("a step", CONFIRM),
    };
    let mut f = Fields::open(node, what, keys, problems)?;
    let kind_node = f.need("kind");
    let id = f.must("id", fields::id);
    let waits = kind.is_some_and(|(kind, _)| kind == "wait");
    let prompt = if waits { f.read("prompt", fields::say) } else { f.must("prompt", fields::say) };
    let say = f.read("say", fields::say);
    let required = f.read("required", fields::flag);
    let skip = f.read("skip", |n, p| fields::word(n, &SKIPS, p));
    let when = f.read("when", fields::cel);
    let role = f.read("role", fields::id);
    let kinds = kind.map(|(k, _)| k);
    let withholds = !matches!(kinds, Some("wait" | "sign"));
    let sensitive = if withholds { f.read("sensitive", fields::flag) } else { None };
    let reads_back = kinds != Some("wait");
    let confirm =
        if reads_back { f.read("confirm", |n, p| fields::word(n, &CONFIRMS, p)) } else { None };
    let kind = match (kinds, kind_node) {
        (Some(name), _) => of_kind(name, &mut f),
        (None, Some(node)) => {
            f.problems.add(node.at, "the kind is not text", one_of("", &KINDS));
            None
        }
        (None, None) => None,
    };
    f.close(OF_ONE_KIND);
    Some(Step {
        id: id?,
        prompt: if waits { prompt } else { Some(prompt?) },
        say,
        required,
        skip,
        when,
        role,
        sensitive,
        confirm,
        kind: kind?,
    })
}

/// The part of a step that only its kind has.
fn of_kind(name: &str, f: &mut Fields<'_, '_>) -> Option<Kind> {
    match name {
        "number" => Some(Kind::Number(Box::new(number(f)))),
        "choice" => choice(f).map(Kind::Choice),
        "text" => Some(Kind::Text(TextSpec {
            max_length: f.read("max_length", |n, p| fields::whole(n, (1, 1_000), p)),
        })),
        "wait" => {
            f.must("duration", fields::duration).map(|duration| Kind::Wait(WaitSpec { duration }))
        }
        "sign" => {
            Some(Kind::Sign(SignSpec { not_performer: f.read("not_performer", fields::flag) }))
        }
        _ => Some(Kind::Confirm),
    }
}

fn number(f: &mut Fields<'_, '_>) -> Number {
    Number {
        unit: f.read("unit", unit),
        accept_units: f.read("accept_units", |n, p| fields::list(n, "units", p, fields::text)),
        decimals: f.read("decimals", |n, p| fields::whole(n, (0, 12), p)),
        range: f.read("range", range),
        out_of_range: f.read("out_of_range", out_of_range),
    }
}

fn unit(node: &Node, problems: &mut Problems) -> Option<Located<UnitSpec>> {
    if let Content::Text(symbol) = &node.content {
        return Some(Located { value: UnitSpec::Symbol(symbol.clone()), at: node.at });
    }
    let mut f = Fields::open(node, "a unit", &["symbol", "one", "many"], problems)?;
    let symbol = f.must("symbol", fields::text);
    let one = f.must("one", fields::say);
    let many = f.must("many", fields::say);
    f.close(&[]);
    Some(Located {
        value: UnitSpec::Words(UnitWordsSpec { symbol: symbol?, one: one?, many: many? }),
        at: node.at,
    })
}

fn range(node: &Node, problems: &mut Problems) -> Option<Range> {
    let mut f = Fields::open(node, "a range", &["instrument", "accept", "warn"], problems)?;
    let range = Range {
        instrument: f.read("instrument", fields::bounds),
        accept: f.read("accept", fields::bounds),
        warn: f.read("warn", fields::bounds),
    };
    f.close(&[]);
    Some(range)
}

fn out_of_range(node: &Node, problems: &mut Problems) -> Option<Located<OutOfRange>> {
    let keys = &["action", "code", "question", "escalate", "decisions"];
    let mut f = Fields::open(node, "out_of_range", keys, problems)?;
    let value = OutOfRange {
        action: f.read("action", |n, p| {
            fields::word(n, &[("block", Action::Block), ("warn", Action::Warn)], p)
        }),
        code: f.read("code", fields::id),
        question: f.read("question", fields::say),
        escalate: f.read("escalate", escalate),
        decisions: f.read("decisions", decisions),
    };
    f.close(&[]);
    Some(Located { value, at: node.at })
}

fn choice(f: &mut Fields<'_, '_>) -> Option<Choice> {
    let choices = f.must("choices", |n, p| fields::list(n, "choices", p, choice_option));
    let block_on = f.read("block_on", |n, p| fields::list(n, "choices", p, fields::id));
    Some(Choice { choices: choices?, block_on })
}

fn choice_option(node: &Node, problems: &mut Problems) -> Option<ChoiceOption> {
    if !matches!(node.content, Content::Map(_)) {
        return fields::id(node, problems).map(ChoiceOption::Short);
    }
    let mut f = Fields::open(node, "a choice", &["id", "say"], problems)?;
    let id = f.must("id", fields::id);
    let say = f.must("say", fields::say);
    f.close(&[]);
    Some(ChoiceOption::Long(LongChoice { id: id?, say: say? }))
}
