//! Language tags, compared with an independent implementation of the grammar of RFC 5646.

use chorus_wire::identity::check_culture_tag;
use proptest::prelude::*;
use std::ops::RangeInclusive;

fn is_alpha(tag: &str, length: RangeInclusive<usize>) -> bool {
    length.contains(&tag.len()) && tag.chars().all(|c| c.is_ascii_alphabetic())
}

fn is_alphanumeric(tag: &str, length: RangeInclusive<usize>) -> bool {
    length.contains(&tag.len()) && tag.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Skips up to `max` subtags from the front while they match.
fn skip<'a, 'b>(tags: &'b [&'a str], max: usize, matches: impl Fn(&str) -> bool) -> &'b [&'a str] {
    let skipped = tags.iter().take(max).take_while(|tag| matches(tag)).count();
    &tags[skipped..]
}

/// Language of two or three letters, extended languages, script, region, variants, extensions, private use.
fn is_tag(text: &str) -> bool {
    let irregular = ["en-gb-oed", "sgn-be-fr", "sgn-be-nl", "sgn-ch-de"];
    if irregular.contains(&text.to_ascii_lowercase().as_str()) {
        return true;
    }
    let subtags: Vec<&str> = text.split('-').collect();
    let [language, rest @ ..] = &subtags[..] else {
        return false;
    };
    if !is_alpha(language, 2..=3) || text.len() > 64 {
        return false;
    }
    let grandfathered = [
        "art-lojban",
        "cel-gaulish",
        "zh-guoyu",
        "zh-hakka",
        "zh-min",
        "zh-min-nan",
        "zh-xiang",
    ];
    if grandfathered.contains(&text.to_ascii_lowercase().as_str()) {
        return true;
    }
    let rest = skip(rest, 3, |tag| is_alpha(tag, 3..=3));
    let rest = skip(rest, 1, |tag| is_alpha(tag, 4..=4));
    let digits = |tag: &str| tag.len() == 3 && tag.chars().all(|c| c.is_ascii_digit());
    let rest = skip(rest, 1, |tag| is_alpha(tag, 2..=2) || digits(tag));
    let variant = |tag: &str| {
        is_alphanumeric(tag, 5..=8)
            || is_alphanumeric(tag, 4..=4) && tag.starts_with(|c: char| c.is_ascii_digit())
    };
    let mut rest = skip(rest, usize::MAX, variant);
    while let [singleton, after @ ..] = rest {
        let private = singleton.eq_ignore_ascii_case("x");
        let value = |tag: &str| is_alphanumeric(tag, if private { 1..=8 } else { 2..=8 });
        let left = skip(after, usize::MAX, value);
        if !is_alphanumeric(singleton, 1..=1) || left.len() == after.len() {
            return false;
        }
        rest = left;
    }
    true
}

fn tags() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z]{1,4}(-[a-zA-Z]{1,9}){0,4}",
        "[a-z]{2,3}(-[a-z]{3}){0,4}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?(-[0-9][a-z0-9]{3})?(-[a-z0-9]{5,8})?",
        "[a-z]{2}(-[a-wyz](-[a-z0-9]{1,8}){0,2}){0,2}(-x(-[a-z0-9]{0,8}){0,2})?",
        "[a-z]{2}(-[a-z0-9]{8}){5,8}",
        "[a-zA-Z0-9_ -]{0,12}",
        ".{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn a_culture_is_a_well_formed_tag_and_nothing_else(text in tags()) {
        prop_assert_eq!(check_culture_tag("sender_culture", &text).is_ok(), is_tag(&text), "{}", text);
    }
}

// any letter case
#[test]
fn common_language_tags_are_accepted() {
    for tag in [
        "en",
        "ja",
        "zh-CN",
        "zh-Hant-TW",
        "ZH-cn",
        "pt-BR",
        "sr-Latn-RS",
        "es-419",
        "yue",
        "sl-rozaj-biske",
        "de-u-co-phonebk",
    ] {
        check_culture_tag("sender_culture", tag).unwrap();
    }
}
