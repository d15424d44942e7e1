//! The SSE parser: the same events for any chunking of the bytes (R-25, lessons 3 and 19).

use chorus_wire::cursor::Cursor;
use chorus_wire::event_chunk::{EventChunkReader, format_opening_chunk};
use chorus_wire::limits::STREAM_RECONNECT_DELAY;
use chorus_wire::sse::{SseEvent, SseReadError, SseReader, format_event};
use proptest::prelude::*;

const MAX_EVENT_BYTES: usize = 64;

/// Parses `bytes` in chunks of the given sizes: all events, and the error if any.
fn read_chunks(bytes: &[u8], chunk_sizes: &[usize]) -> (Vec<SseEvent>, Result<(), SseReadError>) {
    let mut reader = SseReader::new(MAX_EVENT_BYTES);
    let mut events = Vec::new();
    let mut rest = bytes;
    for size in chunk_sizes.iter().copied().chain([usize::MAX]) {
        let (chunk, left) = rest.split_at(size.min(rest.len()));
        if let Err(error) = reader.read_chunk_into(chunk, &mut events) {
            assert_eq!(
                reader.read_chunk(b"data: more\n\n"),
                Err(error),
                "an error is final"
            );
            return (events, Err(error));
        }
        rest = left;
    }
    (events, Ok(()))
}

/// Streams of valid, incomplete and invalid pieces.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "data: a\n",
        "data:b\r\n",
        "data\r",
        "data:  two blanks\n",
        "event: chunk\n",
        "event:\n",
        "id: 7\r",
        "id: \0\n",
        "id\n",
        "retry: 10\n",
        "retry: x\n",
        ": comment\n",
        ":\n",
        "\n",
        "\r\n",
        "\r",
        "\n\n",
        "unknown: x\n",
        "data: 下午🎼\n",
        "\u{feff}",
        "data: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
        " data: x\n",
        "da",
        "ta: ",
    ]);
    let bytes = prop_oneof![
        20 => piece.prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 1..4),
    ];
    prop::collection::vec(bytes, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    // failure 19
    #[test]
    fn the_events_are_the_same_for_any_chunking(bytes in streams(), chunk_sizes in prop::collection::vec(0usize..9, 0..60)) {
        let whole = read_chunks(&bytes, &[]);
        prop_assert_eq!(&read_chunks(&bytes, &chunk_sizes), &whole);
        prop_assert_eq!(&read_chunks(&bytes, &vec![1; bytes.len()]), &whole);
    }

    // lesson 3: a naive parser needs LF only, `event: ` and `data: ` with the space, and one data line
    #[test]
    fn a_formatted_event_parses_back(name in "[a-z_]{1,12}", seq in 0..i64::MAX as u64, data in "[^\n\r\u{0}]{0,20}") {
        for id in [None, Some(Cursor::from_log_seq(seq))] {
            let formatted = format_event(&name, id, &data);
            let expected = SseEvent { name: name.clone(), id: id.map(|id| id.to_string()), data: data.clone(), retry: None };
            prop_assert_eq!(SseReader::new(1_000).read_chunk(&formatted).unwrap(), vec![expected]);

            let text = std::str::from_utf8(&formatted).unwrap();
            let block = text.strip_suffix("\n\n").unwrap();
            let values_of = |prefix: &str| block.split('\n').filter_map(|line| line.strip_prefix(prefix)).collect::<Vec<_>>();
            prop_assert_eq!(values_of("event: "), vec![name.as_str()]);
            prop_assert_eq!(values_of("data: "), vec![data.as_str()]);
            prop_assert!(!text.contains('\r'));
        }
    }
}

#[test]
fn the_opening_event_has_a_retry_and_is_a_real_event() {
    let opening = format_opening_chunk("connected", Some(Cursor::from_log_seq(7)), "{}");
    let events = EventChunkReader::new(1_000).read_pieces([opening]);
    let retry = Some(STREAM_RECONNECT_DELAY.as_millis() as u64);
    assert_eq!(
        events,
        [SseEvent {
            name: "connected".into(),
            id: Some("7".into()),
            data: "{}".into(),
            retry
        }]
    );
}

#[test]
fn any_number_of_keepalives_yields_no_event() {
    let mut reader = SseReader::new(MAX_EVENT_BYTES);
    for _ in 0..1_000 {
        assert_eq!(reader.read_chunk(b": keepalive\n\n"), Ok(vec![]));
        assert_eq!(reader.read_chunk(b": without a blank line\n"), Ok(vec![]));
    }
    assert_eq!(reader.read_chunk(b"data: a\n\n").unwrap()[0].data, "a");
}

#[test]
fn an_event_is_limited_over_all_its_lines() {
    let too_long = Err(SseReadError::TooLong(MAX_EVENT_BYTES));
    assert_eq!(
        SseReader::new(MAX_EVENT_BYTES).read_chunk("a".repeat(MAX_EVENT_BYTES + 1).as_bytes()),
        too_long
    );
    assert_eq!(
        SseReader::new(MAX_EVENT_BYTES).read_chunk("data: aaaaaaaa\n".repeat(10).as_bytes()),
        too_long
    );
    assert_eq!(
        SseReader::new(MAX_EVENT_BYTES)
            .read_chunk(format!("id: {}\n", "a".repeat(MAX_EVENT_BYTES)).as_bytes()),
        too_long
    );
    let mut reader = SseReader::new(MAX_EVENT_BYTES);
    for _ in 0..10 {
        assert_eq!(
            reader
                .read_chunk(format!("data: {}\n\n", "a".repeat(40)).as_bytes())
                .unwrap()
                .len(),
            1
        );
    }
}

#[test]
fn data_lines_are_joined_and_an_event_without_data_is_dropped() {
    let events = SseReader::new(MAX_EVENT_BYTES)
        .read_chunk(b"event: x\nid: 1\n\ndata: a\ndata: b\ndata\n\ndata\n\n")
        .unwrap();
    let fields: Vec<_> = events
        .iter()
        .map(|event| {
            (
                event.name.as_str(),
                event.id.as_deref(),
                event.data.as_str(),
            )
        })
        .collect();
    assert_eq!(fields, [("message", None, "a\nb\n"), ("message", None, "")]);
}
