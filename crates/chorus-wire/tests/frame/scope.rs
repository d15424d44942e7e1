//! Scopes, compared with an independent implementation of the grammar of.

use chorus_wire::frame::{FrameCode, FrameScope, RoleName, ScopeIdent};
use proptest::prelude::*;

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";

fn has_only(text: &str, set: &str) -> bool {
    text.chars().all(|c| set.contains(c))
}

fn is_handle(text: &str) -> bool {
    let Some(name) = text.strip_prefix('~') else {
        return false;
    };
    let has_outer_dash = name.starts_with('-') || name.ends_with('-');
    has_only(name, &format!("{LOWER}-"))
        && (1..=32).contains(&name.chars().count())
        && !has_outer_dash
        && name != "org"
}

fn is_org(text: &str) -> bool {
    is_handle(text) || is_handle(&format!("~{text}"))
}

fn is_ident(text: &str) -> bool {
    let set = format!("{LOWER}{}._-", LOWER.to_uppercase());
    has_only(text, &set) && (1..=128).contains(&text.chars().count())
}

fn is_role(text: &str) -> bool {
    has_only(text, &format!("{LOWER}._-"))
        && (1..=64).contains(&text.chars().count())
        && !text.starts_with(['.', '_', '-'])
}

fn is_scope(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    let org = parts[0].strip_prefix("org:").is_some_and(is_org);
    let accord = parts[0].strip_prefix("accord:").is_some_and(is_org);
    match parts[..] {
        [handle] => is_handle(handle),
        [handle, "*"] if handle.starts_with('~') => is_handle(handle),
        [_, grant] if accord => grant.strip_prefix("grant:").is_some_and(is_role),
        [handle, sessions] => {
            let prefix = sessions.strip_suffix('*').is_some_and(is_ident);
            let session: Vec<&str> = sessions.split('@').collect();
            is_handle(handle)
                && (prefix || session.len() == 2 && session.iter().all(|part| is_ident(part)))
        }
        [_, "members", "*"] => org,
        [_, "members", role, "*"] => org && is_role(role),
        _ => false,
    }
}

fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("~"),
        Just("alice"),
        Just("acme"),
        Just("org"),
        Just("accord"),
        Just(":"),
        Just("/"),
        Just("members"),
        Just("*"),
        Just("@"),
        Just("grant:"),
        Just("cc-"),
        Just("-"),
        Just("."),
        Just("A"),
        Just("é"),
        Just(" "),
    ];
    prop_oneof![
        "~[a-z0-9-]{1,4}(/[A-Za-z0-9._-]{0,3}[*@]?[a-z]{0,2})?",
        "~[a-z0-9-]{30,34}(/[*])?",
        "~a/[a-z]{126,130}[*]",
        "~a/[a-z]{126,130}@[a-z]{126,130}",
        "org:~?[a-z-]{1,3}/members(/[a-zA-Z0-9._-]{0,3})?/[*]?",
        "org:~?a/members/[a-z]{62,66}/[*]",
        "accord:~?[a-z]{1,3}/grant:[a-z0-9._-]{0,4}",
        prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat()),
        ".{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    //
    #[test]
    fn a_scope_is_what_the_grammar_says_and_nothing_else(text in texts()) {
        let parsed = FrameScope::parse(&text);
        prop_assert_eq!(parsed.is_some(), is_scope(&text), "{}", text);
        if let Some(scope) = parsed {
            let printed = scope.to_string();
            prop_assert_eq!(FrameScope::parse(&printed), Some(scope.clone()));
            prop_assert_eq!(printed.parse::<FrameScope>().unwrap().to_string(), printed);
            prop_assert!(text.contains(&scope.addressed_handle().as_str()[1..]));
            prop_assert_eq!(scope.addressed_org().is_some(), text.starts_with("org:") || text.starts_with("accord:"));
        } else {
            let error = text.parse::<FrameScope>().unwrap_err();
            prop_assert_eq!((error.code, error.field.as_deref()), (FrameCode::FieldInvalid, Some("scope")));
        }
    }

    #[test]
    fn instruments_and_roles_are_what_their_grammars_say(text in prop_oneof!["[a-zA-Z0-9._-]{0,4}", "[a-z]{62,66}", "[A-Z]{126,130}", ".{0,4}"]) {
        prop_assert_eq!(ScopeIdent::parse(&text).map(|it| it.to_string()), is_ident(&text).then(|| text.clone()));
        prop_assert_eq!(RoleName::parse(&text).map(|it| it.to_string()), is_role(&text).then(|| text.clone()));
    }
}

// FRM-49…55
#[test]
fn every_form_of_the_draft_parses_to_its_variant() {
    let handle = |text: &str| chorus_wire::identity::Handle::parse(text).unwrap();
    let ident = |text: &str| ScopeIdent::parse(text).unwrap();
    let role = |text: &str| RoleName::parse(text).unwrap();
    let forms = [
        ("~alice", FrameScope::Handle(handle("~alice"))),
        ("~alice/*", FrameScope::Handle(handle("~alice"))),
        (
            "~alice/cc-*",
            FrameScope::Prefix(handle("~alice"), ident("cc-")),
        ),
        (
            "~alice/cc-editor@s1",
            FrameScope::Session(handle("~alice"), ident("cc-editor"), ident("s1")),
        ),
        (
            "org:~acme/members/*",
            FrameScope::OrgMembers(handle("~acme")),
        ),
        (
            "org:~acme/members/dev/*",
            FrameScope::OrgRole(handle("~acme"), role("dev")),
        ),
        (
            "org:~acme/members/members/*",
            FrameScope::OrgRole(handle("~acme"), role("members")),
        ),
        (
            "accord:~peer/grant:ops",
            FrameScope::Accord(handle("~peer"), role("ops")),
        ),
    ];
    for (text, scope) in forms {
        assert_eq!(FrameScope::parse(text), Some(scope), "{text}");
    }
}

//
#[test]
fn an_organisation_is_the_same_with_and_without_its_tilde() {
    for form in [
        "org:X/members/*",
        "org:X/members/dev/*",
        "accord:X/grant:ops",
    ] {
        let bare = FrameScope::parse(&form.replace('X', "acme")).unwrap();
        assert_eq!(
            FrameScope::parse(&form.replace('X', "~acme")),
            Some(bare.clone())
        );
        assert_eq!(bare.to_string(), form.replace('X', "~acme"));
        for org in ["", "~~acme", "~", "org", "~org", "Acme", "a@b"] {
            assert_eq!(FrameScope::parse(&form.replace('X', org)), None, "{org}");
        }
    }
}
