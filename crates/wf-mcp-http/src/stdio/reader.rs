//! Reads lines of bounded length. `transport` makes messages of them.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line without its end; what stands before the end of the input without an end is none.
    Whole(Vec<u8>),
    /// A line that was longer than allowed. It was thrown away.
    TooLong,
    /// There is nothing more.
    End,
}

/// Lines of an input. Dropping [`next`](Self::next) loses nothing: what was read of a line is kept here.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    max_bytes: usize,
    /// What comes up to the next line end belongs to a line that is too long.
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(input: R, max_bytes: usize) -> Self {
        Self { input: BufReader::new(input), line: Vec::new(), max_bytes, skipping: false }
    }

    /// The next line.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub(super) async fn next(&mut self) -> io::Result<Line> {
        loop {
            let (taken, ended) = {
                // Consumes nothing when it is dropped; there is no await between here and `consume`.
                let found = self.input.fill_buf().await?;
                if found.is_empty() {
                    return Ok(Line::End);
                }
                let end = found.iter().position(|byte| *byte == b'\n');
                let taken = end.map_or(found.len(), |at| at + 1);
                let part = found.get(..end.unwrap_or(found.len())).unwrap_or_default();
                if !self.skipping && part.len() <= self.max_bytes.saturating_sub(self.line.len()) {
                    self.line.extend_from_slice(part);
                } else {
                    self.skipping = true;
                    // Freed, not only emptied: the sender decides how many such lines there are.
                    self.line = Vec::new();
                }
                (taken, end.is_some())
            };
            self.input.consume(taken);
            if ended {
                let line = std::mem::take(&mut self.line);
                let whole = !std::mem::take(&mut self.skipping);
                return Ok(if whole { Line::Whole(line) } else { Line::TooLong });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], max_bytes: usize) -> Vec<Line> {
        let mut reader = Lines::new(input, max_bytes);
        let mut all = Vec::new();
        loop {
            let line = reader.next().await.expect("reads");
            let end = line == Line::End;
            all.push(line);
            if end {
                return all;
            }
        }
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[tokio::test]
    async fn a_line_may_be_as_long_as_allowed_and_no_longer() {
        assert_eq!(
            lines(b"abc\nabcd\nab\n", 3).await,
            [whole("abc"), Line::TooLong, whole("ab"), Line::End]
        );
        let long = [vec![b'x'; 100_000], b"\nok\n".to_vec()].concat();
        assert_eq!(lines(&long, 50).await, [Line::TooLong, whole("ok"), Line::End]);
    }

    #[tokio::test]
    async fn what_has_no_end_is_no_line() {
        assert_eq!(lines(b"one\ntwo", 10).await, [whole("one"), Line::End]);
        assert_eq!(lines(b"\n\n", 10).await, [whole(""), whole(""), Line::End]);
    }

    #[tokio::test]
    async fn a_read_that_is_given_up_loses_nothing() {
        use tokio::io::AsyncWriteExt as _;
        let (mut there, here) = tokio::io::duplex(64);
        let mut reader = Lines::new(here, 100);
        there.write_all(b"first ").await.expect("writes");
        {
            let next = std::pin::pin!(reader.next());
            assert!(futures_util::poll!(next).is_pending());
        }
        there.write_all(b"half\n").await.expect("writes");
        assert_eq!(reader.next().await.expect("reads"), whole("first half"));
    }
}
