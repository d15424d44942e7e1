//! Our own Markdown as HTML for browsers: the few forms that the skill texts use, everything escaped.

use crate::pages::escape;

/// What the lines read so far belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    None,
    Paragraph,
    Bullets,
    Numbers,
    Quote,
}

impl Block {
    fn open(self) -> &'static str {
        match self {
            Block::None => "",
            Block::Paragraph => "<p>",
            Block::Bullets => "<ul>\n<li>",
            Block::Numbers => "<ol>\n<li>",
            Block::Quote => "<blockquote>",
        }
    }

    fn close(self) -> &'static str {
        match self {
            Block::None => "",
            Block::Paragraph => "</p>\n",
            Block::Bullets => "</li>\n</ul>\n",
            Block::Numbers => "</li>\n</ol>\n",
            Block::Quote => "</blockquote>\n",
        }
    }
}

pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut block = Block::None;
    let mut lines = without_front_matter(text).lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            out.push_str(block.close());
            block = Block::None;
            out.push_str("<pre>");
            for code in lines.by_ref().take_while(|code| !code.starts_with("```")) {
                out.push_str(&escape(code));
                out.push('\n');
            }
            out.push_str("</pre>\n");
            continue;
        }
        if let Some((level, title)) = heading(line) {
            out.push_str(block.close());
            block = Block::None;
            out.push_str(&format!("<h{level}>{}</h{level}>\n", inline(title)));
            continue;
        }
        let (found, said) = kind(line);
        match found {
            // An indented or plain line goes on with what is open.
            Block::Paragraph if block != Block::None => out.push('\n'),
            Block::Bullets | Block::Numbers if found == block => out.push_str("</li>\n<li>"),
            Block::Quote if found == block => out.push('\n'),
            Block::None | Block::Paragraph | Block::Bullets | Block::Numbers | Block::Quote => {
                out.push_str(block.close());
                block = found;
                out.push_str(block.open());
            }
        }
        out.push_str(&inline(said));
    }
    out.push_str(block.close());
    out
}

/// The lines between two `---` at the top are for machines.
fn without_front_matter(text: &str) -> &str {
    let inner = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"));
    inner.map_or(text, |(_, rest)| rest)
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|b| *b == b'#').count();
    let title = line.get(level..)?.strip_prefix(' ')?;
    (1..=4).contains(&level).then_some((level, title))
}

fn kind(line: &str) -> (Block, &str) {
    let text = line.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if text.is_empty() {
        (Block::None, "")
    } else if let Some(said) = text.strip_prefix("- ") {
        (Block::Bullets, said)
    } else if let Some(said) = text.strip_prefix("> ") {
        (Block::Quote, said)
    } else if let Some(said) = text[digits..].strip_prefix(". ").filter(|_| digits > 0) {
        (Block::Numbers, said)
    } else {
        (Block::Paragraph, text)
    }
}

/// Code and bold. Marks without a partner stay as they are.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for (place, part) in text.split('`').enumerate() {
        if place % 2 == 1 {
            out.push_str(&format!("<code>{}</code>", escape(part)));
            continue;
        }
        for (place, part) in part.split("**").enumerate() {
            let part = escape(part);
            out.push_str(&if place % 2 == 1 {
                format!("<strong>{part}</strong>")
            } else {
                part
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_the_skill_become_elements() {
        let text = "---\nname: x\n---\n# A `b`\n\nOne **two**\nthree\n\n- a\n  goes on\n- b\n\n1. x\n2. y\n\n> q\n\n```json\n{\"a\": 1}\n```\n";
        let expected = "<h1>A <code>b</code></h1>\n<p>One <strong>two</strong>\nthree</p>\n<ul>\n<li>a\ngoes on</li>\n<li>b</li>\n</ul>\n\
                        <ol>\n<li>x</li>\n<li>y</li>\n</ol>\n<blockquote>q</blockquote>\n<pre>{&quot;a&quot;: 1}\n</pre>\n";
        assert_eq!(html(text), expected);
    }

    /// Failure 7
    #[test]
    fn nothing_in_a_text_becomes_markup_of_its_own() {
        for text in [
            "<script>",
            "# <b>",
            "- `<i>`",
            "```\n<u>\n```",
            "**<s>**",
            "> <q>",
        ] {
            let html = html(text);
            for tag in ["<script", "<b>", "<i>", "<u>", "<s>", "<q>"] {
                assert!(!html.contains(tag), "{text}: {html}");
            }
        }
    }
}
