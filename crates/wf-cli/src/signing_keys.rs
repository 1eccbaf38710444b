//! The file of `server.secret_file`: keys that sign confirm tokens, states of questions and links of messages, instead of
//! the store's own. `compose` gives them to the engine, `cmd::serve` reads them again when the file changes.
//!
//! A line is base64 of 32 to 64 random bytes. The first line signs, all are accepted, so a key is replaced by putting the
//! new one above the old one; with several servers first below it, until all of them know it.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wf_core::engine::Engine;
use wf_core::state_machine::Secret;

use crate::exit::Failure;

/// Bytes of a key: as long as what HMAC-SHA256 gives (RFC 2104 section 3), up to its block.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 32..=64;
/// Lines of the file.
const KEYS_MAX: usize = 4;
/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 4_096;

/// Reads the file and gives its keys to the engine.
///
/// # Errors
/// When the file cannot be read or holds something else than keys; then the engine keeps those it has.
pub(crate) fn apply(path: &Path, engine: &Engine) -> Result<(), Failure> {
    let mut keys = read(path)?.into_iter();
    if let Some(signs) = keys.next() {
        engine.sign_with(signs, keys.collect());
    }
    Ok(())
}

/// The keys of the file, at least one.
///
/// # Errors
/// When the file cannot be read or holds something else.
pub(crate) fn read(path: &Path) -> Result<Vec<Secret>, Failure> {
    let name = path.display();
    let cannot = |why: String| {
        Failure::failed(format!("the signing keys in {name} cannot be used"))
            .because(why)
            .help("give a line of base64 of 32 to 64 random bytes, for example by `openssl rand -base64 32`")
    };
    let unreadable = |error: std::io::Error| cannot(error.to_string());
    if std::fs::metadata(path).map_err(unreadable)?.len() > FILE_BYTES_MAX {
        return Err(cannot(format!("the file has more than {FILE_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let lines: Vec<(usize, &str)> =
        (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty()).collect();
    if lines.is_empty() || lines.len() > KEYS_MAX {
        return Err(cannot(format!("it must have 1 to {KEYS_MAX} lines and has {}", lines.len())));
    }
    let key = |(line, text): (usize, &str)| {
        let bytes = STANDARD.decode(text).ok().filter(|bytes| KEY_BYTES.contains(&bytes.len()));
        bytes.map(Secret::new).ok_or_else(|| cannot(format!("line {line} is no key")))
    };
    lines.into_iter().map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Secret>, Failure> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path())
    }

    #[test]
    fn lines_are_keys_the_first_one_first() {
        let [new, old] = [1, 2].map(|byte| STANDARD.encode([byte; 32]));
        let keys = read_text(&format!("{new}\n\n  {old}  \n")).unwrap();
        assert_eq!(keys, [1, 2].map(|byte| Secret::new(vec![byte; 32])));
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_shown() {
        let five = format!("{}\n", STANDARD.encode([1; 32])).repeat(5);
        let (short, long) = (STANDARD.encode([1; 31]), STANDARD.encode([1; 65]));
        for (text, why) in [
            ("", "has 0"),
            (five.as_str(), "has 5"),
            (short.as_str(), "line 1 is no key"),
            (long.as_str(), "line 1 is no key"),
            ("hunter2", "line 1 is no key"),
            (" ".repeat(5_000).as_str(), "more than 4096 bytes"),
        ] {
            let refused = read_text(text).unwrap_err().text();
            assert!(refused.contains(why) && !refused.contains("hunter2"), "{refused}");
        }
        assert!(read(Path::new("/nowhere/at/all")).is_err());
    }
}
