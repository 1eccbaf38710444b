//! `rmcp_client MODE URL` or `rmcp_client MODE COMMAND…`: goes through a whole pump inspection with the `rmcp` client, over
//! HTTP or over the standard input and output of a server that it starts. MODE is `legacy` (the handshake of 2025) or
//! `modern` (MCP 2026-07-28).
//!
//! `drive` has the inspection, `http` what the client needs to speak HTTP.

mod drive;
mod http;

use std::io::Write as _;
use std::process::{ExitCode, Stdio};

use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use tokio::process::Command;

use drive::{DriveError, whole_job};
use http::Http;

const USAGE: &str = "\
rmcp_client legacy|modern URL
rmcp_client legacy|modern COMMAND…
  finds, starts, goes through and finishes a pump inspection of a Checkpoint server
";

/// Why it did not get to the end.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("usage:\n{USAGE}")]
    Usage,
    #[error("the server cannot be started, or nothing printed")]
    Io(#[from] std::io::Error),
    #[error("no connection")]
    Connection(#[from] Box<ClientInitializeError>),
    #[error("the inspection failed")]
    Drive(#[from] DriveError),
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [] => Ok(USAGE.to_owned()),
        [mode, target @ ..] => run(mode, target).await,
    };
    let (code, text) = match done {
        Ok(text) => (ExitCode::SUCCESS, text),
        Err(failure) => (ExitCode::FAILURE, told(&failure)),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

fn told(failure: &Failure) -> String {
    let mut text = failure.to_string();
    let mut source = std::error::Error::source(failure);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text + "\n"
}

async fn run(mode: &str, target: &[String]) -> Result<String, Failure> {
    let lifecycle = match mode {
        "legacy" => ClientLifecycleMode::Initialize,
        "modern" => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
        _ => return Err(Failure::Usage),
    };
    let client = connect(lifecycle, target).await?;
    let lines = whole_job(client.peer()).await;
    // A child sees the end of its input, and ends.
    drop(client.cancel().await);
    Ok(lines?.join("\n") + "\n")
}

async fn connect(
    lifecycle: ClientLifecycleMode,
    target: &[String],
) -> Result<RunningService<RoleClient, ()>, Failure> {
    let connected = match target {
        [] => return Err(Failure::Usage),
        [url] if url.starts_with("http://") => {
            let config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
            let transport = StreamableHttpClientTransport::with_client(Http::new(), config);
            serve_client_with_lifecycle((), transport, lifecycle).await
        }
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).stderr(Stdio::inherit());
            let child = TokioChildProcess::new(command)?;
            serve_client_with_lifecycle((), child, lifecycle).await
        }
    };
    connected.map_err(|error| Failure::Connection(Box::new(error)))
}
