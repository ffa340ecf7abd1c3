//! The command line: one table of options, their rules, and what comes out.

mod message;
mod params;
mod tool;

pub use message::{ExitReason, LINE, Message, Messages, Outcome, Resolved, Stream};
pub use params::{
    AtomicOperation, ConnectionType, ControlParams, DeviceParams, Length, LinkLayer, Machine,
    MtuRequest, Output, Params, PathMtu, PathParams, Polling, RateLimit, RateLimiter, RateUnits,
    ReportParams, Sizes, Verbosity,
};
pub use tool::{
    ATOMIC_BW, ATOMIC_LAT, READ_BW, READ_LAT, SEND_BW, SEND_LAT, Test, Tool, Verb, WRITE_BW,
    WRITE_LAT,
};
