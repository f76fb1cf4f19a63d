//! What servers offered when they were asked, if nothing of them has changed.
//!
//! For the registry, which must not start anything. A server that was never asked, or that is another now, offers
//! nothing until somebody asks it: `runner mcp refresh`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::client::Peer;
use super::identity::Identity;
use super::offer::Offered;
use crate::config::{Config, Flag, Layer, Server, ServerName, Source};
use crate::policy_files::{Choice, Places, Trust, load};
use crate::store::{Offers, Store, StoreError};

/// What a server said when it was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// Under which policy.
    pub policy: String,
    /// What it says it is.
    pub peer: Peer,
    /// What it offers.
    pub tools: Vec<Offered>,
}

/// What is known of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Known {
    /// Nobody has asked it.
    Never,
    /// It was asked, and has changed since.
    Changed,
    /// It was asked.
    Asked(Box<Asked>),
}

/// A configured server that may be used, and what is known of it.
#[derive(Debug, Clone)]
pub struct Remembered {
    /// Its name.
    pub name: ServerName,
    /// What it is.
    pub server: Server,
    /// Where that stands.
    pub source: Source,
    /// What it is made from, now.
    pub identity: Identity,
    /// What it said.
    pub known: Known,
}

impl Remembered {
    /// The tools that are taken of what it offers.
    pub fn taken(&self) -> impl Iterator<Item = &Offered> {
        let asked = match &self.known {
            Known::Asked(asked) => asked.tools.as_slice(),
            Known::Never | Known::Changed => &[],
        };
        let wanted = self.server.tools.as_ref();
        asked.iter().filter(move |tool| wanted.is_none_or(|names| names.contains(&tool.name)))
    }
}

/// Every server that may be used and is wanted, in the order of names. Where there is none, nothing is looked at.
#[must_use]
pub fn remembered(
    places: &Places,
    config: &Config,
    wanted: impl Fn(&ServerName) -> bool,
) -> Vec<Remembered> {
    let local = !config.is_on(Flag::DisableLocalTools);
    let on = |layer: Layer| layer == Layer::Managed || local;
    let servers: Vec<_> = config
        .servers()
        .filter(|(name, said)| said.is_on() && wanted(name))
        .filter_map(|(name, said)| Some((name, said.server.as_ref()?)))
        .filter(|(_, server)| on(server.source.layer))
        .collect();
    if servers.is_empty() {
        return Vec::new();
    }
    let store = Store::existing(places.state.as_deref()).ok().flatten();
    // Several servers may name one policy, and reading one is the dearest part of this.
    let mut policies = BTreeMap::new();
    servers
        .into_iter()
        .map(|(name, server)| {
            let identity = identity(name, &server.value, places, &mut policies);
            let known = store.as_ref().map_or(Known::Never, |it| known(it, name, &identity));
            let (server, source) = (server.value.clone(), server.source.clone());
            Remembered { name: name.clone(), server, source, identity, known }
        })
        .collect()
}

/// What a server is made from, here and now.
fn identity(
    name: &ServerName,
    server: &Server,
    places: &Places,
    policies: &mut BTreeMap<String, Option<String>>,
) -> Identity {
    let root = places.workspace.clone().unwrap_or_default();
    let digest = |named: &String| {
        let policy = load(&Choice::Named(named.clone()), places, Trust::Required).ok()?.policy;
        Some(policy.digest.to_hex().to_string())
    };
    let policy = server
        .policy
        .as_ref()
        .and_then(|named| policies.entry(named.clone()).or_insert_with_key(digest).clone());
    Identity::of(name, server, &root, policy.as_deref(), places.environment.get("PATH"))
}

/// What cannot be read was not remembered.
fn known(store: &Store, name: &ServerName, identity: &Identity) -> Known {
    let offers = Offers::new(store);
    let read = |text: String| serde_json::from_str::<Asked>(&text).ok();
    let asked = offers.get(name.as_str(), &identity.digest).ok().flatten().and_then(read);
    match asked {
        Some(asked) => Known::Asked(Box::new(asked)),
        None if matches!(offers.last(name.as_str()), Ok(Some(_))) => Known::Changed,
        None => Known::Never,
    }
}

/// Remembers what a server said; gives back what one of its name said last.
///
/// # Errors
/// The store refused.
pub fn remember(
    store: &Store,
    name: &ServerName,
    identity: &Identity,
    asked: &Asked,
) -> Result<Option<Asked>, StoreError> {
    let offers = Offers::new(store);
    let last = offers.last(name.as_str())?;
    let text = serde_json::to_string(asked).unwrap_or_default();
    offers.put(name.as_str(), &identity.digest, &text)?;
    Ok(last.and_then(|text| serde_json::from_str(&text).ok()))
}
