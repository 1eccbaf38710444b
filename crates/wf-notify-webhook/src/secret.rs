//! The keys that messages are signed with: a file with one, or with two while one replaces the other.
//!
//! A line is what [Standard Webhooks](https://www.standardwebhooks.com) calls a secret: base64 of 24 to 64 random bytes,
//! after `whsec_`. With two lines every message has two signatures, so that receivers can go over from the old key to
//! the new one at any time. Whoever made the sink says when the file is to be read again.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use standardwebhooks::{Webhook, WebhookError};

const PREFIX: &str = "whsec_";
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// Keys of one file.
const KEYS_MAX: usize = 2;
/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 4_096;

/// A file that holds no keys to sign with.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It cannot be read.
    #[error("the file of the secret {} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is larger than any file of secrets.
    #[error("the file of the secret {} has more than {FILE_BYTES_MAX} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It has no line, or more than two.
    #[error("the file of the secret {} must have one line, or two while the secret is replaced; it has {found}", path.display())]
    Lines {
        /// The file.
        path: PathBuf,
        /// Lines that are not empty.
        found: usize,
    },
    /// A line is no secret.
    #[error("line {line} of the file of the secret {} must be whsec_ and the base64 of 24 to 64 random bytes", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which, from 1.
        line: usize,
    },
}

/// Keys, the new one first.
pub(crate) struct Secrets {
    keys: Vec<Webhook>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("keys", &self.keys.len()).finish()
    }
}

impl Secrets {
    fn read(path: &Path) -> Result<Self, SecretError> {
        let unreadable = |source| SecretError::Unreadable { path: path.to_owned(), source };
        if std::fs::metadata(path).map_err(unreadable)?.len() > FILE_BYTES_MAX {
            return Err(SecretError::TooLarge { path: path.to_owned() });
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let lines: Vec<(usize, &str)> =
            (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty()).collect();
        if lines.is_empty() || lines.len() > KEYS_MAX {
            return Err(SecretError::Lines { path: path.to_owned(), found: lines.len() });
        }
        let key = |(line, text): (usize, &str)| {
            key(text).ok_or_else(|| SecretError::Line { path: path.to_owned(), line })
        };
        Ok(Self { keys: lines.into_iter().map(key).collect::<Result<_, _>>()? })
    }

    /// The value of `webhook-signature`: one signature of each key, with spaces between them.
    pub(crate) fn sign(
        &self,
        id: &str,
        timestamp: i64,
        body: &[u8],
    ) -> Result<String, WebhookError> {
        let signatures: Result<Vec<String>, _> =
            self.keys.iter().map(|key| key.sign(id, timestamp, body)).collect();
        Ok(signatures?.join(" "))
    }
}

fn key(line: &str) -> Option<Webhook> {
    let bytes = STANDARD.decode(line.strip_prefix(PREFIX)?).ok()?;
    if !KEY_BYTES.contains(&bytes.len()) {
        return None;
    }
    Webhook::from_bytes(bytes).ok()
}

/// The file, and the keys that were in it last.
#[derive(Debug)]
pub(crate) struct SecretFile {
    path: PathBuf,
    known: RwLock<Arc<Secrets>>,
}

impl SecretFile {
    /// Reads the file for the first time.
    pub(crate) fn open(path: &Path) -> Result<Self, SecretError> {
        let secrets = Arc::new(Secrets::read(path)?);
        Ok(Self { path: path.to_owned(), known: RwLock::new(secrets) })
    }

    /// Reads the file again. When it became unusable, the keys that were in it stay.
    pub(crate) fn reload(&self) -> Result<(), SecretError> {
        let secrets = Arc::new(Secrets::read(&self.path)?);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = secrets;
        Ok(())
    }

    /// The keys that count now.
    pub(crate) fn current(&self) -> Arc<Secrets> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    const NEW: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8G";

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        file
    }

    #[test]
    fn the_signature_is_the_one_of_the_specification() {
        let secrets = Secrets::read(file(OLD).path()).expect("a secret");
        let body = br#"{"email":"test@example.com","username":"test_user"}"#;
        let signed = secrets.sign("msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1_649_367_553, body);
        assert_eq!(signed.expect("signed"), "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=");
    }

    #[test]
    fn two_lines_give_two_signatures_the_new_one_first() {
        let signed = |text: &str| {
            Secrets::read(file(text).path()).expect("secrets").sign("id", 1, b"{}").expect("signed")
        };
        let both = signed(&format!("\n{NEW}\n\n{OLD}\n"));
        assert_eq!(both, format!("{} {}", signed(NEW), signed(OLD)));
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        let refused = |text: &str| Secrets::read(file(text).path()).expect_err(text);
        assert!(matches!(refused(""), SecretError::Lines { found: 0, .. }));
        let three = format!("{NEW}\n{OLD}\n{NEW}\n");
        assert!(matches!(refused(&three), SecretError::Lines { found: 3, .. }));
        let short = format!("whsec_{}", STANDARD.encode([7; 23]));
        let long = format!("whsec_{}", STANDARD.encode([7; 65]));
        for bad in [
            short.as_str(),
            long.as_str(),
            "whsec_%%%",
            "hunter2",
            OLD.trim_start_matches("whsec_"),
        ] {
            assert!(matches!(refused(bad), SecretError::Line { line: 1, .. }), "{bad}");
        }
        let large = " ".repeat(5_000);
        assert!(matches!(refused(&large), SecretError::TooLarge { .. }));
        let missing = Secrets::read(Path::new("/nowhere/at/all"));
        assert!(matches!(missing, Err(SecretError::Unreadable { .. })));
        let shown = format!("{:?}", Secrets::read(file(OLD).path()).expect("a secret"));
        assert!(!shown.contains("C2FV"), "{shown}");
    }

    #[test]
    fn the_file_is_read_again_and_a_broken_one_changes_nothing() {
        let file = file(OLD);
        let secrets = SecretFile::open(file.path()).expect("a secret");
        let sign = || secrets.current().sign("id", 1, b"{}").expect("signed");
        let old = sign();
        std::fs::write(file.path(), format!("{NEW}\n{OLD}\n")).expect("written");
        assert_eq!(sign(), old, "not yet");
        secrets.reload().expect("two secrets");
        let both = sign();
        assert!(both.ends_with(&old) && both != old, "{both}");
        std::fs::write(file.path(), "half of a wri").expect("written");
        secrets.reload().expect_err("no secret");
        assert_eq!(sign(), both);
    }
}
