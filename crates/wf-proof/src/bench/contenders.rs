//! Each thing that is measured, on a new folder every time: the floors, the peers, the product.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;

use super::child::Other;
use super::load::{self, Measured, Wanted};
use super::peers::{Installed, Peer, Settings};
use super::plan::Plan;
use super::raw::{self, Raw, Rows};
use super::wire::Connection;
use super::work::procedures_below;
use crate::fault::Fault;
use crate::harness::server::{Launch, Server};

/// The peer's program.
const PEER: &str = include_str!("../../../../tests/bench/peer.py");

/// What is measured, and with what.
#[derive(Debug)]
pub struct Contenders {
    server: PathBuf,
    python: Option<PathBuf>,
    engines: Installed,
    below: Option<PathBuf>,
    time: Duration,
    rows: Rows,
    /// The answer to [`LIST`].
    list: Bytes,
}

/// Asks for the list of tools.
pub const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;

impl Contenders {
    /// Runs one workflow on the server, to know what a step writes and answers. Databases are made in new folders `below`
    /// this one, or where the system has temporary files.
    ///
    /// # Errors
    /// When the server does not serve.
    pub async fn new(
        server: &Path,
        python: Option<&Path>,
        engines: Installed,
        below: Option<&Path>,
        time: Duration,
    ) -> Result<Self, Fault> {
        let folder = temporary(below)?;
        let running = serve(server, folder.path(), None)?;
        let mut caller = Connection::open(running.address()).await?;
        let rows = Rows::record(&mut caller, &folder.path().join("checkpoint.db")).await?;
        let list = caller.call(Bytes::from_static(LIST.as_bytes())).await?;
        drop(caller);
        running.stop()?;
        Ok(Self {
            server: server.to_owned(),
            python: python.map(Path::to_owned),
            engines,
            below: below.map(Path::to_owned),
            time,
            rows,
            list,
        })
    }

    fn folder(&self) -> Result<TempDir, Fault> {
        temporary(self.below.as_deref())
    }

    fn plan(&self, address: std::net::SocketAddr, pid: u32, callers: usize) -> Plan {
        Plan::on(address, pid, callers, self.time)
    }

    /// Raw SQLite with the same rows.
    ///
    /// # Errors
    /// As [`raw::measure`] says.
    pub async fn raw(&self, grouped: bool) -> Result<Raw, Fault> {
        let folder = self.folder()?;
        raw::measure(&self.rows, folder.path(), grouped, self.time).await
    }

    /// The bare echo with the sizes of a step.
    ///
    /// # Errors
    /// When it does not serve.
    pub async fn echo(&self, callers: usize) -> Result<Measured, Fault> {
        let (request, answer) = &self.rows.call;
        self.echo_of(callers, request, answer, Wanted::Outcome("recorded")).await
    }

    /// The bare echo with the sizes of the list of tools.
    ///
    /// # Errors
    /// When it does not serve.
    pub async fn echo_list(&self, callers: usize) -> Result<Measured, Fault> {
        self.echo_of(callers, &LIST.into(), &self.list, Wanted::Tools).await
    }

    async fn echo_of(
        &self,
        callers: usize,
        request: &Bytes,
        answer: &Bytes,
        wanted: Wanted,
    ) -> Result<Measured, Fault> {
        let folder = self.folder()?;
        let file = folder.path().join("answer.json");
        std::fs::write(&file, answer).map_err(Fault::io("writing the answer"))?;
        let me = std::env::current_exe().map_err(Fault::io("finding this program"))?;
        let mut command = Command::new(me);
        command.arg("echo").arg(&file);
        let echo = Other::start("echo", command, folder.path())?;
        load::repeated(&self.plan(echo.address(), echo.id(), callers), request, wanted).await
    }

    /// The Python peer, if there is a Python for it.
    ///
    /// # Errors
    /// When it does not serve.
    pub async fn peer(&self, callers: usize) -> Result<Option<Measured>, Fault> {
        let Some(python) = &self.python else {
            return Ok(None);
        };
        let folder = self.folder()?;
        let program = folder.path().join("peer.py");
        std::fs::write(&program, PEER).map_err(Fault::io("writing the peer"))?;
        let mut command = Command::new(python);
        command.arg(&program).arg(folder.path()).env("PYTHONDONTWRITEBYTECODE", "1");
        let peer = Other::start("peer", command, folder.path())?;
        load::steps(&self.plan(peer.address(), peer.id(), callers)).await.map(Some)
    }

