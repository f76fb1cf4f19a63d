//! Real certificates and keys, beside what must not pass as one.

use base64::Engine as _;
use rcgen::{CertificateParams, KeyPair};

use super::*;

fn key() -> KeyPair {
    KeyPair::generate().unwrap()
}

fn certificate_of(key: &KeyPair) -> String {
    CertificateParams::new(vec!["a.example".to_owned()]).unwrap().self_signed(key).unwrap().pem()
}

fn block(label: &str, der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let lines: Vec<&str> =
        encoded.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn public(text: &str) -> bool {
    is_public(text.as_bytes())
}

#[test]
fn public_material_is_public() {
    let key = key();
    let one = certificate_of(&key).replace("\r\n", "\n");
    let serial = "9".repeat(48);
    let comments = format!(
        "\n# Issuer: CN=A B O=Főtanúsítvány\n# Label: \"A B\"\n# Serial: {serial}\n# SHA256 Fingerprint: {}\n",
        ["ab"; 32].join(":")
    );
    for text in [
        one.clone(),
        key.public_key_pem(),
        format!("{comments}{one}{comments}{one}"),
        format!("{one}\n\n{}", key.public_key_pem()),
        one.replace('\n', "\r\n"),
        one.trim_end().to_owned(),
    ] {
        assert!(public(&text), "{text}");
    }
}

#[test]
fn keys_are_not_however_they_are_dressed() {
    let key = key();
    let (good, secret) = (certificate_of(&key), key.serialize_pem());
    let der = key.serialize_der();
    let comment =
        |text: &str| -> String { text.lines().map(|line| format!("# {line}\n")).collect() };
    let body: String = secret.lines().filter(|line| !line.starts_with('-')).collect();
    let lower = secret.replace("PRIVATE KEY", "private key");
    let far = "\n".repeat(MAX_BYTES - good.len());
    let half = secret.lines().take(2).collect::<Vec<_>>().join("\n");
    for text in [
        secret.clone(),
        format!("{good}{secret}"),
        format!("{good}{}", secret.replace('\n', "\r\n")),
        format!("{good}{}", secret.replace("\r\n", "\n").replace('\n', "\r")),
        format!("{good}{lower}"),
        format!("{good}{}", secret.to_lowercase()),
        format!("{good}{}", comment(&secret)),
        format!("{good}# {body}\n"),
        format!("{good}# a\r{secret}"),
        format!("{good}{body}\n"),
        format!("{good} {secret}"),
        format!("{good}{far}{secret}"),
        format!("{good}{half}\n"),
        format!("{good}-----BEGIN CERTIFICATE-----\n{secret}-----END CERTIFICATE-----\n"),
        good.replace("-----END", &format!("{secret}-----END")),
        // A private key under public labels.
        block("CERTIFICATE", &der),
        block("PUBLIC KEY", &der),
        block("X509 CRL", &der),
        block("TRUSTED CERTIFICATE", &der),
        good.replace("E-----", "E-----\nProc-Type: 4,ENCRYPTED"),
        "password\n".to_owned(),
        String::new(),
        "# only a comment\n".to_owned(),
    ] {
        assert!(!public(&text), "{text}");
    }
    // Behind the certificate, in the same block.
    let certificate = CertificateParams::new(vec![]).unwrap().self_signed(&key).unwrap();
    let both = [certificate.der().as_ref(), &der].concat();
    assert!(public(&block("CERTIFICATE", certificate.der())));
    assert!(!public(&block("CERTIFICATE", &both)) && !public(&block("X509 CRL", &both)));
    let trusted = |behind: &[u8]| {
        public(&block("TRUSTED CERTIFICATE", &[certificate.der().as_ref(), behind].concat()))
    };
    assert!(trusted(&[]));
    // Trusted for one purpose, with a name and the identifier of the key.
    assert!(trusted(&[0x30, 12, 0x30, 3, 6, 1, 42, 0x0C, 1, b'a', 4, 2, 1, 2]));
    // The outer structure of an encrypted private key, and a private key.
    assert!(!trusted(&[0x30, 11, 0x30, 5, 6, 1, 42, 0x30, 0, 4, 2, 1, 2]) && !trusted(&der));
}

#[test]
fn other_keys_are_not_public_either() {
    // PKCS #1, SEC 1, encrypted PKCS #8, as outer structures.
    let sequence = |members: &[&[u8]]| {
        let content = members.concat();
        [&[0x30, u8::try_from(content.len()).unwrap()], &content[..]].concat()
    };
    let number: &[u8] = &[2, 1, 0];
    let octets: &[u8] = &[4, 2, 1, 2];
    let algorithm = sequence(&[&[6, 1, 42]]);
    for der in [
        sequence(&[number, number, number]),
        sequence(&[number, octets]),
        sequence(&[&algorithm, octets]),
        sequence(&[&sequence(&[number, &algorithm, octets]), &algorithm, &[3, 1, 0]]),
    ] {
        for label in ["CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CRL", "PUBLIC KEY"] {
            assert!(!public(&block(label, &der)), "{label} {der:?}");
        }
    }
    assert!(public(&block("PUBLIC KEY", &sequence(&[&algorithm, &[3, 1, 0]]))), "the control");
}

#[test]
fn random_bytes_end_in_an_answer() {
    let good = certificate_of(&key());
    for at in 0..good.len() {
        let mut bytes = good.clone().into_bytes();
        bytes[at] ^= 0x15;
        let _ = is_public(&bytes);
        let _ = is_public(&good.as_bytes()[..at]);
    }
}
