//! Fetchers with policies, names and secrets of their own.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use runner_policy::{Effective, Origin, PolicySet, Source, parse};

use super::super::fetch::{AllApproved, Fetcher, NetApproval, NoneApproved};
use super::super::resolve::Resolve;
use crate::audit::Redactor;
use crate::broker::{Body, Boxed, FetchRequest, Fetched, Net, Redirect, Refusal};
use crate::codes::Code;
use crate::environment::Environment;

/// The secret of these tests.
pub const CANARY: &str = "c4n4ry/v+lue-0123456789";

pub fn environment() -> Environment {
    Environment::from_iter([("CANARY", CANARY)])
}

/// Names and what each question about one is answered with; the last answer stays.
#[derive(Clone, Default)]
pub struct Names(Arc<Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>>, Arc<Mutex<Vec<String>>>);

impl Names {
    pub fn of(names: &[(&str, &[&[&str]])]) -> Self {
        let map = names.iter().map(|(name, answers)| {
            let parsed = answers.iter().map(|all| all.iter().map(|a| a.parse().unwrap()).collect());
            ((*name).to_owned(), parsed.collect())
        });
        Self(Arc::new(Mutex::new(map.collect())), Arc::default())
    }

    pub fn asked(&self) -> Vec<String> {
        self.1.lock().unwrap().clone()
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> Boxed<'a, io::Result<Vec<IpAddr>>> {
        self.1.lock().unwrap().push(name.to_owned());
        let mut names = self.0.lock().unwrap();
        let found = names.get_mut(name).and_then(|answers| {
            if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
        });
        Box::pin(async move { found.ok_or_else(|| io::Error::other("no such name")) })
    }
}

pub fn policy(rules: &str) -> Arc<Effective> {
    let text = format!("policy: 1\nname: p\nsecrets: {{ CANARY: \"env:CANARY\" }}\nnet:\n{rules}");
    let source = Source { file: "p.yml", text: &text, origin: Origin::User };
    let mut set = PolicySet::default();
    set.add(parse(source).unwrap_or_else(|findings| panic!("{findings:?}\n{text}"))).unwrap();
    Arc::new(set.effective("p").unwrap())
}

fn loopback() -> Names {
    let here: &[&[&str]] = &[&["127.0.0.1"]];
    Names::of(&[("a.test", here), ("b.test", here), ("c.test", here)])
}

/// A fetcher of these rules; `.test` names lead to loopback.
pub fn fetcher(rules: &str) -> Fetcher {
    with(rules, loopback(), Arc::new(NoneApproved), Redactor::new())
}

/// The same, with someone who approves everything.
pub fn approved(rules: &str) -> Fetcher {
    with(rules, loopback(), Arc::new(AllApproved), Redactor::new())
}

pub fn with(
    rules: &str,
    names: Names,
    approval: Arc<dyn NetApproval>,
    redactor: Redactor,
) -> Fetcher {
    let mut fetcher = Fetcher::new(policy(rules), redactor, approval, environment());
    fetcher.resolver = Box::new(names);
    fetcher
}

pub fn request(method: &str, url: &str) -> FetchRequest {
    FetchRequest {
        method: method.to_owned(),
        url: url.to_owned(),
        headers: Vec::new(),
        timeout: None,
        redirect: Redirect::Follow,
        body: None,
    }
}

pub fn header(mut request: FetchRequest, name: &str, value: &str) -> FetchRequest {
    request.headers.push((name.to_owned(), value.to_owned()));
    request
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Whole {
    pub head: Fetched,
    pub body: Vec<u8>,
}

impl Whole {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

pub async fn fetch(fetcher: &Fetcher, request: FetchRequest) -> Result<Whole, Refusal> {
    let mut head = fetcher.fetch(request).await?;
    let mut body = Vec::new();
    let mut stream = std::mem::replace(&mut head.body, Body::empty());
    while let Some(piece) = stream.next().await? {
        assert!(!piece.is_empty());
        body.extend(piece);
    }
    Ok(Whole { head, body })
}

pub async fn get(fetcher: &Fetcher, url: &str) -> Result<Whole, Refusal> {
    fetch(fetcher, request("GET", url)).await
}

pub async fn code(fetcher: &Fetcher, url: &str) -> Code {
    get(fetcher, url).await.map(|whole| whole.head.status).unwrap_err().code
}
