//! When each answer left the server, from the bytes that it sent.
//!
//! An answer counts as given from the moment at which its first byte is about to leave: that is before any client can
//! know it, so a commit that is not durable by then is too late.

use std::collections::HashMap;

use serde_json::Value;

use crate::harness::disk::log::{Record, What};

/// One answer to a call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The record at which it was about to leave.
    pub(super) at: usize,
    /// The canonical text of the result object.
    pub(super) text: String,
}

/// What one connection is in the middle of.
#[derive(Debug, Default)]
struct Stream {
    /// Bytes of answers that are not whole yet.
    bytes: Vec<u8>,
    /// Where pieces of `bytes` begin, and their records.
    pieces: Vec<(usize, usize)>,
    /// About to leave; how much of it does is not known yet.
    leaving: Option<(usize, u64, bytes::Bytes)>,
}

/// The answers in the order in which they left.
pub(super) fn answers(records: &[Record]) -> Vec<Answer> {
    let mut streams: HashMap<(u32, i32), Stream> = HashMap::new();
    let mut all = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let connection = (record.process, record.fd);
        match &record.what {
            What::Leaving { token, bytes } => {
                let stream = streams.entry(connection).or_default();
                stream.leaving = Some((at, *token, bytes.clone()));
            }
            What::Left { token, count } => {
                if let Some(stream) = streams.get_mut(&connection) {
                    stream.left(*token, usize::try_from(*count).unwrap_or(0), &mut all);
                }
            }
            What::Hangup => {
                if let Some(stream) = streams.remove(&connection) {
                    stream.end(&mut all);
                }
            }
            What::Start
            | What::Open { .. }
            | What::Write { .. }
            | What::Truncate { .. }
            | What::SyncBegin { .. }
            | What::SyncEnd { .. }
            | What::Unlink { .. }
            | What::Rename { .. }
            | What::Read { .. } => {}
        }
    }
    streams.into_values().for_each(|stream| stream.end(&mut all));
    all.sort_by_key(|answer| answer.at);
    all
}

impl Stream {
    fn left(&mut self, token: u64, count: usize, all: &mut Vec<Answer>) {
        let Some((at, _, bytes)) = self.leaving.take_if(|(_, t, _)| *t == token) else { return };
        self.pieces.push((self.bytes.len(), at));
        self.bytes.extend_from_slice(bytes.get(..count).unwrap_or(&bytes));
        while let Some((head, length)) = self.whole() {
            let first = self.pieces.iter().rev().find(|(from, _)| *from == 0);
            let at_first = first.map_or(at, |(_, at)| *at);
            let body = self.bytes.get(head..head + length).unwrap_or_default();
            all.extend(text(body).map(|text| Answer { at: at_first, text }));
            self.bytes.drain(..head + length);
            // Whatever comes next begins in the newest piece: a server answers one request at a time.
            self.pieces.clear();
            self.pieces.push((0, at));
        }
        if self.bytes.is_empty() {
            self.pieces.clear();
        }
    }

    /// The process ended or hung up in the middle of a send: all of it may have left.
    fn end(mut self, all: &mut Vec<Answer>) {
        if let Some((_, token, bytes)) = &self.leaving {
            let (token, count) = (*token, bytes.len());
            self.left(token, count, all);
        }
    }

    /// The length of the head and of the body of a whole answer.
    fn whole(&self) -> Option<(usize, usize)> {
        let end = self.bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let head = String::from_utf8_lossy(self.bytes.get(..end)?).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        (self.bytes.len() >= end.checked_add(length)?).then_some((end, length))
    }
}

fn text(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    Some(body.pointer("/result/content/1/text")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::{Answer, answers};
    use crate::harness::disk::log::{Record, What};

    fn record(fd: i32, what: What) -> Record {
        let (class, by_rule, errno, process, inode, at_ns) = (None, false, 0, 1, 0, 0);
        Record { what, class, by_rule, errno, process, fd, inode, at_ns }
    }

    fn http(text: &str) -> Vec<u8> {
        let body = json!({ "result": { "content": [{}, { "text": text }] } }).to_string();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    fn leaving(fd: i32, token: u64, bytes: &[u8]) -> Record {
        record(fd, What::Leaving { token, bytes: Bytes::copy_from_slice(bytes) })
    }

    fn left(fd: i32, token: u64, count: usize) -> Record {
        record(fd, What::Left { token, count: count.try_into().unwrap() })
    }

    fn given(at: usize, text: &str) -> Answer {
        Answer { at, text: text.to_owned() }
    }

    #[test]
    fn an_answer_is_given_when_its_first_byte_is_about_to_leave() {
        let (one, two) = (http("one"), http("two"));
        let records = [
            leaving(3, 1, &one),
            leaving(4, 2, &two),
            left(4, 2, 10),
            left(3, 1, one.len()),
            // What was not taken is sent again.
            leaving(4, 3, &two[10..]),
            left(4, 3, two.len() - 10),
            leaving(4, 4, &one),
            left(4, 4, one.len()),
        ];
        assert_eq!(answers(&records), [given(0, "one"), given(1, "two"), given(6, "one")]);
    }

    #[test]
    fn an_answer_that_was_on_its_way_may_have_arrived() {
        let one = http("one");
        assert_eq!(answers(&[leaving(3, 1, &one)]), [given(0, "one")]);
        let hung_up = [leaving(3, 1, &one[..20]), left(3, 1, 20), record(3, What::Hangup)];
        assert_eq!(answers(&hung_up), []);
    }
}
