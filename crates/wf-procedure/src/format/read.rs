//! Tree → [`Document`]. Reports every wrong shape, then gives up; meaning is `compile`'s.

use super::escalate::escalate;
use super::fields::{self, Fields};
use super::steps;
use super::{
    Asset, AssetIdForm, Blocks, Deadline, DeadlineFrom, Decision, DefaultBlock, DigitsSpec,
    Document, EffectName, InputsSchema, LeadingZeros, Located, LongDecision, NumberedId, Order,
    PatternId, Reason, ResultSpec, SCHEMA, SchemaName,
};
use crate::problem::{Problems, one_of};
use crate::tree::{Content, Node};

/// Keys of a document.
pub(crate) const DOCUMENT: &[&str] = &[
    "schema",
    "id",
    "version",
    "title",
    "order",
    "assets",
    "inputs",
    "stale_after",
    "timezone",
    "reasons",
    "steps",
    "deadlines",
    "blocks",
    "results",
    "notify",
];

/// Reads a document.
pub(crate) fn document(node: &Node, problems: &mut Problems) -> Option<Document> {
    let mut f = Fields::open(node, "a procedure", DOCUMENT, problems)?;
    let schema = f.must("schema", schema_name);
    let id = f.must("id", fields::id);
    let version = f.must("version", |n, p| fields::whole(n, (1, u32::MAX), p));
    let title = f.must("title", fields::say);
    let order = f.read("order", |n, p| {
        fields::word(n, &[("sequence", Order::Sequence), ("any", Order::Any)], p)
    });
    let assets = f.read("assets", |n, p| fields::list(n, "assets", p, asset));
    let inputs =
        f.read("inputs", |n, _| Some(Located { value: InputsSchema(n.clone()), at: n.at }));
    let stale_after = f.read("stale_after", fields::duration);
    let timezone = f.read("timezone", fields::text);
    let reasons = f.read("reasons", |n, p| fields::list(n, "reasons", p, reason));
    let steps = f.must("steps", |n, p| fields::list(n, "steps", p, steps::step));
    let deadlines = f.read("deadlines", |n, p| fields::list(n, "deadlines", p, deadline));
    let blocks = f.read("blocks", blocks);
    let results = f.read("results", |n, p| fields::list(n, "results", p, result));
    let notify = f.read("notify", |n, p| fields::list(n, "event kinds", p, fields::text));
    f.close(&[]);
    Some(Document {
        schema: schema?,
        id: id?,
        version: version?,
        title: title?,
        order: order.map(|o| o.value),
        assets,
        inputs,
        stale_after,
        timezone,
        reasons,
        steps: steps?,
        deadlines,
        blocks,
        results,
        notify,
    })
}

fn schema_name(node: &Node, problems: &mut Problems) -> Option<SchemaName> {
    let found = fields::text(node, problems)?;
    if found.value == SCHEMA {
        return Some(SchemaName);
    }
    let shown = wf_core::redaction::Quoted(&found.value);
    problems.add(
        node.at,
        format!("the format {shown} is not known to this build"),
        format!("write {SCHEMA}"),
    );
    None
}

fn asset(node: &Node, problems: &mut Problems) -> Option<Asset> {
    let keys = &["role", "say", "id", "example"];
    let mut f = Fields::open(node, "an asset", keys, problems)?;
    let role = f.must("role", fields::id);
    let say = f.read("say", fields::say);
    let id = f.must("id", asset_id);
    let example = f.read("example", fields::text);
    f.close(&[]);
    Some(Asset { role: role?, say, id: id?, example })
}

fn asset_id(node: &Node, problems: &mut Problems) -> Option<Located<AssetIdForm>> {
    if let Content::Text(text) = &node.content {
        let shown = wf_core::redaction::Quoted(text);
        problems.add(
            node.at,
            format!("{shown} does not say how ids look"),
            "write { pattern: '…' } or { prefix: PUMP-, digits: { max: 6 } }",
        );
        return None;
    }
    let value = if node.get("pattern").is_some() {
        let mut f = Fields::open(node, "an id by pattern", &["pattern"], problems)?;
        let pattern = f.must("pattern", fields::text);
        f.close(&[("prefix", "ids without pattern"), ("digits", "ids without pattern")]);
        AssetIdForm::Pattern(PatternId { pattern: pattern? })
    } else {
        let mut f = Fields::open(node, "an asset id", &["prefix", "digits", "pattern"], problems)?;
        let prefix = f.must("prefix", fields::id);
        let digits = f.must("digits", digits);
        f.close(&[]);
        AssetIdForm::Numbered(NumberedId { prefix: prefix?, digits: digits? })
    };
    Some(Located { value, at: node.at })
}

