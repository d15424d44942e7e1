//! Writes open SSE streams. A stream takes the socket over from hyper, so that an idle one costs a small task and a socket.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use chorus_hub::delivery::{FeedItem, StreamEnd, StreamFeed};
use chorus_wire::event_chunk::{self, ChunkDecoder};
use chorus_wire::limits;
use http::{HeaderValue, StatusCode, Version, header, response::Parts};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};

/// Max bytes per write: larger writes save nothing and hold memory.
const MAX_WRITE_BYTES: usize = 64 * 1024;
/// An event of this size is shared by many streams and written as it is: a joined copy for each slow reader would take memory that
/// no limit counts.
const JOINED_EVENT_BYTES: usize = 16 * 1024;
/// Max bytes that a reader may send on an open stream before it is disconnected.
const MAX_INPUT_BYTES: usize = 4 * 1024;
/// Max time to write the closing event: a reader that does not take it resumes by its cursor.
const CLOSING_TIMEOUT: Duration = Duration::from_millis(500);

/// Carries a feed in the response's extensions to the connection, which then writes it instead of a body.
#[derive(Clone)]
pub(crate) struct StreamHandoff(Arc<Mutex<Option<StreamFeed>>>);

impl StreamHandoff {
    pub fn take(&self) -> Option<StreamFeed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The response that opens a stream.
pub fn stream_response(feed: StreamFeed) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Some proxies buffer a stream until they have a block of it, unless told not to.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
        .extensions_mut()
        .insert(StreamHandoff(Arc::new(Mutex::new(Some(feed)))));
    response
}

/// How the body of a stream is framed.
pub(crate) enum BodyFraming {
    /// Events go out as they are: each is one HTTP chunk already.
    Chunked,
    /// HTTP/1.0 knows no chunks: their framing is taken off, and the body ends with the connection.
    UntilClose(ChunkDecoder),
}

impl BodyFraming {
    pub fn for_version(version: Version) -> Self {
        if version >= Version::HTTP_11 {
            Self::Chunked
        } else {
            Self::UntilClose(ChunkDecoder::default())
        }
    }

    fn encode(&mut self, pieces: Vec<Bytes>) -> Vec<Bytes> {
        match self {
            Self::Chunked => pieces,
            Self::UntilClose(decoder) => pieces
                .into_iter()
                .flat_map(|piece| decoder.decode_piece(piece))
                .collect(),
        }
    }

    /// The end of the body.
    fn last_bytes(&self) -> &'static [u8] {
        match self {
            Self::Chunked => event_chunk::LAST_CHUNK,
            Self::UntilClose(_) => b"",
        }
    }
}

/// The response head as bytes. A stream is the last response of its connection.
pub(crate) fn encode_response_head(parts: &Parts, framing: &BodyFraming) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 {}\r\n", parts.status).into_bytes();
    let replaced = [
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::CONNECTION,
    ];
    for (name, value) in parts
        .headers
        .iter()
        .filter(|(name, _)| !replaced.contains(name))
    {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(match framing {
        BodyFraming::Chunked => b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n",
        BodyFraming::UntilClose(_) => b"connection: close\r\n\r\n",
    });
    out
}

/// A stream that takes a connection over.
pub(crate) struct OpenedStream {
    /// Not written yet; empty when it is.
    pub head: Vec<u8>,
    pub framing: BodyFraming,
    pub feed: StreamFeed,
}

