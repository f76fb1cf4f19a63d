//! The steps of a fetch, in order; after a redirection from the decision on.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::Response;
use hyper::body::{Bytes, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use jiff::Timestamp;
use runner_policy::net::Terms;
use runner_policy::{Decision, Effective, Query, Verdict, What, decide};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::count::Counts;
use super::exchange::{Driver, Outgoing, exchange};
use super::headers::{self, Headers};
use super::redirect::{self, Method};
use super::reply::{Reply, too_large, too_late};
use super::resolve::{Resolve, System};
use super::secrets::Secrets;
use super::tls::Roots;
use super::url::{Scheme, Url};
use super::{dial, limits};
use crate::audit::Redactor;
use crate::broker::{Body, Boxed, FetchRequest, Fetched, Net, Redirect, Refusal};
use crate::codes::Code;
use crate::environment::Environment;

/// A request that a rule wants to be asked about.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The HTTP method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// The headers that the tool sets, by name; those of one name in their order.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Option<Sent>,
    /// What the policy says.
    pub decision: Decision,
}

/// The body of a request, as far as a question is about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// How many bytes.
    pub bytes: usize,
    /// Their BLAKE3 digest, in hexadecimal.
    pub digest: String,
}

impl Sent {
    fn of(body: &Bytes) -> Self {
        Self { bytes: body.len(), digest: blake3::hash(body).to_hex().to_string() }
    }
}

/// Who approves requests of `ask` rules.
pub trait NetApproval: Send + Sync {
    /// Whether the request may be made; it may wait for a person.
    fn approve(&self, asked: Asked) -> Boxed<'_, Result<(), Refusal>>;
}

/// Nobody is there to ask.
#[derive(Debug, Clone, Copy)]
pub struct NoneApproved;

impl NetApproval for NoneApproved {
    fn approve(&self, asked: Asked) -> Boxed<'_, Result<(), Refusal>> {
        let refusal = Refusal::of_decision(Code::ApprovalNeeded, &asked.decision);
        Box::pin(async { Err(refusal) })
    }
}

/// Whoever started the call approved everything that rules ask about.
#[derive(Debug, Clone, Copy)]
pub struct AllApproved;

impl NetApproval for AllApproved {
    fn approve(&self, _: Asked) -> Boxed<'_, Result<(), Refusal>> {
        Box::pin(async { Ok(()) })
    }
}

/// Reaches the net for one call.
pub struct Fetcher {
    policy: Arc<Effective>,
    redactor: Redactor,
    approval: Arc<dyn NetApproval>,
    counts: Counts,
    at_once: Arc<Semaphore>,
    pub(super) resolver: Box<dyn Resolve>,
    pub(super) roots: Roots,
    pub(super) environment: Environment,
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("policy", &self.policy.name()).finish_non_exhaustive()
    }
}

impl Fetcher {
    /// For one call: counts are the call's own. `policy` is already within the tool's permissions. The redactor
    /// learns every secret before it is sent; whoever logs or records for this call uses a clone of it.
    #[must_use]
    pub fn new(
        policy: Arc<Effective>,
        redactor: Redactor,
        approval: Arc<dyn NetApproval>,
        environment: Environment,
    ) -> Self {
        Self {
            policy,
            redactor,
            approval,
            counts: Counts::default(),
            at_once: Arc::new(Semaphore::new(limits::AT_ONCE)),
            resolver: Box::new(System),
            roots: Roots::System,
            environment,
        }
    }
}

impl Net for Fetcher {
    fn fetch(&self, request: FetchRequest) -> Boxed<'_, Result<Fetched, Refusal>> {
        Box::pin(async move {
            self.run(request).await.map_err(|mut refusal| {
                // A peer may repeat a secret in what our messages quote.
                refusal.message = self.redactor.values(&refusal.message).into_owned();
                refusal
            })
        })
    }
}

/// A request on its way, hop by hop.
struct Way {
    method: String,
    url: Url,
    headers: Headers,
    body: Option<Bytes>,
    hops: usize,
}

