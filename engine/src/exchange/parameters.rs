//! The parameter block both ends exchange and compare from version 6.28 on.

use std::fmt;

use super::device_attributes::{DEVICE_ATTRIBUTES_LEN, DeviceAttributes};
use super::error::ExchangeError;
use crate::words::{Atomic, Connection, Ending, Measurement, Method, Units, Verb};

/// Length of the block of builds with the mlx5 direct library (the usual ones), and of ours.
pub const BLOCK_LEN: usize = 320;

/// Length of the block of builds without it: the last field is missing.
pub const SHORT_BLOCK_LEN: usize = 312;

const DEVICE_OFFSET: usize = 80;
const MLX5_OFFSET: usize = DEVICE_OFFSET + DEVICE_ATTRIBUTES_LEN;

const OFF_ON: &[&str] = &["OFF", "ON"];

/// One compared field of the block.
struct Field {
    name: &'static str,
    offset: usize,
    width: Width,
    /// Names of the values, for the fields that are enumerations.
    values: &'static [&'static str],
}

enum Width {
    U32,
    U64,
}

const fn field(name: &'static str, offset: usize, values: &'static [&'static str]) -> Field {
    Field {
        name,
        offset,
        width: Width::U32,
        values,
    }
}

const fn wide(name: &'static str, offset: usize) -> Field {
    Field {
        name,
        offset,
        width: Width::U64,
        values: &[],
    }
}

/// The compared fields in the order of comparison. All are big-endian;
/// bytes 28..32 are the compiler's padding.
const FIELDS: &[Field] = &[
    field("test_method", 0, Method::NAMES),
    field("connection_type", 4, Connection::NAMES),
    field("verb", 8, Verb::NAMES),
    field("tst", 12, Measurement::NAMES),
    field("atomicType", 16, Atomic::NAMES),
    field("test_type", 20, Ending::NAMES),
    field("report_fmt", 24, Units::NAMES),
    wide("size", 32),
    wide("iters", 40),
    field("aes_xts", 48, OFF_ON),
    field("num_of_qps", 52, &[]),
    field("duration", 56, &[]),
    field("use_rdma_cm", 60, OFF_ON),
    field("use_write_with_imm", 64, OFF_ON),
    field("no_enhanced_reorder", 68, OFF_ON),
    field("sig_offload", 72, OFF_ON),
    field("data_validation", 76, OFF_ON),
];

/// The parameters of a test as one end puts them into the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestParameters {
    /// One size, all sizes, or endless.
    pub method: Method,
    /// Transport service.
    pub connection: Connection,
    /// Operation.
    pub verb: Verb,
    /// Bandwidth or latency.
    pub measurement: Measurement,
    /// Atomic operation; [`Atomic::CompareSwap`] (0) for the other verbs.
    pub atomic: Atomic,
    /// Iterations or duration.
    pub ending: Ending,
    /// Unit of the report.
    pub units: Units,
    /// Message size in bytes (the largest one under `-a`).
    pub size: u64,
    /// Iterations per QP; 0 when the duration ends the test.
    pub iterations: u64,
    /// `--aes_xts`.
    pub aes_xts: bool,
    /// QPs after all doublings.
    pub qps: u32,
    /// Seconds; stock sends its default of 5 when there is no duration.
    pub duration: u32,
    /// `-z`.
    pub rdma_cm: bool,
    /// `--no_enhanced_reorder`.
    pub no_enhanced_reorder: bool,
    /// Signature offload.
    pub sig_offload: bool,
    /// `--data_validation`.
    pub data_validation: bool,
    /// The attributes of this end's device.
    pub device: DeviceAttributes,
    /// `comp_mask` of mlx5's direct library; 0 on other hardware.
    pub mlx5_comp_mask: u64,
}

impl TestParameters {
    /// The block for the wire.
    pub fn encode(&self) -> ParameterBlock {
        let mut block = ParameterBlock {
            bytes: [0; BLOCK_LEN],
            len: BLOCK_LEN,
        };
        block.put_u32(0, self.method.number());
        block.put_u32(4, self.connection.number());
        block.put_u32(8, self.verb.number());
        block.put_u32(12, self.measurement.number());
        block.put_u32(16, self.atomic.number());
        block.put_u32(20, self.ending.number());
        block.put_u32(24, self.units.number());
        block.put_u64(32, self.size);
        block.put_u64(40, self.iterations);
        block.put_u32(48, self.aes_xts.into());
        block.put_u32(52, self.qps);
        block.put_u32(56, self.duration);
        block.put_u32(60, self.rdma_cm.into());
        // use_write_with_imm at 64: stock never sets it.
        block.put_u32(68, self.no_enhanced_reorder.into());
        block.put_u32(72, self.sig_offload.into());
        block.put_u32(76, self.data_validation.into());
        block.bytes[DEVICE_OFFSET..MLX5_OFFSET].copy_from_slice(&self.device.encode());
        block.put_u64(MLX5_OFFSET, self.mlx5_comp_mask);
        block
    }
}

