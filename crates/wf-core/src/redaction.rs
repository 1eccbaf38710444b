//! Text from outside made safe for logs: bounded, on one line, without control characters.

use std::fmt;

/// Shows text from outside in a log line or a developer's message.
#[derive(Clone, Copy)]
pub struct Quoted<'a>(pub &'a str);

/// Longest excerpt shown, in characters.
const SHOWN_CHARS_MAX: usize = 80;

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown: String = self
            .0
            .chars()
            .take(SHOWN_CHARS_MAX)
            .map(|c| if c.is_control() || c == '"' { '\u{fffd}' } else { c })
            .collect();
        if self.0.chars().nth(SHOWN_CHARS_MAX).is_some() {
            shown.push('…');
        }
        write!(f, "\"{shown}\"")
    }
}

impl fmt::Debug for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_length_are_tamed() {
        assert_eq!(Quoted("a\n\u{1b}[31m\"b").to_string(), "\"a\u{fffd}\u{fffd}[31m\u{fffd}b\"");
        assert!(Quoted(&"x".repeat(500)).to_string().len() < 100);
    }
}
