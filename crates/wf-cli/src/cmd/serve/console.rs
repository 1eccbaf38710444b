//! The operator console: puts the engine and the authenticator of the server behind the pages of `wf-console`, and those at the
//! operator's address.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderValue};
use http::{Request, Response, Uri};
use wf_console::{Console, ConsoleParts, Door, Turned};
use wf_core::engine::Engine;
use wf_core::models::Principal;
use wf_mcp_http::{Authenticator, Caller, Pages, Refusal};

use crate::ambient::{OsIds, SystemClock};
use crate::config::Config;
use crate::config::auth::AuthMode;

/// The console of a server, for its operator's address.
pub(super) fn pages(
    config: &Config,
    engine: Arc<Engine>,
    authenticator: Arc<dyn Authenticator>,
) -> Arc<dyn Pages> {
    let open = config.auth.mode == AuthMode::None;
    let console = Console::new(ConsoleParts {
        engine,
        door: Arc::new(Tokens { authenticator, open }),
        clock: Arc::new(SystemClock),
        ids: Arc::new(OsIds),
        timezone: config.server.timezone.clone(),
    });
    Arc::new(Shown(console))
}

/// The pages, as the server mounts them.
#[derive(Debug)]
struct Shown(Console);

#[async_trait]
impl Pages for Shown {
    async fn answer(&self, request: Request<Bytes>, client: IpAddr) -> Response<Bytes> {
        self.0.answer(request, client).await
    }
}

/// Tokens count here as they do for `/mcp`.
#[derive(Debug)]
struct Tokens {
    authenticator: Arc<dyn Authenticator>,
    /// Nobody is asked for one.
    open: bool,
}

/// The paths that a token may be for, where it names one (`auth.audience`).
const PATHS: [&str; 2] = ["/mcp", "/mcp-std"];

#[async_trait]
impl Door for Tokens {
    fn open_to(&self) -> Option<Arc<Principal>> {
        self.open.then(|| Arc::new(Principal::local()))
    }

    async fn recognise(&self, token: &str) -> Result<Arc<Principal>, Turned> {
        let mut sent =
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| Turned::Unknown)?;
        sent.set_sensitive(true);
        for path in PATHS {
            let (mut head, ()) = Request::new(()).into_parts();
            head.uri = Uri::from_static(path);
            head.headers.insert(AUTHORIZATION, sent.clone());
            match self.authenticator.authenticate(&head).await {
                Ok(Caller::User(principal)) => return Ok(principal),
                Ok(Caller::Service(_)) => return Err(Turned::Service),
                Err(Refusal::Unavailable { .. }) => return Err(Turned::Unavailable),
                // For the other path, perhaps.
                Err(Refusal::Unauthenticated | Refusal::BadRequest(_)) => {}
            }
        }
        Err(Turned::Unknown)
    }
}
