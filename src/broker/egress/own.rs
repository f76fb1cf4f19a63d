//! Whether an address is one of this machine's, whatever kind it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Any port: nothing is sent.
const PORT: u16 = 9;

/// Whether a packet to this address would stay on this machine. The kernel is asked which address it would send from;
/// nothing is sent.
pub(super) fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind(SocketAddr::new(any, 0))
        .and_then(|socket| {
            socket.connect(SocketAddr::new(address, PORT))?;
            socket.local_addr()
        })
        .is_ok_and(|local| local.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_own_and_a_documentation_address_is_not() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_own(Ipv4Addr::new(192, 0, 2, 1).into()));
    }
}
