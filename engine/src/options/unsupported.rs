//! What stock perftest can do and we cannot: the one list.
//!
//! Such an option is refused after all rules, so that a command line stock
//! perftest refuses gets stock perftest's text. Removing a row makes the
//! option work; nothing else has to change here.

use super::refusal::Refusal;
use super::settings::{RateType, Settings};
use crate::words::Connection;

/// Long name of an option, what it needs, and what to do instead.
const NOT_HERE: &[(&str, &str, &str)] = &[
    (
        "dualport",
        "a device with two ports such as ConnectX-3 (mlx4), and the devices here have one each",
        "run two processes, one per device (-d)",
    ),
    (
        "use-null-mr",
        "a null memory region, which only mlx5 adapters have",
        "leave it out, the buffer is ordinary memory",
    ),
    (
        "aes_xts",
        "an mlx5 adapter with AES-XTS",
        "leave the encryption options out at both ends",
    ),
];

/// True when the option named `long` doesn't work here.
pub(super) fn is_listed(long: &str) -> bool {
    NOT_HERE.iter().any(|(name, ..)| *name == long)
}

/// Refuses what the run could not honour.
pub(super) fn check(settings: &Settings) -> Result<(), Refusal> {
    let needs = match settings.connection {
        Connection::Dc => Some("a Mellanox adapter (mlx5)"),
        Connection::Srd => Some("an Elastic Fabric Adapter (EFA)"),
        _ => None,
    };
    if let Some(adapter) = needs {
        return Err(Refusal::not_supported(format!(
            " Connection type {} is not supported here, it needs {adapter}: use RC (-c RC) or XRC \
             at both ends\n",
            settings.connection.name()
        )));
    }
    for long in &settings.given {
        if let Some((_, needs, instead)) = NOT_HERE.iter().find(|(name, ..)| name == long) {
            return Err(Refusal::not_supported(format!(
                " Option --{long} is not supported here, it needs {needs}: {instead}\n"
            )));
        }
    }
    if settings.rate_type == Some(RateType::PacketPacing) {
        return Err(Refusal::not_supported(
            " Packet pacing is not supported here: use --rate_limit_type=SW\n",
        ));
    }
    Ok(())
}
