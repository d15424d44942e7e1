//! Filters: what is a filter, what is told of one that is not, and which frames pass (FRM-73…82, R-48).

use chorus_wire::frame::{FilterAxis, FilterClause, FrameCode, FrameFilter, FrameKind};
use chorus_wire::identity::Handle;
use proptest::prelude::*;

fn handle(text: &str) -> Handle {
    Handle::parse(text).unwrap()
}

fn refused(text: &str) -> FrameCode {
    let fault = FrameFilter::parse(text).unwrap_err();
    assert_eq!(fault.field.as_deref(), Some("filter"), "{text}");
    fault.code
}

/// R-48 again, by hand: what becomes of one clause.
fn clause_fault(clause: &str) -> Option<FrameCode> {
    let parts: Vec<&str> = clause.splitn(2, ':').collect();
    let [axis, value] = parts[..] else {
        return Some(FrameCode::FilterValueInvalid);
    };
    let letters = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let good = match axis {
        _ if value.is_empty() => false,
        "kind" => FrameKind::TEXTS.contains(&value),
        "sender" => Handle::parse(value).is_some(),
        "content_type" => true,
        "tool" => value.chars().all(letters) && value.chars().count() <= 128,
        "org" => Handle::parse(value)
            .or(Handle::parse(&format!("~{value}")))
            .is_some(),
        _ => return Some(FrameCode::FilterAxisUnknown),
    };
    (!good).then_some(FrameCode::FilterValueInvalid)
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

fn strange() -> impl Strategy<Value = String> {
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

    // R-48, FRM-75, FRM-76, FRM-81: the first clause at fault is told
    #[test]
    fn a_filter_is_what_the_grammar_says_and_nothing_else(clauses in prop::collection::vec(strange(), 0..5)) {
        let text = clauses.join(",");
        let pieces = text.split(',').filter(|_| !text.is_empty());
        let fault = pieces.clone().find_map(clause_fault);
        match FrameFilter::parse(&text) {
            Ok(filter) => {
                prop_assert_eq!(fault, None, "{}", text);
                prop_assert_eq!(filter.clauses().len(), pieces.count());
                prop_assert_eq!(&filter.to_string().parse::<FrameFilter>().unwrap(), &filter);
                prop_assert_eq!(filter.to_string().replace('~', ""), text.replace('~', ""));
            }
            Err(error) => prop_assert_eq!(Some(error.code), fault, "{}", text),
        }
    }

    // FRM-74: all of them, each on its own
    #[test]
    fn a_frame_passes_if_it_passes_every_clause(
        clauses in prop::collection::vec(clauses(), 0..4),
        kind in prop::sample::select(FrameKind::ALL.to_vec()),
        sender in "~[a-c]",
        tool in prop::option::of("[a-c]"),
        org in prop::option::of("~[a-c]"),
    ) {
        let filter = FrameFilter::parse(&clauses.join(",")).unwrap();
        let (sender, org) = (handle(&sender), org.as_deref().map(handle));
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
fn a_clause_without_its_form_is_told_before_its_axis() {
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
        assert_eq!(refused(text), FrameCode::FilterValueInvalid, "{text}");
    }
    for text in [
        "color:red",
        ":a",
        "KIND:agent_query",
        " kind:agent_query",
        "kind:agent_query, tool:a",
    ] {
        assert_eq!(refused(text), FrameCode::FilterAxisUnknown, "{text}");
    }
}

// Law 6: the roster repeats the filter of every session
#[test]
fn a_filter_has_at_most_1024_octets() {
    let sized = |octets: usize| {
        format!(
            "content_type:{}",
            "x".repeat(octets - "content_type:".len())
        )
    };
    FrameFilter::parse(&sized(1_024)).unwrap();
    assert_eq!(refused(&sized(1_025)), FrameCode::FilterValueInvalid);
    let orgs = |count: usize| vec!["org:abcde"; count].join(",");
    let longest = FrameFilter::parse(&orgs(93)).unwrap();
    assert_eq!(longest.to_string().parse::<FrameFilter>().unwrap(), longest);
    assert_eq!(
        refused(&orgs(94)),
        FrameCode::FilterValueInvalid,
        "it would print as 1 033"
    );
}

// FRM-77, FRM-80: it narrows to nothing and never widens
#[test]
fn a_clause_that_cannot_take_effect_matches_nothing() {
    let filter = FrameFilter::parse("content_type:text/plain").unwrap();
    let both = FrameFilter::parse("kind:agent_query,kind:agent_response").unwrap();
    let two = FrameFilter::parse("sender:~a,sender:~b").unwrap();
    for kind in FrameKind::ALL {
        for filter in [&filter, &both, &two] {
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
