//! One `.crate` file: what is in it, and whether that is all that a stranger needs.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use tar::Archive;

use crate::fault::Fault;
use crate::rust::Source;

/// Bytes of a package. The registry takes ten times as much; more than this is a test fixture that slipped in.
const PACKED_BYTES_MAX: u64 = 512 * 1024;
/// The same, unpacked.
const BYTES_MAX: usize = 2 * 1024 * 1024;

/// The macros that make a file part of the source.
const INCLUDES: [&str; 3] = ["include_str", "include_bytes", "include"];

/// A package.
#[derive(Debug, Default)]
pub(super) struct Packed {
    /// `NAME-VERSION`, the folder that it unpacks to.
    folder: String,
    /// Path inside of it → content.
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// Size of the `.crate` file.
    bytes: u64,
}

impl Packed {
    /// Reads `NAME-VERSION.crate` in `place`.
    pub(super) fn read(place: &Path, name: &str, version: &str) -> Result<Self, Fault> {
        let folder = format!("{name}-{version}");
        let path = place.join(format!("{folder}.crate"));
        let unreadable = |source| Fault::file(&path, source);
        let file = std::fs::File::open(&path).map_err(unreadable)?;
        let bytes = file.metadata().map_err(unreadable)?.len();
        let mut files = BTreeMap::new();
        let mut archive = Archive::new(GzDecoder::new(file));
        for entry in archive.entries().map_err(unreadable)? {
            let mut entry = entry.map_err(unreadable)?;
            let name = entry.path().map_err(unreadable)?.into_owned();
            let Ok(name) = name.strip_prefix(&folder).map(Path::to_owned) else {
                return Err(Fault::parse(
                    path.display().to_string(),
                    &"has files beside its folder",
                ));
            };
            let mut content = Vec::new();
            entry.read_to_end(&mut content).map_err(unreadable)?;
            files.insert(name, content);
        }
        Ok(Self { folder, files, bytes })
    }

    /// What is wrong with it. `licence` is the licence of the repository.
    pub(super) fn look(&self, licence: &str) -> Vec<String> {
        let mut found = Vec::new();
        for name in ["Cargo.toml", "README.md", "LICENSE"] {
            if !self.files.contains_key(Path::new(name)) {
                found.push(format!("{name} is missing"));
            }
        }
        // A link that was packed as a link has the path in it.
        if self.text("LICENSE").is_some_and(|text| text != licence) {
            found.push("LICENSE is another text than that of the repository".to_owned());
        }
        if self.bytes > PACKED_BYTES_MAX || self.unpacked() > BYTES_MAX {
            found.push(format!("too large: {}", self.size()));
        }
        for (path, content) in &self.files {
            if path.extension().is_some_and(|extension| extension == "rs") {
                found.extend(self.includes(path, &String::from_utf8_lossy(content)));
            }
        }
        let manifest = self.text("Cargo.toml").unwrap_or_default();
        let manifest: toml::Table = manifest.parse().unwrap_or_default();
        for table in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let lines = manifest.get(table).and_then(toml::Value::as_table);
            for (name, line) in lines.into_iter().flatten() {
                if line.get("path").is_some() || line.get("version").is_none() {
                    found.push(format!("`{name}` under [{table}] is not one of the registry"));
                }
            }
        }
        found
    }

    /// Files that the source at `path` includes, and that are not there.
    fn includes(&self, path: &Path, text: &str) -> Vec<String> {
        let Ok(source) = Source::lex(&path.to_string_lossy(), text) else {
            return vec![format!("{} is no Rust", path.display())];
        };
        let mut found = Vec::new();
        // Tests that read the rest of the repository are run there.
        for (index, token) in source.product() {
            let opens = INCLUDES.contains(&token.text.as_str()) && source.at(index + 1) == "!";
            let literal = source.tokens().get(index + 3).and_then(|token| token.string());
            // `concat!(…)` is for tests of many files; those are not in a package, or are there as a whole folder.
            let Some(named) = literal.filter(|_| opens) else { continue };
            let folder = path.parent().unwrap_or(Path::new(""));
            let there = plain(&folder.join(named)).is_some_and(|it| self.files.contains_key(&it));
            if !there {
                let place = format!("{}:{}", path.display(), token.line);
                found.push(format!("{place} includes {named}, which is not in the package"));
            }
        }
        found
    }

    /// Number of files and both sizes.
    pub(super) fn size(&self) -> String {
        let (files, packed, whole) =
            (self.files.len(), self.bytes.div_ceil(1024), self.unpacked().div_ceil(1024));
        format!("{files} files, {whole} KiB, {packed} KiB packed")
    }

    /// Writes it to `place/NAME-VERSION`. A file that is there with the same content is left alone, so that what was built
    /// from it needs no build.
    pub(super) fn unpack(&self, place: &Path) -> Result<(), Fault> {
        let folder = place.join(&self.folder);
        let mut had = Vec::new();
        walk(&folder, &mut had)?;
        let gone = had.iter().filter(|path| {
            path.strip_prefix(&folder).is_ok_and(|name| !self.files.contains_key(name))
        });
        for path in gone {
            std::fs::remove_file(path).map_err(|source| Fault::file(path, source))?;
        }
        for (name, content) in &self.files {
            let path = folder.join(name);
            if std::fs::read(&path).is_ok_and(|old| old == *content) {
                continue;
            }
            let parent = path.parent().unwrap_or(&folder);
            std::fs::create_dir_all(parent)
                .and_then(|()| std::fs::write(&path, content))
                .map_err(|source| Fault::file(&path, source))?;
        }
        Ok(())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.files.get(Path::new(name)).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    fn unpacked(&self) -> usize {
        self.files.values().map(Vec::len).sum()
    }
}

