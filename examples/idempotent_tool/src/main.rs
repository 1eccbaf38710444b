//! `idempotent_tool ADDRESS FOLDER repeat|refuse|unguarded`: a server with a tool that sends e-mails.
//!
//! It prints its URL and serves until its standard input ends; without arguments it says what it is. `mail` is an ordinary `rmcp` handler, `post` the folder that
//! stands for a mail system; the ten lines of [`serve`] that name `RetrySafe` make the tool safe to retry, or, for
//! comparison, do not.

mod mail;
mod post;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use wf_mcp_http::{Caller, Guest, HttpConfig, Server, caller};
use wf_tool_ledger::{Ledger, LedgerConfig, RetrySafe, Unfinished};

use mail::{Mail, SEND};
use post::Post;

const USAGE: &str = "usage: idempotent_tool ADDRESS FOLDER repeat|refuse|unguarded";

const OFFERED: &str = "\
idempotent_tool ADDRESS FOLDER repeat|refuse|unguarded
  repeat     send_email {to, subject, text, idempotency_key}: run again after a crash, with the same effect key
  refuse     send_email {to, subject, text, idempotency_key}: after a crash, nobody knows
  unguarded  send_email {to, subject, text}: a retry sends twice
";

/// How long a call of a server that died is taken for alive. Short, so that a demonstration need not wait.
const LEASE: Duration = Duration::from_secs(3);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{USAGE}")]
    Usage,
    #[error("the folder or the output cannot be used")]
    Io(#[from] std::io::Error),
    #[error("the ledger cannot be opened")]
    Ledger(#[from] wf_tool_ledger::LedgerError),
    #[error("cannot serve")]
    Serve(#[from] wf_mcp_http::ServeError),
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [] => std::io::stdout().write_all(OFFERED.as_bytes()).map_err(Failure::Io),
        [address, folder, how] => serve(address, Path::new(folder), how).await,
        _ => Err(Failure::Usage),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let cause = std::error::Error::source(&failure).map(|cause| format!(": {cause}"));
            // Nothing is left to do when even this cannot be said.
            drop(writeln!(std::io::stderr(), "{failure}{}", cause.unwrap_or_default()));
            ExitCode::FAILURE
        }
    }
}

async fn serve(address: &str, folder: &Path, how: &str) -> Result<(), Failure> {
    let listen: SocketAddr = address.parse().map_err(|_| Failure::Usage)?;
    let unfinished = match how {
        // The mail system takes a mail of one name once, so running again is safe: exactly once in all.
        "repeat" => Some(Unfinished::Repeat),
        // As for one that does not: better told of than sent twice.
        "refuse" => Some(Unfinished::Refuse),
        "unguarded" => None,
        _ => return Err(Failure::Usage),
    };
    let mail = Mail::new(Post::open(folder.to_owned())?);
    let guest = match unfinished {
        None => Guest::new(mail),
        Some(unfinished) => {
            let config = LedgerConfig { lease: LEASE, ..LedgerConfig::default() };
            let ledger = Ledger::open(folder.join("calls.db"), config)?;
            // Each caller has keys of their own.
            let scope = |context: &_| match caller(context) {
                Some(Caller::User(who)) => format!("{} {}", who.tenant.as_str(), who.actor),
                Some(Caller::Service(_)) | None => String::new(),
            };
            Guest::new(RetrySafe::new(mail, ledger).tool(SEND, unfinished).scope(scope))
        }
    };
    let config = HttpConfig { listen: vec![listen], ..HttpConfig::default() };
    let server = Server::builder(config).guest(guest).bind().await?;
    {
        let mut out = std::io::stdout().lock();
        writeln!(out, "http://{}/mcp", server.local_addr())?;
        out.flush()?;
    }
    server.run(input_ends()).await?;
    Ok(())
}

/// Whoever started this holds the other end, so it never outlives them.
async fn input_ends() {
    let mut input = tokio::io::stdin();
    let mut some = [0; 64];
    while input.read(&mut some).await.is_ok_and(|read| read > 0) {}
}
