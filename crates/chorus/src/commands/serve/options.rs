//! The options of `chorus serve`: from a flag, else an environment variable, else the configuration file.

use super::acme_options::{AcmeOptions, choose_tls_source, default_address, refuse_shared_name};
use super::config_duration::ConfigDuration;
use super::listen_address::ListenAddress;
use super::option_text::{parsed_text, text_list};
use super::otlp_option::build_trace_export;
use super::quota_option::{QuotaOption, quota_table};
use crate::fail::Fail;
use crate::machine_memory::{MemorySize, MemoryTotal};
use chorus_hub::BusFiles;
use chorus_server::{
    ContactEmail, CorsOrigin, DirectoryUrl, DomainName, ServerSettings, TrustedNetwork,
};
use chorus_wire::{credits::Credits, identity::AgentAddress, secret::Secret};
use serde::{Deserialize, Deserializer};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

#[derive(Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ServeOptions {
    /// Address or port to listen on [default: 127.0.0.1:3000]; port 0 chooses a free one
    #[arg(long, value_name = "ADDR", env = "CHORUS_LISTEN")]
    listen: Option<ListenAddress>,
    /// The hub's data directory [default: chorus-data]
    #[arg(long, value_name = "DIR", env = "CHORUS_DATA_DIR")]
    #[serde(alias = "data_dir")]
    data_dir: Option<PathBuf>,
    /// The hub's public URL [default: the address it listens on]
    #[arg(long, value_name = "URL", env = "CHORUS_PUBLIC_URL")]
    #[serde(alias = "public_url")]
    public_url: Option<String>,
    /// The host that completes short names [default: chorus]
    #[arg(long, value_name = "NAME", env = "CHORUS_HOST_NAME")]
    #[serde(alias = "host_name")]
    host_name: Option<String>,
    /// The hub's name in its discovery document [default: Chorus]
    #[arg(long, value_name = "TEXT", env = "CHORUS_SERVER_NAME")]
    #[serde(alias = "server_name")]
    server_name: Option<String>,
    /// postgres://… instead of SQLite in the data directory; its sslmode, sslrootcert, sslcert and sslkey configure TLS
    #[arg(long, value_name = "URL", env = "CHORUS_DATABASE", hide_env_values = true, value_parser = parse_secret)]
    database: Option<Secret>,
    /// nats://… or tls://… for hubs that share a PostgreSQL database [default: local, a single hub]; several are separated by
    /// commas
    #[arg(long, value_name = "URL", env = "CHORUS_BUS", hide_env_values = true, value_parser = parse_secret)]
    bus: Option<Secret>,
    /// NATS credentials file of this hub
    #[arg(long, value_name = "FILE", env = "CHORUS_BUS_CREDENTIALS")]
    #[serde(alias = "bus_credentials")]
    bus_credentials: Option<PathBuf>,
    /// Root certificates for the bus, PEM [default: those that this machine trusts]
    #[arg(long, value_name = "FILE", env = "CHORUS_BUS_ROOT_CERT")]
    #[serde(alias = "bus_root_cert")]
    bus_root_cert: Option<PathBuf>,
    /// Client certificate of this hub on the bus, PEM
    #[arg(long, value_name = "FILE", env = "CHORUS_BUS_CERT")]
    #[serde(alias = "bus_cert")]
    bus_cert: Option<PathBuf>,
    /// That certificate's key, PEM
    #[arg(long, value_name = "FILE", env = "CHORUS_BUS_KEY")]
    #[serde(alias = "bus_key")]
    bus_key: Option<PathBuf>,
    /// A proxy or network whose forwarding headers are trusted (repeatable; the variable separates them by commas)
    #[arg(
        long = "trusted-proxy",
        value_name = "CIDR",
        env = "CHORUS_TRUSTED_PROXIES",
        value_delimiter = ','
    )]
    #[serde(
        alias = "trusted_proxies",
        alias = "trusted-proxy",
        deserialize_with = "text_list"
    )]
    trusted_proxies: Vec<TrustedNetwork>,
    /// An origin whose web pages may use this hub, such as https://app.example, or * for every one (repeatable; the variable
    /// separates them by commas)
    #[arg(
        long = "cors-origin",
        value_name = "ORIGIN",
        env = "CHORUS_CORS_ORIGINS",
        value_delimiter = ','
    )]
    #[serde(
        alias = "cors_origins",
        alias = "cors-origin",
        deserialize_with = "text_list"
    )]
    cors_origins: Vec<CorsOrigin>,
    /// An operator key of at least 20 characters, or label:KEY (repeatable; the variable separates them by commas)
    #[arg(
        long = "operator-key",
        value_name = "KEY",
        env = "CHORUS_OPERATOR_KEYS",
        hide_env_values = true,
        value_delimiter = ',',
        value_parser = parse_secret
    )]
    #[serde(
        alias = "operator_keys",
        alias = "operator-key",
        deserialize_with = "keys"
    )]
    operator_keys: Vec<Secret>,
    /// Requests per key and minute, 0 for no limit [default: 600]
    #[arg(long, value_name = "N", env = "CHORUS_RATE_LIMIT")]
    #[serde(alias = "rate_limit")]
    rate_limit: Option<u32>,
    /// Registrations without a key per address and minute, 0 for no limit [default: 10]; twice as many may come at once
    #[arg(long, value_name = "N", env = "CHORUS_REGISTER_RATE")]
    #[serde(alias = "register_rate")]
    register_rate: Option<u32>,
    /// Max open connections, including streams [default: 8 per megabyte of --memory, 65536 at most, and what open files allow]
    #[arg(long, value_name = "N", env = "CHORUS_MAX_CONNECTIONS", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(alias = "max_connections")]
    max_connections: Option<u32>,
    /// Max open connections of one address [default: a quarter of --max-connections, and no limit for loopback]
    #[arg(long, value_name = "N", env = "CHORUS_MAX_CONNECTIONS_PER_ADDRESS", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(alias = "max_connections_per_address")]
    max_connections_per_address: Option<u32>,
    /// Memory that the hub may use, such as 256M or 2G [default: that of its control group or of the machine]
    #[arg(long, value_name = "SIZE", env = "CHORUS_MEMORY")]
    memory: Option<MemorySize>,
    /// How long messages and activity are kept, such as 90d [default: for ever]
    #[arg(long, value_name = "TIME", env = "CHORUS_RETAIN")]
    retain: Option<ConfigDuration>,
    /// How many agents may register [default: no limit]
    #[arg(long, value_name = "N", env = "CHORUS_MAX_AGENTS")]
    #[serde(alias = "max_agents")]
    max_agents: Option<u64>,
    /// A quota of every owner, such as stored_bytes=1073741824 (repeatable; the variable separates them by commas)
    #[arg(
        long = "quota",
        value_name = "NAME=NUMBER",
        env = "CHORUS_QUOTAS",
        value_delimiter = ','
    )]
    #[serde(alias = "quotas", deserialize_with = "quota_table")]
    quota: Vec<QuotaOption>,
    /// How long a receiver's endpoint may take to answer [default: 10s]
    #[arg(long, value_name = "TIME", env = "CHORUS_WEBHOOK_TIMEOUT")]
    #[serde(alias = "webhook_timeout")]
    webhook_timeout: Option<ConfigDuration>,
    /// A name server for the hosts of endpoints (repeatable; the variable separates them by commas) [default: those of the
    /// machine]
    #[arg(
        long = "name-server",
        value_name = "ADDR",
        env = "CHORUS_NAME_SERVERS",
        value_delimiter = ','
    )]
    #[serde(alias = "name_servers", alias = "name-server")]
    name_servers: Vec<SocketAddr>,
    /// Credits that every new owner gets [default: 100.00]
    #[arg(long, value_name = "CREDITS", env = "CHORUS_OPENING_GRANT", value_parser = parse_grant)]
    #[serde(alias = "opening_grant", deserialize_with = "file_grant")]
    opening_grant: Option<Credits>,
    /// The key file that encrypts stored connection strings [default: seal.key in the data directory]; hubs on one database
    /// need the same key
    #[arg(long, value_name = "FILE", env = "CHORUS_SEAL_KEY_FILE")]
    #[serde(alias = "seal_key_file")]
    seal_key_file: Option<PathBuf>,
    /// Agent-to-agent steps that may follow a person's message in a channel [default: 8]
    #[arg(long, value_name = "N", env = "CHORUS_AGENT_TURNS")]
    #[serde(alias = "agent_turns")]
    agent_turns: Option<u32>,
    /// Allow endpoints on loopback and private addresses: for tests and closed networks
    #[arg(
        long,
        env = "CHORUS_ALLOW_PRIVATE_ENDPOINTS",
        value_name = "YES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = clap::builder::BoolishValueParser::new()
    )]
    #[serde(alias = "allow_private_endpoints")]
    allow_private_endpoints: Option<bool>,
    /// Certificate chain, PEM; the hub then serves https
    #[arg(long, value_name = "FILE", env = "CHORUS_TLS_CERT")]
    #[serde(alias = "tls_cert")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key, PEM
    #[arg(long, value_name = "FILE", env = "CHORUS_TLS_KEY")]
    #[serde(alias = "tls_key")]
    tls_key: Option<PathBuf>,
    /// The OpenTelemetry collector that gets traces, over HTTP in protobuf, such as http://127.0.0.1:4318 [default: no traces]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,
    /// Headers for the collector, such as api-key=KEY; several are separated by commas
    #[arg(long, value_name = "HEADERS", env = "OTEL_EXPORTER_OTLP_HEADERS", hide_env_values = true, value_parser = parse_secret)]
    #[serde(alias = "otlp_headers")]
    otlp_headers: Option<Secret>,
    /// The share of traces that are recorded, from 0 to 1, unless the caller has decided [default: 1]
    #[arg(long, value_name = "RATIO", env = "OTEL_TRACES_SAMPLER_ARG")]
    #[serde(alias = "otlp_sample", deserialize_with = "file_ratio")]
    otlp_sample: Option<String>,
    /// A public host name of this hub, for which it gets and renews a certificate from Let's Encrypt, whose terms of service
    /// this accepts (repeatable; the variable separates them by commas). The hub must be reachable on port 443 of that name:
    /// --listen is then 0.0.0.0:443 and --public-url https://DOMAIN, unless given
    #[arg(
        long = "tls-acme",
        value_name = "DOMAIN",
        env = "CHORUS_TLS_ACME",
        value_delimiter = ','
    )]
    #[serde(alias = "tls_acme", deserialize_with = "text_list")]
    tls_acme: Vec<DomainName>,
    /// The address that the certificate authority may write to [default: none]
    #[arg(long, value_name = "ADDRESS", env = "CHORUS_TLS_ACME_EMAIL")]
    #[serde(alias = "tls_acme_email", deserialize_with = "parsed_text")]
    tls_acme_email: Option<ContactEmail>,
    /// The ACME directory of the certificate authority [default: that of Let's Encrypt]; for trials its staging one is
    /// https://acme-staging-v02.api.letsencrypt.org/directory
    #[arg(long, value_name = "URL", env = "CHORUS_TLS_ACME_DIRECTORY")]
    #[serde(alias = "tls_acme_directory", deserialize_with = "parsed_text")]
    tls_acme_directory: Option<DirectoryUrl>,
    /// Root certificates for that directory, PEM [default: those that this machine trusts]
    #[arg(long, value_name = "FILE", env = "CHORUS_TLS_ACME_CA")]
    #[serde(alias = "tls_acme_ca")]
    tls_acme_ca: Option<PathBuf>,
    /// What to log: a level, or target=level pairs [default: info]
    #[arg(long, value_name = "FILTER", env = "CHORUS_LOG")]
    pub log: Option<String>,
    /// The log format [default: text]
    #[arg(long, value_name = "FORMAT", env = "CHORUS_LOG_FORMAT")]
    #[serde(alias = "log_format")]
    pub log_format: Option<LogFormat>,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

