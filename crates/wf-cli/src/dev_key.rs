//! The key of `--auth dev`, in a file beside the database, or beside the configuration where the state is in no file. `gate` and `cmd::token` use the same one.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use wf_core::ports::IdPort as _;
use wf_mcp_http::auth::DevKey;

use crate::ambient::OsIds;
use crate::config::Config;
use crate::config::backend::BackendConfig;
use crate::exit::Failure;

/// The name of the file.
const FILE: &str = "checkpoint-dev-key.json";

fn path(config: &Config) -> PathBuf {
    match &config.backend {
        BackendConfig::Local { path } => path.with_file_name(FILE),
        BackendConfig::Aws(_) => config.folder.join(FILE),
    }
}

/// Reads the key, or makes it when it is not there.
///
/// # Errors
/// When the file cannot be read or written, is none, or can be read by other users.
pub(crate) fn load_or_make(config: &Config) -> Result<DevKey, Failure> {
    let path = path(config);
    match load(&path)? {
        Some(key) => Ok(key),
        None => make(&path),
    }
}

fn load(path: &Path) -> Result<Option<DevKey>, Failure> {
    let cannot = || format!("the development key {} cannot be read", path.display());
    let mode = match std::fs::metadata(path) {
        Ok(found) => found.permissions().mode(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::failed(cannot()).because(error)),
    };
    if mode & 0o077 != 0 {
        let says = format!("other users can read the development key {}", path.display());
        return Err(Failure::failed(says)
            .help("delete it, and a new one is made; tokens of the old one count no more"));
    }
    let text = std::fs::read_to_string(path).map_err(|e| Failure::failed(cannot()).because(e))?;
    DevKey::from_text(&text).map(Some).map_err(|error| {
        Failure::failed(cannot()).because(error).help("delete it, and a new one is made")
    })
}

/// Makes the key. Two that try at once end with the same one: the file appears whole or not at all.
fn make(path: &Path) -> Result<DevKey, Failure> {
    let cannot = || Failure::failed(format!("the development key {} was not made", path.display()));
    let key = DevKey::generate().map_err(|error| cannot().because(error))?;
    let text = key.to_text().map_err(|error| cannot().because(error))?;
    let draft = path.with_extension(OsIds.random_hex());
    let written =
        write(&draft, text.expose().as_bytes()).and_then(|()| std::fs::hard_link(&draft, path));
    // It may not have been made; then there is nothing to remove.
    let _ = std::fs::remove_file(&draft);
    match written {
        Ok(()) => Ok(key),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            load(path)?.ok_or_else(|| cannot().because(error))
        }
        Err(error) => Err(cannot().because(error)),
    }
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(key: &DevKey) -> String {
        key.to_text().unwrap().expose().clone()
    }

    #[test]
    fn the_key_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        assert!(load(&path).unwrap().is_none());
        let made = text(&make(&path).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(text(&load(&path).unwrap().unwrap()), made);
        // Whoever comes second takes what is there, and leaves nothing behind.
        assert_eq!(text(&make(&path).unwrap()), made);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        make(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(load(&path).unwrap_err().text().contains("other users"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "{\"d\":\"hunter2\"}").unwrap();
        let refused = load(&path).unwrap_err().text();
        assert!(refused.contains("cannot be read") && !refused.contains("hunter2"), "{refused}");
    }
}
