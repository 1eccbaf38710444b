//! Where a token may be in a request, and what is said where it may not.

use super::forge::{good, head, without};
use crate::auth::check::Check;
use crate::auth::{Authenticator as _, Refusal};

async fn refusal(
    left_out: &'static [Check],
    uri: &str,
    headers: &[(&str, &str)],
) -> Option<Refusal> {
    without(left_out).authenticate(&head(uri, headers)).await.err()
}

#[tokio::test]
async fn what_is_no_bearer_token_is_unauthenticated() {
    let good = good();
    let in_query = format!("/mcp?access_token={good}");
    let bearer = format!("Bearer {good}");
    for (uri, headers) in [
        ("/mcp", &[][..]),
        (&in_query, &[]),
        ("/mcp", &[("x-authorization", bearer.as_str())]),
        ("/mcp", &[("proxy-authorization", &bearer)]),
        ("/mcp", &[("cookie", &format!("access_token={good}"))]),
        ("/mcp", &[("authorization", "")]),
        ("/mcp", &[("authorization", "Bearer")]),
        ("/mcp", &[("authorization", "Bearer ")]),
        ("/mcp", &[("authorization", &good)]),
        ("/mcp", &[("authorization", &format!("Basic {good}"))]),
        ("/mcp", &[("authorization", &format!("DPoP {good}"))]),
        ("/mcp", &[("authorization", &format!("Bearer\t{good}"))]),
        ("/mcp", &[("authorization", &format!("Bearer Bearer {good}"))]),
        ("/mcp", &[("authorization", &format!("Bearer {good}, Basic YTpi"))]),
        ("/mcp", &[("authorization", &format!("Basic YTpi, Bearer {good}"))]),
        ("/mcp", &[("authorization", &format!("Bearer \"{good}\""))]),
        ("/mcp", &[("authorization", &format!("Bearer {good} x"))]),
    ] {
        let answer = refusal(&[], uri, headers).await;
        assert_eq!(answer, Some(Refusal::Unauthenticated), "{uri} {headers:?}");
    }
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let value = format!("{scheme} {good}");
        assert_eq!(refusal(&[], "/mcp", &[("authorization", &value)]).await, None, "{scheme}");
    }
}

/// Each with the check that is left out for the control.
#[tokio::test]
async fn what_no_client_should_send_is_a_bad_request() {
    let good = good();
    let bearer = format!("Bearer {good}");
    let in_query = format!("/mcp?x=1&access_token={good}");
    let twice = [("authorization", bearer.as_str()), ("authorization", "Bearer evil")];
    let same = [("authorization", bearer.as_str()), ("Authorization", &bearer)];
    let schemes = [("authorization", bearer.as_str()), ("authorization", "Basic YTpi")];
    let one = [("authorization", bearer.as_str())];
    for (left_out, uri, headers) in [
        (&[Check::OneHeader][..], "/mcp", &twice[..]),
        (&[Check::OneHeader], "/mcp", &same),
        (&[Check::OneHeader], "/mcp", &schemes),
        (&[Check::OneMethod], &in_query, &one),
        (&[Check::OneMethod], "/mcp?access_token", &one),
    ] {
        let answer = refusal(&[], uri, headers).await;
        assert!(matches!(answer, Some(Refusal::BadRequest(_))), "{uri} {answer:?}");
        assert_eq!(refusal(left_out, uri, headers).await, None, "{uri} without {left_out:?}");
    }
    assert_eq!(refusal(&[], "/mcp?access_tokens=1&x_access_token=2", &one).await, None);
}

#[tokio::test]
async fn a_token_has_at_most_8_kib() {
    use super::forge::{KEYS, claims, header, token, with};
    use serde_json::json;
    let padded = |length: usize| {
        let claims = with(claims(), json!({ "pad": "x".repeat(length) }));
        token(&header(), &claims, &KEYS.ec)
    };
    // Three bytes of padding are four characters of the token.
    let room = (8192 - padded(0).len()) / 4 * 3;
    let (fits, too_long) = (padded(room), padded(room + 6));
    assert!(fits.len() <= 8192 && too_long.len() > 8192, "{} {}", fits.len(), too_long.len());
    let ask = |left_out, token: &str| {
        let value = format!("Bearer {token}");
        async move { refusal(left_out, "/mcp", &[("authorization", &value)]).await }
    };
    assert_eq!(ask(&[], &fits).await, None);
    assert!(matches!(ask(&[], &too_long).await, Some(Refusal::BadRequest(_))));
    // What is read is bounded by itself, as the control shows: without the length it is the JSON that is refused.
    let control = ask(&[Check::Length], &too_long).await;
    assert_eq!(control, None, "the length is what refuses it");
}
