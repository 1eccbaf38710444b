//! The place of a fault inside a JSON document, as text that is safe to show and to log.
//!
//! Used by the errors of `strict` and `canonical`. Looks like a JSON Pointer (RFC 6901); it differs
//! where a hostile document would make one harmful: long keys and long paths are cut with `…`,
//! control characters are escaped.

use std::fmt::Write as _;

/// Characters of one key that are shown.
const SEGMENT_CHARS: usize = 64;
/// Bytes of a path after which no further segment is added.
const PATH_BYTES: usize = 512;

/// Segments collected from the fault outwards, while the recursion unwinds.
///
/// A document that is fine pays nothing for paths this way.
#[derive(Debug, Default)]
pub(crate) struct Trail(Vec<String>);

impl Trail {
    /// Adds the key of the object member that holds what was collected so far.
    pub(crate) fn push_key(&mut self, key: &str) {
        let mut segment = String::new();
        for (count, c) in key.chars().enumerate() {
            if count == SEGMENT_CHARS {
                segment.push('…');
                break;
            }
            match c {
                '~' => segment.push_str("~0"),
                '/' => segment.push_str("~1"),
                c if c.is_control() => segment.extend(c.escape_unicode()),
                c => segment.push(c),
            }
        }
        self.0.push(segment);
    }

    /// Adds the index of the array element that holds what was collected so far.
    pub(crate) fn push_index(&mut self, index: usize) {
        self.0.push(index.to_string());
    }

    /// The path from the root to the fault; empty for the root itself.
    pub(crate) fn into_path(self) -> String {
        let mut path = String::new();
        for segment in self.0.iter().rev() {
            if path.len() > PATH_BYTES {
                path.push_str("/…");
                break;
            }
            // Writing to a String does not fail.
            let _ = write!(path, "/{segment}");
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_reads_from_the_root_and_escapes_as_rfc_6901() {
        let mut trail = Trail::default();
        trail.push_key("a/b~c");
        trail.push_index(3);
        trail.push_key("");
        assert_eq!(trail.into_path(), "//3/a~1b~0c");
        assert_eq!(Trail::default().into_path(), "");
    }

    #[test]
    fn hostile_keys_are_cut_and_cannot_break_a_log_line() {
        let mut trail = Trail::default();
        trail.push_key("a\nb\u{1b}");
        assert_eq!(trail.into_path(), "/a\\u{a}b\\u{1b}");

        let mut trail = Trail::default();
        for _ in 0..100 {
            trail.push_key(&"é".repeat(10_000));
        }
        let path = trail.into_path();
        assert!(path.ends_with("/…"), "{path}");
        assert!(path.len() < 1_000, "{}", path.len());
    }
}
