//! What a store is opened with. Read by `client` and `open`; nothing here touches the network.

use std::fmt;

use aws_sdk_dynamodb::config::{HttpClient, SharedHttpClient};

/// How to reach a DynamoDB table. Make one with [`AwsConfig::new`] and change what you must.
#[derive(Clone)]
#[non_exhaustive]
pub struct AwsConfig {
    /// The table.
    pub table: String,
    /// The region; from the environment or the profile when absent.
    pub region: Option<String>,
    /// Another endpoint than that of the region: an emulator, or an interface endpoint. An emulator needs no account:
    /// with an endpoint on the loopback interface and no credentials in the environment, made-up ones are sent.
    pub endpoint_url: Option<String>,
    /// The Step Functions state machine whose executions give workflows a life in time; without one, no row of theirs is
    /// written, and the server's own clock does.
    pub state_machine_arn: Option<String>,
    /// Another endpoint for Step Functions than that of its region; `endpoint_url` when absent.
    pub states_endpoint_url: Option<String>,
    /// How long a connection may take to come up, in milliseconds.
    pub connect_timeout_ms: u64,
    /// How long one request may take, in milliseconds.
    pub attempt_timeout_ms: u64,
    /// How long a call of the port may go on sending requests again, in milliseconds. The last request may end
    /// `attempt_timeout_ms` later.
    pub patience_ms: u64,
    /// How long a look at the store's identity counts, in milliseconds: so long after a newer build raised the schema, or
    /// the table was restored, this process may still begin to write.
    pub trust_ms: u64,
    /// How often one request is sent at most.
    pub attempts_max: u32,
    /// Ask for the capacity that each request consumed, for [`AwsStore::usage`](crate::AwsStore::usage).
    pub measure: bool,
    http_client: Option<SharedHttpClient>,
}

impl AwsConfig {
    /// The defaults for a table.
    #[must_use]
    pub fn new(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            region: None,
            endpoint_url: None,
            state_machine_arn: None,
            states_endpoint_url: None,
            connect_timeout_ms: 1_000,
            attempt_timeout_ms: 2_000,
            patience_ms: 5_000,
            trust_ms: 5_000,
            attempts_max: 12,
            measure: false,
            http_client: None,
        }
    }

    /// Sends requests through another HTTP client than that of the SDK: where tests make requests fail.
    #[must_use]
    pub fn with_http_client(mut self, client: impl HttpClient + 'static) -> Self {
        self.http_client = Some(SharedHttpClient::new(client));
        self
    }

    pub(crate) fn http_client(&self) -> Option<SharedHttpClient> {
        self.http_client.clone()
    }
}

impl fmt::Debug for AwsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsConfig")
            .field("table", &self.table)
            .field("region", &self.region)
            .field("endpoint_url", &self.endpoint_url)
            .field("state_machine_arn", &self.state_machine_arn)
            .field("states_endpoint_url", &self.states_endpoint_url)
            .field("attempt_timeout_ms", &self.attempt_timeout_ms)
            .field("patience_ms", &self.patience_ms)
            .finish_non_exhaustive()
    }
}
