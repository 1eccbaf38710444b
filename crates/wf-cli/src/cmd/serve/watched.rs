//! Files that a server reads again while it runs: whenever they change, and when asked to (SIGHUP). What cannot be used
//! is reported, and what was read before stays.
//!
//! `certificate`, `reload` and `crate::signing_keys` say what is read; `signals` asks.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::signals::stopped;
use crate::exit::Failure;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What tells one state of a file from another: its inode, when it changed last (seconds and nanoseconds), its length.
type State = (u64, i64, i64, u64);

/// The states of some files; of each that is not there, nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen(BTreeMap<PathBuf, Option<State>>);

impl Seen {
    /// Looks at them. To be done before they are read: what changes meanwhile differs the next time.
    pub(super) fn now<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        let state = |path: &PathBuf| {
            let found = std::fs::metadata(path).ok()?;
            Some((found.ino(), found.ctime(), found.ctime_nsec(), found.len()))
        };
        Self(files.into_iter().map(|path| (path.clone(), state(path))).collect())
    }

    /// The same of these files only.
    fn of(&self, files: &[PathBuf]) -> Self {
        let seen = |path: &PathBuf| Some((path.clone(), *self.0.get(path)?));
        Self(files.iter().filter_map(seen).collect())
    }
}

/// Reads the files and puts what is in them to use.
type Read = dyn Fn() -> Result<(), Failure> + Send + Sync;

/// Some files that belong together.
#[derive(Clone)]
pub(super) struct Watched {
    what: &'static str,
    files: Vec<PathBuf>,
    read: Arc<Read>,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("what", &self.what).field("files", &self.files).finish()
    }
}

impl Watched {
    /// `what` in log and metrics, a noun in the singular; `read` runs off the executor.
    pub(super) fn new(
        what: &'static str,
        files: Vec<PathBuf>,
        read: impl Fn() -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        Self { what, files, read: Arc::new(read) }
    }

    /// The first of them, which tells it from others of its kind.
    fn file(&self) -> String {
        self.files.first().map_or_else(String::new, |file| shown(file))
    }

    /// Reads the files again when they are not as they were `seen`, or `anyway`; returns what is seen now.
    fn look(&self, seen: Seen, anyway: bool) -> Seen {
        let now = Seen::now(&self.files);
        if now == seen && !anyway {
            return seen;
        }
        let read = (self.read)();
        count(self.what, self.file(), read.is_ok());
        match read {
            Ok(()) => tracing::info!("the {} was replaced", self.what),
            Err(failure) => {
                for line in failure.text().lines() {
                    let problem = line.trim_start();
                    tracing::error!(
                        problem,
                        "the {} was not replaced, the old one stays",
                        self.what
                    );
                }
            }
        }
        now
    }

    /// Reads the files again whenever they differ from how they were `before`, and when asked to.
    pub(super) fn watch(
        self,
        before: &Seen,
        ask: watch::Receiver<()>,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let seen = before.of(&self.files);
        begin(self.what, self.file());
        self.watch_from(seen, ask, stop)
    }

    async fn watch_from(
        self,
        mut seen: Seen,
        mut ask: watch::Receiver<()>,
        stop: watch::Receiver<bool>,
    ) {
        let end = stopped(stop);
        tokio::pin!(end);
        let mut anyway = false;
        loop {
            let (this, was) = (self.clone(), seen.clone());
            // Off the executor: a file system may take its time.
            match spawn_blocking(move || this.look(was, anyway)).await {
                Ok(now) => seen = now,
                Err(error) => tracing::error!(%error, "the {} could not be looked at", self.what),
            }
            anyway = tokio::select! {
                () = &mut end => break,
                asked = ask.changed() => asked.is_ok(),
                () = sleep(LOOK_EVERY) => false,
            };
        }
    }
}

/// Makes both metrics known, so that an alert sees the first time that something is not taken.
pub(super) fn begin(what: &'static str, file: String) {
    for outcome in ["replaced", "refused"] {
        metrics::counter!("checkpoint_reloads_total", "what" => what, "outcome" => outcome)
            .absolute(0);
    }
    metrics::gauge!("checkpoint_reload_refused", "what" => what, "file" => file).set(0.0);
}

/// Counts that something was read again, and remembers for alerts whether what is on disk is what is in use.
pub(super) fn count(what: &'static str, file: String, taken: bool) {
    let outcome = if taken { "replaced" } else { "refused" };
    metrics::counter!("checkpoint_reloads_total", "what" => what, "outcome" => outcome)
        .increment(1);
    let refused = if taken { 0.0 } else { 1.0 };
    metrics::gauge!("checkpoint_reload_refused", "what" => what, "file" => file).set(refused);
}

/// A path as a label.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A file, what was read of it, and the watch over it.
    fn watched(folder: &Path) -> (PathBuf, Arc<Mutex<Vec<String>>>, Watched) {
        let path = folder.join("file");
        std::fs::write(&path, "one").unwrap();
        let read = Arc::new(Mutex::new(Vec::new()));
        let (from, into) = (path.clone(), Arc::clone(&read));
        let watched = Watched::new("thing", vec![path.clone()], move || {
            let text = std::fs::read_to_string(&from).unwrap();
            into.lock().unwrap().push(text.clone());
            if text == "bad" { Err(Failure::failed("bad")) } else { Ok(()) }
        });
        (path, read, watched)
    }

    #[test]
    fn a_file_is_read_when_it_changes_and_when_asked_and_not_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let (path, read, watched) = watched(folder.path());
        let seen = watched.look(Seen::now([&path]), false);
        assert!(read.lock().unwrap().is_empty());
        // Another file with the same name and length, as a rename and a mounted secret leave it.
        let draft = folder.path().join("draft");
        std::fs::write(&draft, "two").unwrap();
        std::fs::rename(&draft, &path).unwrap();
        let seen = watched.look(seen, false);
        assert_eq!(*read.lock().unwrap(), ["two"]);
        let seen = watched.look(seen, true);
        assert_eq!(read.lock().unwrap().len(), 2);
        // What cannot be used is said once for each change, not at every look.
        std::fs::write(&path, "bad").unwrap();
        let seen = watched.look(seen, false);
        assert_eq!(watched.look(seen.clone(), false), seen);
        assert_eq!(*read.lock().unwrap(), ["two", "two", "bad"]);
    }

    #[tokio::test]
    async fn a_signal_is_not_missed_and_the_watch_ends_with_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let (path, read, watched) = watched(folder.path());
        let ((ask, asked), (stop, stopped)) = (watch::channel(()), watch::channel(false));
        // Before anybody waits for it.
        ask.send_replace(());
        let task = tokio::spawn(watched.watch(&Seen::now([&path]), asked, stopped));
        let looked = async {
            while read.lock().unwrap().is_empty() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(LOOK_EVERY * 4, looked).await.unwrap();
        stop.send_replace(true);
        task.await.unwrap();
    }
}