impl ServeOptions {
    /// Reads `named`, which must exist, or `chorus.toml` in the working directory, which may be missing.
    pub fn from_file(named: Option<&Path>) -> Result<Self, Fail> {
        let path = named.unwrap_or(Path::new("chorus.toml"));
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
                return Ok(Self::default());
            }
            Err(e) => return Err(Fail::usage_error(format!("{}: {e}", path.display()))),
        };
        // The error's own text quotes the line, which may contain a key.
        let parse_error = |e: toml::de::Error| {
            let line = e.span().map_or(1, |span| {
                text[..span.start.min(text.len())].matches('\n').count() + 1
            });
            Fail::usage_error(format!(
                "{} line {line}: {}",
                path.display(),
                e.message().replace('\n', " ")
            ))
        };
        toml::from_str(&text).map_err(parse_error)
    }

    /// Takes each missing option from `other`.
    pub fn with_fallback(self, other: Self) -> Self {
        Self {
            listen: self.listen.or(other.listen),
            data_dir: self.data_dir.or(other.data_dir),
            public_url: self.public_url.or(other.public_url),
            host_name: self.host_name.or(other.host_name),
            server_name: self.server_name.or(other.server_name),
            database: self.database.or(other.database),
            bus: self.bus.or(other.bus),
            bus_credentials: self.bus_credentials.or(other.bus_credentials),
            bus_root_cert: self.bus_root_cert.or(other.bus_root_cert),
            bus_cert: self.bus_cert.or(other.bus_cert),
            bus_key: self.bus_key.or(other.bus_key),
            trusted_proxies: if self.trusted_proxies.is_empty() {
                other.trusted_proxies
            } else {
                self.trusted_proxies
            },
            cors_origins: if self.cors_origins.is_empty() {
                other.cors_origins
            } else {
                self.cors_origins
            },
            operator_keys: if self.operator_keys.is_empty() {
                other.operator_keys
            } else {
                self.operator_keys
            },
            rate_limit: self.rate_limit.or(other.rate_limit),
            register_rate: self.register_rate.or(other.register_rate),
            max_connections: self.max_connections.or(other.max_connections),
            max_connections_per_address: self
                .max_connections_per_address
                .or(other.max_connections_per_address),
            memory: self.memory.or(other.memory),
            retain: self.retain.or(other.retain),
            max_agents: self.max_agents.or(other.max_agents),
            quota: other.quota.into_iter().chain(self.quota).collect(),
            webhook_timeout: self.webhook_timeout.or(other.webhook_timeout),
            name_servers: if self.name_servers.is_empty() {
                other.name_servers
            } else {
                self.name_servers
            },
            opening_grant: self.opening_grant.or(other.opening_grant),
            seal_key_file: self.seal_key_file.or(other.seal_key_file),
            agent_turns: self.agent_turns.or(other.agent_turns),
            allow_private_endpoints: self
                .allow_private_endpoints
                .or(other.allow_private_endpoints),
            tls_cert: self.tls_cert.or(other.tls_cert),
            tls_key: self.tls_key.or(other.tls_key),
            otlp: self.otlp.or(other.otlp),
            otlp_headers: self.otlp_headers.or(other.otlp_headers),
            otlp_sample: self.otlp_sample.or(other.otlp_sample),
            tls_acme: if self.tls_acme.is_empty() {
                other.tls_acme
            } else {
                self.tls_acme
            },
            tls_acme_email: self.tls_acme_email.or(other.tls_acme_email),
            tls_acme_directory: self.tls_acme_directory.or(other.tls_acme_directory),
            tls_acme_ca: self.tls_acme_ca.or(other.tls_acme_ca),
            log: self.log.or(other.log),
            log_format: self.log_format.or(other.log_format),
        }
    }

    /// Whether the number of connections was asked for.
    pub fn has_max_connections(&self) -> bool {
        self.max_connections.is_some()
    }

    pub fn memory_total(&self) -> MemoryTotal {
        MemoryTotal::find(self.memory)
    }

    pub fn into_settings(self) -> Result<ServerSettings, Fail> {
        let memory = self.memory_total();
        let data_dir = self.data_dir.unwrap_or_else(|| "chorus-data".into());
        let mut settings = ServerSettings::with_data_dir(data_dir);
        settings.server_name = self.server_name.unwrap_or(settings.server_name);
        settings.rate_limit = self.rate_limit.unwrap_or(settings.rate_limit);
        let default = memory.default_connections();
        settings.max_connections = self.max_connections.map_or(default, |max| max as usize);
        settings.register_rate = self.register_rate.unwrap_or(settings.register_rate);
        settings.max_connections_per_address =
            self.max_connections_per_address.map(|max| max as usize);
        settings.public_url = self.public_url.map(check_public_url).transpose()?;
        let tls_files = require_both(
            self.tls_cert,
            self.tls_key,
            "--tls-cert and --tls-key belong together",
        )?;
        let acme = AcmeOptions {
            domains: self.tls_acme,
            email: self.tls_acme_email,
            directory: self.tls_acme_directory,
            directory_roots: self.tls_acme_ca,
        };
        settings.tls = choose_tls_source(tls_files, acme)?;
        let default_listen = default_address(settings.tls.as_ref());
        settings.listen = self.listen.map_or(default_listen, |address| address.0);
        settings.trusted_proxies = self.trusted_proxies;
        settings.cors_origins = self.cors_origins;
        let hub = &mut settings.hub;
        hub.bus_url = check_bus_url(self.bus, self.database.is_some())?;
        refuse_shared_name(settings.tls.as_ref(), hub.bus_url.is_some())?;
        hub.bus_files = BusFiles {
            credentials: self.bus_credentials,
            root_certs: self.bus_root_cert,
            client_cert: require_both(
                self.bus_cert,
                self.bus_key,
                "--bus-cert and --bus-key belong together",
            )?,
        };
        if let Some(name) = self.host_name {
            AgentAddress::parse("--host-name", &format!("a@{name}"))
                .map_err(|e| Fail::usage_error(e.message))?;
            hub.host_name = name;
        }
        hub.database_url = self.database;
        hub.operator_keys = self
            .operator_keys
            .into_iter()
            .filter(|key| !key.expose().is_empty())
            .collect();
        hub.max_agents = self.max_agents;
        for quota in self.quota {
            hub.quotas.set(quota.name, quota.bound);
        }
        hub.allow_private_endpoints = self
            .allow_private_endpoints
            .unwrap_or(hub.allow_private_endpoints);
        hub.webhook_timeout = self
            .webhook_timeout
            .map_or(hub.webhook_timeout, |timeout| timeout.0);
        hub.name_servers = self.name_servers;
        hub.opening_grant = self.opening_grant.unwrap_or(hub.opening_grant);
        hub.seal_key_file = self.seal_key_file;
        hub.agent_turns = self.agent_turns.unwrap_or(hub.agent_turns);
        hub.retain = self.retain.map(|retention| retention.0);
        hub.memory = memory.to_bounds();
        hub.trace_export = build_trace_export(self.otlp, self.otlp_headers, self.otlp_sample)?;
        Ok(settings)
    }
}

