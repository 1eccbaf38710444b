//! `escalate:` of a procedure file: who is told of a block, one after another.

use schemars::JsonSchema;
use wf_core::models::Severity;

use super::fields::{self, Fields};
use super::{DurationMs, Id, Located};
use crate::problem::Problems;
use crate::tree::{Content, Node};

/// Who is told of a block.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Escalate {
    /// A recipient of the server's configuration.
    pub(crate) to: Located<Id>,
    /// How bad it is; high when absent.
    pub(crate) severity: Option<SeverityName>,
    /// How long they have to acknowledge or decide; as long as they like when absent.
    pub(crate) respond_within: Option<Located<DurationMs>>,
    /// Who is told when they do not.
    pub(crate) then: Option<Box<Then>>,
}

/// Who is told next.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Then {
    /// A recipient, the last one.
    Last(Located<Id>),
    /// A recipient after whom somebody else is told.
    Further(FurtherEscalate),
}

/// A recipient after whom somebody else is told.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct FurtherEscalate {
    /// A recipient of the server's configuration.
    pub(crate) to: Located<Id>,
    /// How long they have to acknowledge or decide; as long as they like when absent.
    pub(crate) respond_within: Option<Located<DurationMs>>,
    /// Who is told when they do not.
    pub(crate) then: Option<Box<Then>>,
}

/// How bad a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum SeverityName {
    /// Not urgent.
    Low,
    /// Urgent.
    High,
}

impl SeverityName {
    pub(crate) fn severity(self) -> Severity {
        match self {
            Self::Low => Severity::Low,
            Self::High => Severity::High,
        }
    }
}

/// Reads `escalate:`.
pub(super) fn escalate(node: &Node, problems: &mut Problems) -> Option<Located<Escalate>> {
    let keys = &["to", "severity", "respond_within", "then"];
    let mut f = Fields::open(node, "escalate", keys, problems)?;
    let to = f.must("to", fields::id);
    let severity = f.read("severity", |n, p| {
        fields::word(n, &[("low", SeverityName::Low), ("high", SeverityName::High)], p)
    });
    let respond_within = f.read("respond_within", fields::duration);
    let then = f.read("then", then);
    f.close(&[]);
    let severity = severity.map(|s| s.value);
    let value = Escalate { to: to?, severity, respond_within, then: then.map(Box::new) };
    Some(Located { value, at: node.at })
}

fn then(node: &Node, problems: &mut Problems) -> Option<Then> {
    if !matches!(node.content, Content::Map(_)) {
        return fields::id(node, problems).map(Then::Last);
    }
    let mut f = Fields::open(node, "then", &["to", "respond_within", "then"], problems)?;
    let to = f.must("to", fields::id);
    let respond_within = f.read("respond_within", fields::duration);
    let next = f.read("then", then);
    f.close(&[("severity", "escalate")]);
    let next = next.map(Box::new);
    Some(Then::Further(FurtherEscalate { to: to?, respond_within, then: next }))
}
