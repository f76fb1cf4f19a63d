//! Values of secrets: read on the host when a rule sends one, learned by the redactor before anything is sent.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use hyper::header::{HeaderName, HeaderValue};
use runner_policy::net::{Part, Secret, SecretSource, Send};

use crate::audit::{Redactor, SHORTEST};
use crate::broker::Refusal;
use crate::codes::Code;
use crate::environment::Environment;

/// Longest value: headers are not longer, and the redactor must be able to hold it.
const LONGEST: u64 = 8 << 10;

/// Reads values.
pub(in crate::broker) struct Secrets {
    redactor: Redactor,
    environment: Environment,
}

impl Secrets {
    /// With this environment.
    pub(in crate::broker) fn new(redactor: Redactor, environment: Environment) -> Self {
        Self { redactor, environment }
    }

    /// The headers that a rule sends, with their values. From here on the redactor knows the values. Files may
    /// lie on slow disks, so they are read beside the tasks that serve the call.
    ///
    /// # Errors
    /// A value is missing, or cannot be sent and kept out of answers.
    pub(in crate::broker) async fn headers(
        self,
        send: &[Send],
    ) -> Result<Vec<(HeaderName, HeaderValue)>, Refusal> {
        if send.is_empty() {
            return Ok(Vec::new());
        }
        let send = send.to_vec();
        let made = tokio::task::spawn_blocking(move || self.render(&send)).await;
        made.unwrap_or_else(|_| Err(Refusal::new(Code::Cancelled, "the call is ending")))
    }

    fn render(&self, send: &[Send]) -> Result<Vec<(HeaderName, HeaderValue)>, Refusal> {
        send.iter().map(|send| self.header(send)).collect()
    }

    fn header(&self, send: &Send) -> Result<(HeaderName, HeaderValue), Refusal> {
        let mut value = String::new();
        for part in send.template.parts() {
            match part {
                Part::Text(text) => value.push_str(text),
                Part::Secret(name) => {
                    let secret = send.secrets.iter().find(|secret| secret.name == *name);
                    let secret = secret.ok_or_else(|| unusable(name, "it is not declared"))?;
                    value.push_str(&self.value(secret)?);
                }
            }
        }
        let made = HeaderName::from_bytes(send.header.as_bytes())
            .ok()
            .zip(HeaderValue::from_str(&value).ok());
        let (name, mut value) =
            made.ok_or_else(|| unusable(&send.header, "no header can hold it"))?;
        value.set_sensitive(true);
        Ok((name, value))
    }

    fn value(&self, secret: &Secret) -> Result<String, Refusal> {
        let refused = |why: &str| unusable(&secret.name, why);
        let raw = match &secret.source {
            SecretSource::Env(name) => self
                .environment
                .get(name)
                .ok_or_else(|| refused(&format!("the variable {name} is not set")))?
                .into_string()
                .map_err(|_| refused("it is no text"))?,
            SecretSource::File(path) => read(Path::new(path)).map_err(|why| refused(&why))?,
        };
        let value = raw.trim_end_matches(['\r', '\n']);
        if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err(refused("it holds characters that no header can hold"));
        }
        if value.trim() != value {
            return Err(refused("it begins or ends with a space"));
        }
        if !self.redactor.learn(value) {
            let why = format!(
                "it is shorter than {SHORTEST} characters, or too long, to be kept out of answers"
            );
            return Err(refused(&why));
        }
        Ok(value.to_owned())
    }
}

/// Never with the value.
fn unusable(name: &str, why: &str) -> Refusal {
    Refusal::new(Code::AccessDenied, format!("the secret `{name}` cannot be sent: {why}"))
        .hint("whoever owns the policy has to provide it")
}

fn read(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    // Opening a pipe would wait for who writes to it; what was opened is asked what it is.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(format!("{} is no regular file", path.display()));
    }
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_policy::net::Template;

    fn environment() -> Environment {
        Environment::from_iter([
            ("GOOD", "canary-canary"),
            ("SHORT", "abc"),
            ("LINES", "canary\r\nHost: evil.example"),
            ("SPACE", " canary-canary"),
        ])
    }

    fn render(template: &str, source: SecretSource) -> Result<String, Refusal> {
        let send = Send {
            header: "x-key".to_owned(),
            template: Template::parse(template).unwrap(),
            secrets: vec![Secret { name: "A".to_owned(), source }],
        };
        let redactor = Redactor::new();
        let made = Secrets::new(redactor.clone(), environment()).render(&[send])?;
        assert!(redactor.has_learned());
        Ok(made[0].1.to_str().unwrap().to_owned())
    }

    #[test]
    fn values_are_read_where_the_policy_says() {
        let from = |name: &str| SecretSource::Env(name.to_owned());
        assert_eq!(render("Bearer ${secret:A}", from("GOOD")).unwrap(), "Bearer canary-canary");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "canary-in-a-file\n").unwrap();
        let file = |path: &Path| SecretSource::File(path.to_str().unwrap().to_owned());
        assert_eq!(render("${secret:A}", file(&path)).unwrap(), "canary-in-a-file");
        std::fs::write(&path, "x".repeat(9000)).unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        for source in [
            from("NONE"),
            from("SHORT"),
            from("LINES"),
            from("SPACE"),
            file(&path),
            file(folder.path()),
            file(&pipe),
        ] {
            let refusal = render("${secret:A}", source.clone()).unwrap_err();
            assert_eq!(refusal.code, Code::AccessDenied);
            assert!(
                !refusal.message.contains("canary") && !refusal.message.contains("xxx"),
                "{source}"
            );
        }
    }
}
