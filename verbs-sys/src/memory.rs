//! Memory that a device and its peers read and write while the program runs.
//!
//! A peer may change a registered byte at any moment, so no reference to it
//! ever exists: a [`Buffer`] hands out copies, single loads and stores, and
//! addresses, but no slices.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// An access beyond a buffer's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("bytes {start}..{end} are outside a buffer of {len} bytes")]
pub struct OutOfBounds {
    /// First byte of the access.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
    /// Size of the buffer.
    pub len: usize,
}

/// Size of a huge page. A kernel with another default rounds up by itself.
const HUGE_PAGE: usize = 2 << 20;

/// A mapping, unmapped with the last [`Buffer`] that refers to it.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread; all accesses go
// through raw pointers in `Buffer`, which tolerates concurrent ones.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `len` are what mmap returned and was given, and
        // this is the last owner.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Page-aligned memory for messages, zeroed unless it is a file. Clones refer to the same memory.
///
/// Copies race with the device like they race with a NIC's DMA: a byte that
/// is being written reads as its old or its new value.
#[derive(Clone)]
pub struct Buffer {
    mapping: Arc<Mapping>,
}

impl Buffer {
    /// Maps `len` bytes of zeroes, at least one.
    ///
    /// # Errors
    /// `InvalidInput` for a length of 0, else what mmap says.
    pub fn allocate(len: usize) -> io::Result<Self> {
        if len == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a buffer of 0 bytes",
            ));
        }
        Self::map(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, None)
    }

    /// Maps at least `len` bytes of zeroes, in huge pages of the default size
    /// (2 MiB on x86-64): up to a multiple of it.
    ///
    /// # Errors
    /// `InvalidInput` for a length of 0; `OutOfMemory` when too few huge pages
    /// are free (`/proc/sys/vm/nr_hugepages`).
    pub fn allocate_huge(len: usize) -> io::Result<Self> {
        let len = len
            .checked_next_multiple_of(HUGE_PAGE)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        if len == 0 {
            return Self::allocate(0);
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB;
        Self::map(len, flags, None)
    }

    /// Maps `len` bytes of a file, or of a device's memory, from `offset` on.
    /// What is written goes to the file. Whoever truncates it meanwhile ends
    /// the process with a bus error.
    ///
    /// # Errors
    /// `InvalidInput` for a length of 0 and for a file that ends before, else
    /// what mmap says: of an offset that isn't a multiple of the page size
    /// `InvalidInput`, too.
    pub fn map_file(file: &File, offset: u64, len: usize) -> io::Result<Self> {
        if len == 0 {
            return Self::allocate(0);
        }
        let metadata = file.metadata()?;
        let end = offset.checked_add(len as u64);
        if metadata.is_file() && end.is_none_or(|end| end > metadata.len()) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "the file has {} bytes, {len} from byte {offset} on are needed",
                    metadata.len()
                ),
            ));
        }
        Self::map(len, libc::MAP_SHARED, Some((file, offset)))
    }

    fn map(len: usize, flags: libc::c_int, file: Option<(&File, u64)>) -> io::Result<Self> {
        let (descriptor, offset) = match file {
            Some((file, offset)) => (
                file.as_raw_fd(),
                libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?,
            ),
            None => (-1, 0),
        };
        // SAFETY: a mapping at an address of the kernel's choice touches no
        // existing memory.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                descriptor,
                offset,
            )
        };
        Self::from_mmap(start, len)
    }

    /// Maps a part of a device that the kernel shares with this process: a
    /// queue. Whatever it writes there, it writes by whole fields.
    pub(crate) fn map_device(device: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: a shared mapping at an address of the kernel's choice
        // touches no existing memory. The kernel refuses a length of 0.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                device.as_raw_fd(),
                offset,
            )
        };
        Self::from_mmap(start, len)
    }

    /// Takes over what mmap returned.
    fn from_mmap(start: *mut libc::c_void, len: usize) -> io::Result<Self> {
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self {
            mapping: Arc::new(Mapping { start, len }),
        })
    }

    /// Virtual address of the first byte.
    #[must_use]
    pub fn addr(&self) -> u64 {
        self.mapping.start.as_ptr() as u64
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.mapping.len
    }

    /// Never: an empty buffer can't be allocated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole buffer as a range to register.
    #[must_use]
    pub fn whole(&self) -> MemoryRange {
        MemoryRange {
            buffer: self.clone(),
            start: 0,
            len: self.len(),
        }
    }

    /// A part of the buffer to register.
    ///
    /// # Errors
    /// When the range isn't inside the buffer.
    pub fn range(&self, range: Range<usize>) -> Result<MemoryRange, OutOfBounds> {
        let len = range.end.saturating_sub(range.start);
        self.pointer(range.start, len)?;
        Ok(MemoryRange {
            buffer: self.clone(),
            start: range.start,
            len,
        })
    }

    /// Copies `source` to the bytes from `offset` on.
    ///
    /// # Errors
    /// When they aren't inside the buffer; nothing is written then.
    #[inline]
    pub fn write(&self, offset: usize, source: &[u8]) -> Result<(), OutOfBounds> {
        let target = self.pointer(offset, source.len())?;
        // SAFETY: `pointer` checked the target; `source` is a slice of memory
        // that is not a buffer's, because buffers give out no slices.
        unsafe { ptr::copy_nonoverlapping(source.as_ptr(), target, source.len()) };
        Ok(())
    }

    /// Copies the bytes from `offset` on to `target`.
    ///
    /// # Errors
    /// When they aren't inside the buffer; nothing is read then.
    #[inline]
    pub fn read(&self, offset: usize, target: &mut [u8]) -> Result<(), OutOfBounds> {
        let source = self.pointer(offset, target.len())?;
        // SAFETY: as in `write`, the other way round.
        unsafe { ptr::copy_nonoverlapping(source, target.as_mut_ptr(), target.len()) };
        Ok(())
    }

    /// Sets `len` bytes from `offset` on to `value`.
    ///
    /// # Errors
    /// When they aren't inside the buffer; nothing is written then.
    pub fn fill(&self, offset: usize, len: usize, value: u8) -> Result<(), OutOfBounds> {
        let target = self.pointer(offset, len)?;
        // SAFETY: `pointer` checked the range.
        unsafe { ptr::write_bytes(target, value, len) };
        Ok(())
    }

    /// One byte, with acquire ordering: what the peer wrote before it is
    /// visible too. For loops that wait for a message's last byte.
    ///
    /// # Errors
    /// When `offset` isn't inside the buffer.
    #[inline]
    pub fn load_u8(&self, offset: usize) -> Result<u8, OutOfBounds> {
        let pointer = self.pointer(offset, 1)?;
        // SAFETY: `pointer` checked the byte, and it lives as long as `self`.
        Ok(unsafe { AtomicU8::from_ptr(pointer) }.load(Ordering::Acquire))
    }

    /// Stores one byte with release ordering.
    ///
    /// # Errors
    /// When `offset` isn't inside the buffer.
    #[inline]
    pub fn store_u8(&self, offset: usize, value: u8) -> Result<(), OutOfBounds> {
        let pointer = self.pointer(offset, 1)?;
        // SAFETY: `pointer` checked the byte, and it lives as long as `self`.
        unsafe { AtomicU8::from_ptr(pointer) }.store(value, Ordering::Release);
        Ok(())
    }

    /// The aligned 4 bytes at `offset`, with acquire ordering: what the other
    /// side wrote before it stored them is visible too. `None` when they
    /// aren't inside the buffer or not aligned to 4.
    #[inline]
    pub(crate) fn load_u32(&self, offset: usize) -> Option<u32> {
        Some(self.atomic_u32(offset)?.load(Ordering::Acquire))
    }

    /// Stores 4 bytes with release ordering; returns whether they are inside
    /// the buffer and aligned to 4.
    #[inline]
    pub(crate) fn store_u32(&self, offset: usize, value: u32) -> bool {
        let Some(target) = self.atomic_u32(offset) else {
            return false;
        };
        target.store(value, Ordering::Release);
        true
    }

    #[inline]
    fn atomic_u32(&self, offset: usize) -> Option<&AtomicU32> {
        let pointer = self.pointer(offset, 4).ok()?.cast::<u32>();
        if !pointer.is_aligned() {
            return None;
        }
        // SAFETY: inside the mapping, aligned, and alive as long as `self`.
        Some(unsafe { AtomicU32::from_ptr(pointer) })
    }

    /// Runs `operation` on the aligned 8 bytes at `offset`, which other
    /// threads see change at once or not at all. `None` when they aren't
    /// inside the buffer or not aligned to 8.
    pub fn with_atomic_u64<T>(
        &self,
        offset: usize,
        operation: impl FnOnce(&AtomicU64) -> T,
    ) -> Option<T> {
        let pointer = self.pointer(offset, 8).ok()?.cast::<u64>();
        if !pointer.is_aligned() {
            return None;
        }
        // SAFETY: inside the mapping, aligned, and alive as long as `self`;
        // an atomic may be shared with the raw copies above as with DMA.
        Some(operation(unsafe { AtomicU64::from_ptr(pointer) }))
    }

    /// The checked address of `len` bytes from `offset` on.
    #[inline]
    fn pointer(&self, offset: usize, len: usize) -> Result<*mut u8, OutOfBounds> {
        match offset.checked_add(len) {
            Some(end) if end <= self.mapping.len => {
                // SAFETY: `offset` is inside the mapping, or one past it.
                Ok(unsafe { self.mapping.start.as_ptr().add(offset) })
            }
            end => Err(OutOfBounds {
                start: offset,
                end: end.unwrap_or(usize::MAX),
                len: self.mapping.len,
            }),
        }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({:#x}, {} bytes)", self.addr(), self.len())
    }
}

/// A part of a buffer, kept alive by whoever holds it.
#[derive(Debug, Clone)]
pub struct MemoryRange {
    buffer: Buffer,
    start: usize,
    len: usize,
}

impl MemoryRange {
    /// The buffer it is a part of.
    #[must_use]
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Offset of its first byte in the buffer.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// Virtual address of its first byte.
    #[must_use]
    pub fn addr(&self) -> u64 {
        self.buffer.addr() + self.start as u64
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use std::io::{Read, Seek, SeekFrom};

    #[test]
    fn a_file_is_memory_as_far_as_it_goes() {
        let mut file = tempfile::tempfile().unwrap();
        let page = 65536;
        file.set_len(2 * page).unwrap();
        let buffer = Buffer::map_file(&file, page, 100).unwrap();
        buffer.write(3, b"abc").unwrap();
        let mut bytes = [0; 3];
        file.seek(SeekFrom::Start(page + 3)).unwrap();
        file.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"abc");
        for (offset, len) in [(page, page as usize + 1), (u64::MAX, 1), (1, 8), (0, 0)] {
            let error = Buffer::map_file(&file, offset, len)
                .map(|_| ())
                .unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{offset} {len}");
        }
    }

    #[test]
    fn huge_pages_come_whole_or_not_at_all() {
        match Buffer::allocate_huge(1) {
            Ok(buffer) => assert_eq!(buffer.len(), HUGE_PAGE),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::OutOfMemory),
        }
        assert!(Buffer::allocate_huge(usize::MAX).is_err());
        assert!(Buffer::allocate_huge(0).is_err());
    }

    #[test]
    fn a_buffer_is_zeroed_and_page_aligned() {
        let buffer = Buffer::allocate(5000).unwrap();
        assert_eq!(buffer.addr() % 4096, 0);
        let mut bytes = [1; 5000];
        buffer.read(0, &mut bytes).unwrap();
        assert!(bytes.iter().all(|b| *b == 0));
    }

    #[test]
    fn accesses_beyond_the_end_are_refused() {
        let buffer = Buffer::allocate(16).unwrap();
        assert_eq!(
            buffer.write(15, &[1, 2]),
            Err(OutOfBounds {
                start: 15,
                end: 17,
                len: 16
            })
        );
        assert!(buffer.read(usize::MAX, &mut [0; 2]).is_err());
        assert!(buffer.load_u8(16).is_err());
        assert!(buffer.store_u8(16, 0).is_err());
        assert!(buffer.fill(10, 7, 0).is_err());
        assert!(buffer.range(8..17).is_err());
        assert!(buffer.with_atomic_u64(9, |_| ()).is_none());
        assert!(buffer.with_atomic_u64(1, |_| ()).is_none());
        assert!(Buffer::allocate(0).is_err());
    }

    #[test]
    fn clones_refer_to_the_same_memory() {
        let buffer = Buffer::allocate(64).unwrap();
        let range = buffer.range(8..24).unwrap();
        let clone = buffer.clone();
        drop(buffer);
        clone.write(8, &7u64.to_ne_bytes()).unwrap();
        assert_eq!(range.addr(), clone.addr() + 8);
        assert_eq!(range.len(), 16);
        let value = range
            .buffer()
            .with_atomic_u64(range.start(), |v| v.fetch_add(1, Ordering::SeqCst));
        assert_eq!(value, Some(7));
        assert_eq!(clone.load_u8(8), Ok(8));
    }
}
