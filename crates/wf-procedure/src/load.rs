//! Procedure files: a directory of them, and the ones that come with the product.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use thiserror::Error;
use wf_core::policy::DomainPolicyPort;

use crate::problem::Problem;
use crate::procedure::{Procedure, parse};

/// The procedures of a directory, by file name.
#[derive(Debug)]
pub struct LoadedDir {
    /// Each file and what it holds.
    pub files: Vec<(PathBuf, Procedure)>,
}

impl LoadedDir {
    /// The procedures without their files.
    #[must_use]
    pub fn into_procedures(self) -> Vec<Procedure> {
        self.files.into_iter().map(|(_, p)| p).collect()
    }
}

/// Why a directory, or the built-in set, cannot be used.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The directory cannot be listed.
    #[error("cannot list {}", path.display())]
    List {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Files are wrong; all problems of all files.
    #[error("{}", lines(.0))]
    Problems(Vec<Problem>),
}

fn lines(problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems {
        if !text.is_empty() {
            text.push('\n');
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{problem}");
    }
    text
}

/// Reads every `*.yaml`, `*.yml` and `*.json` of a directory, not of its subdirectories, in the order of their names.
///
/// # Errors
/// [`LoadError::List`] when the directory cannot be listed; [`LoadError::Problems`] with everything that is wrong in
/// any file, a procedure id that two files claim included.
pub fn load_dir(dir: &Path) -> Result<LoadedDir, LoadError> {
    let list_error = |source| LoadError::List { path: dir.to_owned(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(list_error)? {
        let path = entry.map_err(list_error)?.path();
        let known = path
            .extension()
            .is_some_and(|e| ["yaml", "yml", "json"].iter().any(|k| e.eq_ignore_ascii_case(k)));
        if known && !path.is_dir() {
            paths.push(path);
        }
    }
    paths.sort();
    let mut files = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        match load_file(&path) {
            Ok(procedure) => files.push((path, procedure)),
            Err(found) => problems.extend(found),
        }
    }
    problems.extend(twice(&files));
    if problems.is_empty() { Ok(LoadedDir { files }) } else { Err(LoadError::Problems(problems)) }
}

/// Reads one file.
///
/// # Errors
/// Everything that is wrong with it; a file that cannot be read is one problem without a place.
pub fn load_file(path: &Path) -> Result<Procedure, Vec<Problem>> {
    let name = path.display().to_string();
    let unreadable = |message: String, hint: &str| {
        vec![Problem { file: name.clone(), line: 0, column: 0, message, hint: hint.to_owned() }]
    };
    let bytes =
        std::fs::read(path).map_err(|error| unreadable(format!("cannot be read: {error}"), ""))?;
    let source = String::from_utf8(bytes)
        .map_err(|_| unreadable("not UTF-8".to_owned(), "save the file as UTF-8"))?;
    parse(&source, &name)
}

/// Procedure ids that two files claim.
fn twice(files: &[(PathBuf, Procedure)]) -> Vec<Problem> {
    let mut first: BTreeMap<&str, &Path> = BTreeMap::new();
    let mut problems = Vec::new();
    for (path, procedure) in files {
        let id = procedure.definition().id.as_str();
        if let Some(other) = first.insert(id, path) {
            problems.push(procedure.problem_at_id(
                &path.display().to_string(),
                format!("the procedure \"{id}\" is also defined in {}", other.display()),
                "give one of them another id, or remove one file".to_owned(),
            ));
        }
    }
    problems
}

/// The built-in files: name and text.
const BUILT_IN: [(&str, &str); 2] = [
    ("pump-inspection.yaml", include_str!("../procedures/pump-inspection.yaml")),
    (
        "analytical-balance-calibration.yaml",
        include_str!("../procedures/analytical-balance-calibration.yaml"),
    ),
];

/// The procedures that come with the product.
///
/// # Errors
/// [`LoadError::Problems`] when one of them is wrong, which a test rules out for every release.
pub fn builtin() -> Result<Vec<Procedure>, LoadError> {
    BUILT_IN.iter().map(|(name, source)| parse(source, name).map_err(LoadError::Problems)).collect()
}
