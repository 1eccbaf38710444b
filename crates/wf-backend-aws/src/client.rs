//! The SDK's clients: region, credentials, time-outs. Their own retries are off; `link` sends again, because only our code
//! knows which repeat is harmless, and the reconciler looks again later.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};

use crate::config::AwsConfig;

/// A client of DynamoDB as the configuration says.
pub(crate) async fn connect(config: &AwsConfig) -> Client {
    Client::new(&load(config, config.endpoint_url.as_ref()).await)
}

/// A client of Step Functions as the configuration says.
pub(crate) async fn connect_states(config: &AwsConfig) -> aws_sdk_sfn::Client {
    let endpoint = config.states_endpoint_url.as_ref().or(config.endpoint_url.as_ref());
    aws_sdk_sfn::Client::new(&load(config, endpoint).await)
}

/// What both have in common. Credentials come from the SDK's default chain: environment, profile, web identity, container,
/// instance.
async fn load(config: &AwsConfig, endpoint: Option<&String>) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_millis(config.connect_timeout_ms))
        .operation_attempt_timeout(Duration::from_millis(config.attempt_timeout_ms))
        .operation_timeout(Duration::from_millis(config.attempt_timeout_ms))
        .build();
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .timeout_config(timeouts)
        .retry_config(RetryConfig::disabled());
    if let Some(region) = &config.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(url) = endpoint {
        loader = loader.endpoint_url(url);
        if is_loopback(url) && std::env::var_os("AWS_ACCESS_KEY_ID").is_none() {
            let made_up = Credentials::new("emulator", "emulator", None, None, "emulator");
            loader = loader.credentials_provider(SharedCredentialsProvider::new(made_up));
            if config.region.is_none() {
                loader = loader.region(Region::new("us-east-1"));
            }
        }
    }
    if let Some(http) = config.http_client() {
        loader = loader.http_client(http);
    }
    loader.load().await
}

/// The URL's host is this machine.
fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| {
        authority.strip_prefix(host).is_some_and(|port| port.is_empty() || port.starts_with(':'))
    })
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn made_up_credentials_go_to_this_machine_only() {
        for here in ["http://127.0.0.1:4566", "http://localhost", "https://[::1]:1/x"] {
            assert!(is_loopback(here), "{here}");
        }
        for elsewhere in [
            "http://127.0.0.1.example",
            "https://dynamodb.eu-west-1.amazonaws.com",
            "http://10.0.0.1",
        ] {
            assert!(!is_loopback(elsewhere), "{elsewhere}");
        }
    }
}
