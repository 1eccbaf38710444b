//! Engines of durable work that do the same job: Restate, with a service on Node, and DBOS, in Python. Each in the way its
//! own documentation gives for one machine, every write on the disk before it is answered; what they say of their settings
//! goes into the page. Neither speaks MCP here, which is in their favour.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Uri;
use serde::Serialize;
use serde_json::json;

use super::child::Other;
use super::plan::Plan;
use super::wire::{Call, Connection};
use super::work::{Form, Names, Round};
use crate::fault::Fault;
use crate::harness::server::PATIENCE;

/// The program on DBOS.
const DBOS: &str = include_str!("../../../../tests/bench/dbos_peer.py");
/// The service behind Restate.
const RESTATE: &str = include_str!("../../../../tests/bench/restate.mjs");
/// What is at the beginning of the line in which a peer says with what it runs.
const SETTINGS: &str = "settings: ";

/// Where they are installed; what is not is left out.
#[derive(Debug, Clone, Default)]
pub struct Installed {
    /// The Python of an environment with DBOS.
    pub dbos: Option<PathBuf>,
    /// A folder with the packages of Restate, and of Node where the system's is too old.
    pub restate: Option<PathBuf>,
}

/// What a peer runs with.
#[derive(Debug, Clone, Serialize)]
pub struct Settings {
    /// Its name.
    pub name: &'static str,
    /// Versions and settings, as it says them itself.
    pub settings: String,
}

/// A peer that serves. Killed when dropped.
#[derive(Debug)]
pub struct Peer {
    form: Form,
    address: SocketAddr,
    /// The process that answers first, then what stands behind it.
    processes: Vec<Other>,
    settings: String,
}

impl Peer {
    /// The load on it.
    #[must_use]
    pub fn plan(&self, callers: usize, time: Duration) -> Plan {
        let mut pids = self.processes.iter().map(Other::id);
        let pid = pids.next().unwrap_or_default();
        let plan = Plan::on(self.address, pid, callers, time);
        Plan { beside: pids.next(), form: self.form, ..plan }
    }

    /// What it runs with.
    #[must_use]
    pub fn settings(&self) -> &str {
        &self.settings
    }

    /// DBOS, with its databases in this folder.
    ///
    /// # Errors
    /// When it does not serve.
    pub fn dbos(python: &Path, folder: &Path) -> Result<Self, Fault> {
        let program = folder.join("dbos_peer.py");
        std::fs::write(&program, DBOS).map_err(Fault::io("writing the program on DBOS"))?;
        let mut command = Command::new(python);
        command.arg(&program).arg(folder).env("PYTHONDONTWRITEBYTECODE", "1");
        let peer = Other::start("dbos", command, folder)?;
        let settings = settings_in(&peer.log())?;
        Ok(Self { form: Form::Mcp, address: peer.address(), processes: vec![peer], settings })
    }

    /// Restate, with its data in this folder, and the service that it calls.
    ///
    /// # Errors
    /// When it does not serve.
    pub async fn restate(packages: &Path, folder: &Path) -> Result<Self, Fault> {
        // Modules are found from where the program is.
        let program = packages.join("restate.mjs");
        std::fs::write(&program, RESTATE).map_err(Fault::io("writing the service"))?;
        let node = below(packages, "", "node-").map(|package| package.join("bin/node"));
        let mut command = Command::new(node.unwrap_or_else(|| "node".into()));
        command.arg(&program).env("NODE_ENV", "production").env("RESTATE_LOGGING", "WARN");
        let service = Other::start("service", command, folder)?;
        let server = below(packages, "@restatedev", "restate-server-")
            .ok_or_else(|| Fault::Run(format!("no Restate below {}", packages.display())))?
            .join("bin/restate-server");
        let [fabric, admin, ingress] = free_ports()?;
        let config = folder.join("restate.toml");
        let text = restate_toml(folder, [fabric, admin, ingress]);
        std::fs::write(&config, text).map_err(Fault::io("writing restate.toml"))?;
        let settings = restate_settings(&server, &config, &settings_in(&service.log())?)?;
        let mut command = Command::new(&server);
        command.arg("--config-file").arg(&config).arg("--no-logo");
        let server = Other::begin("restate", command, folder)?;
        register(&server, [admin, ingress], service.address()).await?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ingress));
        Ok(Self { form: Form::Restate, address, processes: vec![server, service], settings })
    }
}

/// The package of this machine: the folder whose name begins so.
fn below(packages: &Path, scope: &str, prefix: &str) -> Option<PathBuf> {
    let folder = packages.join("node_modules").join(scope);
    let mut found = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
    found.find(|entry| entry.file_name().to_string_lossy().starts_with(prefix)).map(|e| e.path())
}

/// Ports that were free a moment ago: Restate does not say which it chose.
fn free_ports() -> Result<[u16; 3], Fault> {
    let wrong = || Fault::io("looking for free ports");
    let open = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(wrong());
    let held = [open()?, open()?, open()?];
    let port = |at: usize| held[at].local_addr().map(|a| a.port()).map_err(wrong());
    Ok([port(0)?, port(1)?, port(2)?])
}

