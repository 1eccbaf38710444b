//! A program that listens on this machine while something else is done with it, and ends with the value that stands for it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::fault::Fault;
use crate::process::Run;

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How often is looked whether something came true.
const LOOK: Duration = Duration::from_millis(50);

/// A running program.
#[derive(Debug)]
pub(crate) struct Background {
    child: Child,
    shown: String,
    log: PathBuf,
}

impl Background {
    /// Starts it; both its streams go to the file `log`. `shown` is what messages call it.
    pub(crate) fn start(command: &mut Command, shown: &str, log: &Path) -> Result<Self, Fault> {
        let output = File::create(log).map_err(|source| Fault::file(log, source))?;
        let errors = output.try_clone().map_err(|source| Fault::file(log, source))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|source| Fault::Start { command: shown.to_owned(), source })?;
        Ok(Self { child, shown: shown.to_owned(), log: log.to_owned() })
    }

    /// Waits until `come_true` gives something. A fault with its output if it ends before, or takes longer than `wait`.
    pub(crate) fn until<T>(
        &mut self,
        wait: Duration,
        mut come_true: impl FnMut() -> Option<T>,
    ) -> Result<T, Fault> {
        let deadline = Instant::now() + wait;
        loop {
            if let Some(value) = come_true() {
                return Ok(value);
            }
            let ended = self.child.try_wait().ok().flatten().is_some();
            if ended || Instant::now() >= deadline {
                return Err(self.fault());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Asks it to end by SIGTERM and waits for that; how it ended.
    pub(crate) fn terminate(mut self, wait: Duration) -> Result<ExitStatus, Fault> {
        let id = self.child.id().to_string();
        Run::new(Path::new("."), "kill", &["-TERM", &id]).stdout()?;
        let deadline = Instant::now() + wait;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK),
                Ok(None) | Err(_) => return Err(self.fault()),
            }
        }
    }

    /// What it printed so far, as a fault.
    fn fault(&self) -> Fault {
        let output = std::fs::read_to_string(&self.log).unwrap_or_default();
        Fault::Failed { command: self.shown.clone(), output }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It holds nothing that is worth keeping; an error means that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// True if somebody listens there.
pub(crate) fn listens(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok()
}

/// Gets a path; the status line of the answer.
pub(crate) fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    ask(address, &format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"))
}

/// Posts JSON; the status line of the answer.
pub(crate) fn post(address: SocketAddr, path: &str, body: &str) -> std::io::Result<String> {
    let length = body.len();
    ask(
        address,
        &format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ),
    )
}

fn ask(address: SocketAddr, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}

/// An address of this machine on which nobody listens just now.
pub(crate) fn free_address() -> Result<SocketAddr, Fault> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map_err(|error| Fault::parse("a free port", &error))
}

#[cfg(test)]
mod tests {
    use super::{free_address, listens};

    #[test]
    fn a_free_address_can_be_bound() {
        let address = free_address().expect("an address");
        assert!(!listens(address));
        let listener = std::net::TcpListener::bind(address).expect("bound");
        assert!(listens(address));
        drop(listener);
    }
}
