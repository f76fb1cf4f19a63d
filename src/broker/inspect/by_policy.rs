//! Judges requests of commands by the policy, and adds the credentials of its rules.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use jiff::Timestamp;
use runner_policy::decide::Sending;
use runner_policy::net::RegistryHost;
use runner_policy::{Effective, send};

use super::{Asked, Granted, Judge};
use crate::audit::Redactor;
use crate::broker::net::Secrets;
use crate::broker::{Boxed, Refusal};
use crate::codes::Code;
use crate::environment::Environment;
use crate::registries::Registries;

/// The policy of a call, with what its credentials are made of.
pub struct ByPolicy {
    policy: Arc<Effective>,
    registries: Arc<Registries>,
    hosts: Vec<RegistryHost>,
    redactor: Redactor,
    environment: Environment,
}

impl fmt::Debug for ByPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByPolicy").field("policy", &self.policy.name()).finish_non_exhaustive()
    }
}

impl ByPolicy {
    /// For one call. The redactor learns every credential before it is sent.
    #[must_use]
    pub fn new(
        policy: Arc<Effective>,
        registries: Arc<Registries>,
        redactor: Redactor,
        environment: Environment,
    ) -> Self {
        let hosts = registries.hosts();
        Self { policy, registries, hosts, redactor, environment }
    }

    async fn granted(&self, asked: &Asked) -> Result<Granted, Refusal> {
        let now = Timestamp::now();
        let sending = send(&self.policy, now, &self.hosts, &asked.method, &asked.url);
        let sending = sending.map_err(|refused| {
            let message = match &refused.reason {
                Some(reason) => format!("{refused}: {reason}"),
                None => refused.to_string(),
            };
            let mut refusal = Refusal::new(Code::NetDenied, message);
            refusal.rule = refused.rule;
            refusal
        })?;
        let mut headers = Secrets::new(self.redactor.clone(), self.environment.clone())
            .headers(&sending.send)
            .await?;
        headers.extend(self.of_registry(&sending, &asked.url)?);
        Ok(Granted {
            rule: sending.rule,
            size: sending.bytes,
            time: Duration::from_millis(sending.time),
            headers,
        })
    }

    /// The credential of the registry that a URL lies in, as the machine's own client would send it.
    fn of_registry(
        &self,
        sending: &Sending,
        url: &str,
    ) -> Result<Option<(HeaderName, HeaderValue)>, Refusal> {
        let source = self.registries.sources.iter().find(|source| {
            // What is sent in the open would be readable on its way.
            Some(source.registry) == sending.registry && source.tls && source.holds(url)
        });
        let Some(credential) = source.and_then(|source| source.credential.as_ref()) else {
            return Ok(None);
        };
        let unusable = || {
            let message =
                "the machine's credential for the registry cannot be sent and kept out of answers";
            Refusal::new(Code::AccessDenied, message)
        };
        if !self.redactor.learn(credential.secret()) {
            return Err(unusable());
        }
        let mut value = HeaderValue::from_str(&credential.header()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        Ok(Some((AUTHORIZATION, value)))
    }
}

impl Judge for ByPolicy {
    fn judge<'a>(&'a self, asked: &'a Asked) -> Boxed<'a, Result<Granted, Refusal>> {
        Box::pin(self.granted(asked))
    }
}