/// What differs from how Restate comes: where it is, and a partition for each processor rather than 24, with which it was
/// measured to be faster here.
fn restate_toml(folder: &Path, [fabric, admin, ingress]: [u16; 3]) -> String {
    let partitions = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "base-dir = {:?}\ncluster-name = \"bench\"\nlisten-mode = \"tcp\"\nbind-ip = \"127.0.0.1\"\n\
         advertised-host = \"127.0.0.1\"\nbind-port = {fabric}\ndefault-num-partitions = {partitions}\n\
         disable-telemetry = true\n[admin]\nbind-port = {admin}\n[ingress]\nbind-port = {ingress}\n",
        folder.join("restate").display().to_string()
    )
}

/// Its version, and of all its settings those that say when something is on the disk.
fn restate_settings(server: &Path, config: &Path, service: &str) -> Result<String, Fault> {
    let said = |arguments: &[&str]| {
        let output = Command::new(server)
            .args(["--config-file", &config.to_string_lossy()])
            .args(arguments)
            .output()
            .map_err(Fault::io("asking Restate for its settings"))?;
        Ok::<_, Fault>(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (version, dumped) = (said(&["--version"])?, said(&["--dump-config"])?);
    let wanted = [
        ("", "default-num-partitions"),
        ("bifrost", "default-provider"),
        ("log-server", "rocksdb-disable-wal-fsync"),
    ];
    let found: Option<Vec<String>> = wanted
        .iter()
        .map(|(section, name)| Some(format!("{name} = {}", setting(&dumped, section, name)?)))
        .collect();
    let found = found.ok_or_else(|| Fault::Run("Restate does not tell its settings".to_owned()))?;
    Ok(format!("{}, {}; {service}", version.trim(), found.join(", ")))
}

/// The value of a setting in a section of a configuration, as it is written there.
fn setting<'a>(dumped: &'a str, section: &str, name: &str) -> Option<&'a str> {
    let mut here = "";
    dumped.lines().find_map(|line| {
        if let Some(named) = line.strip_prefix('[') {
            here = named.trim_end_matches(']');
        }
        let (key, value) = line.split_once(" = ")?;
        (here == section && key == name).then_some(value)
    })
}

/// What a peer says of itself in its log.
fn settings_in(log: &str) -> Result<String, Fault> {
    let line = log.lines().find_map(|line| line.strip_prefix(SETTINGS));
    line.map(str::to_owned).ok_or_else(|| Fault::Server {
        what: "a peer does not say with what it runs".to_owned(),
        log: log.to_owned(),
    })
}

/// Tells Restate of the service, as soon as it listens, and waits until calls of it are answered.
async fn register(server: &Other, ports: [u16; 2], service: SocketAddr) -> Result<(), Fault> {
    let body = Bytes::from(json!({ "uri": format!("http://{service}/") }).to_string());
    let call = Call { path: Uri::from_static("/deployments"), key: None, body };
    let mut names = Names::new()?;
    let end = Instant::now() + PATIENCE;
    while let Err(fault) = first_calls(ports, &call, &mut names).await {
        if Instant::now() > end {
            let what = format!("Restate calls no service: {}", fault.chain());
            return Err(Fault::Server { what, log: server.log() });
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Registering twice does no harm, and the unit is one that no caller has.
async fn first_calls(
    [admin, ingress]: [u16; 2],
    registration: &Call,
    names: &mut Names,
) -> Result<(), Fault> {
    let at = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Connection::open(at(admin)).await?.call(registration.clone()).await?;
    let mut connection = Connection::open(at(ingress)).await?;
    let round = Round::start_as(Form::Restate, &mut connection, 0, names).await?;
    round.complete(&mut connection, 0).await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{restate_toml, setting, settings_in};

    #[test]
    fn a_setting_is_read_from_its_own_section() {
        let dumped = "a = 1\n\n[bifrost]\nb = \"x\"\n[log-server]\na = false\n";
        assert_eq!(setting(dumped, "", "a"), Some("1"));
        assert_eq!(setting(dumped, "bifrost", "b"), Some("\"x\""));
        assert_eq!(setting(dumped, "log-server", "a"), Some("false"));
        assert_eq!(setting(dumped, "bifrost", "a"), None);
    }

    #[test]
    fn a_peer_that_does_not_say_its_settings_is_not_measured() {
        let log = "a warning\nsettings: fast 1.0\nhttp://127.0.0.1:1/mcp\n";
        assert_eq!(settings_in(log).expect("they are there"), "fast 1.0");
        assert!(settings_in("http://127.0.0.1:1/mcp\n").is_err());
    }

    #[test]
    fn durability_of_restate_is_left_as_it_comes() {
        let text = restate_toml(Path::new("/x"), [1, 2, 3]);
        assert!(!text.contains("fsync") && !text.contains("wal"), "{text}");
        assert_eq!(setting(&text, "ingress", "bind-port"), Some("3"));
    }
}
