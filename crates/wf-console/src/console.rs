//! The way of a request: what it asks, who asks, whether a page of ours sent it, and which page answers.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderValue, SET_COOKIE};
use http::{Method, Request, Response, StatusCode};
use wf_core::engine::{CallMeta, Engine};
use wf_core::errors::ErrorCode;
use wf_core::models::{Principal, WorkflowId};
use wf_core::ports::{ClockPort, IdPort};
use wf_core::state_machine::Rejection;

use crate::act;
use crate::answer;
use crate::door::{Door, Turned};
use crate::notices::Notices;
use crate::pages::{self, Frame, Problem, sign_in};
use crate::request::{self, ROOT, Route, SESSION, Sender};
use crate::sessions::Sessions;
use crate::throttle::Throttle;
use crate::times::Times;

/// What a console is made of.
#[derive(Debug)]
pub struct ConsoleParts {
    /// Answers and acts.
    pub engine: Arc<Engine>,
    /// Says who a token is.
    pub door: Arc<dyn Door>,
    /// Wall clock.
    pub clock: Arc<dyn ClockPort>,
    /// Randomness, for sessions, forms and keys.
    pub ids: Arc<dyn IdPort>,
    /// IANA time zone of the times on the pages.
    pub timezone: String,
}

/// The console. Shared by all requests.
#[derive(Debug)]
pub struct Console {
    pub(crate) engine: Arc<Engine>,
    door: Arc<dyn Door>,
    clock: Arc<dyn ClockPort>,
    pub(crate) ids: Arc<dyn IdPort>,
    timezone: String,
    sessions: Sessions,
    throttle: Throttle,
    pub(crate) notices: Notices,
    /// What forms carry where nobody signs in.
    form_token: String,
}

/// Who asks.
#[derive(Debug)]
pub(crate) struct Visitor {
    pub(crate) principal: Arc<Principal>,
    /// What their forms carry.
    pub(crate) form_token: String,
    /// They signed in, so they can sign out.
    pub(crate) signed_in: bool,
}

impl Console {
    /// A console without sessions yet.
    #[must_use]
    pub fn new(parts: ConsoleParts) -> Self {
        let ConsoleParts { engine, door, clock, ids, timezone } = parts;
        let form_token = ids.random_hex();
        let (sessions, throttle) = (Sessions::default(), Throttle::default());
        let notices = Notices::default();
        Self { engine, door, clock, ids, timezone, sessions, throttle, notices, form_token }
    }

    /// Answers a request of the client at this address. Never fails: what goes wrong is a page too.
    pub async fn answer(&self, request: Request<Bytes>, client: IpAddr) -> Response<Bytes> {
        let times = Times::new(&self.timezone, self.clock.now());
        let Some(route) = Route::of(request.uri().path()) else {
            return pages::problem(&times, Problem::NoPage);
        };
        let (acts, reads) = (
            request.method() == Method::POST,
            request.method() == Method::GET || request.method() == Method::HEAD,
        );
        let allow = route.allow();
        if !(acts && allow.contains("POST") || reads && allow.contains("GET")) {
            return answer::method_not_allowed(allow);
        }
        match route {
            Route::Entry => return answer::see_other(ROOT),
            Route::Style => return answer::style(),
            Route::SignIn if reads => return self.sign_in_page(&request, &times),
            Route::SignIn => return self.sign_in(&request, client, &times).await,
            Route::SignOut
            | Route::Overview
            | Route::Assets
            | Route::Messages
            | Route::Workflow(_)
            | Route::Evidence(_)
            | Route::Resolve(_)
            | Route::Release(_) => {}
        }
        let visitor = match self.visitor(&request).await {
            Ok(visitor) => visitor,
            Err(Turned::Unavailable) => return pages::problem(&times, Problem::Unavailable),
            Err(Turned::Unknown | Turned::Service) if acts => {
                return pages::problem(&times, Problem::SignedOut);
            }
            Err(Turned::Unknown | Turned::Service) => {
                let place = request.uri().path_and_query().map_or(ROOT, |place| place.as_str());
                return self.to_sign_in(&request, place);
            }
        };
        if acts {
            self.act(route, &request, &visitor, &times).await
        } else {
            self.show(route, &request, &visitor, times).await
        }
    }

