//! Rust source as a flat list of tokens with lines, comments and documentation left out.
//!
//! Tokens, not text, so that a rule cannot be tripped by a comment or a string, and not a syntax tree, so that
//! code inside macro calls is seen too. Neighbours: [`crate::tree`] caches one [`Source`] per file.

use std::ops::Range;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::tree::is_test_path;

/// Why a file has no tokens.
#[derive(Debug, Clone)]
pub(crate) struct NotRust {
    /// Line where the lexer gave up.
    pub(crate) line: usize,
    /// What it said.
    pub(crate) reason: String,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ident,
    Punct,
    Literal,
    Open,
    Close,
}

/// One token.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// The token as written; one of `( [ {` or `) ] }` for delimiters.
    pub(crate) text: String,
    /// Line from 1.
    pub(crate) line: usize,
    /// Is it in an item that is compiled for tests only?
    pub(crate) test: bool,
    /// For a delimiter the index of its other half; for anything else its own index.
    pub(crate) mate: usize,
}

impl Token {
    /// The content of a string literal, prefix and quotes taken off, escapes left as written.
    pub(crate) fn string(&self) -> Option<&str> {
        if self.kind != Kind::Literal {
            return None;
        }
        let start = self.text.find('"')?;
        let end = self.text.rfind('"')?;
        self.text.get(start + 1..end)
    }
}

/// One `fn` with a body.
#[derive(Debug, Clone)]
pub(crate) struct Function<'source> {
    pub(crate) name: &'source str,
    pub(crate) line: usize,
    /// Lines from `fn` to the closing brace.
    pub(crate) lines: usize,
    /// Tokens of the body, braces included.
    pub(crate) body: Range<usize>,
}

/// The tokens of one file.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    tokens: Vec<Token>,
    lines: usize,
}

impl Source {
    /// Lexes `text`. The path decides whether the whole file is test code.
    pub(crate) fn lex(path: &str, text: &str) -> Result<Self, NotRust> {
        let stream: TokenStream = text.parse().map_err(|error: proc_macro2::LexError| NotRust {
            line: error.span().start().line,
            reason: error.to_string(),
        })?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let mut source = Self { tokens, lines: text.lines().count() };
        source.mark_tests(is_test_path(path));
        Ok(source)
    }

    /// All tokens in order.
    pub(crate) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Tokens with their index, without those compiled for tests only.
    pub(crate) fn product(&self) -> impl Iterator<Item = (usize, &Token)> {
        self.tokens.iter().enumerate().filter(|(_, token)| !token.test)
    }

    /// Do the tokens from `index` read exactly like `words`?
    pub(crate) fn reads(&self, index: usize, words: &[&str]) -> bool {
        self.tokens
            .get(index..index + words.len())
            .is_some_and(|found| found.iter().zip(words).all(|(token, word)| token.text == *word))
    }

    /// The text of the token at `index`, empty beyond the end.
    pub(crate) fn at(&self, index: usize) -> &str {
        self.tokens.get(index).map_or("", |token| token.text.as_str())
    }

    /// Index of the other half of the delimiter at `index`.
    pub(crate) fn mate(&self, index: usize) -> usize {
        self.tokens.get(index).map_or(index, |token| token.mate)
    }

    /// Lines of the file, without the items that are compiled for tests only.
    pub(crate) fn product_lines(&self) -> usize {
        let mut test_lines = 0;
        let mut covered = 0;
        for token in self.tokens.iter().filter(|token| token.test) {
            let last =
                self.tokens.get(token.mate).map_or(token.line, |mate| mate.line).max(token.line);
            let first = token.line.max(covered + 1);
            if last >= first {
                test_lines += last - first + 1;
                covered = last;
            }
        }
        self.lines.saturating_sub(test_lines)
    }

