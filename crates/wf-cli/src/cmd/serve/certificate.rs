//! The certificate of the main listener: read at the start, and again whenever its files change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{Notify, watch};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use wf_mcp_http::Tls;

use super::signals::stopped;
use crate::exit::Failure;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Largest file that is read, in bytes. A chain has some kilobytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The two files.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    chain: PathBuf,
    key: PathBuf,
}

/// What tells one state of the files from another.
type Seen = [Option<(SystemTime, u64)>; 2];

impl Files {
    /// Names them.
    pub(crate) fn new((chain, key): &(PathBuf, PathBuf)) -> Self {
        Self { chain: chain.clone(), key: key.clone() }
    }

    /// Reads both.
    ///
    /// # Errors
    /// When one cannot be read, or they do not fit together.
    pub(crate) fn load(&self) -> Result<Tls, Failure> {
        let (chain, key) = (read(&self.chain)?, read(&self.key)?);
        Tls::new(&chain, &key).map_err(|error| self.unusable(error))
    }

    fn reload(&self, tls: &Tls) -> Result<(), Failure> {
        let (chain, key) = (read(&self.chain)?, read(&self.key)?);
        tls.replace(&chain, &key).map_err(|error| self.unusable(error))
    }

    fn unusable(&self, error: wf_mcp_http::TlsError) -> Failure {
        let (chain, key) = (self.chain.display(), self.key.display());
        Failure::failed(format!("{chain} and {key} cannot be used for TLS"))
            .because(error)
            .help("give the chain, the server's own certificate first, and its key, both in PEM")
    }

    fn seen(&self) -> Seen {
        [&self.chain, &self.key].map(|path| {
            let found = std::fs::metadata(path).ok()?;
            Some((found.modified().ok()?, found.len()))
        })
    }

    /// Reads the files again when they changed since `seen`, or `anyway`; returns what is seen now. When they cannot be
    /// used, the old certificate stays and the log says why: they may be half written, and then they change again.
    fn look(&self, tls: &Tls, seen: Seen, anyway: bool) -> Seen {
        // Before they are read: what changes meanwhile differs the next time.
        let now = self.seen();
        if now == seen && !anyway {
            return now;
        }
        match self.reload(tls) {
            Ok(()) => tracing::info!("the certificate was replaced"),
            Err(failure) => {
                for line in failure.text().lines() {
                    let problem = line.trim_start();
                    tracing::error!(problem, "the certificate was not replaced");
                }
            }
        }
        now
    }

    /// Reads the files again whenever they change, and when asked to (SIGHUP).
    pub(super) async fn watch(self, tls: Tls, ask: Arc<Notify>, stop: watch::Receiver<bool>) {
        let end = stopped(stop);
        tokio::pin!(end);
        let mut seen = self.seen();
        let mut anyway = false;
        loop {
            let (files, tls) = (self.clone(), tls.clone());
            // Off the executor: a file system may take its time.
            let looking = spawn_blocking(move || files.look(&tls, seen, anyway));
            match looking.await {
                Ok(now) => seen = now,
                Err(error) => tracing::error!(%error, "the certificate could not be looked at"),
            }
            anyway = tokio::select! {
                () = &mut end => break,
                () = ask.notified() => true,
                () = sleep(LOOK_EVERY) => false,
            };
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let cannot = || Failure::failed(format!("{} cannot be read", path.display()));
    let length = std::fs::metadata(path).map_err(|error| cannot().because(error))?.len();
    if length > FILE_BYTES_MAX {
        return Err(cannot().because(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    std::fs::read(path).map_err(|error| cannot().because(error))
}
