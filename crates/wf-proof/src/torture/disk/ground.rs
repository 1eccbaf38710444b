//! What the folder of a case lies on: an ordinary folder, a small file system in memory, or one in a file that can break.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fault::Fault;

/// What a case needs under its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ground {
    /// Whatever the folder of the run is on.
    Folder,
    /// A file system in memory of so many MiB.
    Memory(u32),
    /// An ext4 file system of 64 MiB in a file, mounted through a loop device.
    Image,
    /// The same without a journal, with which the file system would end at the first block that cannot be written back.
    Plain,
    /// As the image, the file being sparse on a file system in memory of so many MiB: it promises more than it has.
    Thin(u32),
}

/// The folder of a case while the case runs. Unmounted when dropped.
#[derive(Debug)]
pub(super) struct Place {
    /// Where the server keeps its files.
    pub(super) folder: PathBuf,
    /// Where an image lies.
    under: PathBuf,
    mounted: Vec<PathBuf>,
}

/// Size of the blocks in which ends are counted.
const BLOCK: u64 = 4096;

/// The end of a medium that was taken away.
#[derive(Debug)]
pub(super) struct Cut {
    image: PathBuf,
    device: String,
    from: u64,
    tail: Vec<u8>,
}

impl Cut {
    /// Gives it back as it was.
    pub(super) fn give_back(self) -> Result<(), Fault> {
        let mut image =
            OpenOptions::new().write(true).open(&self.image).map_err(Fault::io("the image"))?;
        image
            .seek(SeekFrom::Start(self.from))
            .and_then(|_| image.write_all(&self.tail))
            .map_err(Fault::io("the image"))?;
        run(Command::new("losetup").arg("-c").arg(&self.device)).map_err(Fault::Run)
    }
}

/// The last block in a list of extents as `filefrag -v` (e2fsprogs) prints it: `0: 0.. 9: 2304.. 2313: 10: last`.
fn last_block(extents: &str) -> u64 {
    let end = |line: &str| {
        let (_, physical) = line.split(':').nth(2)?.split_once("..")?;
        physical.trim().parse().ok()
    };
    extents.lines().filter_map(end).max().unwrap_or(0)
}

/// Why there is no place: said in the report, not silently.
pub(super) type Refusal = String;

impl Ground {
    /// Makes it. The inner error says why it cannot be had here.
    pub(super) fn make(self, folder: &Path) -> Result<Result<Place, Refusal>, Fault> {
        let under = folder.join("under");
        let folder = folder.join("files");
        for made in [&under, &folder] {
            fs::create_dir_all(made).map_err(Fault::io(format!("making {}", made.display())))?;
        }
        let mut place = Place { folder, under, mounted: Vec::new() };
        let refusal = match self {
            Self::Folder => Ok(()),
            Self::Memory(mib) => place.mount_memory(&place.folder.clone(), mib),
            Self::Image => place.mount_image(&[]),
            Self::Plain => place.mount_image(&["-O", "^has_journal"]),
            Self::Thin(mib) => {
                place.mount_memory(&place.under.clone(), mib).and_then(|()| place.mount_image(&[]))
            }
        };
        Ok(refusal.map(|()| place))
    }
}

impl Place {
    /// Where the image lies, and what holds it.
    pub(super) fn under(&self) -> &Path {
        &self.under
    }

    fn image(&self) -> PathBuf {
        self.under.join("image")
    }