    /// Every function with a body that is not compiled for tests only.
    pub(crate) fn functions(&self) -> Vec<Function<'_>> {
        let mut found = Vec::new();
        for (index, token) in self.product() {
            let Some(name) = self.tokens.get(index + 1) else { continue };
            if token.kind != Kind::Ident || token.text != "fn" || name.kind != Kind::Ident {
                continue;
            }
            if let Some(open) = self.item_body(index + 2) {
                let close = self.mate(open);
                let last = self.tokens.get(close).map_or(token.line, |end| end.line);
                found.push(Function {
                    name: &name.text,
                    line: token.line,
                    lines: last + 1 - token.line,
                    body: open..close + 1,
                });
            }
        }
        found
    }

    /// The first `{` from `index` on at the same depth, unless a `;` or the end of the group comes first.
    fn item_body(&self, index: usize) -> Option<usize> {
        let mut index = index;
        loop {
            let token = self.tokens.get(index)?;
            match (token.kind, token.text.as_str()) {
                (Kind::Open, "{") => return Some(index),
                (Kind::Open, _) => index = token.mate + 1,
                (Kind::Close, _) | (Kind::Punct, ";") => return None,
                (Kind::Ident | Kind::Punct | Kind::Literal, _) => index += 1,
            }
        }
    }

    /// Marks items under `#[cfg(test)]`, `#[test]` and their like; everything if `whole`.
    fn mark_tests(&mut self, whole: bool) {
        let whole = whole || self.reads(0, &["#", "!", "[", "cfg", "(", "test", ")", "]"]);
        if whole {
            self.tokens.iter_mut().for_each(|token| token.test = true);
            return;
        }
        let mut index = 0;
        while index < self.tokens.len() {
            if !self.reads(index, &["#", "["]) || !self.is_test_attribute(index + 1) {
                index += 1;
                continue;
            }
            let end = self.item_end(index);
            for token in self.tokens.get_mut(index..end).into_iter().flatten() {
                token.test = true;
            }
            index = end;
        }
    }

    /// Is the attribute whose `[` is at `open` one of `cfg(test)`, `cfg(all(test, …))`, `test`, `tokio::test`?
    fn is_test_attribute(&self, open: usize) -> bool {
        let close = self.mate(open);
        let words = || (open + 1..close).map(|index| self.at(index));
        match self.at(open + 1) {
            "cfg" => words().any(|word| word == "test") && words().all(|word| word != "not"),
            _ => words().take_while(|word| *word != "(").last() == Some("test"),
        }
    }

    /// One past the last token of the item whose first attribute starts at `index`.
    fn item_end(&self, index: usize) -> usize {
        let mut index = index;
        while self.reads(index, &["#", "["]) {
            index = self.mate(index + 1) + 1;
        }
        loop {
            let Some(token) = self.tokens.get(index) else { return index };
            match (token.kind, token.text.as_str()) {
                (Kind::Open, "{") => return token.mate + 1,
                (Kind::Open, _) => index = token.mate + 1,
                (Kind::Close, _) => return index,
                (Kind::Punct, ";") => return index + 1,
                (Kind::Ident | Kind::Punct | Kind::Literal, _) => index += 1,
            }
        }
    }
}

/// Appends the tokens of `stream`. Documentation comments, which the lexer turns into attributes, are left out.
fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let index = tokens.len();
        let mut push = |kind, text: String, line| {
            tokens.push(Token { kind, text, line, test: false, mate: index });
        };
        match tree {
            TokenTree::Ident(ident) => push(Kind::Ident, ident.to_string(), line),
            TokenTree::Punct(punct) => push(Kind::Punct, punct.as_char().to_string(), line),
            TokenTree::Literal(literal) => push(Kind::Literal, literal.to_string(), line),
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(Kind::Open, open.to_owned(), group.span_open().start().line);
                flatten(group.stream(), tokens);
                if is_documentation(tokens, index) {
                    let attribute = if tokens.get(index - 1).is_some_and(|token| token.text == "!")
                    {
                        2
                    } else {
                        1
                    };
                    tokens.truncate(index - attribute);
                    continue;
                }
                let mate = tokens.len();
                if let Some(first) = tokens.get_mut(index) {
                    first.mate = mate;
                }
                let line = group.span_close().start().line;
                tokens.push(Token {
                    kind: Kind::Close,
                    text: close.to_owned(),
                    line,
                    test: false,
                    mate: index,
                });
            }
        }
    }
}

