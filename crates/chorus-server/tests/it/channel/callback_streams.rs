//! Callbacks that stream: events posted as lines of one request are published line by line (CHN-23…33, R-71).

use super::callbacks::{delivered, done};
use crate::support::actors::Answer;
use crate::support::actors::remote_member::{OwnedChannel, RemoteMember, callback};
use crate::support::hub::{Hub, eventually};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// An open POST of lines.
struct CallbackStream {
    to: Option<mpsc::UnboundedSender<Result<String, std::io::Error>>>,
    answer: tokio::task::JoinHandle<Answer>,
}

impl CallbackStream {
    fn open(hub: &Hub, delivery: &Value) -> Self {
        let (to, from) = mpsc::unbounded_channel();
        let pieces = stream::unfold(from, |mut from| async move {
            from.recv().await.map(|piece| (piece, from))
        });
        let request = hub
            .http
            .post(callback(delivery))
            .header("content-type", "application/x-ndjson");
        let answer = tokio::spawn(Answer::of(request.body(reqwest::Body::wrap_stream(pieces))));
        Self {
            to: Some(to),
            answer,
        }
    }

    fn send_piece(&self, piece: &str) {
        // The hub may have answered already.
        let _ = self.to.as_ref().unwrap().send(Ok(piece.to_owned()));
    }

    async fn finish(mut self) -> Answer {
        self.to.take();
        self.answer.await.unwrap()
    }
}

story!(
    a_stream_of_lines_is_heard_line_by_line_as_it_comes,
    |hub| async {
        //
        let (room, _oak, delivery) = delivered(&hub).await;
        let lines = CallbackStream::open(&hub, &delivery);
        lines.send_piece("{\"type\":\"status\",\"status\":\"a\"}\n{\"type\":\"message\",");
        eventually("the first is heard", async || {
            done(&room).await == ["status a"]
        })
        .await;
        lines.send_piece("\"content\":\"b\"}\r\n\n");
        eventually("the second is heard", async || {
            done(&room).await == ["status a", "message b"]
        })
        .await;
        lines.send_piece("{\"type\":\"tool_call\",\"id\":\"1\",\"name\":\"t\"}\n{\"type\":\"tool_result\",\"id\":\"1\",\"content\":\"c\"}");
        let answer = lines.finish().await;
        assert_eq!(
            (answer.status, &answer.json()["events"]),
            (200, &json!(4)),
            "{answer:?}"
        );
        assert_eq!(
            done(&room).await,
            ["status a", "message b", "tool_call t", "tool_result c"]
        );
    }
);

story!(
    at_a_bad_line_a_stream_ends_those_before_it_stand_and_none_after,
    |hub| async {
        //
        let (room, _oak, delivery) = delivered(&hub).await;
        let said = |text: &str| format!("{{\"type\":\"message\",\"content\":\"{text}\"}}\n");
        let cases = [
            ("{\"type\":\"dance\"}\n".to_owned(), 400, "ERR_VALIDATION"),
            ("not JSON\n".to_owned(), 400, "ERR_VALIDATION"),
            (said(&"x".repeat(60_000)), 413, "ERR_TOO_LARGE"),
            ("x".repeat(300_000), 413, "ERR_TOO_LARGE"),
        ];
        let mut expected = Vec::new();
        for (place, (bad, status, code)) in cases.iter().enumerate() {
            let lines = CallbackStream::open(&hub, &delivery);
            lines.send_piece(&said(&format!("before {place}")));
            lines.send_piece(bad);
            lines.send_piece(&said("after"));
            let said = lines.finish().await.refused(*status, code);
            assert!(said.starts_with("line 2: "), "{said}");
            expected.push(format!("message before {place}"));
            assert_eq!(done(&room).await, expected);
        }
    }
);

story!(a_half_sent_line_was_not_said, |hub| async {
    //
    let (room, _oak, delivery) = delivered(&hub).await;
    let lines = CallbackStream::open(&hub, &delivery);
    lines.send_piece(
        "{\"type\":\"message\",\"content\":\"whole\"}\n{\"type\":\"message\",\"content\":\"half\"}",
    );
    eventually("the first is heard", async || {
        done(&room).await == ["message whole"]
    })
    .await;
    // The connection is cut in the middle of the body; to let the pieces end would be to end the body in good order.
    lines
        .to
        .as_ref()
        .unwrap()
        .send(Err(std::io::Error::other("cut")))
        .unwrap();
    assert!(lines.answer.await.is_err(), "no member is left to answer");
    // Whatever comes next is after anything that the cut connection could still have led to.
    let oak = RemoteMember::accepting(&hub).await;
    for n in 0..20 {
        oak.post_answer(&delivery, &format!("{n}")).await;
    }
    assert!(!done(&room).await.contains(&"message half".to_owned()));
});

story!(
    a_stream_ends_at_the_next_line_when_its_member_is_removed,
    |hub| async {
        //
        let (room, _oak, delivery) = delivered(&hub).await;
        let lines = CallbackStream::open(&hub, &delivery);
        lines.send_piece("{\"type\":\"message\",\"content\":\"one\"}\n");
        eventually("it is heard", async || done(&room).await == ["message one"]).await;
        room.owner
            .delete(&room.path("/members/oak"))
            .await
            .data(200);
        lines.send_piece("{\"type\":\"message\",\"content\":\"two\"}\n");
        lines.finish().await.refused(410, "ERR_GONE");
        assert_eq!(done(&room).await, ["message one"]);
    }
);

sqlite_story!(
    a_member_has_so_many_streams_of_lines_and_leaves_the_others_theirs,
    |hub| async {
        // Invariant 6: a member that opens many streams and sends little would take every place
        let room = OwnedChannel::create(&hub, "alice").await;
        let (mut oak, mut elm) = (
            RemoteMember::accepting(&hub).await,
            RemoteMember::accepting(&hub).await,
        );
        room.add_remote("oak", &oak.url()).await;
        room.add_remote("elm", &elm.url()).await;
        room.post_message("hello").await;
        let (to_oak, to_elm) = (oak.next_delivery().await, elm.next_delivery().await);
        let line = |text: &str| format!("{{\"type\":\"message\",\"content\":\"{text}\"}}\n");
        let mut open = Vec::new();
        for n in 0..chorus_wire::limits::CALLBACK_STREAMS_PER_MEMBER {
            let lines = CallbackStream::open(&hub, &to_oak);
            lines.send_piece(&line(&n.to_string()));
            eventually("it is open", async || done(&room).await.len() == n + 1).await;
            open.push(lines);
        }
        let more = CallbackStream::open(&hub, &to_oak);
        more.send_piece(&line("one more"));
        more.finish().await.refused(429, "ERR_TOO_MANY_STREAMS");
        oak.post_answer(&to_oak, "by itself").await;
        let others = CallbackStream::open(&hub, &to_elm);
        others.send_piece(&line("from elm"));
        assert_eq!(others.finish().await.status, 200);
        assert_eq!(open.pop().unwrap().finish().await.status, 200);
        let next = CallbackStream::open(&hub, &to_oak);
        next.send_piece(&line("a place is free again"));
        assert_eq!(next.finish().await.status, 200);
    }
);