/// Without `..`; `None` when it leads out of the package.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => found.push(name),
            Component::ParentDir => {
                if !found.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(found)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Fault> {
    let unreadable = |source| Fault::file(folder, source);
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_type().map_err(unreadable)?.is_dir() {
            walk(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{PACKED_BYTES_MAX, Packed};

    const LIBRARY: &str =
        "//! A crate.\nconst SQL: &str = include_str!(\"../migrations/1.sql\");\n";

    fn packed(files: &[(&str, &str)]) -> Packed {
        let good = [
            ("Cargo.toml", "[dependencies.serde]\nversion = \"1\"\n"),
            ("LICENSE", "the licence"),
            ("README.md", "# a"),
            ("migrations/1.sql", "SELECT 1"),
            ("src/lib.rs", LIBRARY),
        ];
        let files = good.iter().chain(files);
        let files =
            files.map(|(name, text)| (PathBuf::from(name), text.as_bytes().to_vec())).collect();
        Packed { folder: "a-1.0.0".to_owned(), files, bytes: 100 }
    }

    #[test]
    fn a_package_has_all_that_its_sources_name() {
        assert_eq!(packed(&[]).look("the licence"), Vec::<String>::new());
        for gone in ["LICENSE", "README.md", "Cargo.toml", "migrations/1.sql"] {
            let mut without = packed(&[]);
            without.files.remove(&PathBuf::from(gone));
            assert_eq!(without.look("the licence").len(), 1, "{gone}");
        }
        for (name, text) in [
            ("LICENSE", "../../LICENSE"),
            ("src/a.rs", "const A: &[u8] = include_bytes!(\"../../../docs/a.md\");"),
            ("src/deep/a.rs", "const A: &str = include_str!(\"../migrations/1.sql\");"),
            ("src/a.rs", "fn a( {"),
            ("Cargo.toml", "[dependencies.b]\nversion = \"1\"\npath = \"../b\"\n"),
            ("Cargo.toml", "[dev-dependencies.b]\n"),
        ] {
            assert_eq!(packed(&[(name, text)]).look("the licence").len(), 1, "{name}: {text}");
        }
        let test = "#[cfg(test)]\nmod tests { const A: &str = include_str!(\"../../docs/a.md\"); }";
        assert_eq!(packed(&[("src/a.rs", test)]).look("the licence").len(), 0);
        let large = Packed { bytes: PACKED_BYTES_MAX + 1, ..packed(&[]) };
        assert_eq!(large.look("the licence").len(), 1);
    }

    #[test]
    fn unpacking_leaves_what_is_the_same_and_takes_away_what_is_gone() {
        let place = std::env::temp_dir().join(format!("xtask-package-{}", std::process::id()));
        let changed = || place.join("a-1.0.0/src/lib.rs").metadata().unwrap().modified().unwrap();
        packed(&[("src/old.rs", "//! Old.\n")]).unpack(&place).unwrap();
        let before = changed();
        packed(&[("README.md", "# b")]).unpack(&place).unwrap();
        assert_eq!(changed(), before);
        assert!(!place.join("a-1.0.0/src/old.rs").exists());
        assert_eq!(std::fs::read_to_string(place.join("a-1.0.0/README.md")).unwrap(), "# b");
        std::fs::remove_dir_all(place).unwrap();
    }
}