/// Do the tokens from the `[` at `open` to the end read `[doc = …`, after a `#` or `#!`?
fn is_documentation(tokens: &[Token], open: usize) -> bool {
    let text = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    let after_hash = open >= 1 && text(open - 1) == "#"
        || open >= 2 && text(open - 1) == "!" && text(open - 2) == "#";
    after_hash && text(open) == "[" && text(open + 1) == "doc" && text(open + 2) == "="
}

#[cfg(test)]
mod tests {
    use super::{Kind, Source};

    fn lex(text: &str) -> Source {
        match Source::lex("src/a.rs", text) {
            Ok(source) => source,
            Err(error) => Source { tokens: Vec::new(), lines: error.line },
        }
    }

    #[test]
    fn comments_and_documentation_are_no_tokens() {
        let source = lex("//! todo!()\n/// dbg!()\n// async\nfn a() {} /* async */\n");
        let words: Vec<_> = source.tokens().iter().map(|token| token.text.as_str()).collect();
        assert_eq!(words, ["fn", "a", "(", ")", "{", "}"]);
        assert_eq!(source.tokens().first().map(|token| token.line), Some(4));
    }

    #[test]
    fn test_items_are_marked_and_not_counted() {
        let source = lex(
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[test]\nfn c() {\n}\nfn d() {}\n",
        );
        let names: Vec<_> =
            source.functions().iter().map(|function| function.name.to_owned()).collect();
        assert_eq!(names, ["a", "d"]);
        assert_eq!(source.product_lines(), 2);
    }

    #[test]
    fn code_for_everything_but_tests_is_product_code() {
        assert_eq!(lex("#[cfg(not(test))]\nfn a() {}\n").functions().len(), 1);
        assert_eq!(lex("#[cfg(all(test, unix))]\nfn a() {}\n").functions().len(), 0);
        assert_eq!(lex("#[tokio::test]\nasync fn a() {}\n").functions().len(), 0);
        assert_eq!(lex("#![cfg(test)]\nfn a() {}\n").functions().len(), 0);
    }

    #[test]
    fn a_function_is_measured_from_its_name_to_its_last_brace() {
        let source =
            lex("fn a(\n    x: [u8; 3],\n) -> u8 {\n    1\n}\ntrait T {\n    fn b();\n}\n");
        let measured: Vec<_> = source
            .functions()
            .iter()
            .map(|function| (function.name.to_owned(), function.line, function.lines))
            .collect();
        assert_eq!(measured, [("a".to_owned(), 1, 5)]);
    }

    #[test]
    fn strings_are_read_without_their_quotes() {
        let source =
            lex(r###"const A: [&str; 3] = ["x", r#"y"z"#, "a\"b"]; const B: char = 'c';"###);
        let strings: Vec<_> = source.tokens().iter().filter_map(|token| token.string()).collect();
        assert_eq!(strings, ["x", "y\"z", "a\\\"b"]);
    }

    #[test]
    fn what_does_not_lex_is_said_with_its_line() {
        let error = Source::lex("src/a.rs", "fn a() {\n    (\n}\n").err();
        assert!(error.is_some_and(|error| error.line >= 1 && !error.reason.is_empty()));
    }

    #[test]
    fn delimiters_know_each_other() {
        let source = lex("fn a(b: u8) { c(); }");
        for (index, token) in source.tokens().iter().enumerate() {
            assert_eq!(source.mate(source.mate(index)), index);
            assert_eq!(token.kind == Kind::Open, source.mate(index) > index);
        }
    }
}