    async fn visitor(&self, request: &Request<Bytes>) -> Result<Visitor, Turned> {
        if let Some(principal) = self.door.open_to() {
            let form_token = self.form_token.clone();
            return Ok(Visitor { principal, form_token, signed_in: false });
        }
        let id = request::session(request.headers()).ok_or(Turned::Unknown)?;
        let session = self.sessions.find(id, self.clock.now()).ok_or(Turned::Unknown)?;
        match self.door.recognise(&session.token).await {
            Ok(principal) => {
                Ok(Visitor { principal, form_token: session.form_token, signed_in: true })
            }
            Err(Turned::Unavailable) => Err(Turned::Unavailable),
            Err(turned) => {
                // It counts no more, so neither does the session.
                self.sessions.close(id);
                Err(turned)
            }
        }
    }

    fn to_sign_in(&self, request: &Request<Bytes>, place: &str) -> Response<Bytes> {
        let next = request::onward(Some(place));
        let next = if next == ROOT { "" } else { next.as_str() };
        let why = if request::session(request.headers()).is_some() { "over" } else { "" };
        answer::see_other(&request::link(SIGN_IN, &[("why", why), ("next", next)]))
    }

    fn sign_in_page(&self, request: &Request<Bytes>, times: &Times) -> Response<Bytes> {
        if self.door.open_to().is_some() {
            return answer::see_other(ROOT);
        }
        let query = request::query(request.uri());
        let say = match query.get("why") {
            Some("over") => Some(sign_in::Say::Over),
            Some("out") => Some(sign_in::Say::Out),
            Some(_) | None => None,
        };
        let next = request::onward(query.get("next"));
        answer::page(StatusCode::OK, sign_in::page(times, say, &next))
    }

    async fn sign_in(
        &self,
        request: &Request<Bytes>,
        client: IpAddr,
        times: &Times,
    ) -> Response<Bytes> {
        let Sender::Own { tls } = request::sender(request.headers()) else {
            return pages::problem(times, Problem::Foreign);
        };
        let form = request::form(request);
        let next = request::onward(form.get("next"));
        let turned = |status, say| answer::page(status, sign_in::page(times, Some(say), &next));
        if let Err(seconds) = self.throttle.may_try(client, times.now) {
            let mut response = turned(StatusCode::TOO_MANY_REQUESTS, sign_in::Say::TooOften);
            answer::retry_after(&mut response, seconds);
            return response;
        }
        let token = form.get("token").unwrap_or_default().trim();
        let token = token.strip_prefix("Bearer ").unwrap_or(token).trim();
        if token.is_empty() {
            return turned(StatusCode::UNPROCESSABLE_ENTITY, sign_in::Say::Nothing);
        }
        let principal = match self.door.recognise(token).await {
            Ok(principal) => principal,
            Err(why) => {
                let (status, say) = match why {
                    Turned::Unknown => (StatusCode::UNAUTHORIZED, sign_in::Say::Unknown),
                    Turned::Service => (StatusCode::FORBIDDEN, sign_in::Say::Service),
                    Turned::Unavailable => {
                        (StatusCode::SERVICE_UNAVAILABLE, sign_in::Say::Unavailable)
                    }
                };
                if why != Turned::Unavailable {
                    self.throttle.failed(client, times.now);
                }
                tracing::info!(%client, reason = %why, "nobody was signed in to the console");
                return turned(status, say);
            }
        };
        if !principal.scopes.may_read() {
            return turned(StatusCode::FORBIDDEN, sign_in::Say::MayNotRead);
        }
        let tenant = principal.tenant.as_str();
        tracing::info!(%client, tenant, "somebody signed in to the console");
        // A session that was there is somebody's who is gone.
        if let Some(id) = request::session(request.headers()) {
            self.sessions.close(id);
        }
        let id = self.sessions.open(token.to_owned(), times.now, self.ids.as_ref());
        let mut response = answer::see_other(&next);
        set_cookie(&mut response, &id, tls, "");
        response
    }

