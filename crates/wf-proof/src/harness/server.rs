//! A process of the built `wf-cli serve`, in a folder that outlives it.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::fault::Fault;

/// How long a start or an end may take before the run gives up.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Exit code of `wf-cli` for "unavailable, try again".
const UNAVAILABLE: i32 = 3;

/// How to start a server.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The built binary.
    pub program: PathBuf,
    /// Its working folder: the database, its log, its output.
    pub folder: PathBuf,
    /// Where it listens; port 0 lets the system choose.
    pub listen: String,
    /// More arguments of `serve`.
    pub arguments: Vec<String>,
    /// More of its environment.
    pub environment: Vec<(String, String)>,
}

impl Launch {
    /// In this folder, on a port of the system's choice.
    #[must_use]
    pub fn new(program: &Path, folder: &Path) -> Self {
        Self {
            program: program.to_owned(),
            folder: folder.to_owned(),
            listen: "127.0.0.1:0".to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// With one more variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// The database that the server uses.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.folder.join("checkpoint.db")
    }

    /// Runs another command of the program in the same folder, to its end.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn command(&self, arguments: &[&str]) -> Result<std::process::Output, Fault> {
        self.prepared().args(arguments).output().map_err(Fault::io(format!("wf-cli {arguments:?}")))
    }

    fn prepared(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("WF_") {
                command.env_remove(name);
            }
        }
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command
    }
}

/// A server process. Killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    output: PathBuf,
}

impl Server {
    /// Starts it and waits until it says where it listens, which is when it answers. A start that ends with "unavailable,
    /// try again" (another server holds the file while its disk is slow) is tried again, as a supervisor would.
    ///
    /// # Errors
    /// When it cannot be started, ends by itself or stays silent.
    pub fn start(launch: &Launch) -> Result<Self, Fault> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(server) = Self::start_once(launch, end)? {
                return Ok(server);
            }
        }
    }

    /// One start; `None` when it may be tried again.
    fn start_once(launch: &Launch, end: Instant) -> Result<Option<Self>, Fault> {
        let (mut child, output) = Self::spawn(launch)?;
        let what = match until_it_serves(&mut child, &output, end)? {
            Ok(address) => return Ok(Some(Self { child, address, output })),
            Err(Some(status)) if status.code() == Some(UNAVAILABLE) && Instant::now() < end => {
                return Ok(None);
            }
            Err(Some(status)) => format!("the server ended with {status} instead of serving"),
            Err(None) => "the server did not say where it listens".to_owned(),
        };
        Err(Fault::Server { what, log: read(&output) })
    }

    /// Starts it without waiting: for runs in which it is expected to fail. Answers the process and its output file.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(launch: &Launch) -> Result<(Child, PathBuf), Fault> {
        let output = launch.folder.join("serve.log");
        let file = File::create(&output).map_err(Fault::io("the server's log"))?;
        let errors = file.try_clone().map_err(Fault::io("the server's log"))?;
        let child = launch
            .prepared()
            .args(["serve", "--listen", &launch.listen])
            .args(&launch.arguments)
            .stdout(Stdio::from(file))
            .stderr(Stdio::from(errors))
            .spawn()
            .map_err(Fault::io(format!("starting {}", launch.program.display())))?;
        Ok((child, output))
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote so far.
    #[must_use]
    pub fn log(&self) -> String {
        read(&self.output)
    }

    /// True while the process runs.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn is_running(&mut self) -> Result<bool, Fault> {
        Ok(self.child.try_wait().map_err(Fault::io("waiting for the server"))?.is_none())
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) -> Result<(), Fault> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Fault::Run("the server has no process id".to_owned()))?;
        kill_process(pid, signal).map_err(|error| Fault::io("signalling the server")(error.into()))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn wait(&mut self) -> Result<ExitStatus, Fault> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) =
                self.child.try_wait().map_err(Fault::io("waiting for the server"))?
            {
                return Ok(status);
            }
            if Instant::now() > end {
                return Err(Fault::Server { what: "it does not end".to_owned(), log: self.log() });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends it without asking.
    ///
    /// # Errors
    /// When it does not end.
    pub fn kill(mut self) -> Result<(), Fault> {
        // It may be gone already.
        let _ = self.child.kill();
        self.wait().map(|_| ())
    }

    /// Asks it to end, and waits.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop(mut self) -> Result<ExitStatus, Fault> {
        self.signal(Signal::TERM)?;
        self.wait()
    }
}

/// Waits until a process says in its output where it serves. Otherwise it is gone afterwards: it ended by itself, with
/// this status, or it stayed silent to the end and was killed.
pub(crate) fn until_it_serves(
    child: &mut Child,
    output: &Path,
    end: Instant,
) -> Result<Result<SocketAddr, Option<ExitStatus>>, Fault> {
    loop {
        if let Some(address) = address_in(&read(output)) {
            return Ok(Ok(address));
        }
        let ended = child.try_wait().map_err(Fault::io("waiting for a server"))?;
        if ended.is_some() || Instant::now() > end {
            // It may be gone already.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(Err(ended));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The address in the first lines that `serve` prints.
fn address_in(text: &str) -> Option<SocketAddr> {
    let (before, _) = text.split_once("/mcp")?;
    let (_, address) = before.rsplit_once("://")?;
    address.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::address_in;

    #[test]
    fn the_address_is_read_from_what_serve_prints() {
        let text =
            "Checkpoint 0.1.0\n  MCP         http://127.0.0.1:40123/mcp  (no authentication)\n";
        assert_eq!(address_in(text).map(|address| address.port()), Some(40_123));
        assert_eq!(address_in("Checkpoint 0.1.0\n"), None);
        assert_eq!(address_in("  MCP         http://127.0.0.1:401"), None);
    }
}
