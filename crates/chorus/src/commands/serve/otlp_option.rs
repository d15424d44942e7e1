//! The options `--otlp`, `--otlp-headers` and `--otlp-sample` of `chorus serve`, as one setting.

use crate::fail::Fail;
use chorus_hub::telemetry::{ExportHeader, TraceExport};
use chorus_wire::secret::Secret;

/// The collector of traces; `None` without a URL. An empty variable is none, as OpenTelemetry says, and without a URL the other
/// two are not looked at: they may be for another program on the machine.
pub fn build_trace_export(
    url: Option<String>,
    headers: Option<Secret>,
    ratio: Option<String>,
) -> Result<Option<TraceExport>, Fail> {
    let Some(url) = url.filter(|url| !url.trim().is_empty()) else {
        return Ok(None);
    };
    let mut export = TraceExport::parse(url.trim())
        .map_err(|problem| Fail::usage_error(format!("--otlp: {problem}")))?;
    if let Some(headers) = headers {
        export.headers = ExportHeader::parse_list(headers.expose())
            .map_err(|problem| Fail::usage_error(format!("--otlp-headers: {problem}")))?;
    }
    if let Some(ratio) = ratio.filter(|ratio| !ratio.trim().is_empty()) {
        export.ratio = ratio
            .parse()
            .map_err(|problem| Fail::usage_error(format!("--otlp-sample: {problem}")))?;
    }
    Ok(Some(export))
}
