//! Frame filters: the grammar, the error of a malformed filter, and which frames match (FRM-73…82, R-48).

use chorus_wire::frame::{FilterAxis, FilterClause, FrameCode, FrameFilter, FrameKind};
use chorus_wire::identity::Handle;
use proptest::prelude::*;

fn handle(text: &str) -> Handle {
    Handle::parse(text).unwrap()
}

fn refusal_code(text: &str) -> FrameCode {
    let error = FrameFilter::parse(text).unwrap_err();
    assert_eq!(error.field.as_deref(), Some("filter"), "{text}");
    error.code
}

/// The expected error of one clause, written independently of the parser.
fn clause_fault(clause: &str) -> Option<FrameCode> {
    let parts: Vec<&str> = clause.splitn(2, ':').collect();
    let [axis, value] = parts[..] else {
        return Some(FrameCode::FilterValueInvalid);
    };
    let is_ident_char = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_valid = match axis {
        _ if value.is_empty() => false,
        "kind" => FrameKind::TEXTS.contains(&value),
        "sender" => Handle::parse(value).is_some(),
        "content_type" => true,
        "tool" => value.chars().all(is_ident_char) && value.chars().count() <= 128,
        "org" => Handle::parse(value)
            .or(Handle::parse(&format!("~{value}")))
            .is_some(),
        _ => return Some(FrameCode::FilterAxisUnknown),
    };
    (!is_valid).then_some(FrameCode::FilterValueInvalid)
}

fn clauses() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(FrameKind::TEXTS.to_vec()).prop_map(|kind| format!("kind:{kind}")),
        "sender:~[a-c]",
        "tool:[a-c]",
        "org:~?[a-c]",
        "content_type:[a-z/;:]{1,6}",
    ]
}

fn any_clauses() -> impl Strategy<Value = String> {
    prop_oneof![
        clauses(),
        "(kind|sender|tool|org|content_type|color|Kind| kind)?:?[ :~A-Za-z_]{0,4}",
        "(sender|org):~?[a-z-]{30,34}",
        "tool:[a-z]{126,130}",
        "tool:[.]{0,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    // R-48, FRM-75, FRM-76, FRM-81: the error is that of the first faulty clause
    #[test]
    fn a_filter_is_what_the_grammar_says_and_nothing_else(clauses in prop::collection::vec(any_clauses(), 0..5)) {
        let text = clauses.join(",");
        let clause_texts = text.split(',').filter(|_| !text.is_empty());
        let fault = clause_texts.clone().find_map(clause_fault);
        match FrameFilter::parse(&text) {
            Ok(filter) => {
                prop_assert_eq!(fault, None, "{}", text);
                prop_assert_eq!(filter.clauses().len(), clause_texts.count());
                prop_assert_eq!(&filter.to_string().parse::<FrameFilter>().unwrap(), &filter);
                prop_assert_eq!(filter.to_string().replace('~', ""), text.replace('~', ""));
            }
            Err(error) => prop_assert_eq!(Some(error.code), fault, "{}", text),
        }
    }

    // FRM-74: every clause must match
    #[test]
    fn a_frame_passes_if_it_passes_every_clause(
        clauses in prop::collection::vec(clauses(), 0..4),
        kind in prop::sample::select(FrameKind::ALL.to_vec()),
        sender in "~[a-c]",
        tool in prop::option::of("[a-c]"),
        org in prop::option::of("~[a-c]"),
    ) {
        let filter = FrameFilter::parse(&clauses.join(",")).unwrap();
        let sender = handle(&sender);
        let org = org.as_deref().map(handle);
        let holds = |clause: &FilterClause| match clause {
            FilterClause::Kind(wanted) => *wanted == kind,
            FilterClause::Sender(wanted) => *wanted == sender,
            FilterClause::Tool(wanted) => tool.as_deref() == Some(wanted.as_str()),
            FilterClause::Org(wanted) => org.as_ref() == Some(wanted),
            FilterClause::ContentType(_) => false,
        };
        let expected = filter.clauses().iter().all(holds);
        prop_assert_eq!(filter.matches(kind, &sender, tool.as_deref(), org.as_ref()), expected, "{}", filter);
    }
}

// FRM-74
#[test]
fn an_empty_filter_matches_every_frame() {
    for kind in FrameKind::ALL {
        for filter in [FrameFilter::default(), FrameFilter::parse("").unwrap()] {
            assert!(filter.matches(*kind, &handle("~a"), None, None));
            assert_eq!(filter.to_string(), "");
        }
    }
}

//
#[test]
fn a_malformed_clause_is_reported_before_an_unknown_axis() {
    for text in [
        ",",
        "kind:agent_query,",
        ",kind:agent_query",
        "kind",
        "kind:",
        "color",
        "color:",
        "kind:agent_query,,tool:a",
    ] {
        assert_eq!(refusal_code(text), FrameCode::FilterValueInvalid, "{text}");
    }
    for text in [
        "color:red",
        ":a",
        "KIND:agent_query",
        " kind:agent_query",
        "kind:agent_query, tool:a",
    ] {
        assert_eq!(refusal_code(text), FrameCode::FilterAxisUnknown, "{text}");
    }
}

// Invariant 6: the roster repeats the filter of every session
#[test]
fn a_filter_has_at_most_1024_octets() {
    let sized = |octets: usize| {
        format!(
            "content_type:{}",
            "x".repeat(octets - "content_type:".len())
        )
    };
    FrameFilter::parse(&sized(1_024)).unwrap();
    assert_eq!(refusal_code(&sized(1_025)), FrameCode::FilterValueInvalid);
    let orgs = |count: usize| vec!["org:abcde"; count].join(",");
    let longest = FrameFilter::parse(&orgs(93)).unwrap();
    assert_eq!(longest.to_string().parse::<FrameFilter>().unwrap(), longest);
    assert_eq!(
        refusal_code(&orgs(94)),
        FrameCode::FilterValueInvalid,
        "with its tildes it prints as 1 033 octets"
    );
}

// FRM-77, FRM-80: such a clause never widens the filter
#[test]
fn a_clause_that_cannot_take_effect_matches_nothing() {
    let content_type = FrameFilter::parse("content_type:text/plain").unwrap();
    let two_kinds = FrameFilter::parse("kind:agent_query,kind:agent_response").unwrap();
    let two_senders = FrameFilter::parse("sender:~a,sender:~b").unwrap();
    for kind in FrameKind::ALL {
        for filter in [&content_type, &two_kinds, &two_senders] {
            assert!(
                !filter.matches(*kind, &handle("~a"), Some("cc"), Some(&handle("~acme"))),
                "{filter}"
            );
        }
    }
}

#[test]
fn the_axes_are_those_of_the_draft() {
    assert_eq!(
        FilterAxis::TEXTS,
        ["kind", "sender", "content_type", "tool", "org"]
    );
}
