//! From a decided URL to a connection: resolved once, every address checked, the checked one dialled.

use std::net::{IpAddr, SocketAddr};

use jiff::Timestamp;
use runner_policy::Effective;
use runner_policy::decide::DialRefused;
use runner_policy::net::{Target, Terms};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::limits;
use super::resolve::Resolve;
use super::url::Url;
use crate::broker::Refusal;
use crate::codes::Code;

/// Addresses that were checked, in order. Only this module makes one, and only [`Checked::connect`] uses it.
#[derive(Debug)]
pub(super) struct Checked {
    places: Vec<SocketAddr>,
}

/// Resolves the host and checks every address.
///
/// # Errors
/// There is none, or one that must not be dialled: a name that leads to both is not dialled at all.
pub(super) async fn check(
    policy: &Effective,
    resolver: &dyn Resolve,
    url: &Url,
    target: &Target,
    terms: &Terms,
) -> Result<Checked, Refusal> {
    let addresses = match target.address() {
        Some(address) => vec![address],
        None => resolve(resolver, &url.host).await?,
    };
    let now = Timestamp::now();
    for address in &addresses {
        runner_policy::dial(policy, now, target, terms, *address)
            .map_err(|refused| not_dialled(url, &refused))?;
    }
    let places = addresses.into_iter().map(|address| SocketAddr::new(address, url.port)).collect();
    Ok(Checked { places })
}

async fn resolve(resolver: &dyn Resolve, name: &str) -> Result<Vec<IpAddr>, Refusal> {
    let failed =
        |why: &str| Refusal::new(Code::NetDns, format!("{name} cannot be resolved: {why}"));
    let found = timeout(limits::RESOLVE, resolver.resolve(name))
        .await
        .map_err(|_| failed("no answer in time"))?
        .map_err(|error| failed(&error.to_string()))?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) && addresses.len() < limits::ADDRESSES {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err(failed("it has no address")) } else { Ok(addresses) }
}

fn not_dialled(url: &Url, refused: &DialRefused) -> Refusal {
    let mut refusal = Refusal::new(
        Code::NetAddress,
        format!("{} must not be reached: {refused}", url.authority()),
    );
    refusal.rule = refused.rule.clone().map(Box::new);
    if refused.rule.is_none() && refused.kind.can_be_named() {
        refusal = refusal.hint(
            "a `net` rule of the policy can name the address itself, or its host with `private: true`",
        );
    }
    refusal
}

impl Checked {
    /// Connects to the first that answers.
    ///
    /// # Errors
    /// None does.
    pub(super) async fn connect(&self, url: &Url) -> Result<TcpStream, Refusal> {
        let mut last = "there is no address".to_owned();
        for place in &self.places {
            match timeout(limits::CONNECT, TcpStream::connect(place)).await {
                Ok(Ok(stream)) => {
                    // A request is one write; waiting for more to send would only cost time.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => last = "no answer in time".to_owned(),
            }
        }
        let message = format!("{} cannot be reached: {last}", url.authority());
        Err(Refusal::new(Code::NetConnect, message))
    }
}