fn digits(node: &Node, problems: &mut Problems) -> Option<DigitsSpec> {
    let mut f = Fields::open(node, "digits", &["max", "leading_zeros"], problems)?;
    let max = f.must("max", |n, p| fields::whole(n, (1, 18), p));
    let leading_zeros = f.read("leading_zeros", |n, p| {
        let words = [("drop", LeadingZeros::Drop), ("keep", LeadingZeros::Keep)];
        fields::word(n, &words, p)
    });
    f.close(&[]);
    Some(DigitsSpec { max: max?, leading_zeros: leading_zeros.map(|l| l.value) })
}

fn reason(node: &Node, problems: &mut Problems) -> Option<Reason> {
    let mut f = Fields::open(node, "a reason", &["code", "say"], problems)?;
    let code = f.must("code", fields::id);
    let say = f.read("say", fields::say);
    f.close(&[]);
    Some(Reason { code: code?, say })
}

fn result(node: &Node, problems: &mut Problems) -> Option<ResultSpec> {
    let mut f = Fields::open(node, "a result", &["id", "say", "when"], problems)?;
    let id = f.must("id", fields::id);
    let say = f.read("say", fields::say);
    let when = f.read("when", fields::cel);
    f.close(&[]);
    Some(ResultSpec { id: id?, say, when })
}

fn deadline(node: &Node, problems: &mut Problems) -> Option<Deadline> {
    let keys = &["id", "after", "from", "notify"];
    let mut f = Fields::open(node, "a deadline", keys, problems)?;
    let id = f.must("id", fields::id);
    let after = f.must("after", fields::duration);
    let from = f.read("from", |n, p| fields::word(n, &[("start", DeadlineFrom::Start)], p));
    let notify = f.must("notify", fields::id);
    f.close(&[]);
    Some(Deadline { id: id?, after: after?, from: from.map(|f| f.value), notify: notify? })
}

fn blocks(node: &Node, problems: &mut Problems) -> Option<Blocks> {
    let mut f = Fields::open(node, "blocks", &["default"], problems)?;
    let default = f.must("default", default_block);
    f.close(&[]);
    Some(Blocks { default: default? })
}

fn default_block(node: &Node, problems: &mut Problems) -> Option<DefaultBlock> {
    let keys = &["code", "question", "escalate", "decisions"];
    let mut f = Fields::open(node, "blocks.default", keys, problems)?;
    let code = f.read("code", fields::id);
    let question = f.read("question", fields::say);
    let escalate = f.read("escalate", escalate);
    let decisions = f.read("decisions", decisions);
    f.close(&[]);
    Some(DefaultBlock { code, question, escalate, decisions })
}

/// `decisions:`.
pub(super) fn decisions(node: &Node, problems: &mut Problems) -> Option<Located<Vec<Decision>>> {
    fields::list(node, "decisions", problems, decision)
}

/// Decisions whose effect is known by their name.
pub(crate) const KNOWN_DECISIONS: [(&str, EffectName); 6] = [
    ("accept_deviation", EffectName::Continue),
    ("carry_on", EffectName::Continue),
    ("continue", EffectName::Continue),
    ("require_redo", EffectName::Redo),
    ("redo", EffectName::Redo),
    ("abort", EffectName::Abort),
];

fn decision(node: &Node, problems: &mut Problems) -> Option<Decision> {
    if let Content::Text(name) = &node.content {
        let id = fields::id(node, problems)?;
        if KNOWN_DECISIONS.iter().any(|(known, _)| known == name) {
            return Some(Decision::Short(id));
        }
        let known: Vec<&str> = KNOWN_DECISIONS.iter().map(|(k, _)| *k).collect();
        let hint = format!(
            "{}, or write {{ id: {name}, say: …, effect: continue }}",
            one_of(name, &known)
        );
        let message = format!("the effect of \"{name}\" is not known");
        problems.add(node.at, message, hint);
        return None;
    }
    let mut f = Fields::open(node, "a decision", &["id", "say", "effect"], problems)?;
    let id = f.must("id", fields::id);
    let say = f.read("say", fields::say);
    let effect = f.must("effect", |n, p| {
        let words = [
            ("continue", EffectName::Continue),
            ("redo", EffectName::Redo),
            ("abort", EffectName::Abort),
        ];
        fields::word(n, &words, p)
    });
    f.close(&[]);
    Some(Decision::Long(LongDecision { id: id?, say, effect: effect?.value }))
}