    async fn act(
        &self,
        route: Route,
        request: &Request<Bytes>,
        visitor: &Visitor,
        times: &Times,
    ) -> Response<Bytes> {
        let form = request::form(request);
        let Sender::Own { tls } = request::sender(request.headers()) else {
            return pages::problem(times, Problem::Foreign);
        };
        if !same(form.get("form_token").unwrap_or_default(), &visitor.form_token) {
            return pages::problem(times, Problem::Foreign);
        }
        match route {
            Route::SignOut => {
                if let Some(id) = request::session(request.headers()) {
                    self.sessions.close(id);
                }
                let mut response = answer::see_other(&request::link(SIGN_IN, &[("why", "out")]));
                set_cookie(&mut response, "", tls, "; Max-Age=0");
                response
            }
            Route::Resolve(id) => act::resolve(self, visitor, &id, &form, times).await,
            Route::Release(id) => act::release(self, visitor, &id, &form, times).await,
            Route::Entry
            | Route::Style
            | Route::SignIn
            | Route::Overview
            | Route::Assets
            | Route::Messages
            | Route::Workflow(_)
            | Route::Evidence(_) => answer::method_not_allowed(route.allow()),
        }
    }

    async fn show(
        &self,
        route: Route,
        request: &Request<Bytes>,
        visitor: &Visitor,
        times: Times,
    ) -> Response<Bytes> {
        let query = request::query(request.uri());
        let notice = query.get("notice");
        let notice = notice.and_then(|id| self.notices.find(id, &visitor.principal));
        let frame = Frame { visitor, times, notice };
        let engine = self.engine.as_ref();
        let page = match route {
            Route::Overview => pages::overview::page(engine, &frame, &query).await,
            Route::Assets => pages::assets::page(engine, &frame, &query).await,
            Route::Messages => pages::messages::page(engine, &frame, &query).await,
            Route::Workflow(id) => {
                let key = format!("console_{}", self.ids.random_hex());
                pages::workflow::page(engine, &frame, &id, &query, &key).await
            }
            Route::Evidence(id) => {
                let evidence = engine.evidence(&visitor.principal, &id).await;
                return evidence.map_or_else(|no| refused(&frame, &no), |text| kept(&id, text));
            }
            Route::Entry
            | Route::Style
            | Route::SignIn
            | Route::SignOut
            | Route::Resolve(_)
            | Route::Release(_) => return pages::problem(&frame.times, Problem::NoPage),
        };
        match page {
            Ok(page) => {
                let mut response = answer::page(StatusCode::OK, page);
                if query.get("refresh") == Some(pages::REFRESH_S) {
                    answer::refreshing(&mut response, pages::REFRESH_S);
                }
                response
            }
            Err(rejection) => refused(&frame, &rejection),
        }
    }

    /// Language and revision of a call: the defaults of the server.
    pub(crate) fn meta() -> CallMeta {
        CallMeta::default()
    }
}

/// Where one signs in.
const SIGN_IN: &str = "/console/sign-in";

fn kept(id: &WorkflowId, mut text: String) -> Response<Bytes> {
    // As `wf-cli workflow evidence` prints it: with the end of its line.
    text.push('\n');
    answer::file(&format!("evidence-{id}.json"), text)
}

/// The page for what the engine refuses to show.
fn refused(frame: &Frame<'_>, rejection: &Rejection) -> Response<Bytes> {
    let status = match rejection.code {
        ErrorCode::WorkflowNotFound | ErrorCode::ProcedureNotFound => StatusCode::NOT_FOUND,
        ErrorCode::NotAllowed => StatusCode::FORBIDDEN,
        ErrorCode::BackendUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorCode::AssetLocked
        | ErrorCode::LimitExceeded
        | ErrorCode::VersionConflict
        | ErrorCode::InvalidTransition
        | ErrorCode::StepNotOpen
        | ErrorCode::IdempotencyConflict
        | ErrorCode::DecisionNotAllowed
        | ErrorCode::StepAlreadyRecorded
        | ErrorCode::LockLost
        | ErrorCode::ValidationError
        | ErrorCode::ImplausibleValue
        | ErrorCode::UnitMismatch
        | ErrorCode::TooEarly
        | ErrorCode::ReasonRequired => StatusCode::UNPROCESSABLE_ENTITY,
    };
    answer::page(status, pages::refused(frame, rejection))
}

/// The cookie: not for scripts, not from other sites, only to the console; over TLS never without it (RFC 6265bis).
fn set_cookie(response: &mut Response<Bytes>, id: &str, tls: bool, more: &str) {
    let secure = if tls { "; Secure" } else { "" };
    let cookie = format!("{SESSION}={id}; Path={ROOT}; HttpOnly; SameSite=Strict{secure}{more}");
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
}

/// Whether two tokens are one, in a time that does not tell where they differ.
fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}
