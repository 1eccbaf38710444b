//! The mail system that the tool hands its mails to: a folder in the manner of Maildir. `tmp` has what is being written,
//! `new` what was delivered, one file for each mail.
//!
//! It stands for any system with a name for each thing that it does once: a message id, an idempotency key, a file name.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::PathBuf;
use std::time::Duration;

/// The mail system. As long as its folder has a file `hold`, it has delivered and does not say so: the moment in which
/// connections break and servers die.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    folder: PathBuf,
}

/// What became of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// It was delivered now.
    Now,
    /// A mail of this name was delivered before. This one was thrown away.
    Before,
}

/// Why a mail was not delivered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PostError {
    /// Nothing was delivered.
    #[error("the mail could not be written")]
    NotDelivered(#[source] io::Error),
    /// Nobody knows.
    #[error("the mail may have been delivered")]
    Unknown(#[source] io::Error),
}

impl Post {
    pub(crate) fn open(folder: PathBuf) -> io::Result<Self> {
        for part in ["tmp", "new"] {
            fs::create_dir_all(folder.join(part))?;
        }
        Ok(Self { folder })
    }

    /// Delivers a mail under a name, once.
    pub(crate) fn deliver(&self, name: &str, mail: &str) -> Result<Delivered, PostError> {
        let written = self.folder.join("tmp").join(name);
        let mut file = File::create(&written).map_err(PostError::NotDelivered)?;
        file.write_all(mail.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(PostError::NotDelivered)?;
        let new = self.folder.join("new");
        // A link to a name that is taken fails, whoever else is at it: this is what makes it once.
        let delivered = match fs::hard_link(&written, new.join(format!("{name}.eml"))) {
            Ok(()) => Delivered::Now,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Delivered::Before,
            Err(error) => return Err(PostError::NotDelivered(error)),
        };
        File::open(&new).and_then(|new| new.sync_all()).map_err(PostError::Unknown)?;
        // Only room is lost if it stays.
        drop(fs::remove_file(&written));
        Ok(delivered)
    }

    /// Waits while the mail system is held.
    pub(crate) async fn says_so(&self) {
        while tokio::fs::try_exists(self.folder.join("hold")).await.unwrap_or(false) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
