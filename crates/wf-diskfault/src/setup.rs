//! What the environment asks for, read once. Used by `files` and `book`.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

use crate::log::Class;

/// What the library does in this process.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The database: an absolute path.
    database: Vec<u8>,
    /// Where changes are written down.
    pub(crate) log: Option<CString>,
    /// Where the rules are.
    pub(crate) rules: Option<CString>,
}

static SETUP: OnceLock<Option<Setup>> = OnceLock::new();

/// What is asked for; `None` when this process is to be left alone.
pub(crate) fn get() -> Option<&'static Setup> {
    SETUP.get_or_init(|| Setup::read(|name| std::env::var_os(name))).as_ref()
}

/// Asks for what `setup` says, unless something was asked for before.
#[cfg(test)]
pub(crate) fn set(setup: Option<Setup>) {
    SETUP.get_or_init(|| setup);
}

impl Setup {
    /// Of the variables of an environment.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let path = |name| variable(name).map(OsStringExt::into_vec).filter(|v| !v.is_empty());
        let database = path("DISKFAULT_DATABASE").filter(|path| path.first() == Some(&b'/'))?;
        let file = |name| path(name).and_then(|path| CString::new(path).ok());
        Some(Self { database, log: file("DISKFAULT_LOG"), rules: file("DISKFAULT_RULES") })
    }

    /// The folder of the database, without a slash at its end.
    pub(crate) fn folder(&self) -> &[u8] {
        let slash = self.database.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        self.database.get(..slash).unwrap_or_default()
    }

    /// What the file at an absolute path is to the database; `None` when it is nothing to it.
    pub(crate) fn class_of(&self, path: &[u8]) -> Option<Class> {
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        if path == self.folder() || path.strip_suffix(b"/") == Some(self.folder()) {
            return Some(Class::Folder);
        }
        // Files whose name begins with that of the database: its lock file, copies of it.
        let rest = path.strip_prefix(self.database.as_slice())?;
        Some(match rest {
            b"" => Class::Database,
            b"-wal" => Class::Wal,
            b"-journal" => Class::Journal,
            b"-shm" => Class::Shm,
            rest if rest.contains(&b'/') => return None,
            _ => Class::Other,
        })
    }

    /// The name of a file within the folder; its whole path when it is elsewhere.
    pub(crate) fn name_of<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        path.strip_prefix(self.folder())
            .and_then(|rest| rest.strip_prefix(b"/"))
            .filter(|rest| !rest.contains(&b'/'))
            .unwrap_or(path)
    }
}

#[cfg(test)]
mod tests {
    use super::Setup;
    use crate::log::Class;

    fn setup(database: &str) -> Option<Setup> {
        Setup::read(|name| (name == "DISKFAULT_DATABASE").then(|| database.into()))
    }

    #[test]
    fn files_are_told_by_their_names() {
        let setup = setup("/a/x.db").expect("an absolute path");
        for (path, class) in [
            ("/a/x.db", Some(Class::Database)),
            ("/a/x.db (deleted)", Some(Class::Database)),
            ("/a/x.db-wal", Some(Class::Wal)),
            ("/a/x.db-journal", Some(Class::Journal)),
            ("/a/x.db-shm", Some(Class::Shm)),
            ("/a/x.db.lock", Some(Class::Other)),
            ("/a", Some(Class::Folder)),
            ("/a/", Some(Class::Folder)),
            ("/a/y", None),
            ("/a/x.db/y", None),
            ("/", None),
        ] {
            assert_eq!(setup.class_of(path.as_bytes()), class, "{path}");
        }
        assert_eq!(setup.name_of(b"/a/x.db-wal"), b"x.db-wal");
        assert_eq!(setup.name_of(b"/b/x.db"), b"/b/x.db");
    }

    #[test]
    fn nothing_is_done_without_a_database() {
        assert!(Setup::read(|_| None).is_none());
        assert!(setup("relative.db").is_none());
    }
}