impl Fetcher {
    async fn run(&self, request: FetchRequest) -> Result<Fetched, Refusal> {
        let FetchRequest { method, url, headers, timeout, redirect, body } = request;
        let method = checked_method(&method, body.is_some())?;
        let invalid = |why: &str| Refusal::new(Code::InvalidArgument, why.to_owned());
        let url = Url::parse(&url).map_err(|why| invalid(why.0))?;
        let headers = headers::checked(&headers)?;
        let mut way = Way { method, url, headers, body: None, hops: 0 };
        let (mut body, mut permit) = (body, None);
        let ending = |_| Refusal::new(Code::Cancelled, "the call is ending");
        let decision = self.judged(&way)?;
        if decision.decision == Verdict::Ask {
            // Who is asked is asked about the body too, so it comes first: bounded as below, and a tool that sends
            // it slowly holds a place that is its own.
            if let Some(body) = body.take() {
                permit = Some(Arc::clone(&self.at_once).acquire_owned().await.map_err(ending)?);
                way.body = Some(collect(body).await?);
            }
        }
        let mut terms = self.approved(&way, decision).await?;
        headers::goes_with(&way.headers, &terms.send)?;
        let mut started = Instant::now();
        let mut deadline = started + timeout.unwrap_or(Duration::MAX).min(limit_of(&terms));
        let late = |way: &Way| too_late(&way.url.authority());
        let permit = match permit {
            Some(permit) => permit,
            None => timeout_at(deadline, Arc::clone(&self.at_once).acquire_owned())
                .await
                .map_err(|_| late(&way))?
                .map_err(ending)?,
        };
        if let Some(body) = body {
            let bytes = timeout_at(deadline, collect(body)).await.map_err(|_| late(&way))??;
            way.body = Some(bytes);
        }
        loop {
            self.counts.charge(&terms.counts)?;
            let (answer, driver) =
                timeout_at(deadline, self.hop(&way, &terms)).await.map_err(|_| late(&way))??;
            let leads = redirect::of(answer.status(), answer.headers(), &way.method);
            let Some((location, becomes)) = leads.filter(|_| redirect != Redirect::Manual) else {
                return self.answered(way, answer, driver, permit, &terms, deadline);
            };
            drop(driver);
            let from = way.url.authority();
            let wrong = |why: &str| {
                Refusal::new(
                    Code::NetRedirect,
                    format!("the answer of {from} leads elsewhere: {why}"),
                )
            };
            if redirect == Redirect::Error {
                return Err(wrong("the tool does not want that"));
            }
            if way.hops >= limits::REDIRECTS {
                return Err(wrong("too often"));
            }
            let next = way.url.join(&location).map_err(|why| wrong(why.0))?;
            if !next.same_origin(&way.url) {
                headers::keep_harmless(&mut way.headers);
            }
            if becomes == Method::Get {
                "GET".clone_into(&mut way.method);
                way.body = None;
                headers::drop_body(&mut way.headers);
            }
            way.url = next;
            way.hops += 1;
            let decision = self.judged(&way)?;
            let send = decision.terms.as_ref().map_or(&[][..], |terms| &terms.send);
            if headers::goes_with(&way.headers, send).is_err() {
                // What the policy sends to the new place counts; parts of an answer do not go with it.
                way.headers.retain(|(name, _)| {
                    let sent = send.iter().any(|send| send.header == name.as_str());
                    !sent && name != "range" && name != "if-range"
                });
            }
            let asked = Instant::now();
            terms = self.approved(&way, decision).await?;
            // A person who was asked takes none of the request's time.
            started += asked.elapsed();
            deadline += asked.elapsed();
            deadline = deadline.min(started + limit_of(&terms));
        }
    }

    /// What the policy says of a hop, unless it refuses it.
    fn judged(&self, way: &Way) -> Result<Decision, Refusal> {
        let what = format!("{} {}", way.method, way.url.text());
        let query =
            Query { workspace: "/", cwd: "/", now: Timestamp::now(), what: What::Net(&what) };
        let decision = decide(&self.policy, &query);
        let refused = |code| Err(Refusal::of_decision(code, &decision));
        match (decision.decision, &decision.terms) {
            (Verdict::Allow | Verdict::Ask, Some(_)) => Ok(decision),
            _ if decision.code == runner_policy::Code::NetAddress => refused(Code::NetAddress),
            _ if way.hops > 0 => refused(Code::NetRedirect),
            _ => refused(Code::NetDenied),
        }
    }

    /// The terms of a hop; asked about where a rule wants that.
    async fn approved(&self, way: &Way, decision: Decision) -> Result<Terms, Refusal> {
        if decision.decision == Verdict::Ask {
            let asked = Asked {
                method: way.method.clone(),
                url: way.url.text(),
                headers: headers::told(&way.headers),
                body: way.body.as_ref().map(Sent::of),
                decision: decision.clone(),
            };
            self.approval.approve(asked).await.map_err(|mut refusal| {
                refusal.rule = decision.rule.clone().map(Box::new);
                refusal
            })?;
        }
        let denied = Refusal::of_decision(Code::NetDenied, &decision);
        decision.terms.ok_or(denied)
    }

