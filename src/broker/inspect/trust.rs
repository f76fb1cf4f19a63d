//! The file of certificates that programs in the sandbox trust: the call's authority and the system's own.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Authority;

/// Length of a line of a PEM file.
const LINE: usize = 64;

/// The file's text. The system's certificates stay in it: connections that no rule inspects need them.
#[must_use]
pub fn bundle(authority: &Authority) -> String {
    let mut text = authority.pem();
    for certificate in rustls_native_certs::load_native_certs().certs {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate.as_ref());
        for line in encoded.as_bytes().chunks(LINE) {
            // Base64 is ASCII.
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}