    /// Restate, if it is there.
    ///
    /// # Errors
    /// When it does not serve.
    pub async fn restate(&self, callers: usize) -> Result<Option<Measured>, Fault> {
        let Some(packages) = &self.engines.restate else {
            return Ok(None);
        };
        let folder = self.folder()?;
        let peer = Peer::restate(packages, folder.path()).await?;
        load::steps(&peer.plan(callers, self.time)).await.map(Some)
    }

    /// DBOS, if it is there.
    ///
    /// # Errors
    /// When it does not serve.
    pub async fn dbos(&self, callers: usize) -> Result<Option<Measured>, Fault> {
        let Some(python) = &self.engines.dbos else {
            return Ok(None);
        };
        let folder = self.folder()?;
        let peer = Peer::dbos(python, folder.path())?;
        load::steps(&peer.plan(callers, self.time)).await.map(Some)
    }

    /// What the engines that are there run with; each is started once for that.
    ///
    /// # Errors
    /// When one does not serve.
    pub async fn settings(&self) -> Result<Vec<Settings>, Fault> {
        let mut all = Vec::new();
        if let Some(packages) = &self.engines.restate {
            let folder = self.folder()?;
            let peer = Peer::restate(packages, folder.path()).await?;
            all.push(Settings { name: "Restate", settings: peer.settings().to_owned() });
        }
        if let Some(python) = &self.engines.dbos {
            let folder = self.folder()?;
            let peer = Peer::dbos(python, folder.path())?;
            all.push(Settings { name: "DBOS", settings: peer.settings().to_owned() });
        }
        Ok(all)
    }

    /// The product, on a new database.
    ///
    /// # Errors
    /// When it does not serve.
    pub async fn product(&self, callers: usize, replays: bool) -> Result<Measured, Fault> {
        let folder = self.folder()?;
        let server = serve(&self.server, folder.path(), None)?;
        let plan = Plan { replays, ..self.plan(server.address(), server.id(), callers) };
        let measured = load::steps(&plan).await?;
        server.stop()?;
        Ok(measured)
    }

    /// The product asked for its list of tools.
    ///
    /// # Errors
    /// When it does not serve.
    pub async fn product_list(&self, callers: usize) -> Result<Measured, Fault> {
        let folder = self.folder()?;
        let server = serve(&self.server, folder.path(), None)?;
        let plan = self.plan(server.address(), server.id(), callers);
        let measured = load::repeated(&plan, &LIST.into(), Wanted::Tools).await?;
        server.stop()?;
        Ok(measured)
    }
}

/// Starts the server with the bench's procedure, as users start it.
///
/// # Errors
/// When it does not start.
pub fn serve(program: &Path, folder: &Path, database: Option<&Path>) -> Result<Server, Fault> {
    Server::start(&launch(program, folder, database)?)
}

/// How [`serve`] starts it.
///
/// # Errors
/// When the procedure cannot be written.
pub fn launch(program: &Path, folder: &Path, database: Option<&Path>) -> Result<Launch, Fault> {
    let procedures = procedures_below(folder)?;
    let mut launch = Launch::new(&absolute(program)?, folder);
    launch.arguments = vec!["--procedures".to_owned(), procedures.display().to_string()];
    if let Some(database) = database {
        launch.arguments.push("--database".to_owned());
        launch.arguments.push(absolute(database)?.display().to_string());
    }
    Ok(launch)
}

/// A new folder below this one; gone when dropped. What was measured before has nothing left to write, so that nobody waits
/// for another's bytes.
///
/// # Errors
/// When it cannot be made.
pub fn temporary(below: Option<&Path>) -> Result<TempDir, Fault> {
    rustix::fs::sync();
    let mut builder = tempfile::Builder::new();
    let made = builder.prefix("wf-bench-");
    match below {
        Some(below) => made.tempdir_in(below),
        None => made.tempdir(),
    }
    .map_err(Fault::io("a temporary folder"))
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, Fault> {
    std::path::absolute(path).map_err(Fault::io(format!("finding {}", path.display())))
}
