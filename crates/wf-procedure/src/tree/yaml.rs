//! YAML 1.2 (and so JSON) text → tree. The scanner is `serde-saphyr`'s; what plain scalars mean is decided here.
//!
//! The core schema of YAML 1.2.2 (section 10.3) with one restriction: a plain scalar that the schema takes for a number
//! must be written `-?digits[.digits]` without leading zeros, so that what it means is what anybody reads. Aliases are
//! resolved; tags, merge keys, duplicate keys and further documents are refused.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_saphyr::granit_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag, options};

use super::{Content, Entry, Node};
use crate::decimal;
use crate::problem::{Position, Problems};

/// Largest file, in bytes.
pub(crate) const FILE_BYTES_MAX: usize = 1024 * 1024;
/// Most parts of a document, aliases resolved.
const PARTS_MAX: usize = 50_000;

/// `MAX_SAFE_INTEGER` of `wf_idempotency` as the double it is.
const MAX_SAFE_DOUBLE: f64 = 9_007_199_254_740_991.0;

/// Reads one document. `None` when something was wrong; then `problems` says what.
pub(crate) fn read(source: &str, problems: &mut Problems) -> Option<Node> {
    if source.len() > FILE_BYTES_MAX {
        problems.add(
            Position::default(),
            format!("the file has {} bytes", source.len()),
            format!("a procedure has at most {FILE_BYTES_MAX} bytes"),
        );
        return None;
    }
    let mut builder = Builder::new(problems);
    let depth = wf_core::limits::JSON_DEPTH_MAX;
    let options = options! {
        emit_comments: false,
        flow_nesting_limit: depth,
        block_nesting_limit: depth,
    };
    for next in Parser::new_from_str_with_options(source, options) {
        match next {
            Ok((event, span)) => {
                if builder.event(event, span).is_break() {
                    break;
                }
            }
            Err(error) => {
                let (at, info) = (position(error.marker()), error.info());
                let hint = if info.contains("anchor") {
                    "name an anchor (&name) that stands before it, or write the value out"
                } else {
                    "look for a bracket, a quote or an indentation that is wrong there or before"
                };
                builder.fault(at, format!("not valid YAML: {info}"), hint);
                break;
            }
        }
    }
    builder.finish()
}

fn position(mark: &Marker) -> Position {
    Position { line: mark.line(), column: mark.col() + 1 }
}

/// A container that is being filled.
struct Frame {
    at: Position,
    anchor: usize,
    filling: Filling,
}

enum Filling {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, seen: BTreeSet<String>, key: Option<(String, Position)> },
}

struct Builder<'p> {
    problems: &'p mut Problems,
    stack: Vec<Frame>,
    root: Option<Node>,
    documents: usize,
    anchors: BTreeMap<usize, Node>,
    parts: usize,
    broken: bool,
}

type Flow = std::ops::ControlFlow<()>;

impl<'p> Builder<'p> {
    fn new(problems: &'p mut Problems) -> Self {
        Self {
            problems,
            stack: Vec::new(),
            root: None,
            documents: 0,
            anchors: BTreeMap::new(),
            parts: 0,
            broken: false,
        }
    }