/// A parameter block as it travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterBlock {
    bytes: [u8; BLOCK_LEN],
    len: usize,
}

impl ParameterBlock {
    /// From the message of a peer, which is 320 or 312 bytes long.
    ///
    /// # Errors
    /// [`ExchangeError::BlockLength`] for any other length.
    pub fn parse(message: &[u8]) -> Result<Self, ExchangeError> {
        if message.len() != BLOCK_LEN && message.len() != SHORT_BLOCK_LEN {
            return Err(ExchangeError::BlockLength {
                seen: message.len(),
            });
        }
        let mut bytes = [0; BLOCK_LEN];
        bytes[..message.len()].copy_from_slice(message);
        Ok(Self {
            bytes,
            len: message.len(),
        })
    }

    /// The bytes on the wire.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The same parameters as a build without the mlx5 library sends them.
    pub fn shortened(mut self) -> Self {
        self.len = SHORT_BLOCK_LEN;
        self
    }

    /// The sender's device attributes.
    pub fn device(&self) -> DeviceAttributes {
        let mut bytes = [0; DEVICE_ATTRIBUTES_LEN];
        bytes.copy_from_slice(&self.bytes[DEVICE_OFFSET..MLX5_OFFSET]);
        DeviceAttributes::decode(bytes)
    }

    /// The sender's mlx5 `comp_mask`, 0 when the block is short.
    pub fn mlx5_comp_mask(&self) -> u64 {
        self.get_u64(MLX5_OFFSET)
    }

    /// The parameters in words. Comparing does not need this: a peer may use
    /// numbers we have no word for.
    ///
    /// # Errors
    /// [`ExchangeError::Unintelligible`] when a field has no such value.
    pub fn decode(&self) -> Result<TestParameters, ExchangeError> {
        Ok(TestParameters {
            method: self.word(0, Method::from_number)?,
            connection: self.word(4, Connection::from_number)?,
            verb: self.word(8, Verb::from_number)?,
            measurement: self.word(12, Measurement::from_number)?,
            atomic: self.word(16, Atomic::from_number)?,
            ending: self.word(20, Ending::from_number)?,
            units: self.word(24, Units::from_number)?,
            size: self.get_u64(32),
            iterations: self.get_u64(40),
            aes_xts: self.word(48, flag)?,
            qps: self.get_u32(52),
            duration: self.get_u32(56),
            rdma_cm: self.word(60, flag)?,
            no_enhanced_reorder: self.word(68, flag)?,
            sig_offload: self.word(72, flag)?,
            data_validation: self.word(76, flag)?,
            device: self.device(),
            mlx5_comp_mask: self.mlx5_comp_mask(),
        })
    }

    /// The first compared field in which the peer's block differs from ours.
    pub fn first_mismatch(&self, peer: &Self) -> Option<Mismatch> {
        FIELDS.iter().find_map(|field| {
            let (local, remote) = (self.value(field), peer.value(field));
            (local != remote).then(|| Mismatch {
                field: field.name,
                local: field.show(local),
                remote: field.show(remote),
            })
        })
    }

    fn value(&self, field: &Field) -> u64 {
        match field.width {
            Width::U32 => self.get_u32(field.offset).into(),
            Width::U64 => self.get_u64(field.offset),
        }
    }

    fn word<T>(
        &self,
        offset: usize,
        from_number: impl Fn(u32) -> Option<T>,
    ) -> Result<T, ExchangeError> {
        let number = self.get_u32(offset);
        from_number(number).ok_or_else(|| {
            let name = FIELDS
                .iter()
                .find(|field| field.offset == offset)
                .map_or("unknown field", |field| field.name);
            ExchangeError::Unintelligible {
                step: super::step::Step::Parameters,
                expected: format!("a known value of {name}"),
                seen: number.to_string(),
            }
        })
    }

    fn get_u32(&self, offset: usize) -> u32 {
        let mut raw = [0; 4];
        raw.copy_from_slice(&self.bytes[offset..offset + 4]);
        u32::from_be_bytes(raw)
    }

