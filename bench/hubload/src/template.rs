//! RequestForm templates. MessageParties-placeholders are resolved once per connection; only {{TS}}, {{UUID}},
//! {{SEQ}}, {{NOW}} and {{PAD}} are rendered for each message.
use crate::measurements::read_clock;

/// Length of the {{TS}} marker: `~~` + 16 hex ns + 4 hex publisher + 8 hex sequence + `~~`.
pub const MARKER_BYTES: usize = 32;

pub struct MessageParties<'a> {
    pub sender: &'a BenchAgent,
    pub receiver: &'a BenchAgent,
    pub index: usize,
}

#[derive(Clone, Default)]
pub struct BenchAgent {
    pub id: String,
    pub key: String,
}

enum TemplatePart {
    Lit(Vec<u8>),
    Ts,
    Uuid,
    Seq,
    Now,
    Pad,
}

pub struct RequestTemplate {
    segs: Vec<TemplatePart>,
    size: usize,
}

/// What changes from one message to the next.
pub struct MessageStamp {
    pub ts: u64,
    pub publisher: u32,
    pub seq: u32,
    pub rng: u64,
}

impl RequestTemplate {
    /// `size` > 0 makes {{PAD}} fill the rendered text up to that many bytes.
    pub fn bind(text: &str, who: &MessageParties, size: usize) -> RequestTemplate {
        let text = text
            .replace("{{SENDER}}", &who.sender.id)
            .replace("{{SENDER_KEY}}", &who.sender.key)
            .replace("{{RECEIVER}}", &who.receiver.id)
            .replace("{{RECEIVER_KEY}}", &who.receiver.key)
            .replace("{{I}}", &who.index.to_string());
        let mut segs = Vec::new();
        let mut rest = text.as_str();
        while let Some((lit, after)) = rest.split_once("{{") {
            let (name, tail) = after
                .split_once("}}")
                .unwrap_or_else(|| crate::exit_with_error("unclosed {{ in template"));
            segs.push(TemplatePart::Lit(lit.as_bytes().to_vec()));
            segs.push(match name {
                "TS" => TemplatePart::Ts,
                "UUID" => TemplatePart::Uuid,
                "SEQ" => TemplatePart::Seq,
                "NOW" => TemplatePart::Now,
                "PAD" => TemplatePart::Pad,
                _ => crate::exit_with_error(&format!("unknown placeholder {{{{{name}}}}}")),
            });
            rest = tail;
        }
        segs.push(TemplatePart::Lit(rest.as_bytes().to_vec()));
        RequestTemplate { segs, size }
    }

    pub fn render(&self, out: &mut Vec<u8>, m: &mut MessageStamp) {
        let start = out.len();
        let mut pad_at = None;
        for s in &self.segs {
            match s {
                TemplatePart::Lit(b) => out.extend_from_slice(b),
                TemplatePart::Ts => write_marker(out, m),
                TemplatePart::Uuid => write_uuid(out, &mut m.rng),
                TemplatePart::Seq => write_decimal(out, m.seq as u64),
                TemplatePart::Now => write_timestamp(out),
                TemplatePart::Pad => pad_at = Some(out.len()),
            }
        }
        let len = out.len() - start;
        if let (Some(at), true) = (pad_at, self.size > len) {
            let fill = self.size - len;
            out.resize(out.len() + fill, b'x');
            out[at..].rotate_right(fill);
        }
    }
}

fn write_hex(out: &mut Vec<u8>, v: u64, digits: u32) {
    for i in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(v >> (4 * i)) as usize & 15]);
    }
}

pub fn write_decimal(out: &mut Vec<u8>, mut v: u64) {
    let mut b = [0u8; 20];
    let mut i = b.len();
    loop {
        i -= 1;
        b[i] = b'0' + (v % 10) as u8;
        v /= 10;
        if v == 0 {
            return out.extend_from_slice(&b[i..]);
        }
    }
}

fn write_marker(out: &mut Vec<u8>, m: &MessageStamp) {
    out.extend_from_slice(b"~~");
    write_hex(out, m.ts, 16);
    write_hex(out, m.publisher as u64, 4);
    write_hex(out, m.seq as u64, 8);
    out.extend_from_slice(b"~~");
}

/// (sent at ns, publisher, sequence) if `b` starts with a marker; `b` must hold MARKER_BYTES bytes.
pub fn parse_marker(b: &[u8]) -> Option<(u64, u32, u32)> {
    if &b[..2] != b"~~" || &b[30..32] != b"~~" {
        return None;
    }
    let num = |r: &[u8]| {
        r.iter().try_fold(0u64, |a, &c| {
            Some(a << 4 | (c as char).to_digit(16)? as u64)
        })
    };
    Some((
        num(&b[2..18])?,
        num(&b[18..22])? as u32,
        num(&b[22..30])? as u32,
    ))
}

fn write_uuid(out: &mut Vec<u8>, rng: &mut u64) {
    let mut next = || {
        *rng ^= *rng << 13;
        *rng ^= *rng >> 7;
        *rng ^= *rng << 17;
        *rng
    };
    let a = next();
    let b = next();
    write_hex(out, a >> 32, 8);
    out.push(b'-');
    write_hex(out, a >> 16, 4);
    out.extend_from_slice(b"-4");
    write_hex(out, a, 3);
    out.extend_from_slice(b"-8");
    write_hex(out, b >> 48, 3);
    out.push(b'-');
    write_hex(out, b, 12);
}

fn write_timestamp(out: &mut Vec<u8>) {
    let ns = read_clock(libc::CLOCK_REALTIME);
    let secs = ns / 1_000_000_000;
    let ms = ns / 1_000_000 % 1000;
    // civil date from days since the epoch (Howard Hinnant's algorithm)
    let z = secs / 86400 + 719_468;
    let era = z / 146_097;
    let doe = z % 146_097;
    let yoe = (doe - doe / 1460 + doe / 36524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let d = doy - (153 * mp + 2) / 5 + 1;
    let mo = if mp < 10 { mp + 3 } else { mp - 9 };
    let y = yoe + era * 400 + (mo <= 2) as u64;
    let t = secs % 86400;
    out.extend_from_slice(
        format!(
            "{y:04}-{mo:02}-{d:02}T{:02}:{:02}:{:02}.{ms:03}Z",
            t / 3600,
            t / 60 % 60,
            t % 60
        )
        .as_bytes(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_and_finds_its_own_marker() {
        let a = BenchAgent {
            id: "a".into(),
            key: "k".into(),
        };
        let who = MessageParties {
            sender: &a,
            receiver: &a,
            index: 7,
        };
        let t = RequestTemplate::bind(
            "{\"s\":\"{{SENDER}}{{I}}\",\"n\":{{SEQ}},\"u\":\"{{UUID}}\",\"at\":\"{{NOW}}\",\"t\":\"{{TS}}{{PAD}}\"}",
            &who,
            300,
        );
        let mut out = Vec::new();
        t.render(
            &mut out,
            &mut MessageStamp {
                ts: 12345,
                publisher: 3,
                seq: 42,
                rng: 99,
            },
        );
        assert_eq!(out.len(), 300);
        let s = std::str::from_utf8(&out).unwrap();
        assert!(s.starts_with("{\"s\":\"a7\",\"n\":42,\"u\":\"") && s.ends_with("xx\"}"));
        assert_eq!(
            parse_marker(&out[s.find("~~").unwrap()..]),
            Some((12345, 3, 42))
        );
    }
}
