//! The floor of HTTP: a bare hyper server that reads a request and answers with a body of the size of a real answer.
//! Runs as a process of its own, on a runtime like that of the product.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::run::say;
use crate::fault::Fault;

/// Serves until it is killed. Every request is answered with this body.
///
/// # Errors
/// When it cannot listen.
pub fn serve(answer: Bytes) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Fault::io("starting the runtime"))?;
    runtime.block_on(accept(answer))
}

async fn accept(answer: Bytes) -> Result<(), Fault> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(Fault::io("listening"))?;
    let address = listener.local_addr().map_err(Fault::io("listening"))?;
    say(&format!("http://{address}/mcp"));
    loop {
        let (stream, _) = listener.accept().await.map_err(Fault::io("accepting"))?;
        stream.set_nodelay(true).map_err(Fault::io("accepting"))?;
        let answer = answer.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| respond(request, answer.clone()));
            // A caller that goes away is no fault.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn respond(
    request: Request<Incoming>,
    answer: Bytes,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let whole = request.into_body().collect().await;
    let mut response = Response::new(Full::new(answer));
    if whole.is_err() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
