//! `--loopback`: both ends of a test in this process, each with a context of
//! its own, over a TCP connection like any other. The client's screen is shown.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use crate::device::Provider;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::options::{Machine, Params};
use crate::screen::Screen;
use crate::tool::run_connected;

/// Runs both ends.
pub(crate) fn run(
    params: &Params,
    providers: &[&dyn Provider],
    screen: &mut Screen,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    if params.control.rdma_cm {
        return Err(Failure::Unsupported(
            "the ends of --loopback talk over TCP: leave -R and -z out",
        ));
    }
    let (near, far) = connection(params.control.ipv6)?;
    let server = server(params);
    let client = client(params, &near)?;
    thread::scope(|scope| {
        let serving = thread::Builder::new()
            .name("server".to_owned())
            .spawn_scoped(scope, || {
                let mut dark = Screen::dark();
                run_connected(&server, providers, &mut dark, interrupt, Some(far))
            })?;
        let ran = run_connected(&client, providers, screen, interrupt, Some(near));
        // A panic has said on stderr what it was.
        let served = serving.join().unwrap_or(Ok(()));
        match (ran, served) {
            (Ok(()), served) => served,
            // It failed first and took the connection with it.
            (Err(ran), Err(served)) if ran.is_loss_of_peer() => Err(served),
            (Err(ran), _) => Err(ran),
        }
    })
}

/// The two ends of a connection of this process with itself.
fn connection(ipv6: bool) -> std::io::Result<(TcpStream, TcpStream)> {
    let address: SocketAddr = match ipv6 {
        true => (Ipv6Addr::LOCALHOST, 0).into(),
        false => (Ipv4Addr::LOCALHOST, 0).into(),
    };
    let listener = TcpListener::bind(address)?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let ours = near.local_addr()?;
    loop {
        // Anybody on this host may have connected in between.
        let (far, peer) = listener.accept()?;
        if peer == ours {
            return Ok((near, far));
        }
    }
}

fn server(params: &Params) -> Params {
    let mut server = params.clone();
    server.loopback = false;
    server.machine = Machine::Server;
    // One report and one capture are enough; they show both directions.
    server.report.json_file = None;
    server.report.hdr_file = None;
    server.device.capture = None;
    server
}

fn client(params: &Params, connection: &TcpStream) -> Result<Params, Failure> {
    let mut client = params.clone();
    client.loopback = false;
    client.machine = Machine::Client;
    client.host = Some(connection.peer_addr()?.ip().to_string());
    Ok(client)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn the_process_connects_with_itself() {
        let (near, far) = connection(false).unwrap();
        assert_eq!(near.local_addr().unwrap(), far.peer_addr().unwrap());
        assert!(near.peer_addr().unwrap().ip().is_loopback());
    }
}
