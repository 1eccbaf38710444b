//! A recursive-descent reader of RFC 8259 JSON over text that is known to be UTF-8.
//!
//! Owned by `strict`, which states limits and errors. Recursion is bounded by the depth limit; paths
//! are collected only while an error unwinds; each byte is looked at a constant number of times.

use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use super::StrictError;
use crate::exact::{MAX_SAFE_DOUBLE, MAX_SAFE_INTEGER, Numbers, PRIVATE_PREFIX};
use crate::pointer::Trail;

/// Integers with more digits are beyond 2^53-1 for certain (JSON has no leading zeros).
const MAX_SAFE_DIGITS: usize = 16;

/// One pass over one document.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    max_depth: usize,
    numbers: Numbers,
}

/// A fault on its way out to the root.
#[derive(Debug)]
struct Fault {
    what: What,
    trail: Trail,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Deep,
    Duplicate,
    Number,
    Private,
    Syntax { offset: usize, problem: &'static str },
}

impl Fault {
    fn new(what: What) -> Self {
        Self { what, trail: Trail::default() }
    }

    fn under_key(mut self, key: &str) -> Self {
        self.trail.push_key(key);
        self
    }

    fn under_index(mut self, index: usize) -> Self {
        self.trail.push_index(index);
        self
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, max_depth: usize, numbers: Numbers) -> Self {
        Self { text, at: 0, max_depth, numbers }
    }

    /// The one value of the document.
    pub(super) fn document(mut self) -> Result<Value, StrictError> {
        self.whole().map_err(|Fault { what, trail }| {
            let path = trail.into_path();
            match what {
                What::Deep => StrictError::TooDeep { path, limit: self.max_depth },
                What::Duplicate => StrictError::DuplicateKey { path },
                What::Number => StrictError::NumberOutOfRange { path },
                What::Private => StrictError::PrivateKey { path },
                What::Syntax { offset, problem } => StrictError::Syntax { path, offset, problem },
            }
        })
    }

    fn whole(&mut self) -> Result<Value, Fault> {
        self.skip_space();
        let value = self.value(0)?;
        self.skip_space();
        match self.peek() {
            None => Ok(value),
            Some(_) => Err(self.syntax("something after the value")),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Takes `byte` if it is next.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// A syntax fault at the next byte.
    fn syntax(&self, problem: &'static str) -> Fault {
        let problem = if self.at >= self.text.len() { "the text ends too early" } else { problem };
        Fault::new(What::Syntax { offset: self.at, problem })
    }

    /// A value inside `depth` open containers; no space before it.
    fn value(&mut self, depth: usize) -> Result<Value, Fault> {
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.syntax("no JSON value")),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Fault> {
        if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.syntax("no JSON value"))
        }
    }

