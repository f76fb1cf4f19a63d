//! The certificate authority of one call. Its key exists in this process alone.
//!
//! Its own certificate names the hosts of the rules as the only ones it can vouch for, so a program that trusts it
//! for longer than the call, or elsewhere, trusts it for nothing else.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CidrSubnet, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, KeyPair, KeyUsagePurpose, NameConstraints,
};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::limits;

/// Why a call has no authority, or a name no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// Nothing would bound what the authority can vouch for.
    #[error("`{0}` cannot be inspected: only names can, and not all of them; name the host")]
    NotAName(String),
    /// A name that the rules do not have.
    #[error("no rule that inspects names `{0}`")]
    Foreign(String),
    /// One more name than a call may have.
    #[error("this call asked for more than {} inspected names", limits::NAMES)]
    TooManyNames,
    /// A certificate could not be made.
    #[error("a certificate for `{0}` cannot be made: {1}")]
    Certificate(String, #[source] rcgen::Error),
    /// The TLS library refuses it.
    #[error("a certificate for `{0}` cannot be used: {1}")]
    Tls(String, #[source] tokio_rustls::rustls::Error),
}

/// Makes certificates for the names of a call's rules.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// One key serves all names of the call.
    key: KeyPair,
    /// Host names as the rules write them; `*.` may stand before one.
    names: Vec<String>,
    made: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Authority {
    /// An authority for the host names of the rules that inspect: `registry.example`, `*.example.org`.
    ///
    /// # Errors
    /// One of them is an address or stands for every name.
    pub fn new(names: &[String]) -> Result<Self, AuthorityError> {
        let mut permitted = Vec::new();
        for name in names {
            let plain = name.strip_prefix("*.").unwrap_or(name);
            if !is_name(plain) {
                return Err(AuthorityError::NotAName(name.clone()));
            }
            permitted.push(GeneralSubtree::DnsName(plain.to_owned()));
        }
        let failed = |error| AuthorityError::Certificate("the call's authority".to_owned(), error);
        let mut params = params(Vec::new()).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, "runner, for one call");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.name_constraints = Some(NameConstraints {
            // An empty list would permit every name.
            permitted_subtrees: if permitted.is_empty() {
                vec![GeneralSubtree::DnsName("invalid".to_owned())]
            } else {
                permitted
            },
            // A list of names says nothing of addresses.
            excluded_subtrees: vec![
                GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix([0; 4], 0)),
                GeneralSubtree::IpAddress(CidrSubnet::from_v6_prefix([0; 16], 0)),
            ],
        });
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().map_err(failed)?)
            .map_err(failed)?;
        Ok(Self {
            issuer,
            key: KeyPair::generate().map_err(failed)?,
            names: names.to_vec(),
            made: Mutex::default(),
        })
    }

    /// The authority's certificate, as programs in the sandbox read it.
    #[must_use]
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// TLS of a server with this name: HTTP/1.1 alone is offered.
    ///
    /// # Errors
    /// No rule names it, or no certificate can be made.
    pub(super) fn server(&self, name: &str) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = made.get(name) {
            return Ok(Arc::clone(config));
        }
        if !self.names.iter().any(|rule| covers(rule, name)) {
            return Err(AuthorityError::Foreign(name.to_owned()));
        }
        if made.len() >= limits::NAMES {
            return Err(AuthorityError::TooManyNames);
        }
        let failed = |error| AuthorityError::Certificate(name.to_owned(), error);
        let mut params = params(vec![name.to_owned()]).map_err(failed)?;
        params.distinguished_name.push(DnType::OrganizationName, "runner, for one call");
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&self.key, &self.issuer).map_err(failed)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let unusable = |error| AuthorityError::Tls(name.to_owned(), error);
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        made.insert(name.to_owned(), Arc::clone(&config));
        Ok(config)
    }
}

fn params(names: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    let now = SystemTime::now();
    params.not_before = (now - limits::SKEW).into();
    params.not_after = (now + limits::VALID).into();
    params.distinguished_name = DistinguishedName::new();
    Ok(params)
}

/// A host name in lower case, without a star, and no address.
fn is_name(text: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    text.len() <= 253
        && text
            .split('.')
            .all(|label| !label.is_empty() && label.len() <= 63 && label.bytes().all(plain))
        && text
            .rsplit('.')
            .next()
            .is_some_and(|last| !last.bytes().all(|byte| byte.is_ascii_digit()))
}

fn covers(rule: &str, name: &str) -> bool {
    is_name(name)
        && match rule.strip_prefix("*.") {
            Some(parent) => {
                name.strip_suffix(parent).is_some_and(|sub| sub.len() > 1 && sub.ends_with('.'))
            }
            None => rule == name,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_have_authorities() {
        let new = |name: &str| Authority::new(&[name.to_owned()]);
        for name in ["registry.example", "*.example.org", "localhost", "a_b.example"] {
            assert!(new(name).is_ok(), "{name}");
        }
        for name in ["*", "*.*", "10.0.0.1", "[::1]", "", "a..b", "A.example", "*.", "1.2"] {
            assert!(matches!(new(name), Err(AuthorityError::NotAName(_))), "{name}");
        }
    }

    #[test]
    fn a_server_has_a_name_of_the_rules() {
        let authority =
            Authority::new(&["a.example".to_owned(), "*.b.example".to_owned()]).unwrap();
        for name in ["a.example", "x.b.example", "x.y.b.example"] {
            assert!(authority.server(name).is_ok(), "{name}");
        }
        for name in ["b.example", "c.a.example", "xb.example", "evil", "", "x..b.example"] {
            let found = authority.server(name);
            assert!(matches!(found, Err(AuthorityError::Foreign(_))), "{name}");
        }
        assert!(!format!("{authority:?}").contains("key"), "keys are not shown");
    }
}
