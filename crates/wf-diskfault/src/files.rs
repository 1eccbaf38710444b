//! Which descriptor is which file. Learnt when a file is opened, or when an unknown descriptor is first used.
//!
//! Takes no lock, because a signal handler may write to a socket of its own.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::kernel;
use crate::log::Class;
use crate::setup::Setup;

/// Descriptors beyond this are looked up each time.
const KNOWN: usize = 1 << 16;

/// Per descriptor: what it is in the highest byte, its inode below; 0 when unknown.
static TABLE: [AtomicU64; KNOWN] = [const { AtomicU64::new(0) }; KNOWN];

const INODE_BITS: u32 = 56;
const SOCKET: u8 = 254;
const NOTHING: u8 = 255;

/// What a descriptor is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Descriptor {
    /// A file of the database.
    File(File),
    /// A TCP socket.
    Socket,
    /// Something that does not matter.
    Nothing,
}

/// A file of the database that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct File {
    /// What it is to the database.
    pub(crate) class: Class,
    /// Its inode.
    pub(crate) inode: u64,
}

impl Descriptor {
    fn pack(self) -> u64 {
        let (kind, inode) = match self {
            Self::File(file) => (file.class as u8, file.inode),
            Self::Socket => (SOCKET, 0),
            Self::Nothing => (NOTHING, 0),
        };
        u64::from(kind) << INODE_BITS | inode & ((1 << INODE_BITS) - 1)
    }

    fn unpack(word: u64) -> Option<Self> {
        let inode = word & ((1 << INODE_BITS) - 1);
        match u8::try_from(word >> INODE_BITS).unwrap_or(0) {
            0 => None,
            SOCKET => Some(Self::Socket),
            kind => Some(
                Class::from_number(kind)
                    .map_or(Self::Nothing, |class| Self::File(File { class, inode })),
            ),
        }
    }
}

fn place(fd: c_int) -> Option<&'static AtomicU64> {
    usize::try_from(fd).ok().and_then(|fd| TABLE.get(fd))
}

/// What the descriptor is.
pub(crate) fn get(setup: &Setup, fd: c_int) -> Descriptor {
    let place = place(fd);
    if let Some(known) = place.and_then(|place| Descriptor::unpack(place.load(Ordering::Acquire))) {
        return known;
    }
    let found = look(setup, fd);
    if let Some(place) = place {
        place.store(found.pack(), Ordering::Release);
    }
    found
}

/// Remembers what was just opened.
pub(crate) fn opened(fd: c_int, file: File) {
    if let Some(place) = place(fd) {
        place.store(Descriptor::File(file).pack(), Ordering::Release);
    }
}

/// Forgets a descriptor; answers what was known of it.
pub(crate) fn forget(fd: c_int) -> Descriptor {
    place(fd)
        .and_then(|place| Descriptor::unpack(place.swap(0, Ordering::AcqRel)))
        .unwrap_or(Descriptor::Nothing)
}

fn look(setup: &Setup, fd: c_int) -> Descriptor {
    let Some(status) = kernel::status(fd) else { return Descriptor::Nothing };
    match status.st_mode & libc::S_IFMT {
        libc::S_IFSOCK if kernel::is_tcp(fd) => Descriptor::Socket,
        libc::S_IFREG | libc::S_IFDIR => {
            let class = kernel::path_of(fd).and_then(|path| setup.class_of(&path));
            class.map_or(Descriptor::Nothing, |class| {
                Descriptor::File(File { class, inode: status.st_ino })
            })
        }
        _ => Descriptor::Nothing,
    }
}

/// The absolute path that a call means by a path, perhaps relative to a folder's descriptor.
pub(crate) fn absolute(folder: c_int, path: &CStr) -> Option<Vec<u8>> {
    let path = path.to_bytes();
    if path.first() == Some(&b'/') {
        return Some(path.to_vec());
    }
    let mut whole =
        if folder == libc::AT_FDCWD { kernel::current_folder()? } else { kernel::path_of(folder)? };
    whole.push(b'/');
    whole.extend_from_slice(path);
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::{Class, Descriptor, File};

    #[test]
    fn what_is_packed_comes_back() {
        let file = File { class: Class::Wal, inode: 0x00ab_cdef_0123_4567 };
        for what in [Descriptor::File(file), Descriptor::Socket, Descriptor::Nothing] {
            assert_eq!(Descriptor::unpack(what.pack()), Some(what));
        }
        assert_eq!(Descriptor::unpack(0), None);
    }
}