    /// One request: resolve, check, dial, send.
    async fn hop(&self, way: &Way, terms: &Terms) -> Result<(Response<Incoming>, Driver), Refusal> {
        let odd = || Refusal::new(Code::InvalidArgument, "the URL cannot be read");
        let target = way.url.target(&way.method).ok_or_else(odd)?;
        let checked =
            dial::check(&self.policy, self.resolver.as_ref(), &way.url, &target, terms).await?;
        let secrets = Secrets::new(self.redactor.clone(), self.environment.clone());
        let added = secrets.headers(&terms.send).await?;
        let stream = checked.connect(&way.url).await?;
        let outgoing = Outgoing {
            method: &way.method,
            url: &way.url,
            headers: &way.headers,
            added: &added,
            body: way.body.clone(),
        };
        match way.url.scheme {
            Scheme::Http => exchange(stream, outgoing).await,
            Scheme::Https => {
                exchange(self.roots.handshake(&way.url, stream).await?, outgoing).await
            }
        }
    }

    /// The answer for the tool, without secrets.
    fn answered(
        &self,
        way: Way,
        answer: Response<Incoming>,
        driver: Driver,
        permit: OwnedSemaphorePermit,
        terms: &Terms,
        deadline: Instant,
    ) -> Result<Fetched, Refusal> {
        let from = way.url.authority();
        let (parts, body) = answer.into_parts();
        let encoded = parts
            .headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .any(|value| !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity"));
        if encoded && self.redactor.has_learned() {
            let message =
                format!("{from} answers encoded, unasked, where secrets could not be found");
            return Err(Refusal::new(Code::NetProtocol, message));
        }
        let announced = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let announced = announced.and_then(|text| text.parse::<u64>().ok());
        if way.method != "HEAD" && announced.is_some_and(|announced| announced > terms.size) {
            return Err(too_large(&from, terms.size));
        }
        let clean = |text: &str| self.redactor.values(text).into_owned();
        let reason = parts.extensions.get::<ReasonPhrase>().map(ReasonPhrase::as_bytes);
        let reason = reason.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let canonical = parts.status.canonical_reason().unwrap_or_default();
        Ok(Fetched {
            status: parts.status.as_u16(),
            status_text: clean(reason.as_deref().unwrap_or(canonical)),
            url: clean(&way.url.text()),
            // A mask has another length than what it stands for: the announced one would be wrong.
            headers: headers::shown(&parts.headers)
                .filter(|(name, _)| {
                    *name != "content-length"
                        || way.method == "HEAD"
                        || !self.redactor.has_learned()
                })
                .map(|(name, value)| (clean(name), clean(&value)))
                .collect(),
            redirected: way.hops > 0,
            body: Body::new(Reply {
                body,
                scrubber: self.redactor.stream(),
                left: terms.size,
                size: terms.size,
                deadline,
                from,
                done: false,
                _driver: driver,
                _permit: permit,
            }),
        })
    }
}

fn limit_of(terms: &Terms) -> Duration {
    Duration::from_millis(terms.time)
}

/// Methods as the fetch standard writes them; those that would make a tunnel or an echo are refused.
fn checked_method(method: &str, has_body: bool) -> Result<String, Refusal> {
    let invalid = |why: &str| Err(Refusal::new(Code::InvalidArgument, why.to_owned()));
    let upper = method.to_ascii_uppercase();
    if upper.is_empty() || upper.len() > 32 || !upper.bytes().all(|byte| byte.is_ascii_uppercase())
    {
        return invalid("the method is no word of letters");
    }
    if ["CONNECT", "TRACE", "TRACK"].contains(&upper.as_str()) {
        return invalid("CONNECT, TRACE and TRACK are not offered");
    }
    if has_body && ["GET", "HEAD"].contains(&upper.as_str()) {
        return invalid("GET and HEAD have no body");
    }
    Ok(upper)
}

/// A request as rules and questions name it: method and URL, spelled in one way.
///
/// # Errors
/// It cannot be made.
pub(crate) fn spelled(method: &str, url: &str) -> Result<String, Refusal> {
    let url = Url::parse(url).map_err(|why| Refusal::new(Code::InvalidArgument, why.0))?;
    Ok(format!("{} {}", checked_method(method, false)?, url.text()))
}

/// The whole body of a request.
async fn collect(mut body: Body) -> Result<Bytes, Refusal> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await? {
        if bytes.len() + piece.len() > limits::BODY {
            let message = "the body of the request is larger than 16MiB";
            return Err(Refusal::new(Code::TooLarge, message));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Bytes::from(bytes))
}
