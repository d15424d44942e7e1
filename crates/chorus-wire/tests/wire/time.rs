//! Timestamps as text, compared with an independent calendar (TRN-40, R-15, lesson 9).

use chorus_wire::time::UnixMicros;
use proptest::prelude::*;

/// 0001-01-01 to 9999-12-30, where every year has four digits.
const EARLIEST: i64 = -62_135_596_800_000_000;
const LATEST: i64 = 253_402_200_000_000_000;

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01, counted year by year and month by month.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let whole: i64 = (1970..year).map(|y| 337 + days_in(y, 2)).sum();
    whole + (1..month).map(|m| days_in(year, m)).sum::<i64>() + day - 1
}

proptest! {
    #[test]
    fn a_timestamp_parses_back_to_itself(at in EARLIEST..LATEST) {
        prop_assert_eq!(UnixMicros::parse(&UnixMicros(at).to_string()), Some(UnixMicros(at)));
        let json = serde_json::to_string(&UnixMicros(at)).unwrap();
        prop_assert_eq!(serde_json::from_str::<UnixMicros>(&json).unwrap(), UnixMicros(at));
    }

    // lesson 9: clients compare the text
    #[test]
    fn texts_sort_like_their_timestamps(a in EARLIEST..LATEST, apart in prop_oneof![-3i64..4, -2_000_000..2_000_000i64, any::<i32>().prop_map(i64::from)]) {
        let b = (a + apart).clamp(EARLIEST, LATEST);
        prop_assert_eq!(UnixMicros(a).to_string().cmp(&UnixMicros(b).to_string()), a.cmp(&b));
        prop_assert_eq!(UnixMicros(a).to_rfc3339_millis().cmp(&UnixMicros(b).to_rfc3339_millis()), a.div_euclid(1_000).cmp(&b.div_euclid(1_000)));
    }

    #[test]
    fn a_timestamp_matches_the_calendar(
        (year, month, day) in (1970i64..2400, 0i64..14, 0i64..33),
        (hour, minute, second) in (0i64..26, 0i64..62, 0i64..60),
        nanos in prop::option::of((0u64..1_000_000_000, 1usize..=9)),
        offset in prop::option::of((prop::bool::ANY, 0i64..26, 0i64..62)),
        lower_case in prop::bool::ANY,
    ) {
        let (t, z) = if lower_case { ('t', "z") } else { ('T', "Z") };
        let fraction = nanos.map_or(String::new(), |(n, digits)| format!(".{}", &format!("{n:09}")[..digits]));
        let zone = offset.map_or(z.to_owned(), |(minus, h, m)| format!("{}{h:02}:{m:02}", if minus { '-' } else { '+' }));
        let text = format!("{year:04}-{month:02}-{day:02}{t}{hour:02}:{minute:02}:{second:02}{fraction}{zone}");

        let (is_west, h, m) = offset.unwrap_or_default();
        let exists = (1..13).contains(&month) && (1..=days_in(year, month)).contains(&day) && hour < 24 && minute < 60 && h < 24 && m < 60;
        let east = (h * 3600 + m * 60) * if is_west { -1 } else { 1 };
        let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - east;
        let nanos = nanos.map_or(0, |(n, digits)| n as i64 / 10i64.pow(9 - digits as u32) * 10i64.pow(9 - digits as u32));
        // rounded up, so that `>=` means the same as on the unrounded time.
        let expected = exists.then(|| UnixMicros(seconds * 1_000_000 + (nanos + 999) / 1_000));
        prop_assert_eq!(UnixMicros::parse(&text), expected, "{}", text);
    }

    #[test]
    fn only_rfc_3339_parses_as_a_timestamp(text in prop_oneof![
        "[0-9TZ:. +-]{0,30}",
        "2026-03-20[Tt _]10:00:00([.,][0-9]{0,3})?(Z|z|[+-][0-9]{2}(:?[0-9]{2})?|)(\\[UTC\\])?",
        "[+-]?[0-9]{4,6}-03-20T10:00(:00)?Z",
        ".{0,30}",
    ]) {
        let is_digits = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
        let match_rfc_3339 = |text: &str| {
            let (date, time) = text.split_once(['T', 't'])?;
            let (time, east) = match time.strip_suffix(['Z', 'z']) {
                Some(time) => (time, "00:00"),
                None => time.split_at_checked(time.rfind(['+', '-'])?).map(|(time, zone)| (time, &zone[1..]))?,
            };
            let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
            let fields = |text: &str, mark: char, widths: &[usize]| {
                let parts: Vec<&str> = text.split(mark).collect();
                parts.iter().all(|part| is_digits(part)) && parts.iter().map(|part| part.len()).eq(widths.iter().copied())
            };
            (fields(date, '-', &[4, 2, 2]) && fields(time, ':', &[2, 2, 2]) && fields(east, ':', &[2, 2]) && is_digits(fraction)).then_some(())
        };
        prop_assert!(UnixMicros::parse(&text).is_none() || match_rfc_3339(&text).is_some(), "{}", text);
    }
}

// TRN-40
#[test]
fn the_two_printed_forms() {
    let at = UnixMicros::parse("2026-03-20T11:00:00.1234561+01:00").unwrap();
    assert_eq!(at.to_string(), "2026-03-20T10:00:00.123457Z");
    assert_eq!(at.to_rfc3339_millis(), "2026-03-20T10:00:00.123Z");
    assert_eq!(
        UnixMicros(0).to_rfc3339_millis(),
        "1970-01-01T00:00:00.000Z"
    );
}

// Outside the years 0 to 9999 a text needs a sign and sorts wrongly.
#[test]
fn timestamps_outside_four_digit_years_are_refused() {
    assert!(UnixMicros::parse("0000-01-01T00:00:00Z").is_some());
    for outside in [
        "0000-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59.999Z",
        "9999-12-30T22:00:00.9999999Z",
    ] {
        assert_eq!(UnixMicros::parse(outside), None, "{outside}");
    }
}

// lesson 9: this pair sorts wrongly if fractions are printed only sometimes
#[test]
fn half_a_second_past_sorts_after_the_full_second() {
    let whole = UnixMicros::parse("2026-03-20T10:00:00Z").unwrap();
    let half = UnixMicros::parse("2026-03-20T10:00:00.500Z").unwrap();
    assert!(
        whole.to_string() < half.to_string()
            && whole.to_rfc3339_millis() < half.to_rfc3339_millis()
    );
}
