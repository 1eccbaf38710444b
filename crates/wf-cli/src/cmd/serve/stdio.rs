//! `serve --stdio`: a client on standard input and output. It started this process, so it is the user of the operating
//! system who asks, and the process ends with the input. `wf_mcp_http::stdio` has the protocol.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use wf_core::engine::Engine;
use wf_core::models::{Actor, Principal};
use wf_mcp_http::{Drained, HttpConfig};

use super::signals::stopped;
use crate::ambient::os_user;
use crate::config::Config;
use crate::config::auth::AuthMode;
use crate::exit::Failure;

/// Refuses to check tokens where none can come.
///
/// # Errors
/// When the configuration asks for tokens.
pub(super) fn refuse_tokens(config: &Config) -> Result<(), Failure> {
    let mode = config.auth.mode;
    match mode {
        AuthMode::None => Ok(()),
        AuthMode::Dev | AuthMode::Jwt => Err(Failure::usage(format!(
            "auth.mode = \"{}\" and --stdio: no token comes over standard input",
            mode.as_str()
        ))
        .help(
            "give --auth none, or --listen too if there is to be a listener that asks for tokens",
        )),
    }
}

/// Who asks: whoever started this process.
pub(super) fn person() -> Principal {
    let user = os_user();
    Principal { actor: Actor::User(user.clone()), name: Some(user), ..Principal::local() }
}

/// Serves the client to its end, which is the end of the server.
pub(super) async fn serve(
    config: HttpConfig,
    engine: Arc<Engine>,
    stop: watch::Receiver<bool>,
    end: watch::Sender<bool>,
) -> Drained {
    let lines = (tokio::io::stdin(), tokio::io::stdout());
    let drained =
        wf_mcp_http::stdio::serve_lines(&config, engine, person(), lines, stopped(stop)).await;
    end.send_replace(true);
    drained
}

/// Waits for it, and answers how many requests were not over in time.
pub(super) async fn ended(desk: JoinHandle<Drained>) -> usize {
    match desk.await {
        Ok(drained) => drained.in_flight_abandoned,
        Err(error) => {
            tracing::error!(%error, "serving on standard input ended by itself");
            0
        }
    }
}