/// The bus of several hubs; `local` and no option mean none.
fn check_bus_url(bus: Option<Secret>, has_database: bool) -> Result<Option<Secret>, Fail> {
    match bus {
        Some(url) if url.expose() == "local" => Ok(None),
        Some(url)
            if !["nats://", "tls://"]
                .iter()
                .any(|scheme| url.expose().starts_with(scheme)) =>
        {
            Err(Fail::usage_error("--bus is local or a nats:// URL"))
        }
        Some(_) if !has_database => Err(Fail::usage_error(
            "--bus nats://… is for hubs that share a database: give --database too",
        )),
        bus => Ok(bus),
    }
}

/// A certificate and its key: both or neither.
fn require_both(
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    message: &str,
) -> Result<Option<(PathBuf, PathBuf)>, Fail> {
    match (cert, key) {
        (Some(cert), Some(key)) => Ok(Some((cert, key))),
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => Err(Fail::usage_error(message)),
    }
}

fn parse_secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text))
}

fn parse_grant(text: &str) -> Result<Credits, String> {
    Credits::parse_price("an opening grant", text).map_err(|e| e.message)
}

/// An amount in the file: a text, or a TOML number.
fn file_grant<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Credits>, D::Error> {
    let value = toml::Value::deserialize(from)?;
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    let text = text.strip_suffix(".0").unwrap_or(&text);
    parse_grant(text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

/// A ratio in the file: a text, or a TOML number.
fn file_ratio<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let value = toml::Value::deserialize(from)?;
    let text = value.as_str().map(str::to_owned);
    Ok(Some(text.unwrap_or_else(|| value.to_string())))
}

fn check_public_url(text: String) -> Result<String, Fail> {
    let base_url =
        chorus_client::HubClient::new(&text, None).map(|client| client.base_url().to_owned());
    base_url.map_err(|_| {
        Fail::usage_error("--public-url is an http or https URL without user, query or fragment")
    })
}

/// One key or a list of them. Errors must not quote the value, which may be a key.
fn keys<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Secret>, D::Error> {
    let type_error = || serde::de::Error::custom("operator-keys is a list of texts");
    match toml::Value::deserialize(from).map_err(|_| type_error())? {
        toml::Value::String(key) => Ok(vec![Secret::new(key)]),
        toml::Value::Array(keys) => keys
            .iter()
            .map(|key| key.as_str().map(Secret::new).ok_or_else(type_error))
            .collect(),
        toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_)
        | toml::Value::Table(_) => Err(type_error()),
    }
}

#[cfg(test)]
mod tests;
