//! Bounds the memory of large answers that clients have not taken yet, in total and per address.

use super::held_bytes::{ByteReservation, HeldBytes};
use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use chorus_wire::Error;
use hyper::body::{Frame, SizeHint};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Answers up to this size are not counted: the kernel's send buffer takes them at once.
const COUNTED_FROM_BYTES: u64 = 64 * 1024;
/// The bytes of large answers under way.
pub struct LargeAnswers(HeldBytes);

impl LargeAnswers {
    /// Another answer beyond `max_bytes` is 503.
    pub fn with_memory(max_bytes: u64) -> Self {
        Self(HeldBytes::with_max(max_bytes))
    }

    /// The response, counted until its bytes are written, or a 503 when there is no memory for it.
    pub fn hold_response(&self, client: IpAddr, response: Response) -> Result<Response, Error> {
        let bytes = response.body().size_hint().lower();
        if bytes <= COUNTED_FROM_BYTES {
            return Ok(response);
        }
        let reservation = self
            .0
            .reserve(client, bytes)
            .ok_or_else(|| Error::unavailable("too many large answers wait for their clients"))?;
        Ok(response.map(|body| {
            let reservation = Arc::new(reservation);
            Body::new(HeldBody { body, reservation })
        }))
    }
}

/// A body whose chunks hold its reservation. The HTTP library drops the body itself before its last chunk is written.
struct HeldBody {
    body: Body,
    reservation: Arc<ByteReservation>,
}

struct HeldChunk {
    bytes: Bytes,
    _reservation: Arc<ByteReservation>,
}

impl AsRef<[u8]> for HeldChunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        let hold = |bytes: Bytes| {
            Bytes::from_owner(HeldChunk {
                bytes,
                _reservation: self.reservation.clone(),
            })
        };
        frame.map_ok(|frame| frame.map_data(hold))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    fn page() -> Response {
        Response::new(Body::from(vec![b'x'; 4 * 1024 * 1024]))
    }

    //
    #[tokio::test]
    async fn an_address_holds_its_share_of_answers_until_they_are_written() {
        let answers = LargeAnswers::with_memory(256 * 1024 * 1024);
        let slow: IpAddr = "192.0.2.1".parse().unwrap();
        let ask = |client: IpAddr| answers.hold_response(client, page());
        let mut held: Vec<Response> = (0..16).map(|_| ask(slow).unwrap()).collect();
        let refusal = ask(slow).unwrap_err();
        assert_eq!(refusal.code, chorus_wire::ErrorCode::Unavailable);
        assert!(ask("192.0.2.2".parse().unwrap()).is_ok());
        // The chunk holds the memory, not the body that it came from.
        let mut body = held.remove(0).into_body();
        let chunk = body.frame().await.unwrap().unwrap().into_data().unwrap();
        drop(body);
        assert!(ask(slow).is_err());
        drop(chunk);
        assert!(ask(slow).is_ok());
        drop(held);
        assert!(answers.0.is_empty());
        let small = Response::new(Body::from("small"));
        assert!(answers.hold_response(slow, small).is_ok());
    }
}
