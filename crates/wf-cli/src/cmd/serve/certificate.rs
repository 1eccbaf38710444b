//! The certificate of the main listener: read at the start, and again whenever its files change (`watched`).

use std::path::{Path, PathBuf};

use wf_mcp_http::Tls;

use super::watched::Watched;
use crate::exit::Failure;

/// Largest file that is read, in bytes. A chain has some kilobytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The two files.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    chain: PathBuf,
    key: PathBuf,
}

impl Files {
    /// Names them.
    pub(crate) fn new((chain, key): &(PathBuf, PathBuf)) -> Self {
        Self { chain: chain.clone(), key: key.clone() }
    }

    /// Reads both.
    ///
    /// # Errors
    /// When one cannot be read, or they do not fit together.
    pub(crate) fn load(&self) -> Result<Tls, Failure> {
        let (chain, key) = (read(&self.chain)?, read(&self.key)?);
        Tls::new(&chain, &key).map_err(|error| self.unusable(error))
    }

    fn reload(&self, tls: &Tls) -> Result<(), Failure> {
        let (chain, key) = (read(&self.chain)?, read(&self.key)?);
        tls.replace(&chain, &key).map_err(|error| self.unusable(error))
    }

    fn unusable(&self, error: wf_mcp_http::TlsError) -> Failure {
        let (chain, key) = (self.chain.display(), self.key.display());
        Failure::failed(format!("{chain} and {key} cannot be used for TLS"))
            .because(error)
            .help("give the chain, the server's own certificate first, and its key, both in PEM")
    }

    /// Both, read again into `tls`. When they cannot be used the old certificate stays: they may be half written, and then
    /// they change again.
    pub(super) fn watched(&self, tls: &Tls) -> Watched {
        let (files, tls) = (self.clone(), tls.clone());
        let read = move || files.reload(&tls);
        Watched::new("certificate", vec![self.chain.clone(), self.key.clone()], read)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let cannot = || Failure::failed(format!("{} cannot be read", path.display()));
    let length = std::fs::metadata(path).map_err(|error| cannot().because(error))?.len();
    if length > FILE_BYTES_MAX {
        return Err(cannot().because(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    std::fs::read(path).map_err(|error| cannot().because(error))
}
