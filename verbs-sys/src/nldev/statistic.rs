//! Counters.

use super::attribute::{
    DEV_INDEX, PORT_INDEX, RES_KERN_NAME, RES_LQPN, RES_MR, RES_MRN, RES_PID, RES_QP, RES_TYPE,
    STAT_AUTO_MODE_MASK, STAT_COUNTER, STAT_COUNTER_ID, STAT_HWCOUNTER_DYNAMIC,
    STAT_HWCOUNTER_ENTRY_NAME, STAT_HWCOUNTER_ENTRY_VALUE, STAT_HWCOUNTERS, STAT_MODE, STAT_RES,
};
use super::parse::{Attributes, required};
use super::{Command, Nldev, NldevError, Request, Scope, Transport};

/// `RDMA_COUNTER_MODE_AUTO`.
const MODE_AUTO: u32 = 1;
/// `RDMA_COUNTER_MODE_MANUAL`: in a request, that only the mode is wanted.
const MODE_MANUAL: u32 = 2;

/// A counter with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HwCounter {
    /// Name.
    pub name: String,
    /// Value.
    pub value: u64,
}

/// Counters that belong to queue pairs or a memory region. What the kernel
/// didn't tell is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CounterSet {
    /// Port, counted from 1.
    pub port: Option<u32>,
    /// Number of the set.
    pub id: Option<u32>,
    /// `enum ib_qp_type` of the queue pairs.
    pub qp_type: Option<u8>,
    /// Process of the queue pairs.
    pub pid: Option<u32>,
    /// Kernel module of the queue pairs.
    pub kern_name: Option<String>,
    /// Numbers of the queue pairs.
    pub lqpns: Vec<u32>,
    /// Number of the memory region.
    pub mrn: Option<u32>,
    /// The counters.
    pub counters: Vec<HwCounter>,
}

/// A counter that can be switched on and off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionalCounter {
    /// Name.
    pub name: String,
    /// Whether it counts.
    pub enabled: bool,
}

impl<T: Transport> Nldev<T> {
    /// The counters of a port.
    ///
    /// # Errors
    /// `EINVAL` when the device has none, or the answer is odd.
    pub fn counters(&mut self, device: u32, port: u32) -> Result<Vec<HwCounter>, NldevError> {
        let request = of_port(Command::StatGet, Scope::One, device, port);
        self.ask_one("tell the counters", request, hw_counters)
    }

