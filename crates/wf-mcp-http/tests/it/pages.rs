//! The seam for a console: where its pages are, what reaches them, and by which names.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use wf_mcp_http::{HttpConfig, Pages, Server};

use crate::client::{Answer, Client};
use crate::world::{Shelf, World, configured};

/// Shows what it was asked, and remembers by whom.
#[derive(Debug, Default)]
struct Mirror(Mutex<Vec<IpAddr>>);

#[async_trait]
impl Pages for Mirror {
    async fn answer(&self, request: http::Request<Bytes>, client: IpAddr) -> http::Response<Bytes> {
        self.0.lock().expect("nobody panicked").push(client);
        assert_ne!(request.uri().path(), "/console/bug", "a bug");
        let said = format!("{} {} {}", request.method(), request.uri(), request.body().len());
        let mut response = http::Response::new(Bytes::from(said));
        response.headers_mut().insert("cache-control", "private".parse().expect("a value"));
        response
    }
}

/// A server with pages at an operator's address, which may be one that is not loopback.
async fn served(address: [u8; 4], change: impl FnOnce(&mut HttpConfig)) -> (World, Arc<Mirror>) {
    let mirror = Arc::new(Mirror::default());
    let store = Arc::new(Shelf::default());
    let engine = Arc::new(crate::world::engine(store.port()).await);
    let config = configured(|config| {
        config.admin_listen = Some((address, 0).into());
        change(config);
    });
    let builder =
        Server::builder(config).engine(engine).pages(Arc::clone(&mirror) as Arc<dyn Pages>);
    (World::of(store, builder).await, mirror)
}

fn admin(world: &World) -> Client {
    let address = world.admin.expect("an address");
    Client::new(SocketAddr::from(([127, 0, 0, 1], address.port())))
}

async fn to(client: &Client, host: &str) -> Answer {
    let head = format!("GET /console HTTP/1.1\r\nhost: {host}\r\n\r\n");
    client.raw(head.as_bytes()).await
}

#[tokio::test]
async fn pages_are_at_the_operators_address_and_nowhere_else() {
    let (world, mirror) = served([127, 0, 0, 1], |_| {}).await;
    let client = admin(&world);
    for (path, said) in [("/", "GET / 0"), ("/console/a?b=c", "GET /console/a?b=c 0")] {
        let answer = client.ask("GET", path, &[]).await;
        assert_eq!((answer.status, answer.body.as_slice()), (200, said.as_bytes()), "{path}");
        assert_eq!(answer.header("cache-control"), Some("private"), "the page's own");
    }
    assert_eq!(client.ask("GET", "/consoles", &[]).await.status, 404);
    assert_eq!(client.ask("GET", "/console/bug", &[]).await.status, 500);
    assert_eq!(client.ask("GET", "/readyz", &[]).await.status, 200, "as before");
    for path in ["/", "/console"] {
        assert_eq!(world.client().ask("GET", path, &[]).await.status, 404, "{path}");
    }
    assert_eq!(*mirror.0.lock().expect("free"), [IpAddr::from([127, 0, 0, 1]); 3]);
    // Without pages there are none.
    let plain = World::with(|config| config.admin_listen = Some(([127, 0, 0, 1], 0).into())).await;
    assert_eq!(admin(&plain).ask("GET", "/console", &[]).await.status, 404);
}

#[tokio::test]
async fn pages_are_asked_by_known_names_only_even_where_machines_ask_by_any() {
    let allow = |config: &mut HttpConfig| config.allowed_hosts = vec!["ops.example".to_owned()];
    let (world, mirror) = served([0, 0, 0, 0], allow).await;
    let client = admin(&world);
    for host in ["localhost", "127.0.0.1:9", "ops.example:8443"] {
        assert_eq!(to(&client, host).await.status, 200, "{host}");
    }
    for host in ["evil.example", "ops.example.evil.example", "10.0.0.1"] {
        assert_eq!(to(&client, host).await.status, 403, "{host}");
    }
    let ready = b"GET /readyz HTTP/1.1\r\nhost: evil.example\r\n\r\n";
    assert_eq!(client.raw(ready).await.status, 200, "probes ask by any name");
    assert_eq!(mirror.0.lock().expect("free").len(), 3, "nothing else reached a page");
}

#[tokio::test]
async fn forms_are_bounded_and_no_other_page_may_read_an_answer() {
    let (world, mirror) = served([127, 0, 0, 1], |_| {}).await;
    let client = admin(&world);
    let post = |length: usize, body: usize| {
        let head = format!(
            "POST /console HTTP/1.1\r\nhost: localhost\r\norigin: http://evil.example\r\ncontent-length: {length}\r\n\r\n"
        );
        [head.into_bytes(), vec![b'x'; body]].concat()
    };
    let fits = client.raw(&post(32 * 1024, 32 * 1024)).await;
    assert_eq!((fits.status, fits.body.as_slice()), (200, b"POST /console 32768".as_slice()));
    // Whose form it is is the console's to judge; no page elsewhere is let read the answer.
    assert_eq!(fits.header("access-control-allow-origin"), None);
    assert_eq!(client.raw(&post(32 * 1024 + 1, 32 * 1024 + 1)).await.status, 413);
    assert_eq!(mirror.0.lock().expect("free").len(), 1);
}
