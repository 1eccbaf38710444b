//! A sink of one's own: appends each message to a file, once, and says when trying again helps.
//!
//! `cargo run -p wf-notify-webhook --example own_sink` delivers one message three times, as a dispatcher may. In a program,
//! the sink is `notifications` of `wf_core::engine::EngineParts`, and `Engine::dispatch_once` (or `claim_streams` and
//! `deliver_stream`) brings it what was committed.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use wf_core::ports::{DeliveryError, Message, NotificationPort};

/// One JSON object a line.
#[derive(Debug)]
struct FileSink {
    path: PathBuf,
    // Messages come at least once. What has to survive a restart belongs beside the messages, not into memory.
    known: Mutex<BTreeSet<String>>,
}

impl FileSink {
    /// Reads which messages the file has.
    fn open(path: &Path) -> io::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let known = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Message>(line).ok())
            .map(|message| message.id)
            .collect();
        Ok(Self { path: path.to_owned(), known: Mutex::new(known) })
    }

    fn append(&self, message: &Message) -> io::Result<()> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&message.id) {
            return Ok(());
        }
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(&line)?;
        // `Ok` says that the message will not come again, so it must be on the disk before.
        file.sync_data()?;
        known.insert(message.id.clone());
        Ok(())
    }
}

#[async_trait]
impl NotificationPort for FileSink {
    async fn deliver(&self, message: &Message) -> Result<(), DeliveryError> {
        self.append(message).map_err(|error| DeliveryError {
            // A full disk can be emptied; a place that may not be written stays so until somebody acts.
            permanent: error.kind() == io::ErrorKind::PermissionDenied,
            retry_after_ms: None,
            source: Box::new(error),
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("messages.jsonl");
    let message: Message = serde_json::from_str(
        r#"{ "id": "0197f3a0-1111-7222-8333-444455556666/7/maintenance-lead", "type": "workflow_blocked",
             "time": "2026-03-01T08:00:00.000Z", "tenant": "default",
             "workflow_id": "0197f3a0-1111-7222-8333-444455556666", "seq": 7,
             "recipient": "maintenance-lead", "data": { "state": "BLOCKED" } }"#,
    )?;
    let sink: Arc<dyn NotificationPort> = Arc::new(FileSink::open(&path)?);
    sink.deliver(&message).await?;
    sink.deliver(&message).await?;
    let after_a_restart = FileSink::open(&path)?;
    after_a_restart.deliver(&message).await?;
    let lines = std::fs::read_to_string(&path)?.lines().count();
    if lines != 1 {
        return Err(format!("one message became {lines} lines").into());
    }
    writeln!(io::stdout(), "delivered three times, written once")?;
    Ok(())
}