    /// The counters of queue pairs that have sets of their own.
    ///
    /// # Errors
    /// When the kernel refuses, or answers something odd.
    pub fn qp_counters(&mut self, device: u32, port: u32) -> Result<Vec<CounterSet>, NldevError> {
        let request =
            of_port(Command::StatGet, Scope::All, device, port).u32(STAT_RES, RES_QP.number.into());
        let answers = self.ask("tell the counters", request, |attributes| {
            let sets = attributes.entries(STAT_COUNTER)?;
            sets.iter().map(qp_set).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(answers.into_iter().flatten().collect())
    }

    /// The counters of memory regions (on-demand paging).
    ///
    /// # Errors
    /// When the kernel refuses, or answers something odd.
    pub fn mr_counters(&mut self, device: u32) -> Result<Vec<CounterSet>, NldevError> {
        let request = Request::new(Command::StatGet, Scope::All)
            .u32(DEV_INDEX, device)
            .u32(STAT_RES, RES_MR.number.into());
        let answers = self.ask("tell the counters", request, |attributes| {
            let sets = attributes.entries(RES_MR)?;
            sets.iter().map(mr_set).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(answers.into_iter().flatten().collect())
    }

    /// The counters of one memory region.
    ///
    /// # Errors
    /// When the kernel refuses, or answers something odd.
    pub fn mr_counter(&mut self, device: u32, mrn: u32) -> Result<CounterSet, NldevError> {
        let request = Request::new(Command::StatGet, Scope::One)
            .u32(DEV_INDEX, device)
            .u32(RES_MRN, mrn)
            .u32(STAT_RES, RES_MR.number.into());
        self.ask_one("tell the counters", request, mr_set)
    }

    /// By what queue pairs are bound to counter sets by themselves, as
    /// `RDMA_COUNTER_MASK_*`: 1 by type, 2 by process; `None` when they aren't.
    ///
    /// # Errors
    /// When the kernel refuses, or answers something odd.
    pub fn qp_counter_mode(&mut self, device: u32, port: u32) -> Result<Option<u32>, NldevError> {
        let request = of_port(Command::StatGet, Scope::One, device, port)
            .u32(STAT_MODE, MODE_MANUAL)
            .u32(STAT_RES, RES_QP.number.into());
        self.ask_one("tell the counter mode", request, |attributes| {
            if attributes.u32(STAT_MODE)? != Some(MODE_AUTO) {
                return Ok(None);
            }
            let mask = attributes.u32(STAT_AUTO_MODE_MASK);
            required(STAT_AUTO_MODE_MASK, mask).map(Some)
        })
    }

    /// The counters of a port that can be switched.
    ///
    /// # Errors
    /// When the kernel refuses, or answers something odd.
    pub fn optional_counters(
        &mut self,
        device: u32,
        port: u32,
    ) -> Result<Vec<OptionalCounter>, NldevError> {
        let request = of_port(Command::StatGetStatus, Scope::One, device, port);
        self.ask_one("tell the optional counters", request, |attributes| {
            let mut counters = Vec::new();
            for entry in attributes.entries(STAT_HWCOUNTERS)? {
                let name = entry.string(STAT_HWCOUNTER_ENTRY_NAME);
                let name = required(STAT_HWCOUNTER_ENTRY_NAME, name)?;
                if let Some(enabled) = entry.u8(STAT_HWCOUNTER_DYNAMIC)? {
                    let enabled = enabled != 0;
                    counters.push(OptionalCounter { name, enabled });
                }
            }
            Ok(counters)
        })
    }
}

fn of_port(command: Command, scope: Scope, device: u32, port: u32) -> Request {
    Request::new(command, scope)
        .u32(DEV_INDEX, device)
        .u32(PORT_INDEX, port)
}

fn hw_counters(attributes: &Attributes<'_>) -> Result<Vec<HwCounter>, NldevError> {
    let counter = |entry: Attributes<'_>| {
        let name = entry.string(STAT_HWCOUNTER_ENTRY_NAME);
        let value = entry.u64(STAT_HWCOUNTER_ENTRY_VALUE);
        Ok(HwCounter {
            name: required(STAT_HWCOUNTER_ENTRY_NAME, name)?,
            value: required(STAT_HWCOUNTER_ENTRY_VALUE, value)?,
        })
    };
    let entries = attributes.entries(STAT_HWCOUNTERS)?;
    entries.into_iter().map(counter).collect()
}

fn qp_set(attributes: &Attributes<'_>) -> Result<CounterSet, NldevError> {
    let number = |entry: Attributes<'_>| required(RES_LQPN, entry.u32(RES_LQPN));
    let qps = attributes.entries(RES_QP)?;
    Ok(CounterSet {
        port: attributes.u32(PORT_INDEX)?,
        id: Some(required(STAT_COUNTER_ID, attributes.u32(STAT_COUNTER_ID))?),
        qp_type: attributes.u8(RES_TYPE)?,
        pid: attributes.u32(RES_PID)?,
        kern_name: attributes.string(RES_KERN_NAME)?,
        lqpns: qps.into_iter().map(number).collect::<Result<_, _>>()?,
        mrn: None,
        counters: hw_counters(attributes)?,
    })
}

fn mr_set(attributes: &Attributes<'_>) -> Result<CounterSet, NldevError> {
    let counters = match attributes.bytes(STAT_HWCOUNTERS) {
        Some(_) => hw_counters(attributes)?,
        None => Vec::new(),
    };
    Ok(CounterSet {
        mrn: attributes.u32(RES_MRN)?,
        counters,
        ..CounterSet::default()
    })
}