/// Writes the stream until its reader disconnects, stalls, or the feed ends. `open_guard` is held until then.
///
/// The block uses what it captures in place: an `async fn` would keep every argument twice, in each of many thousand idle
/// streams.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn keeps its arguments twice"
)]
pub(crate) fn write_stream<S: AsyncRead + AsyncWrite + Unpin + Send, G: Send>(
    mut socket: S,
    mut stream: OpenedStream,
    open_guard: G,
) -> impl Future<Output = ()> + Send {
    async move {
        let _held_to_the_end = &open_guard;
        let mut last_write_at = Instant::now();
        // One timer for the whole stream. A write does not set it again, which would cost each event two visits to the timer
        // wheel: when it fires, it is set to the end of the interval after the last write.
        let mut keepalive = pin!(sleep_until(last_write_at + limits::KEEPALIVE_INTERVAL));
        let mut input_bytes = 0;
        loop {
            let mut ignored = [0u8; 64];
            let events = {
                // One future for the whole wait: a new one after each input byte would restart its read of the log.
                let mut next = pin!(stream.feed.next());
                loop {
                    tokio::select! {
                        next = &mut next => match next {
                            FeedItem::Events(events) => break Ok(events),
                            FeedItem::Ended(reason) => break Err(reason),
                        },
                        read = socket.read(&mut ignored) => match read {
                            // Small input is ignored; end of file means that the reader disconnected.
                            Ok(n) if n > 0 && input_bytes < MAX_INPUT_BYTES => input_bytes += n,
                            Ok(_) | Err(_) => return,
                        },
                        () = &mut keepalive => {
                            let due_at = last_write_at + limits::KEEPALIVE_INTERVAL;
                            let now = Instant::now();
                            if due_at > now {
                                keepalive.as_mut().reset(due_at);
                            } else {
                                keepalive.as_mut().reset(now + limits::KEEPALIVE_INTERVAL);
                                break Ok(vec![Bytes::from_static(event_chunk::KEEPALIVE_CHUNK)]);
                            }
                        }
                    }
                }
            };
            let events = match events {
                Ok(events) => events,
                // On the heap, as all that a stream rarely waits for: an idle one would keep the room for it.
                Err(reason) => return Box::pin(write_closing_event(socket, stream, reason)).await,
            };
            let head = std::mem::take(&mut stream.head);
            let head = (!head.is_empty()).then(|| Bytes::from(head));
            let pieces = head.into_iter().chain(stream.framing.encode(events));
            if let Err(why) = write_batch(&mut socket, pieces, &stream.feed).await {
                metrics::counter!("chorus_streams_cut_total", "reason" => why).increment(1);
                tracing::debug!(why, "a stream was disconnected");
                return;
            }
            stream.feed.confirm_written();
            last_write_at = Instant::now();
        }
    }
}

/// Writes all events in as few writes as possible.
async fn write_batch<S: AsyncWrite + Unpin>(
    socket: &mut S,
    pieces: impl Iterator<Item = Bytes>,
    feed: &StreamFeed,
) -> Result<(), &'static str> {
    let mut pieces = pieces.peekable();
    while let Some(event) = pieces.next() {
        // A single event and a large one are written without copying; several small ones are joined first.
        let is_joined = |next: &Bytes| next.len() < JOINED_EVENT_BYTES;
        if !is_joined(&event) || !pieces.peek().is_some_and(is_joined) {
            write_or_cut(socket, &event, feed).await?;
            continue;
        }
        let mut buffer = Vec::with_capacity(event.len() * 2);
        buffer.extend_from_slice(&event);
        while let Some(next) =
            pieces.next_if(|next| is_joined(next) && buffer.len() + next.len() <= MAX_WRITE_BYTES)
        {
            buffer.extend_from_slice(&next);
        }
        write_or_cut(socket, &buffer, feed).await?;
    }
    poll_fn(|cx| Pin::new(&mut *socket).poll_flush(cx))
        .await
        .map_err(|_| "closed")
}

/// Writes `bytes`. A reader that takes nothing for `limits::STREAM_DISCONNECT_AFTER` is disconnected and resumes by its
/// cursor (invariant 6).
async fn write_or_cut<S: AsyncWrite + Unpin>(
    socket: &mut S,
    mut bytes: &[u8],
    feed: &StreamFeed,
) -> Result<(), &'static str> {
    let mut is_blocked = false;
    while !bytes.is_empty() {
        let now = poll_fn(|cx| Poll::Ready(Pin::new(&mut *socket).poll_write(cx, bytes))).await;
        let written = match now {
            Poll::Ready(written) => written,
            Poll::Pending => {
                if !is_blocked {
                    is_blocked = true;
                    feed.set_blocked(true);
                }
                // On the heap: most writes never wait.
                Box::pin(timeout(
                    limits::STREAM_DISCONNECT_AFTER,
                    socket.write(bytes),
                ))
                .await
                .map_err(|_| "stalled")?
            }
        };
        match written {
            Ok(n) if n > 0 => bytes = &bytes[n..],
            Ok(_) | Err(_) => return Err("closed"),
        }
    }
    if is_blocked {
        feed.set_blocked(false);
    }
    Ok(())
}

/// Writes the `closing` event with its reason and a random reconnect delay, so that readers do not return all at once, and the
/// end of the body.
async fn write_closing_event<S: AsyncWrite + Unpin>(
    mut socket: S,
    mut stream: OpenedStream,
    reason: StreamEnd,
) {
    let spread = limits::STREAM_RECONNECT_DELAY.as_millis() as u64;
    let retry = rand::random_range(spread / 2..spread * 2);
    let closing_event = event_chunk::format_closing_chunk(reason.reason(), retry);
    let mut last_bytes = stream.head;
    for piece in stream.framing.encode(vec![closing_event]) {
        last_bytes.extend_from_slice(&piece);
    }
    last_bytes.extend_from_slice(stream.framing.last_bytes());
    let writing = async {
        socket.write_all(&last_bytes).await?;
        socket.shutdown().await
    };
    // A reader that misses the event resumes by its cursor.
    let _ = timeout(CLOSING_TIMEOUT, writing).await;
}
