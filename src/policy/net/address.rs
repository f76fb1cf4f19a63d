//! What an address is: public, or one of the many that lead somewhere else than to the open net.
//!
//! A name that an attacker owns can resolve to any of them, so each is told apart by the registries of
//! special-purpose addresses (RFC 6890 and its successors). What the registries do not call global is not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// On the open net.
    Public,
    /// This host.
    Loopback,
    /// A private or unique local network.
    Private,
    /// The same link.
    LinkLocal,
    /// Shared by a carrier's customers (100.64.0.0/10).
    Shared,
    /// A cloud's service that hands out credentials.
    Metadata,
    /// Carries another address inside, to which something translates it.
    Translated,
    /// A group of hosts.
    Multicast,
    /// No host at all; some systems take it for this one.
    Unspecified,
    /// Every host of a link.
    Broadcast,
    /// Documentation, benchmarks, future use.
    Reserved,
}

/// Services that hand out credentials to whoever can reach them, one for each large cloud.
const METADATA: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    // Looks public, and is a cloud's own host agent.
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// The kind of an address.
#[must_use]
pub fn kind(address: IpAddr) -> Kind {
    if METADATA.contains(&address) {
        return Kind::Metadata;
    }
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> Kind {
    match address.octets() {
        [0, ..] => Kind::Unspecified,
        [127, ..] => Kind::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Kind::Private,
        [169, 254, ..] => Kind::LinkLocal,
        [100, 64..=127, ..] => Kind::Shared,
        [255, 255, 255, 255] => Kind::Broadcast,
        [224..=239, ..] => Kind::Multicast,
        // The old relay of 6to4.
        [192, 88, 99, _] => Kind::Translated,
        [192, 0, 0 | 2, _] | [198, 18..=19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Kind::Reserved
        }
        [240..=255, ..] => Kind::Reserved,
        _ => Kind::Public,
    }
}

fn kind_v6(address: Ipv6Addr) -> Kind {
    let carried = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Kind::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Kind::Loopback,
        // Networks without IPv4 reach it by this prefix: then what is carried counts, if it is public.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => match kind(IpAddr::V4(carried(high, low))) {
            Kind::Public => Kind::Public,
            _ => Kind::Translated,
        },
        // Mapped, compatible and translated IPv4, NAT64 of one's own, Teredo, 6to4.
        [0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] | [0x2001, 0, ..] | [0x2002, ..] => {
            Kind::Translated
        }
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Kind::Private,
        [0xfe80..=0xfebf, ..] => Kind::LinkLocal,
        [0xff00..=0xffff, ..] => Kind::Multicast,
        // Protocol assignments, benchmarks, documentation.
        [0x2001, 0x0001..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => {
            Kind::Reserved
        }
        [0x2000..=0x3fff, ..] => Kind::Public,
        _ => Kind::Reserved,
    }
}

impl Kind {
    /// For a sentence: “a loopback address”.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Shared => "a carrier's shared address",
            Self::Metadata => "a cloud's metadata service",
            Self::Translated => "an address that carries another one",
            Self::Multicast => "a multicast address",
            Self::Unspecified => "the unspecified address",
            Self::Broadcast => "the broadcast address",
            Self::Reserved => "a reserved address",
        }
    }

    /// Whether anything can answer there that a rule could mean.
    #[must_use]
    pub fn can_be_named(self) -> bool {
        match self {
            Self::Public
            | Self::Loopback
            | Self::Private
            | Self::LinkLocal
            | Self::Shared
            | Self::Metadata => true,
            Self::Translated
            | Self::Multicast
            | Self::Unspecified
            | Self::Broadcast
            | Self::Reserved => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        for (text, expected) in [
            ("8.8.8.8", Kind::Public),
            ("93.184.216.34", Kind::Public),
            ("172.15.0.1", Kind::Public),
            ("172.32.0.1", Kind::Public),
            ("100.63.0.1", Kind::Public),
            ("100.128.0.1", Kind::Public),
            ("2606:4700::1111", Kind::Public),
            ("2a00:1450:4001::200e", Kind::Public),
            ("127.0.0.1", Kind::Loopback),
            ("127.255.255.254", Kind::Loopback),
            ("::1", Kind::Loopback),
            ("10.0.0.5", Kind::Private),
            ("172.16.0.1", Kind::Private),
            ("172.31.255.255", Kind::Private),
            ("192.168.1.1", Kind::Private),
            ("fd12::1", Kind::Private),
            ("fc00::1", Kind::Private),
            ("fec0::1", Kind::Private),
            ("169.254.1.1", Kind::LinkLocal),
            ("fe80::1", Kind::LinkLocal),
            ("100.64.0.1", Kind::Shared),
            ("169.254.169.254", Kind::Metadata),
            ("169.254.170.2", Kind::Metadata),
            ("100.100.100.200", Kind::Metadata),
            ("168.63.129.16", Kind::Metadata),
            ("fd00:ec2::254", Kind::Metadata),
            ("::ffff:127.0.0.1", Kind::Translated),
            ("::ffff:8.8.8.8", Kind::Translated),
            ("::127.0.0.1", Kind::Translated),
            ("::ffff:0:127.0.0.1", Kind::Translated),
            ("64:ff9b::8.8.8.8", Kind::Public),
            ("64:ff9b::127.0.0.1", Kind::Translated),
            ("64:ff9b::169.254.169.254", Kind::Translated),
            ("64:ff9b:1::10.0.0.1", Kind::Translated),
            ("2002:7f00:1::", Kind::Translated),
            ("2002:a9fe:a9fe::1", Kind::Translated),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", Kind::Translated),
            ("192.88.99.1", Kind::Translated),
            ("0.0.0.0", Kind::Unspecified),
            ("0.1.2.3", Kind::Unspecified),
            ("::", Kind::Unspecified),
            ("255.255.255.255", Kind::Broadcast),
            ("224.0.0.1", Kind::Multicast),
            ("ff02::1", Kind::Multicast),
            ("240.0.0.1", Kind::Reserved),
            ("192.0.2.1", Kind::Reserved),
            ("198.18.0.1", Kind::Reserved),
            ("2001:db8::1", Kind::Reserved),
            ("2001:2::1", Kind::Reserved),
            ("3fff::1", Kind::Reserved),
            ("100::1", Kind::Reserved),
            ("4000::1", Kind::Reserved),
        ] {
            assert_eq!(kind(text.parse().unwrap()), expected, "{text}");
        }
    }
}
