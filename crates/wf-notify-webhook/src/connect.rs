//! The only place that opens a connection: looks the name up once, vets every address, connects to one of those.
//!
//! hyper's client is given this as its connector, below TLS. No name is looked up again between the check and the
//! connection, so a name server that changes its mind in between changes nothing.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use crate::address::{AddressRefused, Allowed};
use crate::target::bare;

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;
/// How long one of them may take, so that the next gets its turn within the time of the whole delivery.
const ADDRESS_WAIT: Duration = Duration::from_secs(3);

/// A connection that was not made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name is not known, or the name server did not answer.
    #[error("the name of the receiver cannot be looked up")]
    Lookup(#[source] io::Error),
    /// The name has no address.
    #[error("the name of the receiver has no address")]
    NoAddress,
    /// No address behind the name may be connected to.
    #[error("the receiver is not connected to")]
    Refused(#[from] AddressRefused),
    /// Nobody is there.
    #[error("no connection to the receiver")]
    Connection(#[source] io::Error),
}

/// Looks up names.
#[async_trait]
pub(crate) trait Lookup: Debug + Send + Sync {
    /// All addresses of a name; of an address, itself.
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The operating system's resolver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// hyper's connector.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    lookup: Arc<dyn Lookup>,
    allowed: Allowed,
}

impl Connector {
    pub(crate) fn new(lookup: Arc<dyn Lookup>, allowed: Allowed) -> Self {
        Self { lookup, allowed }
    }

    async fn connect(self, uri: Uri) -> Result<TokioIo<TcpStream>, ConnectError> {
        let secure = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let host = bare(uri.host().unwrap_or_default());
        let mut addresses = self.lookup.addresses(host).await.map_err(ConnectError::Lookup)?;
        addresses.truncate(ADDRESSES_MAX);
        let mut last = ConnectError::NoAddress;
        for ip in addresses {
            if let Err(refused) = self.allowed.vet(ip, secure) {
                last = refused.into();
                continue;
            }
            match to(SocketAddr::new(ip, port)).await {
                Ok(connection) => return Ok(TokioIo::new(connection)),
                Err(error) => last = ConnectError::Connection(error),
            }
        }
        Err(last)
    }
}

async fn to(address: SocketAddr) -> io::Result<TcpStream> {
    let connection = tokio::time::timeout(ADDRESS_WAIT, TcpStream::connect(address))
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    connection.set_nodelay(true)?;
    Ok(connection)
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}
