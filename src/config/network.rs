//! Networks in CIDR form, to say whose identity headers are believed.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network: `127.0.0.0/8`, `::1/128`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    first: IpAddr,
    prefix: u32,
}

impl Network {
    /// `127.0.0.0/8`.
    pub const LOOPBACK_V4: Network = Network { first: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), prefix: 8 };
    /// `::1/128`.
    pub const LOOPBACK_V6: Network = Network { first: IpAddr::V6(Ipv6Addr::LOCALHOST), prefix: 128 };

    /// Whether the address lies within. An IPv4 address that arrived as `::ffff:a.b.c.d` counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - self.prefix).unwrap_or(0);
                (first.to_bits() ^ address.to_bits()) & mask == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - self.prefix).unwrap_or(0);
                (first.to_bits() ^ address.to_bits()) & mask == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let first: IpAddr = address.parse().map_err(|_| String::new())?;
        let longest = if first.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => longest,
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|bits| *bits <= longest)
                .ok_or_else(|| format!("the part after `/` is between 0 and {longest}"))?,
        };
        Ok(Network { first, prefix })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_addresses_and_no_others() {
        for (network, address, within) in [
            ("127.0.0.0/8", "127.9.9.9", true),
            ("127.0.0.0/8", "128.0.0.1", false),
            ("127.0.0.0/8", "::ffff:127.0.0.1", true),
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.8", false),
            ("0.0.0.0/0", "203.0.113.5", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/33", "2001:db8:7fff::1", true),
            ("2001:db8::/33", "2001:db8:8000::1", false),
        ] {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), within, "{address} in {network}");
        }
        assert!("10.0.0.0/33".parse::<Network>().is_err());
        assert!("tools.example/8".parse::<Network>().is_err());
    }
}
