//! Puts a server together from what its user chooses: our tools over an engine, a guest's, or both.

use std::sync::Arc;

use async_trait::async_trait;
use wf_core::engine::Engine;

use crate::auth::{Authenticator, Nobody};
use crate::config::HttpConfig;
use crate::guest::Guest;
use crate::pages::Pages;
use crate::probes::Probes;
use crate::server::{ServeError, Server};

/// What a [`Server`] is made of. Begun by [`Server::builder`].
///
/// Backend and policies are chosen with the [`Engine`]; limits, addresses, TLS and what clients are told about credentials
/// with the [`HttpConfig`]. Every layer holds for everything that is served.
///
/// ```no_run
/// use std::sync::Arc;
/// use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock};
/// use rmcp::model::{ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool};
/// use rmcp::service::RequestContext;
/// use rmcp::{ErrorData, RoleServer, ServerHandler};
/// use wf_core::engine::Engine;
/// use wf_mcp_http::{Caller, Guest, HttpConfig, Needs, ServeError, Server, caller};
///
/// struct Greeter;
///
/// impl ServerHandler for Greeter {
///     fn get_info(&self) -> ServerConfig {
///         ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
///     }
///
///     fn get_tool(&self, name: &str) -> Option<Tool> {
///         let greet = || Tool::new("greet", "Says hello.", Arc::new(Default::default()));
///         (name == "greet").then(greet)
///     }
///
///     async fn list_tools(
///         &self,
///         _: Option<PaginatedRequestParams>,
///         _: RequestContext<RoleServer>,
///     ) -> Result<ListToolsResult, ErrorData> {
///         Ok(ListToolsResult::with_all_items(self.get_tool("greet").into_iter().collect()))
///     }
///
///     async fn call_tool(
///         &self,
///         _: CallToolRequestParams,
///         context: RequestContext<RoleServer>,
///     ) -> Result<CallToolResponse, ErrorData> {
///         let name = match caller(&context) {
///             Some(Caller::User(who)) => who.actor.to_string(),
///             Some(Caller::Service(_)) | None => "nobody".to_owned(),
///         };
///         let text = format!("Hello, {name}!");
///         Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
///     }
/// }
///
/// async fn serve(engine: Arc<Engine>, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
///     let greeter = Guest::new(Greeter).needs("greet", Needs::Read);
///     let server =
///         Server::builder(HttpConfig::default()).engine(engine).guest(greeter).bind().await?;
///     println!("http://{}/mcp", server.local_addr());
///     server.run(stop).await?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until it is bound"]
pub struct Builder {
    pub(crate) config: HttpConfig,
    pub(crate) engine: Option<Arc<Engine>>,
    pub(crate) guest: Option<Guest>,
    pub(crate) probes: Arc<dyn Probes>,
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) pages: Option<Arc<dyn Pages>>,
}

impl Builder {
    /// A server without anything to serve, for everybody, always ready.
    pub(crate) fn new(config: HttpConfig) -> Self {
        Self {
            config,
            engine: None,
            guest: None,
            probes: Arc::new(AlwaysReady),
            authenticator: Arc::new(Nobody),
            pages: None,
        }
    }

    /// Serves the tools of Checkpoint over this engine.
    pub fn engine(mut self, engine: Arc<Engine>) -> Self {
        self.engine = Some(engine);
        self
    }

    /// Serves a handler of your own: beside the tools of Checkpoint if there is an engine, else alone.
    pub fn guest(mut self, guest: Guest) -> Self {
        self.guest = Some(guest);
        self
    }

    /// Asks this for readiness and metrics. Without it the server is always ready and has no metrics.
    pub fn probes(mut self, probes: Arc<dyn Probes>) -> Self {
        self.probes = probes;
        self
    }

    /// Asks this who sends a request. Without it every caller is the principal `local` with every scope: for loopback.
    pub fn authenticator(mut self, authenticator: Arc<dyn Authenticator>) -> Self {
        self.authenticator = authenticator;
        self
    }

    /// Shows these pages at the operator's address, `HttpConfig::admin_listen`; without that address nowhere.
    pub fn pages(mut self, pages: Arc<dyn Pages>) -> Self {
        self.pages = Some(pages);
        self
    }

    /// Listens; nothing is answered before [`Server::run`].
    ///
    /// # Errors
    /// [`ServeError`]: nothing to serve, names that collide, settings that are none, addresses that are taken.
    pub async fn bind(self) -> Result<Server, ServeError> {
        Server::listening(self).await
    }
}

/// The probes of whoever has nothing to tell.
#[derive(Debug)]
struct AlwaysReady;

#[async_trait]
impl Probes for AlwaysReady {
    async fn ready(&self) -> Result<(), String> {
        Ok(())
    }

    fn metrics(&self) -> String {
        String::new()
    }
}
