//! The files of the repository as data: path → text. Checks read it, mutants edit a copy of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::fault::Fault;
use crate::process::Run;
use crate::rust::{self, Source};

/// One text file and, once somebody asked for it, its tokens.
#[derive(Debug, Default)]
struct File {
    text: String,
    lexed: OnceLock<Result<Source, rust::NotRust>>,
}

/// Every text file that is tracked, or would be (not ignored), by its path from the root with `/` separators.
///
/// Cloning shares the files, so a mutant costs one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, Arc<File>>,
}

impl Tree {
    /// Reads the repository at `root`. Binary files are left out.
    pub(crate) fn read(root: &Path) -> Result<Self, Fault> {
        let listed = Run::new(
            root,
            "git",
            &["ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        )
        .stdout()?;
        let mut tree = Self::default();
        for path in listed.split('\0').filter(|path| !path.is_empty()) {
            match std::fs::read(root.join(path)) {
                Ok(bytes) => {
                    if let Ok(text) = String::from_utf8(bytes) {
                        tree.insert(path, text);
                    }
                }
                // Deleted in the work tree but still in the index, or a submodule: not there.
                Err(error)
                    if error.kind() == std::io::ErrorKind::NotFound
                        || error.kind() == std::io::ErrorKind::IsADirectory => {}
                Err(error) => return Err(Fault::file(path, error)),
            }
        }
        Ok(tree)
    }

    /// Adds or replaces one file.
    pub(crate) fn insert(&mut self, path: impl Into<String>, text: impl Into<String>) {
        let file = File { text: text.into(), lexed: OnceLock::new() };
        self.files.insert(path.into(), Arc::new(file));
    }

    /// Takes one file away. True if it was there.
    pub(crate) fn remove(&mut self, path: &str) -> bool {
        self.files.remove(path).is_some()
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|file| file.text.as_str())
    }

    /// Is there a file, or a folder with files, of this path?
    pub(crate) fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.files.contains_key(path) || self.under(&format!("{path}/")).next().is_some()
    }

    /// All paths.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Paths that start with `prefix`.
    pub(crate) fn under<'tree>(&'tree self, prefix: &str) -> impl Iterator<Item = &'tree str> {
        let prefix = prefix.to_owned();
        self.files
            .range(prefix.clone()..)
            .map(|(path, _)| path.as_str())
            .take_while(move |path| path.starts_with(&prefix))
    }

    /// All files with their text.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file.text.as_str()))
    }

    /// The tokens of one Rust file; `None` if there is no such file.
    pub(crate) fn rust(&self, path: &str) -> Option<&Result<Source, rust::NotRust>> {
        let file = self.files.get(path)?;
        Some(file.lexed.get_or_init(|| Source::lex(path, &file.text)))
    }

    /// Every Rust file under `prefix` that lexes. One that does not is reported by the `sources-lex` check.
    pub(crate) fn sources<'tree>(
        &'tree self,
        prefix: &str,
    ) -> impl Iterator<Item = (&'tree str, &'tree Source)> {
        self.under(prefix).filter(|path| path.ends_with(".rs")).filter_map(|path| {
            let source = self.rust(path)?.as_ref().ok()?;
            Some((path, source))
        })
    }

    /// Line (from 1) of the first line of `path` that contains `needle`; 0 if none does.
    pub(crate) fn line_of(&self, path: &str, needle: &str) -> usize {
        self.text(path)
            .and_then(|text| text.lines().position(|line| line.contains(needle)))
            .map_or(0, |index| index + 1)
    }
}

/// The root of the repository this program was built in.
pub(crate) fn repository_root() -> Result<PathBuf, Fault> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(
        || manifest.parent().map(Path::to_path_buf),
        |own| Path::new(&own).parent().map(Path::to_path_buf),
    );
    root.ok_or_else(|| Fault::parse("xtask", &"its manifest has no parent folder"))
}

/// Is this path test code as a whole (integration tests, benches, a `tests.rs` module)?
pub(crate) fn is_test_path(path: &str) -> bool {
    let mut parts = path.split('/').rev();
    let name = parts.next().unwrap_or_default();
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    stem == "tests"
        || stem.ends_with("_tests")
        || parts.any(|part| part == "tests" || part == "benches")
}

#[cfg(test)]
mod tests {
    use super::{Tree, is_test_path};

    #[test]
    fn a_folder_exists_when_a_file_is_under_it() {
        let mut tree = Tree::default();
        tree.insert("docs/errors/README.md", "text");
        assert!(tree.exists("docs/errors"));
        assert!(tree.exists("docs/errors/README.md"));
        assert!(!tree.exists("docs/err"));
    }

    #[test]
    fn under_stops_at_the_prefix() {
        let mut tree = Tree::default();
        for path in ["a/x.rs", "a/y.rs", "ab/z.rs", "b.rs"] {
            tree.insert(path, "");
        }
        assert_eq!(tree.under("a/").collect::<Vec<_>>(), ["a/x.rs", "a/y.rs"]);
    }

    #[test]
    fn test_paths_are_told_from_product_paths() {
        assert!(is_test_path("crates/wf-core/tests/it/main.rs"));
        assert!(is_test_path("crates/wf-core/src/engine/tests.rs"));
        assert!(is_test_path("crates/wf-core/src/engine/tests/grid.rs"));
        assert!(!is_test_path("crates/wf-testkit/src/contract.rs"));
        assert!(!is_test_path("crates/wf-core/src/latests.rs"));
    }
}
