//! The layers around the server, one file each. `stack` puts them in order; nothing here knows the order.

pub(crate) mod deadlines;
pub(crate) mod hosts;
pub(crate) mod identity;
pub(crate) mod limits;
pub(crate) mod panics;
pub(crate) mod rate;
pub(crate) mod shedding;
pub(crate) mod trace;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tower::{Layer, Service};

use crate::exchange::{Request, Response};

/// The future of every service in the stack.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// What a layer may wrap: a service that always answers and is always ready.
pub(crate) trait Inner:
    Service<Request, Response = Response, Error = Infallible, Future = Answering>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<T> Inner for T where
    T: Service<Request, Response = Response, Error = Infallible, Future = Answering>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// One layer, as the function that it is: it answers itself, or lets `next` answer.
pub(crate) trait Around: Clone + Send + Sync + 'static {
    /// Answers `request`.
    fn around<S: Inner>(
        self,
        request: Request,
        next: S,
    ) -> impl Future<Output = Response> + Send + 'static;
}

/// Makes a tower layer of an [`Around`].
#[derive(Debug, Clone)]
pub(crate) struct Ring<A>(pub(crate) A);

impl<A: Clone, S> Layer<S> for Ring<A> {
    type Service = Wrapped<A, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped { around: self.0.clone(), inner }
    }
}

/// A service inside a layer.
#[derive(Debug, Clone)]
pub(crate) struct Wrapped<A, S> {
    around: A,
    inner: S,
}

impl<A: Around, S: Inner> Service<Request> for Wrapped<A, S> {
    type Response = Response;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Answering {
        let answer = self.around.clone().around(request, self.inner.clone());
        Box::pin(async move { Ok(answer.await) })
    }
}

/// Lets the next service answer.
pub(crate) async fn proceed<S: Inner>(mut next: S, request: Request) -> Response {
    match next.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
