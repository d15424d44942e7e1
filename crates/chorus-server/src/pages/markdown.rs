//! Renders our own Markdown texts as HTML for browsers. Every text is escaped, raw HTML included (failure 7).

use super::html::escape_html;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Renders a text without its front matter.
pub fn render_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut is_front_matter = false;
    let mut is_quote = false;
    for event in Parser::new_ext(text, Options::ENABLE_YAML_STYLE_METADATA_BLOCKS) {
        match event {
            Event::Start(Tag::MetadataBlock(_)) => is_front_matter = true,
            Event::End(TagEnd::MetadataBlock(_)) => is_front_matter = false,
            Event::Text(_) if is_front_matter => {}
            // A quote of the skill texts is one paragraph and is printed without the inner element.
            Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph) if is_quote => {}
            Event::Start(tag) => {
                is_quote |= matches!(tag, Tag::BlockQuote(_));
                out.push_str(&html_around(tag.to_end()).0);
            }
            Event::End(tag) => {
                is_quote &= !matches!(tag, TagEnd::BlockQuote(_));
                out.push_str(&html_around(tag).1);
            }
            Event::Code(code) => {
                out.push_str(&format!("<code>{}</code>", escape_html(&code)));
            }
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => out.push_str(&escape_html(&text)),
            Event::SoftBreak => out.push('\n'),
            Event::HardBreak => out.push_str("<br>\n"),
            Event::Rule => out.push_str("<hr>\n"),
            Event::TaskListMarker(_) => {}
        }
    }
    out
}

/// The HTML before and after an element. Links and images become their text: the skill texts have none.
fn html_around(tag: TagEnd) -> (String, String) {
    let (open, close) = match tag {
        TagEnd::Heading(level) => return (format!("<{level}>"), format!("</{level}>\n")),
        TagEnd::Paragraph | TagEnd::HtmlBlock => ("<p>", "</p>\n"),
        TagEnd::BlockQuote(_) => ("<blockquote>", "</blockquote>\n"),
        TagEnd::CodeBlock => ("<pre>", "</pre>\n"),
        TagEnd::List(true) => ("<ol>\n", "</ol>\n"),
        TagEnd::List(false) => ("<ul>\n", "</ul>\n"),
        TagEnd::Item => ("<li>", "</li>\n"),
        TagEnd::Emphasis => ("<em>", "</em>"),
        TagEnd::Strong => ("<strong>", "</strong>"),
        TagEnd::FootnoteDefinition
        | TagEnd::DefinitionList
        | TagEnd::DefinitionListTitle
        | TagEnd::DefinitionListDefinition
        | TagEnd::Table
        | TagEnd::TableHead
        | TagEnd::TableRow
        | TagEnd::TableCell
        | TagEnd::Strikethrough
        | TagEnd::Superscript
        | TagEnd::Subscript
        | TagEnd::Link
        | TagEnd::Image
        | TagEnd::MetadataBlock(_) => ("", ""),
    };
    (open.to_owned(), close.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_markdown_of_the_skill_becomes_html() {
        let text = "---\nname: x\n---\n# A `b`\n\nOne **two**\nthree\n\n- a\n  goes on\n- b\n\n1. x\n2. y\n\n> q\n\n```json\n{\"a\": 1}\n```\n";
        let expected = "<h1>A <code>b</code></h1>\n<p>One <strong>two</strong>\nthree</p>\n<ul>\n<li>a\ngoes on</li>\n<li>b</li>\n</ul>\n\
                        <ol>\n<li>x</li>\n<li>y</li>\n</ol>\n<blockquote>q</blockquote>\n<pre>{&quot;a&quot;: 1}\n</pre>\n";
        assert_eq!(render_html(text), expected);
    }

    /// Failure 7
    #[test]
    fn raw_html_in_a_text_is_escaped() {
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
