//! From a name to addresses, once a request.

use std::io;
use std::net::IpAddr;

use crate::broker::Boxed;

/// Resolves names.
pub(in crate::broker) trait Resolve: Send + Sync {
    /// The addresses of a name, in the order of preference.
    fn resolve<'a>(&'a self, name: &'a str) -> Boxed<'a, io::Result<Vec<IpAddr>>>;
}

/// As the system does it.
#[derive(Debug, Clone, Copy)]
pub(in crate::broker) struct System;

impl Resolve for System {
    fn resolve<'a>(&'a self, name: &'a str) -> Boxed<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            // The port plays no part in the answer; the one that was judged is added by who dials.
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|place| place.ip()).collect())
        })
    }
}