    /// Takes the opening bracket of a container that lies inside `depth` others.
    fn open(&mut self, depth: usize) -> Result<(), Fault> {
        if depth >= self.max_depth {
            return Err(Fault::new(What::Deep));
        }
        self.at += 1;
        self.skip_space();
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<Value, Fault> {
        self.open(depth)?;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            let index = items.len();
            let item = self.value(depth + 1).map_err(|fault| fault.under_index(index))?;
            items.push(item);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            if !self.take(b',') {
                return Err(self.syntax("no comma or closing bracket"));
            }
            self.skip_space();
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, Fault> {
        self.open(depth)?;
        let mut members = Map::new();
        if self.take(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.syntax("no object key"));
            }
            let key = self.string()?;
            if key.starts_with(PRIVATE_PREFIX) {
                return Err(Fault::new(What::Private).under_key(&key));
            }
            // Looked at before the value is read: one look-up a member, and the path of the key.
            let member = match members.entry(key) {
                Entry::Vacant(member) => member,
                Entry::Occupied(member) => {
                    return Err(Fault::new(What::Duplicate).under_key(member.key()));
                }
            };
            match self.member_value(depth + 1) {
                Ok(value) => member.insert(value),
                Err(fault) => return Err(fault.under_key(member.key())),
            };
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Object(members));
            }
            if !self.take(b',') {
                return Err(self.syntax("no comma or closing brace"));
            }
            self.skip_space();
        }
    }

    /// What follows a key: a colon and a value inside `depth` open containers.
    fn member_value(&mut self, depth: usize) -> Result<Value, Fault> {
        self.skip_space();
        if !self.take(b':') {
            return Err(self.syntax("no colon after the key"));
        }
        self.skip_space();
        self.value(depth)
    }

    /// A string; its opening quote is next.
    fn string(&mut self) -> Result<String, Fault> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let run = self.at;
            while let Some(byte) = self.peek()
                && !matches!(byte, b'"' | b'\\' | 0..=0x1f)
            {
                self.at += 1;
            }
            // Both ends are next to ASCII, so this cuts no character.
            out.push_str(&self.text[run..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                _ => return Err(self.syntax("an unescaped control character")),
            }
        }
    }

    /// An escape; its backslash is next.
    fn escape(&mut self) -> Result<char, Fault> {
        let start = self.at;
        self.at += 1;
        let plain = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(start),
            _ => return Err(self.syntax("an unknown escape")),
        };
        self.at += 1;
        Ok(plain)
    }

    /// `\uXXXX`, or two of them for a character beyond the basic plane; `u` is next.
    fn unicode_escape(&mut self, start: usize) -> Result<char, Fault> {
        const HIGH: std::ops::RangeInclusive<u32> = 0xD800..=0xDBFF;
        const LOW: std::ops::RangeInclusive<u32> = 0xDC00..=0xDFFF;

        self.at += 1;
        let mut code = self.hex4()?;
        if HIGH.contains(&code) && self.take(b'\\') && self.take(b'u') {
            let low = self.hex4()?;
            if LOW.contains(&low) {
                code = 0x1_0000 + ((code - HIGH.start()) << 10) + (low - LOW.start());
            }
        }
        // What is left of a surrogate here stands alone, and is no character.
        char::from_u32(code)
            .ok_or_else(|| Fault::new(What::Syntax { offset: start, problem: "a lone surrogate" }))
    }

    fn hex4(&mut self) -> Result<u32, Fault> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let digit = digit.ok_or_else(|| self.syntax("no four hexadecimal digits"))?;
            code = code << 4 | digit;
            self.at += 1;
        }
        Ok(code)
    }

    /// A number; its sign or first digit is next.
    fn number(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        let negative = self.take(b'-');
        let digits = self.at;
        if !self.take(b'0') {
            self.digits()?;
        }
        if let Some(b'0'..=b'9') = self.peek() {
            return Err(self.syntax("a leading zero"));
        }
        let integer_digits = self.at - digits;
        let mut integer = true;
        if self.take(b'.') {
            integer = false;
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            integer = false;
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        if integer && integer_digits <= MAX_SAFE_DIGITS {
            let n: i64 = text.parse().map_err(|_| Fault::new(What::Number))?;
            // `-0` is a double of its own, as `serde_json` has it; it hashes like 0.
            if n.unsigned_abs() <= MAX_SAFE_INTEGER && !(negative && n == 0) {
                return Ok(Value::Number(n.into()));
            }
        }
        self.double(text)
    }

    /// At least one digit.
    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.syntax("no digit"));
        }
        Ok(())
    }

    /// The double nearest to `text`, if it may be one.
    fn double(&self, text: &str) -> Result<Value, Fault> {
        let out_of_range = || Fault::new(What::Number);
        let double: f64 = text.parse().map_err(|_| out_of_range())?;
        if self.numbers == Numbers::Exact && double.abs() > MAX_SAFE_DOUBLE {
            return Err(out_of_range());
        }
        // `None` for infinity, which is what "1e400" becomes.
        Number::from_f64(double).map(Value::Number).ok_or_else(out_of_range)
    }
}
