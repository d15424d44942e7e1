//! The reader of event streams: the same events however the bytes are cut (R-25, lessons 3 and 19).

use chorus_wire::cursor::Cursor;
use chorus_wire::limits::STREAM_RECONNECT_DELAY;
use chorus_wire::sse::{
    KEEPALIVE_COMMENT, SseEvent, SseReadError, SseReader, format_event, format_opening_event,
};
use proptest::prelude::*;

const BOUND: usize = 64;

/// All events of `bytes`, read in pieces of the given sizes, and how it ended.
fn read(bytes: &[u8], cuts: &[usize]) -> (Vec<SseEvent>, Result<(), SseReadError>) {
    let (mut reader, mut events, mut rest) = (SseReader::new(BOUND), Vec::new(), bytes);
    for cut in cuts.iter().copied().chain([usize::MAX]) {
        let (chunk, left) = rest.split_at(cut.min(rest.len()));
        if let Err(fault) = reader.read_chunk_into(chunk, &mut events) {
            assert_eq!(
                reader.read_chunk(b"data: more\n\n"),
                Err(fault),
                "a fault is the end"
            );
            return (events, Err(fault));
        }
        rest = left;
    }
    (events, Ok(()))
}

/// Pieces that streams are made of, whole, broken and wrong.
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
    // lesson 19
    #[test]
    fn the_events_are_the_same_however_the_bytes_are_cut(bytes in streams(), cuts in prop::collection::vec(0usize..9, 0..60)) {
        let whole = read(&bytes, &[]);
        prop_assert_eq!(&read(&bytes, &cuts), &whole);
        prop_assert_eq!(&read(&bytes, &vec![1; bytes.len()]), &whole);
    }

    // lesson 3: what a naive reader wants, LF only, `event: ` and `data: ` with the blank, one data line
    #[test]
    fn an_event_that_is_written_reads_back(name in "[a-z_]{1,12}", seq in 0..i64::MAX as u64, data in "[^\n\r\u{0}]{0,20}") {
        for id in [None, Some(Cursor::from_log_seq(seq))] {
            let written = format_event(&name, id, &data);
            let expected = SseEvent { name: name.clone(), id: id.map(|id| id.to_string()), data: data.clone(), retry: None };
            prop_assert_eq!(SseReader::new(1_000).read_chunk(&written).unwrap(), vec![expected]);

            let naive = std::str::from_utf8(&written).unwrap();
            let block = naive.strip_suffix("\n\n").unwrap();
            let after = |prefix: &str| block.split('\n').filter_map(|line| line.strip_prefix(prefix)).collect::<Vec<_>>();
            prop_assert_eq!(after("event: "), vec![name.as_str()]);
            prop_assert_eq!(after("data: "), vec![data.as_str()]);
            prop_assert!(!naive.contains('\r'));
        }
    }
}

#[test]
fn the_opening_says_when_to_come_back_and_is_a_real_event() {
    let read = SseReader::new(1_000)
        .read_chunk(&format_opening_event("connected", "{}"))
        .unwrap();
    let retry = Some(STREAM_RECONNECT_DELAY.as_millis() as u64);
    assert_eq!(
        read,
        [SseEvent {
            name: "connected".into(),
            id: None,
            data: "{}".into(),
            retry
        }]
    );
}

#[test]
fn keepalives_are_no_events_and_may_go_on_for_ever() {
    let mut reader = SseReader::new(BOUND);
    for _ in 0..1_000 {
        assert_eq!(reader.read_chunk(KEEPALIVE_COMMENT), Ok(vec![]));
        assert_eq!(reader.read_chunk(b": without a blank line\n"), Ok(vec![]));
    }
    assert_eq!(reader.read_chunk(b"data: a\n\n").unwrap()[0].data, "a");
}

#[test]
fn an_event_is_bounded_in_one_line_and_in_many() {
    let too_long = Err(SseReadError::TooLong(BOUND));
    assert_eq!(
        SseReader::new(BOUND).read_chunk("a".repeat(BOUND + 1).as_bytes()),
        too_long
    );
    assert_eq!(
        SseReader::new(BOUND).read_chunk("data: aaaaaaaa\n".repeat(10).as_bytes()),
        too_long
    );
    assert_eq!(
        SseReader::new(BOUND).read_chunk(format!("id: {}\n", "a".repeat(BOUND)).as_bytes()),
        too_long
    );
    let mut reader = SseReader::new(BOUND);
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
fn data_lines_are_joined_and_an_event_without_data_is_none() {
    let read = SseReader::new(BOUND)
        .read_chunk(b"event: x\nid: 1\n\ndata: a\ndata: b\ndata\n\ndata\n\n")
        .unwrap();
    let events: Vec<_> = read
        .iter()
        .map(|event| {
            (
                event.name.as_str(),
                event.id.as_deref(),
                event.data.as_str(),
            )
        })
        .collect();
    assert_eq!(events, [("message", None, "a\nb\n"), ("message", None, "")]);
}
