//! How long a server takes to start on a database, and what memory it takes when nobody calls.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use serde::Serialize;

use super::contenders::{launch, temporary};
use super::process::resident;
use crate::fault::Fault;
use crate::harness::client::Client;
use crate::harness::server::Server;

/// One start.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Start {
    /// The system had to read the database from the medium.
    pub cold: bool,
    /// From before the process was made to the first 200 of `/readyz`, in milliseconds.
    pub ready_ms: f64,
    /// Memory a second later, in bytes.
    pub idle: u64,
}

/// How long the server is left alone before its memory is looked at.
const IDLE: Duration = Duration::from_secs(1);

/// Starts the server on a database that nobody uses, and ends it.
///
/// # Errors
/// When it does not start, or is not ready.
pub async fn start(
    server: &Path,
    database: &Path,
    below: Option<&Path>,
    cold: bool,
) -> Result<Start, Fault> {
    let folder = temporary(below)?;
    let launch = launch(server, folder.path(), Some(database))?;
    if cold {
        forget(database)?;
    }
    let begun = Instant::now();
    let running = Server::start(&launch)?;
    let mut client = Client::new(running.address());
    let end = begun + Duration::from_secs(30);
    loop {
        match client.get("/readyz").await {
            Ok(answer) if answer.status().is_success() => break,
            Ok(_) | Err(_) if Instant::now() < end => {}
            Ok(_) | Err(_) => return Err(Fault::Run("the server is not ready".to_owned())),
        }
    }
    let ready_ms = begun.elapsed().as_secs_f64() * 1e3;
    tokio::time::sleep(IDLE).await;
    let (idle, _) = resident(running.id())?;
    running.stop()?;
    Ok(Start { cold, ready_ms, idle })
}

/// Asks the system to drop what it keeps of the file in memory. Pages that are not written back yet stay.
fn forget(database: &Path) -> Result<(), Fault> {
    let wrong = || Fault::io("dropping the database from memory");
    let file = std::fs::File::open(database).map_err(wrong())?;
    file.sync_all().map_err(wrong())?;
    fadvise(&file, 0, None, Advice::DontNeed).map_err(|error| wrong()(error.into()))
}
