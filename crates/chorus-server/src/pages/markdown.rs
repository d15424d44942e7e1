//! Our own Markdown as HTML for browsers: the few forms that the skill texts use, everything escaped.

use crate::pages::html::escape_html;

/// What the lines read so far belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MarkdownBlock {
    None,
    Paragraph,
    Bullets,
    Numbers,
    Quote,
}

impl MarkdownBlock {
    fn open_tag(self) -> &'static str {
        match self {
            MarkdownBlock::None => "",
            MarkdownBlock::Paragraph => "<p>",
            MarkdownBlock::Bullets => "<ul>\n<li>",
            MarkdownBlock::Numbers => "<ol>\n<li>",
            MarkdownBlock::Quote => "<blockquote>",
        }
    }

    fn close_tag(self) -> &'static str {
        match self {
            MarkdownBlock::None => "",
            MarkdownBlock::Paragraph => "</p>\n",
            MarkdownBlock::Bullets => "</li>\n</ul>\n",
            MarkdownBlock::Numbers => "</li>\n</ol>\n",
            MarkdownBlock::Quote => "</blockquote>\n",
        }
    }
}

pub fn render_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut block = MarkdownBlock::None;
    let mut lines = strip_front_matter(text).lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            out.push_str(block.close_tag());
            block = MarkdownBlock::None;
            out.push_str("<pre>");
            for code in lines.by_ref().take_while(|code| !code.starts_with("```")) {
                out.push_str(&escape_html(code));
                out.push('\n');
            }
            out.push_str("</pre>\n");
            continue;
        }
        if let Some((level, title)) = parse_heading(line) {
            out.push_str(block.close_tag());
            block = MarkdownBlock::None;
            out.push_str(&format!("<h{level}>{}</h{level}>\n", render_inline(title)));
            continue;
        }
        let (line_block, content) = classify_line(line);
        match line_block {
            // An indented or plain line goes on with what is open.
            MarkdownBlock::Paragraph if block != MarkdownBlock::None => out.push('\n'),
            MarkdownBlock::Bullets | MarkdownBlock::Numbers if line_block == block => {
                out.push_str("</li>\n<li>")
            }
            MarkdownBlock::Quote if line_block == block => out.push('\n'),
            MarkdownBlock::None
            | MarkdownBlock::Paragraph
            | MarkdownBlock::Bullets
            | MarkdownBlock::Numbers
            | MarkdownBlock::Quote => {
                out.push_str(block.close_tag());
                block = line_block;
                out.push_str(block.open_tag());
            }
        }
        out.push_str(&render_inline(content));
    }
    out.push_str(block.close_tag());
    out
}

/// The lines between two `---` at the top are for machines.
fn strip_front_matter(text: &str) -> &str {
    let inner = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"));
    inner.map_or(text, |(_, rest)| rest)
}

fn parse_heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|b| *b == b'#').count();
    let title = line.get(level..)?.strip_prefix(' ')?;
    (1..=4).contains(&level).then_some((level, title))
}

fn classify_line(line: &str) -> (MarkdownBlock, &str) {
    let text = line.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if text.is_empty() {
        (MarkdownBlock::None, "")
    } else if let Some(content) = text.strip_prefix("- ") {
        (MarkdownBlock::Bullets, content)
    } else if let Some(content) = text.strip_prefix("> ") {
        (MarkdownBlock::Quote, content)
    } else if let Some(content) = text[digits..].strip_prefix(". ").filter(|_| digits > 0) {
        (MarkdownBlock::Numbers, content)
    } else {
        (MarkdownBlock::Paragraph, text)
    }
}

/// Code and bold. Marks without a partner stay as they are.
fn render_inline(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 1 {
            out.push_str(&format!("<code>{}</code>", escape_html(part)));
            continue;
        }
        for (index, part) in part.split("**").enumerate() {
            let part = escape_html(part);
            out.push_str(&if index % 2 == 1 {
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
        assert_eq!(render_html(text), expected);
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
            let html = render_html(text);
            for tag in ["<script", "<b>", "<i>", "<u>", "<s>", "<q>"] {
                assert!(!html.contains(tag), "{text}: {html}");
            }
        }
    }
}
