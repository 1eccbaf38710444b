//! What a request may weigh. Too large a head is hyper's 431 (`accept` sets the bound); here: bodies that say
//! beforehand that they are too large, and bodies that would grow when unpacked. `front` stops the others while reading.

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};

use super::{Around, Inner, proceed};
use crate::exchange::{Request, Response};
use crate::fault::Fault;

/// Bounds of everything inside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) max_body_bytes: usize,
}

impl Limits {
    fn check(self, request: &Request) -> Result<(), Fault> {
        let headers = request.headers();
        let coded = headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
        if coded {
            return Err(Fault::ContentEncoding);
        }
        // hyper has checked that the header is one number.
        let length = headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok());
        let limit = self.max_body_bytes;
        if length.is_some_and(|length| usize::try_from(length).map_or(true, |n| n > limit)) {
            return Err(Fault::BodyTooLarge { limit });
        }
        Ok(())
    }
}

impl Around for Limits {
    async fn around<S: Inner>(self, request: Request, next: S) -> Response {
        match self.check(&request) {
            Ok(()) => proceed(next, request).await,
            Err(fault) => fault.into_response(),
        }
    }
}
