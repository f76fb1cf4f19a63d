//! From a judged name to a connection: resolved once, every address checked, the checked one dialled.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use runner_policy::Effective;
use runner_policy::decide::DialRefused;
use runner_policy::net::{Passage, Reach};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::own::is_own;
use super::tunnel::{Dial, Dialled, NotConnected};
use crate::broker::Boxed;
use crate::broker::net::resolve::Resolve;
use crate::codes::Code;

/// Most addresses of a name that are looked at.
const ADDRESSES_MAX: usize = 16;

/// How long one address may take to answer before the next is tried.
const CONNECT: Duration = Duration::from_secs(10);

/// How long a name may take to resolve.
const RESOLVE: Duration = Duration::from_secs(10);

/// The way to one name.
pub(super) struct Dialer {
    pub policy: Arc<Effective>,
    pub resolver: Arc<dyn Resolve>,
    pub name: String,
    pub port: u16,
    pub passage: Passage,
    /// Addresses that were checked.
    pub checked: OnceCell<Vec<SocketAddr>>,
}

impl Dial for Dialer {
    fn dial(&self) -> Boxed<'_, Result<Dialled, NotConnected>> {
        Box::pin(async move {
            let places = self.checked.get_or_try_init(|| self.check()).await?;
            let mut last = "there is no address".to_owned();
            for place in places {
                match timeout(CONNECT, TcpStream::connect(place)).await {
                    Ok(Ok(stream)) => {
                        let _ = stream.set_nodelay(true);
                        return Ok(Dialled { stream, address: *place });
                    }
                    Ok(Err(error)) => last = error.to_string(),
                    Err(_) => last = "no answer in time".to_owned(),
                }
            }
            let why = format!("{}:{} cannot be reached: {last}", self.name, self.port);
            Err(NotConnected { code: Code::NetConnect, why, next: None })
        })
    }
}

impl Dialer {
    /// Resolves the name and checks every address: a name that leads to a refused one too is not dialled at all.
    async fn check(&self) -> Result<Vec<SocketAddr>, NotConnected> {
        let places: Vec<SocketAddr> = match self.passage.at {
            Some(fixed) => vec![fixed.place(self.port)],
            None => {
                let addresses = self.resolve().await?;
                addresses.into_iter().map(|it| SocketAddr::new(it, self.port)).collect()
            }
        };
        let now = Timestamp::now();
        let asked = (self.name.as_str(), self.port);
        for place in &places {
            let address = place.ip();
            runner_policy::dial_connection(&self.policy, now, asked, &self.passage, address)
                .map_err(|refused| self.not_dialled(&refused))?;
            if self.passage.reach == Reach::Public && is_own(address) {
                return Err(NotConnected {
                    code: Code::NetAddress,
                    why: format!("{} leads to {address}, which is this machine", self.name),
                    next: None,
                });
            }
        }
        Ok(places)
    }

    async fn resolve(&self) -> Result<Vec<IpAddr>, NotConnected> {
        let failed = |why: &str| NotConnected {
            code: Code::NetDns,
            why: format!("{} cannot be resolved: {why}", self.name),
            next: None,
        };
        // With the final dot no search list of the host is tried.
        let absolute = format!("{}.", self.name);
        let found = timeout(RESOLVE, self.resolver.resolve(&absolute))
            .await
            .map_err(|_| failed("no answer in time"))?
            .map_err(|error| failed(&error.to_string()))?;
        let mut addresses: Vec<IpAddr> = Vec::new();
        for address in found {
            if !addresses.contains(&address) && addresses.len() < ADDRESSES_MAX {
                addresses.push(address);
            }
        }
        if addresses.is_empty() { Err(failed("it has no address")) } else { Ok(addresses) }
    }

    fn not_dialled(&self, refused: &DialRefused) -> NotConnected {
        let named = refused.rule.is_none() && refused.kind.can_be_named();
        let next = "the rule can name the address with `at: ADDRESS`, or say `private: true`";
        NotConnected {
            code: Code::NetAddress,
            why: format!("{}: {refused}", self.name),
            next: named.then(|| next.to_owned()),
        }
    }
}
