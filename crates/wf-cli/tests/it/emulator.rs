//! The emulator of DynamoDB that `cargo xtask aws` starts: where it is, and a request that goes past the binary.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

/// Where it is.
pub(crate) fn endpoint() -> String {
    std::env::var("WF_AWS_ENDPOINT").expect("WF_AWS_ENDPOINT: run with `cargo xtask aws`")
}

/// One request to it; it looks at no signature. None when it does not answer.
pub(crate) fn ask(operation: &str, body: &Value) -> Option<Value> {
    let endpoint = endpoint();
    let host = endpoint.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).ok()?;
    let body = body.to_string();
    let request = format!(
        "POST / HTTP/1.1\r\nhost: {host}\r\nx-amz-target: DynamoDB_20120810.{operation}\r\n\
         content-type: application/x-amz-json-1.0\r\nauthorization: AWS4-HMAC-SHA256 \
         Credential=emulator/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    serde_json::from_str(body.trim()).ok()
}
