//! The memory of the messages: where it comes from, what it holds, and whether
//! it holds the right thing in the end.

use std::fs::File;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};
use verbs_sys::memory::Buffer;
use verbs_sys::{AccessFlags, MemoryRegion, ProtectionDomain};

use super::adapter::Adapter;
use super::layout::{Layout, Place};
use super::payload::Payload;
use super::resources::failed;
use super::ring::RingLayout;
use crate::failure::Failure;
use crate::options::{MemorySource, Params};
use crate::words::Verb;

/// Where the kernel says how many huge pages there are.
const MEMINFO: &str = "/proc/meminfo";

/// Registered blocks of memory.
pub(crate) struct Memory {
    pub(crate) layout: Layout,
    blocks: Vec<Block>,
    /// What messages consist of, if the user says so.
    payload: Option<Payload>,
}

struct Block {
    region: Box<dyn MemoryRegion>,
    buffer: Buffer,
}

impl Memory {
    pub(super) fn new(
        adapter: &Adapter,
        domain: &dyn ProtectionDomain,
        params: &Params,
        layout: Layout,
    ) -> Result<Self, Failure> {
        let payload = params
            .memory
            .payload_file
            .as_deref()
            .map(Payload::read)
            .transpose()
            .map_err(Failure::Payload)?;
        let length = layout.block_len().unwrap_or(usize::MAX);
        let blocks = (0..layout.blocks())
            .map(|block| {
                let buffer = allocate(&params.memory.source, block, length)?;
                let region = adapter
                    .context
                    .reg_mr(domain, buffer.whole(), access(params, adapter.is_iwarp()))
                    .map_err(|error| {
                        let stock = format!("Couldn't allocate MR with error={}\n", error.errno());
                        failed(&stock, "registering the memory of the messages", error)
                    })?;
                Ok(Block { region, buffer })
            })
            .collect::<Result<_, Failure>>()?;
        let memory = Self {
            layout,
            blocks,
            payload,
        };
        if let Some(ring) = &memory.layout.ring {
            memory.fill_rings(ring);
            return Ok(memory);
        }
        for area in memory.sources(params) {
            match &memory.payload {
                Some(payload) => payload.fill(memory.buffer(area), area.offset, layout.area()),
                None => memory.fill_with_noise(area)?,
            }
        }
        Ok(memory)
    }

    /// The areas of this end that messages are taken from. ib_write_lat sends
    /// zeroes as in stock unless told otherwise, and atomics count from zero.
    fn sources(&self, params: &Params) -> Vec<Place> {
        let answers = params.bidirectional || !params.is_active();
        let qps = 0..self.layout.qps;
        match params.verb() {
            _ if params.polls_memory() && self.payload.is_none() => Vec::new(),
            Verb::Atomic => Vec::new(),
            Verb::Read if answers => qps.map(|qp| self.layout.published(qp)).collect(),
            Verb::Read => Vec::new(),
            _ if params.is_active() => qps.map(|qp| self.layout.sends_from(qp)).collect(),
            _ => Vec::new(),
        }
    }

    /// Writes the patterns. Markers begin with 0, but with 1 where the peer
    /// asks for their old values: it tells a first one by that from none.
    fn fill_rings(&self, ring: &RingLayout) {
        let buffer = &self.blocks[0].buffer;
        for round in 0..RingLayout::PATTERNS {
            let byte = RingLayout::pattern_byte(round);
            // Inside the buffer by the layout.
            let _ = buffer.fill(ring.pattern(round), ring.size, byte);
        }
        let markers = (0..ring.qps).flat_map(|qp| (0..ring.chunks).map(move |chunk| (qp, chunk)));
        for (qp, chunk) in markers.filter(|_| ring.reads) {
            let _ = buffer.write(ring.marker(qp, chunk), &1_u64.to_ne_bytes());
        }
    }

    /// Fills an area with bytes that don't compress.
    fn fill_with_noise(&self, area: Place) -> Result<(), Failure> {
        let mut noise = [0; 64 << 10];
        // A signal may cut this short, which leaves zeros: they do as well.
        getrandom(&mut noise[..], GetRandomFlags::empty()).map_err(io::Error::from)?;
        let length = self.layout.area();
        for start in (0..length).step_by(noise.len()) {
            let rest = noise.len().min(length - start);
            // Inside the buffer by the layout.
            let _ = self.buffer(area).write(area.offset + start, &noise[..rest]);
        }
        Ok(())
    }

    /// What the messages consist of, if the user says so (`--payload_file_path`).
    pub(crate) fn payload(&self) -> Option<&Payload> {
        self.payload.as_ref()
    }

    /// The buffer that a place lies in.
    pub(crate) fn buffer(&self, place: Place) -> &Buffer {
        &self.blocks[place.block].buffer
    }

    /// Virtual address of a place.
    pub(crate) fn addr(&self, place: Place) -> u64 {
        self.buffer(place).addr() + place.offset as u64
    }

    /// Local key of a place.
    pub(crate) fn lkey(&self, place: Place) -> u32 {
        self.blocks[place.block].region.lkey()
    }

    /// Remote key of a place.
    pub(crate) fn rkey(&self, place: Place) -> u32 {
        self.blocks[place.block].region.rkey()
    }
}

/// One block, the `index`th, of so many bytes.
fn allocate(source: &MemorySource, index: usize, length: usize) -> Result<Buffer, Failure> {
    match source {
        MemorySource::Anonymous => Buffer::allocate(length).map_err(|source| Failure::Memory {
            bytes: length as u64,
            source,
        }),
        MemorySource::HugePages => {
            Buffer::allocate_huge(length).map_err(|source| Failure::HugePages {
                bytes: length as u64,
                source,
                pages: huge_pages(),
            })
        }
        MemorySource::File { path, offset } => {
            let start = offset.saturating_add((index as u64).saturating_mul(length as u64));
            File::options()
                .read(true)
                .write(true)
                .open(path)
                .and_then(|file| Buffer::map_file(&file, start, length))
                .map_err(|source| Failure::MemoryFile {
                    path: path.clone(),
                    offset: start,
                    bytes: length as u64,
                    source,
                })
        }
    }
}

/// The kernel's lines about huge pages, in one sentence.
fn huge_pages() -> String {
    let lines = std::fs::read_to_string(MEMINFO).unwrap_or_default();
    let fields = lines.lines().filter(|line| {
        ["HugePages_Total", "HugePages_Free", "Hugepagesize"]
            .iter()
            .any(|name| line.starts_with(name))
    });
    let fields = fields.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    fields.collect::<Vec<_>>().join(", ")
}

/// What the device and the peer may do in our memory.
fn access(params: &Params, iwarp: bool) -> AccessFlags {
    let mut access = AccessFlags::LOCAL_WRITE
        | match params.verb() {
            Verb::Write | Verb::WriteImm => AccessFlags::REMOTE_WRITE,
            // What is read over iWARP comes in like a Write.
            Verb::Read if iwarp => AccessFlags::REMOTE_READ | AccessFlags::REMOTE_WRITE,
            Verb::Read => AccessFlags::REMOTE_READ,
            Verb::Atomic => AccessFlags::REMOTE_ATOMIC,
            Verb::Send | Verb::SendImm => AccessFlags::empty(),
        };
    if params.data_validation {
        access |= AccessFlags::REMOTE_ATOMIC | AccessFlags::REMOTE_READ;
    }
    access.set(AccessFlags::RELAXED_ORDERING, params.relaxed_ordering);
    access.set(AccessFlags::ON_DEMAND, params.memory.on_demand);
    access
}
