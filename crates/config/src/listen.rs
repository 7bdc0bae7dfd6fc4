//! Listening addresses.

use std::net::{Ipv4Addr, SocketAddr};

use gnarl_common::{Error, Result};
use serde::{Deserialize, Serialize};

/// An IP address and a port above 0 to listen on. A port alone means 127.0.0.1, which only
/// programs of the same machine reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "toml::Value", into = "toml::Value")]
pub struct Listen(SocketAddr);

impl Listen {
    /// The address of the process whose first rank is `rank`: `rank` ports further.
    ///
    /// # Errors
    /// [`gnarl_common::Kind::Usage`] if there are not as many ports.
    pub fn of_rank(self, rank: usize) -> Result<SocketAddr> {
        let Self(mut address) = self;
        let port = u16::try_from(rank).ok().and_then(|rank| address.port().checked_add(rank));
        address.set_port(port.ok_or_else(|| {
            Error::usage(format!(
                "invalid metrics_listen '{address}': no port is left for rank {rank}"
            ))
            .hint("rank r listens r ports further; choose a lower one")
        })?);
        Ok(address)
    }
}

impl TryFrom<toml::Value> for Listen {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        let address = match &value {
            toml::Value::Integer(port) => {
                u16::try_from(*port).ok().map(|port| (Ipv4Addr::LOCALHOST, port).into())
            }
            toml::Value::String(text) => text.parse::<SocketAddr>().ok(),
            _ => None,
        };
        let kinds = "a port above 0, or an IP address and a port as in \"127.0.0.1:9400\"";
        match address {
            Some(address) if address.port() > 0 => Ok(Self(address)),
            _ => Err(format!("invalid metrics_listen {value}: expected {kinds}")),
        }
    }
}

impl From<Listen> for toml::Value {
    fn from(Listen(address): Listen) -> Self {
        Self::String(address.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(value: impl Into<toml::Value>) -> Result<Listen, String> {
        Listen::try_from(value.into())
    }

    #[test]
    fn a_port_alone_is_of_this_machine() {
        assert_eq!(listen(9400), listen("127.0.0.1:9400"));
        assert_eq!(toml::Value::from(listen(9400).unwrap()), "127.0.0.1:9400".into());
        assert_eq!(toml::Value::from(listen("[::1]:80").unwrap()), "[::1]:80".into());
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for value in [0, -1, 65536] {
            assert!(listen(value).unwrap_err().contains("a port above 0"));
        }
        for text in ["127.0.0.1:0", "127.0.0.1", "localhost:9400", ":9400", "9400", ""] {
            assert!(listen(text).unwrap_err().contains("127.0.0.1:9400"), "{text}");
        }
        assert!(listen(true).is_err());
    }

    #[test]
    fn ranks_follow_one_another() {
        let first = listen("10.0.0.1:65533").unwrap();
        let ports: Vec<_> = (0..3).map(|rank| first.of_rank(rank).unwrap().port()).collect();
        assert_eq!(ports, [65533, 65534, 65535]);
        for rank in [3, 70_000] {
            let text = first.of_rank(rank).unwrap_err().to_string();
            assert!(text.contains(&format!("rank {rank}")) && text.contains("65533"), "{text}");
        }
    }
}
