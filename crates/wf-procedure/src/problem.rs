//! What is wrong with a procedure file, and where.

use std::fmt;

use serde::Serialize;

/// A place in a file; lines and columns count from 1, columns in characters.
///
/// A document that was not read from a file has no places: line and column are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub(crate) struct Position {
    /// The line.
    pub(crate) line: usize,
    /// The column.
    pub(crate) column: usize,
}

/// One thing that is wrong with a procedure file.
///
/// Its `Display` is `file:line:column: message; hint`, the form editors and terminals link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// The file, as it was named to the reader.
    pub file: String,
    /// The line, from 1; 0 when the problem has no place.
    pub line: usize,
    /// The column in characters, from 1; 0 when the problem has no place.
    pub column: usize,
    /// What is wrong, on one line.
    pub message: String,
    /// What to write instead, on one line; empty only for a file that cannot be read.
    pub hint: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}", self.message)?;
        if !self.hint.is_empty() {
            write!(f, "; {}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

/// Most problems kept of one file: beyond that nobody reads on.
const PROBLEMS_MAX: usize = 100;

/// Longest message or hint, in characters.
const TEXT_CHARS_MAX: usize = 500;

/// What is quoted from a file may be long, and hold ends of lines and colours of a terminal.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(TEXT_CHARS_MAX));
    for (count, c) in text.chars().enumerate() {
        if count == TEXT_CHARS_MAX {
            line.push('…');
            break;
        }
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

/// Collects the problems of one file.
#[derive(Debug)]
pub(crate) struct Problems {
    file: String,
    list: Vec<Problem>,
}

impl Problems {
    pub(crate) fn of(file: &str) -> Self {
        Self { file: file.to_owned(), list: Vec::new() }
    }

    /// Notes a problem.
    pub(crate) fn add(
        &mut self,
        at: Position,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        if self.list.len() < PROBLEMS_MAX {
            self.list.push(Problem {
                file: self.file.clone(),
                line: at.line,
                column: at.column,
                message: one_line(&message.into()),
                hint: one_line(&hint.into()),
            });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The problems in the order of the file.
    pub(crate) fn into_list(mut self) -> Vec<Problem> {
        self.list.sort();
        self.list.dedup();
        self.list
    }
}

/// `did you mean "x"?` for the candidate that `word` is most like, when one is like it at all.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    const ALIKE: f64 = 0.8;
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|c| (strsim::jaro_winkler(&word, &c.to_lowercase()), c))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| format!("did you mean \"{c}\"?"))
}

/// The hint for a word that is none of `candidates`: the nearest one, else all of them.
pub(crate) fn one_of(word: &str, candidates: &[&str]) -> String {
    did_you_mean(word, candidates.iter().copied())
        .unwrap_or_else(|| format!("write one of: {}", candidates.join(", ")))
}
