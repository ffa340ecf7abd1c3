//! The bandwidth report both ends exchange after a run.

use super::step::ReportField;

/// What one end measured. A passive end measured nothing and sends zeros.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BandwidthReport {
    /// Message size in bytes.
    pub size: u64,
    /// Iterations over all QPs.
    pub iterations: u64,
    /// Peak bandwidth in the sender's unit (MiB/s or Gb/s).
    pub peak: f64,
    /// Average bandwidth in the sender's unit.
    pub average: f64,
    /// Messages per microsecond.
    pub message_rate: f64,
    /// Ports 1 and 2, with `--report-per-port`.
    pub ports: Option<[PortReport; 2]>,
}

/// The share of one port.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PortReport {
    /// Average bandwidth in the sender's unit.
    pub average: f64,
    /// Messages per microsecond.
    pub message_rate: f64,
}

impl BandwidthReport {
    /// The messages in the order of their exchange, 8 bytes each: integers
    /// big-endian, doubles IEEE 754 in big-endian order.
    pub(crate) fn messages(&self) -> Vec<(ReportField, [u8; 8])> {
        let mut messages = vec![
            (ReportField::Size, self.size.to_be_bytes()),
            (ReportField::Iterations, self.iterations.to_be_bytes()),
            (ReportField::Peak, self.peak.to_be_bytes()),
            (ReportField::Average, self.average.to_be_bytes()),
            (ReportField::MessageRate, self.message_rate.to_be_bytes()),
        ];
        if let Some([first, second]) = self.ports {
            messages.extend([
                (ReportField::AveragePort1, first.average.to_be_bytes()),
                (
                    ReportField::MessageRatePort1,
                    first.message_rate.to_be_bytes(),
                ),
                (ReportField::AveragePort2, second.average.to_be_bytes()),
                (
                    ReportField::MessageRatePort2,
                    second.message_rate.to_be_bytes(),
                ),
            ]);
        }
        messages
    }

    /// Takes one message of the peer.
    pub(crate) fn set(&mut self, field: ReportField, message: [u8; 8]) {
        let number = f64::from_be_bytes(message);
        match field {
            ReportField::Size => self.size = u64::from_be_bytes(message),
            ReportField::Iterations => self.iterations = u64::from_be_bytes(message),
            ReportField::Peak => self.peak = number,
            ReportField::Average => self.average = number,
            ReportField::MessageRate => self.message_rate = number,
            ReportField::AveragePort1 => self.port(0).average = number,
            ReportField::MessageRatePort1 => self.port(0).message_rate = number,
            ReportField::AveragePort2 => self.port(1).average = number,
            ReportField::MessageRatePort2 => self.port(1).message_rate = number,
        }
    }

    fn port(&mut self, index: usize) -> &mut PortReport {
        &mut self.ports.get_or_insert_default()[index]
    }

    /// Both ends together (`-b`): the row shows the sums and the local size and iterations.
    pub fn combined(&self, peer: &Self) -> Self {
        let ports = self.ports.map(|ours| {
            let theirs = peer.ports.unwrap_or_default();
            [0, 1].map(|port| PortReport {
                average: ours[port].average + theirs[port].average,
                message_rate: ours[port].message_rate + theirs[port].message_rate,
            })
        });
        Self {
            size: self.size,
            iterations: self.iterations,
            peak: self.peak + peer.peak,
            average: self.average + peer.average,
            message_rate: self.message_rate + peer.message_rate,
            ports,
        }
    }
}
