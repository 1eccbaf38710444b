//! The licences of everything that is linked into the program, as their texts ask for: whose copyright, under which terms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::fault::Fault;
use crate::metadata::Metadata;
use crate::process::Run;

/// How the file of a licence begins, in capitals.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE"];
/// Bundled C keeps its own licence in a folder of its own, no deeper than this.
const DEPTH: u32 = 3;

/// One document with the text of each licence, and the packages that it is of.
pub(super) fn document(
    root: &Path,
    features: &str,
    target: Option<&str>,
) -> Result<Vec<u8>, Fault> {
    let metadata = Metadata::read(root)?;
    let linked = linked(root, features, target)?;
    let mut packages = String::new();
    // By the digest of a text: the text, and whose it is.
    let mut texts: BTreeMap<Vec<u8>, (String, BTreeSet<String>)> = BTreeMap::new();
    let found = metadata
        .packages
        .iter()
        .filter(|package| !metadata.workspace_members.contains(&package.id))
        .filter_map(|package| {
            let name = format!("{} {}", package.name, package.version);
            let licence = linked.get(&name)?;
            Some((name, licence, Path::new(&package.manifest_path).parent()?))
        });
    for (name, licence, folder) in found {
        packages.push_str(&format!("| {name} | {licence} |\n"));
        for file in files(folder, DEPTH)? {
            let bytes = std::fs::read(&file).map_err(|source| Fault::file(&file, source))?;
            let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
            let digest = Sha256::digest(text.trim()).to_vec();
            texts.entry(digest).or_insert_with(|| (text, BTreeSet::new())).1.insert(name.clone());
        }
    }
    if packages.is_empty() {
        return Err(Fault::parse("cargo tree", &"links nothing, which cannot be"));
    }
    let mut document = format!(
        "# What is linked into this program\n\nCheckpoint itself is under Apache-2.0, see LICENSE.\n\n| package | licence |\n|---|---|\n{packages}"
    );
    let mut texts: Vec<_> = texts.into_values().map(|(text, names)| (names, text)).collect();
    texts.sort();
    for (names, text) in texts {
        let names: Vec<String> = names.into_iter().collect();
        let text = text.trim_end();
        document.push_str(&format!("\n## {}\n\n````text\n{text}\n````\n", names.join(", ")));
    }
    Ok(document.into_bytes())
}

/// Every package that is linked into the program with these features, as `name version`, and its licence.
fn linked(
    root: &Path,
    features: &str,
    target: Option<&str>,
) -> Result<BTreeMap<String, String>, Fault> {
    let mut arguments = vec!["tree", "--locked", "-p", "wf-cli", "--edges", "normal"];
    arguments.extend(["--prefix", "none", "--format", "{p}\t{l}", "--features", features]);
    arguments.extend(target.into_iter().flat_map(|triple| ["--target", triple]));
    let said = Run::cargo(root, &arguments).stdout()?;
    Ok(said.lines().filter_map(line).collect())
}

/// `serde v1.0.2 (proc-macro)<tab>MIT OR Apache-2.0 (*)`.
fn line(line: &str) -> Option<(String, String)> {
    let (package, licence) = line.split_once('\t')?;
    let mut words = package.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let licence = licence.trim_end_matches("(*)").trim();
    Some((format!("{name} {version}"), licence.to_owned()))
}

/// The files of licences below a folder, sorted.
fn files(folder: &Path, depth: u32) -> Result<BTreeSet<PathBuf>, Fault> {
    let unreadable = |source| Fault::file(folder, source);
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let kind = entry.file_type().map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if kind.is_dir() && depth > 0 {
            found.extend(files(&entry.path(), depth - 1)?);
        } else if kind.is_file() && is_licence(&name) {
            found.insert(entry.path());
        }
    }
    Ok(found)
}

/// `LICENSE`, `LICENSE-MIT`, `COPYING.txt`; not `license.rs`.
fn is_licence(name: &str) -> bool {
    let (stem, kind) = name.rsplit_once('.').unwrap_or((name, "TXT"));
    NAMES.iter().any(|start| stem.starts_with(start))
        && !["RS", "C", "H", "PY", "JSON", "GO"].contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::{is_licence, line};

    #[test]
    fn a_line_is_a_package_and_its_licence() {
        let read = |text| line(text).map(|(package, licence)| package + ": " + &licence);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("serde v1.0.2\tMIT OR Apache-2.0"), some("serde 1.0.2: MIT OR Apache-2.0"));
        assert_eq!(read("a v1.0.0 (proc-macro)\tMIT (*)"), some("a 1.0.0: MIT"));
        assert_eq!(read("[build-dependencies]"), None);
    }

    #[test]
    fn a_licence_is_known_by_its_name() {
        for name in ["LICENSE", "LICENSE-MIT", "COPYING.TXT", "LICENCE.MD", "NOTICE"] {
            assert!(is_licence(name), "{name}");
        }
        for name in ["LICENSE.RS", "README", "LIB.RS"] {
            assert!(!is_licence(name), "{name}");
        }
    }
}
