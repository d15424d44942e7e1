//! An accepted filter parses back from its printed form, and matches exactly what all of its clauses match.

#![no_main]

use chorus_wire::frame::{FilterClause, FrameFilter, FrameKind};
use chorus_wire::identity::Handle;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(filter) = FrameFilter::parse(text) else {
        return;
    };
    assert_eq!(
        FrameFilter::parse(&filter.to_string()).expect("a printed filter parses"),
        filter
    );
    let sender = Handle::parse("~alice").expect("a handle");
    for kind in FrameKind::ALL {
        let expected = filter.clauses().iter().all(|clause| match clause {
            FilterClause::Kind(wanted) => wanted == kind,
            FilterClause::Sender(wanted) => *wanted == sender,
            FilterClause::Tool(wanted) => wanted.as_str() == "cc",
            FilterClause::Org(_) | FilterClause::ContentType(_) => false,
        });
        assert_eq!(filter.matches(*kind, &sender, Some("cc"), None), expected);
    }
});