    fn get_u64(&self, offset: usize) -> u64 {
        let mut raw = [0; 8];
        raw.copy_from_slice(&self.bytes[offset..offset + 8]);
        u64::from_be_bytes(raw)
    }

    fn put_u32(&mut self, offset: usize, value: u32) {
        self.bytes[offset..offset + 4].copy_from_slice(&value.to_be_bytes());
    }

    fn put_u64(&mut self, offset: usize, value: u64) {
        self.bytes[offset..offset + 8].copy_from_slice(&value.to_be_bytes());
    }
}

impl Field {
    fn show(&self, value: u64) -> String {
        usize::try_from(value)
            .ok()
            .and_then(|index| self.values.get(index))
            .map_or_else(|| value.to_string(), |name| (*name).to_owned())
    }
}

fn flag(number: u32) -> Option<bool> {
    match number {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// The first parameter in which the two ends differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Stock's name of the parameter.
    pub field: &'static str,
    /// Our value.
    pub local: String,
    /// The peer's value.
    pub remote: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} mismatch: local={}, remote={}",
            self.field, self.local, self.remote
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn parameters() -> TestParameters {
        let mut device = DeviceAttributes::zeroed();
        device.max_qp_rd_atom = 128;
        TestParameters {
            method: Method::Regular,
            connection: Connection::Rc,
            verb: Verb::Write,
            measurement: Measurement::Bandwidth,
            atomic: Atomic::CompareSwap,
            ending: Ending::Iterations,
            units: Units::Mib,
            size: 65536,
            iterations: 100,
            aes_xts: false,
            qps: 1,
            duration: 5,
            rdma_cm: false,
            no_enhanced_reorder: false,
            sig_offload: false,
            data_validation: false,
            device,
            mlx5_comp_mask: 0,
        }
    }

    #[test]
    fn lays_out_the_example_of_a_default_write() {
        let block = parameters().encode();
        let words: Vec<u32> = (0..80).step_by(4).map(|at| block.get_u32(at)).collect();
        let expected = [
            0, 0, 2, 1, 0, 0, 1, 0, 0, 0x10000, 0, 0x64, 0, 1, 5, 0, 0, 0, 0, 0,
        ];
        assert_eq!(words, expected);
        assert_eq!(block.bytes()[80 + 144..80 + 148], 128_u32.to_ne_bytes());
        assert_eq!(block.bytes().len(), BLOCK_LEN);
    }

    #[test]
    fn reports_each_differing_field_in_order() {
        let ours = parameters().encode();
        for (index, field) in FIELDS.iter().enumerate() {
            let mut theirs = ours.clone();
            // All later fields differ as well: the first one is named.
            for later in &FIELDS[index..] {
                theirs.put_u32(later.offset, ours.get_u32(later.offset) + 7);
            }
            let mismatch = ours.first_mismatch(&theirs).unwrap();
            assert_eq!(mismatch.field, field.name);
        }
        assert_eq!(ours.first_mismatch(&ours.clone().shortened()), None);
    }

    #[test]
    fn names_values_and_falls_back_to_numbers() {
        let ours = parameters().encode();
        let mut theirs = parameters();
        theirs.verb = Verb::Read;
        assert_eq!(
            ours.first_mismatch(&theirs.encode()).unwrap().to_string(),
            "verb mismatch: local=WRITE, remote=READ"
        );
        let mut unknown = ours.clone();
        unknown.put_u32(4, 9);
        assert_eq!(
            ours.first_mismatch(&unknown).unwrap().to_string(),
            "connection_type mismatch: local=RC, remote=9"
        );
        let error = unknown.decode().unwrap_err().to_string();
        assert!(error.contains("connection_type"), "{error}");
        theirs.verb = Verb::Write;
        theirs.size = 1 << 40;
        assert_eq!(
            ours.first_mismatch(&theirs.encode()).unwrap().to_string(),
            "size mismatch: local=65536, remote=1099511627776"
        );
    }

    #[test]
    fn decodes_what_it_encodes() {
        let block = parameters().encode();
        let parsed = ParameterBlock::parse(block.bytes()).unwrap();
        assert_eq!(parsed.decode().unwrap(), parameters());
        assert_eq!(
            ParameterBlock::parse(&block.bytes()[..SHORT_BLOCK_LEN]).unwrap(),
            block.shortened()
        );
        assert!(matches!(
            ParameterBlock::parse(&[0; 59]),
            Err(ExchangeError::BlockLength { seen: 59 })
        ));
    }
}
