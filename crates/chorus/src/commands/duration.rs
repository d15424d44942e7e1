//! Parses and prints durations: `500ms`, `5s`, `10m`, `2h`, `90d`.

use std::time::Duration;

pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let parse_error = || "a time looks like 500ms, 5s, 10m, 2h or 90d".to_owned();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| parse_error())?;
    let unit = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(parse_error()),
    };
    number
        .checked_mul(unit)
        .filter(|ms| *ms > 0)
        .map(Duration::from_millis)
        .ok_or_else(parse_error)
}

pub fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// `4m05s`, `59s`, `2h10m`.
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_printed() {
        for (text, ms) in [
            ("500ms", 500),
            ("5s", 5_000),
            ("10m", 600_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(parse_duration(text).map(as_millis), Ok(ms), "{text}");
        }
        for bad in [
            "",
            "5",
            "s",
            "0s",
            "-1s",
            "1.5s",
            "5 s",
            "99999999999999999999s",
            "9999999999999999999h",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        let shown = [59, 245, 7_800].map(|seconds| format_duration(Duration::from_secs(seconds)));
        assert_eq!(shown, ["59s", "4m05s", "2h10m"]);
    }
}
