//! Whether the right data come in, while they do (`--data_validation`).

use std::time::Duration;

use super::Test;
use super::check::WrongData;
use crate::exchange::KeyRecord;
use crate::failure::Failure;
use crate::options::Machine;
use crate::run::{Credit, Target, Validation, Verdict};

/// Stock begins to look some time after the last word before the run.
const STOCK_STARTS: Duration = Duration::from_secs(2);

/// Where messages and markers go, from what the peer says of its queue pairs.
pub(super) fn targets(peers: &[KeyRecord]) -> Vec<Target> {
    let first = peers.first().and_then(|peer| peer.tail_markers);
    let target = |peer: &KeyRecord| Target {
        rkey: peer.rkey,
        area: peer.vaddr,
        // All queue pairs have theirs in one place.
        markers: first.unwrap_or(0),
    };
    peers.iter().map(target).collect()
}

impl Test<'_> {
    /// The peer's memory has to be laid out as ours is.
    pub(super) fn check_rings(&self) -> Result<(), Failure> {
        let Some(ring) = self.resources.memory.layout.ring else {
            return Ok(());
        };
        let mut targets = targets(&self.peers).into_iter().enumerate();
        let elsewhere = targets.find(|(qp, target)| {
            let distance = target.markers.wrapping_sub(target.area);
            let ours = ring.marker(0, 0).wrapping_sub(ring.published(*qp));
            distance != ours as u64
        });
        match elsewhere {
            Some((qp, _)) => Err(Failure::Rings { qp }),
            None => Ok(()),
        }
    }

    /// Begins to look at what comes in, if it comes here, and gives the peer
    /// the time for that.
    pub(super) fn start_validation(&mut self) -> Result<(), Failure> {
        let memory = &self.resources.memory;
        let Some(ring) = memory.layout.ring else {
            return Ok(());
        };
        if self.params.validates() {
            let buffer = memory.buffer(memory.layout.published(0)).clone();
            self.validation = Some(Validation::start(buffer, ring)?);
        }
        if self.credit == Some(Credit::Unknown) && self.params.is_active() {
            std::thread::sleep(STOCK_STARTS);
        }
        Ok(())
    }

    /// Shows what has been seen.
    pub(super) fn end_validation(&mut self) -> Result<(), Failure> {
        let Some(validation) = self.validation.take() else {
            return Ok(());
        };
        let verdict = validation.end();
        let role = match (self.params.bidirectional, self.params.machine) {
            (false, _) => "",
            (true, Machine::Server) => " (SERVER)",
            (true, Machine::Client) => " (CLIENT)",
        };
        if let Some(first) = verdict.first {
            return Err(Failure::WrongData(WrongData::Chunk {
                role,
                errors: verdict.errors,
                qp: first.qp,
                chunk: first.chunk,
                offset: first.offset,
                found: first.found,
                expected: first.expected,
            }));
        }
        if verdict.messages > 0 {
            return Ok(self.reporter.note(&passed(role, &verdict))?);
        }
        let chunk = self
            .resources
            .memory
            .layout
            .ring
            .map_or(0, |ring| ring.chunk);
        let tool = self.params.tool;
        Ok(self.reporter.warn(&format!(
            "VALIDATION: WARNING{role} - no data validated\n{tool}: only whole chunks are looked \
             at, which have {chunk} messages here: send so many on each queue pair at least (-n)\n"
        ))?)
    }
}

/// Stock's line. It calls messages chunks, and counts some things that cannot
/// happen here: no data are late after their marker, and nothing is queued.
fn passed(role: &str, verdict: &Verdict) -> String {
    let Verdict {
        messages,
        bytes,
        overtaken,
        missed,
        ..
    } = verdict;
    let fallen_behind = match (overtaken, missed) {
        (0, 0) => String::new(),
        _ => format!(" [races={overtaken}, retries=0, skips={missed}, queue_full=0, stale_work=0]"),
    };
    format!("VALIDATION: PASSED{role} - {messages} chunks, {bytes} bytes{fallen_behind}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_read_as_in_stock() {
        let mut verdict = Verdict {
            messages: 896,
            bytes: 58_720_256,
            ..Verdict::default()
        };
        assert_eq!(
            passed("", &verdict),
            "VALIDATION: PASSED - 896 chunks, 58720256 bytes\n"
        );
        verdict.overtaken = 2;
        verdict.missed = 3;
        assert_eq!(
            passed(" (SERVER)", &verdict),
            "VALIDATION: PASSED (SERVER) - 896 chunks, 58720256 bytes \
             [races=2, retries=0, skips=3, queue_full=0, stale_work=0]\n"
        );
        let wrong = WrongData::Chunk {
            role: " (CLIENT)",
            errors: 1,
            qp: 0,
            chunk: 3,
            offset: 17,
            found: 0xff,
            expected: 2,
        };
        assert_eq!(
            wrong.stock_text(),
            "VALIDATION: FAILED (CLIENT) - 1 error(s), first at QP 0, Chunk 3, Offset 17 \
             (expected 0x02, got 0xff)\n"
        );
    }
}
