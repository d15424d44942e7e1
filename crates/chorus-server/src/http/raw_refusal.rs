//! Refusals of connections whose request was not parsed: written to the socket as bytes, because no handler runs (TRN-39).

use chorus_wire::reply::FailureReply;
use chorus_wire::{Error, ErrorCode, time::UnixMicros};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes read from a refused client before the close: closing with unread bytes resets the connection and loses the response.
const MAX_UNREAD_BYTES: u64 = 256 * 1024;

/// The response in the wrapped form of R-13, which most paths use: the path is not known.
pub fn encode_refusal(error: &Error, now: UnixMicros) -> Vec<u8> {
    let body = serde_json::to_string(&FailureReply::new(error, now)).unwrap_or_default();
    let status = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let retry_after = error
        .retry_after
        .map(|seconds| format!("retry-after: {seconds}\r\n"))
        .unwrap_or_default();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{retry_after}\
         x-request-id: {}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n{body}",
        body.len(),
        chorus_hub::random::new_request_id()
    )
    .into_bytes()
}

/// Writes a refusal and lets the client read it before the socket is closed.
pub async fn write_refusal<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut S,
    response: &[u8],
) -> std::io::Result<()> {
    socket.write_all(response).await?;
    socket.shutdown().await?;
    let mut unread = socket.take(MAX_UNREAD_BYTES);
    while unread.read(&mut [0; 4096]).await? > 0 {}
    Ok(())
}

/// The error for a request that the HTTP parser refused with `status`. `unparsed` is what it has read of the request.
pub fn parser_error(status: u16, fault: Option<&hyper::Error>, unparsed: &[u8]) -> Error {
    match status {
        // The parser's buffer is full before the request line has ended.
        431 if !unparsed.contains(&b'\n') => ErrorCode::UriTooLong.into(),
        414 => ErrorCode::UriTooLong.into(),
        431 => ErrorCode::HeadersTooLarge.into(),
        _ => {
            let fault = fault.map_or_else(|| "it cannot be parsed".to_owned(), ToString::to_string);
            Error::validation(format!("the request is not valid HTTP/1.1: {fault}"))
        }
    }
}
