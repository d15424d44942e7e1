//! A filter that is accepted reads back as itself, and passes what all of its clauses pass.

#![no_main]

use chorus_wire::frame::{Clause, Filter, Kind};
use chorus_wire::identity::Handle;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(filter) = Filter::parse(text) else { return };
    assert_eq!(
        Filter::parse(&filter.to_string()).expect("what was printed"),
        filter
    );
    let sender = Handle::parse("~alice").expect("a handle");
    for kind in Kind::ALL {
        let all = filter.clauses().iter().all(|clause| match clause {
            Clause::Kind(wanted) => wanted == kind,
            Clause::Sender(wanted) => *wanted == sender,
            Clause::Tool(wanted) => wanted.as_str() == "cc",
            Clause::Org(_) | Clause::ContentType(_) => false,
        });
        assert_eq!(filter.matches(*kind, &sender, Some("cc"), None), all);
    }
});
