//! What MCP's conformance suite wants to find on a server, on the stack that `wf-cli serve` runs on.
//!
//! `conformance_server` prints what it offers; `conformance_server ADDRESS` serves it there (port 0 takes a free one) until
//! its standard input ends, and prints the URL first. `fixtures` is an ordinary rmcp handler; that [`Guest`] puts it behind
//! the product's limits, Host and Origin checks, strict reading and deadlines is the point of this example.

mod fixtures;

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use tokio::io::AsyncReadExt as _;
use wf_mcp_http::{Guest, HttpConfig, Server};

use fixtures::Fixtures;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0:?} is no address such as 127.0.0.1:0")]
    Address(String),
    #[error("the requests' state cannot be sealed")]
    Key(#[from] rmcp::model::RequestStateError),
    #[error("cannot serve")]
    Serve(#[from] wf_mcp_http::ServeError),
    #[error("cannot print")]
    Print(#[from] std::io::Error),
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match std::env::args().nth(1) {
        None => offered(),
        Some(address) => serve(&address).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let cause = std::error::Error::source(&failure).map(|cause| format!(": {cause}"));
            // Nothing is left to do when even this cannot be said.
            let _ = writeln!(std::io::stderr(), "{failure}{}", cause.unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

fn offered() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for line in fixtures::offered() {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

async fn serve(address: &str) -> Result<(), Failure> {
    let listen: SocketAddr = address.parse().map_err(|_| Failure::Address(address.to_owned()))?;
    let config = HttpConfig { listen: vec![listen], ..HttpConfig::default() };
    let server = Server::builder(config).guest(Guest::new(Fixtures::new()?)).bind().await?;
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
