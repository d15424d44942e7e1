//! Where traces are sent, and which: the settings of `--otlp`.

use chorus_wire::secret::Secret;
use std::str::FromStr;
use url::Url;

/// The collector of a hub's traces.
#[derive(Clone, Debug)]
pub struct TraceExport {
    endpoint: Url,
    /// Sent with every batch: the key of a collector that needs one.
    pub headers: Vec<ExportHeader>,
    pub ratio: SampleRatio,
}

/// The path that OTLP defines for traces under the URL of a collector.
const TRACES_PATH: &str = "/v1/traces";

impl TraceExport {
    /// Takes the URL of a collector, such as `http://127.0.0.1:4318`, or the whole URL of its traces.
    pub fn parse(url: &str) -> Result<Self, String> {
        let mut endpoint = Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or("it is the http or https URL of an OpenTelemetry collector, such as http://127.0.0.1:4318")?;
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            return Err(
                "it has no user or password; a key goes into OTEL_EXPORTER_OTLP_HEADERS".into(),
            );
        }
        if endpoint.query().is_some() || endpoint.fragment().is_some() {
            return Err("it has no query and no fragment".into());
        }
        let path = endpoint.path().trim_end_matches('/').to_owned();
        if !path.ends_with(TRACES_PATH) {
            endpoint.set_path(&format!("{path}{TRACES_PATH}"));
        }
        Ok(Self {
            endpoint,
            headers: Vec::new(),
            ratio: SampleRatio::default(),
        })
    }

    /// The URL that batches are posted to.
    pub fn endpoint(&self) -> &Url {
        &self.endpoint
    }
}

/// A header of the requests to the collector.
#[derive(Clone, Debug)]
pub struct ExportHeader {
    pub name: http::HeaderName,
    pub value: Secret,
}

impl ExportHeader {
    /// Parses `name=value,name=value` with values in percent encoding, as OpenTelemetry defines it. No error quotes a value.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let pairs = text
            .split(',')
            .map(str::trim)
            .filter(|pair| !pair.is_empty());
        pairs.map(Self::parse_pair).collect()
    }

    fn parse_pair(pair: &str) -> Result<Self, String> {
        let form_error = "they are name=value pairs with commas between them";
        let (name, value) = pair.split_once('=').ok_or(form_error)?;
        let name: http::HeaderName = name.trim().parse().map_err(|_| form_error)?;
        let value = decode_percent(value.trim())
            .filter(|value| http::HeaderValue::from_str(value).is_ok())
            .ok_or_else(|| format!("the value of {name} cannot be sent in a header"))?;
        Ok(Self {
            name,
            value: Secret::new(value),
        })
    }
}

fn decode_percent(text: &str) -> Option<String> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            octet => octet,
        });
    }
    String::from_utf8(octets).ok()
}

/// The share of the traces that begin at this hub and are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleRatio(f64);

impl Default for SampleRatio {
    fn default() -> Self {
        Self(1.0)
    }
}

impl SampleRatio {
    /// By the id, so that hubs and other programs with the same ratio choose the same traces.
    pub(super) fn is_sampled(self, trace_id: u128) -> bool {
        let low_bits = (trace_id as u64) >> 1;
        (low_bits as f64) < self.0 * (1_u64 << 63) as f64
    }
}

impl FromStr for SampleRatio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ratio = text.trim().parse().ok();
        ratio
            .filter(|ratio| (0.0..=1.0).contains(ratio))
            .map(Self)
            .ok_or_else(|| "a ratio is a number from 0 to 1, such as 0.1".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // OPS-05
    #[test]
    fn a_url_of_a_collector_becomes_that_of_its_traces() {
        for (given, posted) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            (
                "https://otel.example/a/",
                "https://otel.example/a/v1/traces",
            ),
            (
                "https://otel.example/v1/traces",
                "https://otel.example/v1/traces",
            ),
        ] {
            assert_eq!(
                TraceExport::parse(given).unwrap().endpoint().as_str(),
                posted
            );
        }
        for bad in [
            "",
            "collector:4318",
            "grpc://collector:4317",
            "http://",
            "http://me:secret@collector",
            "http://collector/?key=secret",
            "http://collector/#a",
        ] {
            let error = TraceExport::parse(bad).expect_err(bad);
            assert!(!error.contains("secret"), "{error}");
        }
    }

    // OPS-05
    #[test]
    fn headers_are_decoded_and_no_error_quotes_a_value() {
        let headers = ExportHeader::parse_list("api-key=abc%20d, x-team = a=b ,").unwrap();
        let texts: Vec<_> = headers
            .iter()
            .map(|header| (header.name.as_str(), header.value.expose()))
            .collect();
        assert_eq!(texts, [("api-key", "abc d"), ("x-team", "a=b")]);
        assert!(ExportHeader::parse_list("").unwrap().is_empty());
        for bad in [
            "secret",
            "a b=secret",
            "k=secret%0a",
            "k=secret%zz",
            "k=secret%4",
        ] {
            let error = ExportHeader::parse_list(bad).expect_err(bad);
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(!format!("{headers:?}").contains("abc"));
    }

    // OPS-05
    #[test]
    fn a_ratio_is_a_share_of_the_ids() {
        let spread = (0..10_000_u64).map(|n| u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let ids: Vec<u128> = spread.collect();
        for (ratio, expected) in [("0", 0), ("0.25", 2_500), ("1", 10_000)] {
            let ratio: SampleRatio = ratio.parse().unwrap();
            let sampled = ids.iter().filter(|id| ratio.is_sampled(**id)).count();
            assert!(sampled.abs_diff(expected) <= 10, "{ratio:?}: {sampled}");
        }
        for bad in ["", "2", "-0.1", "NaN", "half"] {
            assert!(bad.parse::<SampleRatio>().is_err(), "{bad}");
        }
    }
}
