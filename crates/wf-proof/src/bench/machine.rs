//! The machine that figures were measured on, as it describes itself.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use super::samples::{Quantiles, Samples};
use crate::fault::Fault;

/// A machine and the file system of a folder on it.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Processors that this program may use.
    pub cores: usize,
    /// Memory, in bytes.
    pub memory: u64,
    /// Name and version of the operating system's kernel.
    pub kernel: String,
    /// The kind of file system that databases were on.
    pub file_system: String,
    /// Programs that wanted a processor in the minute before the measurement; on a quiet machine about none.
    pub load_before: f64,
    /// Times of appending 4 KiB to a file and waiting until they are on the medium.
    pub fsync: Quantiles,
}

impl Machine {
    /// Looks. Databases will be in `folder`.
    ///
    /// # Errors
    /// When a file cannot be written there.
    pub fn look(folder: &Path) -> Result<Self, Fault> {
        let first = |path: &str| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.split_whitespace().next().unwrap_or_default().to_owned()
        };
        Ok(Self {
            processor: processor(),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            memory: memory(),
            kernel: format!("{} {}", std::env::consts::OS, first("/proc/sys/kernel/osrelease")),
            file_system: file_system(folder),
            load_before: first("/proc/loadavg").parse().unwrap_or_default(),
            fsync: fsync(folder)?,
        })
    }
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find(|line| line.starts_with("model name"));
    let name = name.and_then(|line| line.split_once(':')).map_or("unknown", |(_, name)| name);
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib =
        text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.trim().parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}

/// Of the mount with the longest path above the folder (proc(5), mountinfo).
fn file_system(folder: &Path) -> String {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    kind_of_mount(&text, &folder).unwrap_or("unknown").to_owned()
}

fn kind_of_mount<'a>(mounts: &'a str, folder: &Path) -> Option<&'a str> {
    mounts
        .lines()
        .filter_map(|line| {
            let (about, kind) = line.split_once(" - ")?;
            let point = about.split(' ').nth(4)?;
            folder.starts_with(point).then_some((point.len(), kind.split(' ').next()?))
        })
        // Of two mounts on one point the later one is seen.
        .max_by_key(|(length, _)| *length)
        .map(|(_, kind)| kind)
}

fn fsync(folder: &Path) -> Result<Quantiles, Fault> {
    const TIMES: usize = 300;
    let path = folder.join("fsync.probe");
    let wrong = || Fault::io("measuring fsync");
    let mut file = File::create(&path).map_err(wrong())?;
    let mut samples = Samples::default();
    for _ in 0..TIMES {
        file.write_all(&[0x5a; 4_096]).map_err(wrong())?;
        let begun = Instant::now();
        file.sync_all().map_err(wrong())?;
        samples.push(begun.elapsed());
    }
    std::fs::remove_file(&path).map_err(wrong())?;
    Ok(samples.quantiles())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::kind_of_mount;

    #[test]
    fn the_longest_mount_above_the_folder_counts() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:5 / /var/tmp rw,nosuid shared:3 - tmpfs tmpfs rw\n";
        assert_eq!(kind_of_mount(mounts, Path::new("/var/tmp/x")), Some("tmpfs"));
        assert_eq!(kind_of_mount(mounts, Path::new("/var/tmpfs")), Some("ext4"));
        assert_eq!(kind_of_mount("", Path::new("/")), None);
    }
}