    fn fault(&mut self, at: Position, message: impl Into<String>, hint: impl Into<String>) {
        self.broken = true;
        self.problems.add(at, message, hint);
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Flow {
        let at = position(&span.start);
        if let Event::DocumentStart(..) = event {
            self.documents += 1;
            if self.documents > 1 {
                self.fault(
                    at,
                    "a second document",
                    "a file holds one procedure; remove \"---\" and what follows",
                );
                return Flow::Break(());
            }
        } else if let Event::Alias(id) = event {
            self.alias(id, at)?;
        } else if let Event::Scalar(text, style, anchor, tag) = event {
            self.no_tag(tag.as_ref(), at);
            let node = self.scalar(text, style, at, &span);
            self.place(node, anchor)?;
        } else if let Event::SequenceStart(_, anchor, tag) = event {
            self.no_tag(tag.as_ref(), at);
            let filling = Filling::List(Vec::new());
            self.stack.push(Frame { at, anchor, filling });
        } else if let Event::MappingStart(_, anchor, tag) = event {
            self.no_tag(tag.as_ref(), at);
            self.stack.push(Frame {
                at,
                anchor,
                filling: Filling::Map { entries: Vec::new(), seen: BTreeSet::new(), key: None },
            });
        } else if matches!(event, Event::SequenceEnd | Event::MappingEnd) {
            self.close()?;
        }
        Flow::Continue(())
    }

    fn no_tag(&mut self, tag: Option<&Cow<'_, Tag>>, at: Position) {
        if tag.is_some() {
            self.fault(at, "a YAML tag (!…)", "remove it; tags mean nothing here");
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        at: Position,
        span: &Span,
    ) -> Node {
        let chars = text.chars().count();
        let shift = match style {
            ScalarStyle::Plain if span.len() == chars => Some(0),
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted if span.len() == chars + 2 => {
                Some(1)
            }
            ScalarStyle::Plain
            | ScalarStyle::SingleQuoted
            | ScalarStyle::DoubleQuoted
            | ScalarStyle::Literal
            | ScalarStyle::Folded => None,
        };
        let content = if style == ScalarStyle::Plain {
            self.plain(text.into_owned(), at)
        } else {
            Content::Text(text.into_owned())
        };
        Node { at, shift, content }
    }

    /// What a plain scalar means.
    fn plain(&mut self, text: String, at: Position) -> Content {
        match text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => return Content::Null,
            "true" | "True" | "TRUE" => return Content::Bool(true),
            "false" | "False" | "FALSE" => return Content::Bool(false),
            _ => {}
        }
        if !looks_numeric(&text) {
            return Content::Text(text);
        }
        match number(&text) {
            Ok(()) => Content::Number(text),
            Err((message, hint)) => {
                self.fault(at, message, hint);
                Content::Number("0".to_owned())
            }
        }
    }

    fn alias(&mut self, id: usize, at: Position) -> Flow {
        let Some(node) = self.anchors.get(&id).cloned() else {
            self.fault(at, "an alias inside what it refers to", "write the value out");
            return Flow::Break(());
        };
        self.parts = self.parts.saturating_add(node.size());
        self.place(node, 0)
    }

    /// Puts a finished node where it belongs.
    fn place(&mut self, node: Node, anchor: usize) -> Flow {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            self.fault(
                node.at,
                format!("more than {PARTS_MAX} parts, aliases resolved"),
                "split the procedure",
            );
            return Flow::Break(());
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node);
            return Flow::Continue(());
        };
        match &mut frame.filling {
            Filling::List(items) => items.push(node),
            Filling::Map { entries, seen, key } => match key.take() {
                Some((key, key_at)) if seen.insert(key.clone()) => {
                    entries.push(Entry { key, key_at, value: node });
                }
                Some((key, key_at)) => {
                    let message = format!("the key \"{key}\" stands twice in this map");
                    self.fault(key_at, message, "keep one of them");
                }
                None => {
                    let at = node.at;
                    *key = Some(match node.content {
                        Content::Text(text) => (text, at),
                        Content::Number(digits) => (digits, at),
                        Content::Null | Content::Bool(_) | Content::List(_) | Content::Map(_) => {
                            self.fault(at, "a key that is not text", "put the key in quotes");
                            return Flow::Break(());
                        }
                    });
                }
            },
        }
        Flow::Continue(())
    }

    fn close(&mut self) -> Flow {
        let Some(frame) = self.stack.pop() else {
            return Flow::Continue(());
        };
        let content = match frame.filling {
            Filling::List(items) => Content::List(items),
            Filling::Map { entries, .. } => Content::Map(entries),
        };
        let node = Node { at: frame.at, shift: None, content };
        self.place(node, frame.anchor)
    }

    fn finish(mut self) -> Option<Node> {
        if self.root.is_none() && !self.broken {
            self.fault(
                Position { line: 1, column: 1 },
                "the file is empty",
                "start with: schema: checkpoint/procedure/v1",
            );
        }
        if self.broken { None } else { self.root }
    }
}

/// True when the core schema (YAML 1.2.2, section 10.3.2) takes a plain scalar for a number.
fn looks_numeric(text: &str) -> bool {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(body, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit());
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return !octal.is_empty() && octal.bytes().all(|b| b.is_ascii_digit());
    }
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(i) => (&body[..i], Some(&body[i + 1..])),
        None => (body, None),
    };
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part) && whole.len() + part.len() > 0,
        None => !mantissa.is_empty() && digits(mantissa),
    };
    let exponent_ok = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['-', '+']).unwrap_or(e);
        !e.is_empty() && digits(e)
    });
    mantissa_ok && exponent_ok
}

/// Whether a number is written plainly and survives as JSON; else the message and the hint.
fn number(text: &str) -> Result<(), (String, String)> {
    let quoted = format!("put it in quotes if it is meant as text: \"{text}\"");
    let Some(written) = decimal::Decimal::parse(text) else {
        return Err((
            format!("{text} is not written as plain digits"),
            format!("write digits and at most one point, like 0.5 or -4; {quoted}"),
        ));
    };
    let whole = text.strip_prefix('-').unwrap_or(text);
    let whole = whole.split_once('.').map_or(whole, |(w, _)| w);
    if whole.len() > 1 && whole.starts_with('0') {
        return Err((format!("{text} has leading zeros"), quoted));
    }
    let survives = match text.parse::<i64>() {
        Ok(n) => n.unsigned_abs() <= wf_core::idempotency::MAX_SAFE_INTEGER,
        // One that is whole and beyond 2^53 is a double too, perhaps; but no strict reader takes it back.
        Err(_) => text.parse::<f64>().is_ok_and(|double| {
            double.abs() <= MAX_SAFE_DOUBLE
                && decimal::Decimal::parse(&format!("{double}"))
                    .is_some_and(|kept| kept.exact == written.exact)
        }),
    };
    if survives {
        Ok(())
    } else {
        Err((
            format!("{text} has more digits than JSON numbers keep"),
            format!("write it in quotes, then every digit counts: \"{text}\""),
        ))
    }
}