    fn mount_memory(&mut self, at: &Path, mib: u32) -> Result<(), Refusal> {
        let options = format!("size={mib}m");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at))?;
        self.mounted.push(at.to_owned());
        Ok(())
    }

    fn mount_image(&mut self, features: &[&str]) -> Result<(), Refusal> {
        let image = self.image();
        run(Command::new("truncate").args(["-s", "64M"]).arg(&image))?;
        run(Command::new("mkfs.ext4").args(["-q", "-m", "0"]).args(features).arg(&image))?;
        self.mount_again()
    }

    fn mount_again(&mut self) -> Result<(), Refusal> {
        run(Command::new("mount").args(["-o", "loop"]).arg(self.image()).arg(&self.folder))?;
        self.mounted.push(self.folder.clone());
        Ok(())
    }

    /// Makes the image's file system refuse every write from now on, as after an error of its medium.
    pub(super) fn abort(&self) -> Result<(), Fault> {
        run(Command::new("mount").args(["-o", "remount,abort"]).arg(&self.folder))
            .map_err(Fault::Run)
    }

    /// Takes the end of the medium away, behind all that the files of the folder have now: what is put there cannot be written
    /// back, and the file system goes on.
    pub(super) fn cut(&self) -> Result<Cut, Fault> {
        let device =
            said(Command::new("losetup").args(["-n", "-O", "NAME", "-j"]).arg(self.image()))
                .map_err(Fault::Run)?;
        let wrong = || Fault::io("the image");
        run(Command::new("sync").arg("--file-system").arg(&self.folder)).map_err(Fault::Run)?;
        let mut end = 0;
        for entry in fs::read_dir(&self.folder).map_err(wrong())? {
            let path = entry.map_err(wrong())?.path();
            if path.is_file() {
                let extents = said(Command::new("filefrag").args(["-v", "-b4096"]).arg(&path));
                end = end.max(last_block(&extents.map_err(Fault::Run)?) + 1);
            }
        }
        let mut image =
            OpenOptions::new().read(true).write(true).open(self.image()).map_err(wrong())?;
        let mut tail = Vec::new();
        let from = image.seek(SeekFrom::Start(end * BLOCK)).map_err(wrong())?;
        image.read_to_end(&mut tail).map_err(wrong())?;
        image.set_len(from).map_err(wrong())?;
        run(Command::new("losetup").arg("-c").arg(&device)).map_err(Fault::Run)?;
        Ok(Cut { image: self.image(), device, from, tail })
    }

    /// Unmounts the image, repairs it as a boot would, and mounts it again. Nobody may have a file of it open.
    pub(super) fn reboot(&mut self) -> Result<(), Fault> {
        run(Command::new("umount").arg(&self.folder)).map_err(Fault::Run)?;
        self.mounted.retain(|at| at != &self.folder);
        // 1 says that something was repaired.
        let repaired = Command::new("fsck.ext4").args(["-p", "-f"]).arg(self.image()).output();
        let repaired = repaired.map_err(Fault::io("fsck.ext4"))?;
        if repaired.status.code().is_none_or(|code| code > 1) {
            let said = String::from_utf8_lossy(&repaired.stdout).into_owned();
            return Err(Fault::Run(format!("the image cannot be repaired: {said}")));
        }
        self.mount_again().map_err(Fault::Run)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for at in self.mounted.iter().rev() {
            // What is still busy goes when its last file is closed.
            if run(Command::new("umount").arg(at)).is_err() {
                let _ = run(Command::new("umount").arg("--lazy").arg(at));
            }
        }
    }
}

fn run(command: &mut Command) -> Result<(), Refusal> {
    said(command).map(drop)
}

/// What it prints.
fn said(command: &mut Command) -> Result<String, Refusal> {
    let what = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Ok(done) if done.status.success() => {
            Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
        }
        Ok(done) => {
            Err(format!("{what} refuses: {}", String::from_utf8_lossy(&done.stderr).trim()))
        }
        Err(error) => Err(format!("{what} cannot be run: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::last_block;

    #[test]
    fn the_end_of_a_file_is_read_from_its_extents() {
        let printed = "Filesystem type is: ef53\nFile size of wal is 2000000 (489 blocks of 4096 bytes)\n \
                       ext:     logical_offset:        physical_offset: length:   expected: flags:\n   \
                       0:        0..     244:       1066..      1310:    245:             \n   \
                       1:      245..     488:       2000..      2243:    244:       1311: last,eof\n";
        assert_eq!(last_block(printed), 2243);
        assert_eq!(last_block("wal: 0 extents found"), 0);
    }
}
