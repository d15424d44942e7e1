//! The texts that teach an agent to take part, as a folder of files that knows which of them are ours (SKL-34).

use super::plan::{Plan, read, wrong};
use crate::fail::Fail;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// What every language has in common.
const TRANSPORT: &str = include_str!("../../../assets/TRANSPORT.md");
/// Beside the texts: which files we wrote, and how they were when we did.
const MARK: &str = ".chorus-skill.json";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Lang {
    #[default]
    #[value(name = "en")]
    En,
    #[value(name = "zh-CN")]
    ZhCn,
}

impl Lang {
    pub fn tag(self) -> &'static str {
        match self {
            Lang::En => "en",
            Lang::ZhCn => "zh-CN",
        }
    }
}

/// The hub that the texts speak of.
#[derive(Clone, Debug)]
pub struct Hub {
    pub url: String,
    pub host: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    lang: String,
    /// Whether hooks came with it; without, none are missing.
    #[serde(default)]
    hooks: bool,
    files: BTreeMap<String, String>,
}

impl Mark {
    fn read(folder: &Path) -> Result<Option<Self>, Fail> {
        let path = folder.join(MARK);
        let text = read(&path)?;
        let not_ours = |e| {
            wrong(
                &path,
                format!("is not a mark of ours ({e}); move it away first"),
            )
        };
        text.map(|text| serde_json::from_str(&text).map_err(not_ours))
            .transpose()
    }

    /// Whether a file is as we wrote it.
    fn knows(&self, name: &str, text: &str) -> bool {
        self.files
            .get(name)
            .is_some_and(|hash| *hash == digest(text))
    }
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The files of a language, with a hub's own names in them.
fn files(lang: Lang, hub: &Hub) -> Vec<(&'static str, String)> {
    let text = chorus_server::SKILLS
        .iter()
        .find(|(tag, _)| *tag == lang.tag())
        .map_or("", |(_, text)| text);
    let named = |text: &str| {
        text.replace("{{HUB_URL}}", &hub.url)
            .replace("{{HOST}}", &hub.host)
    };
    vec![
        ("SKILL.md", named(text)),
        ("TRANSPORT.md", named(TRANSPORT)),
    ]
}

/// Plans the folder. A file that we did not write, or that somebody changed since, is left alone and said aloud.
pub fn install(
    plan: &mut Plan,
    folder: &Path,
    lang: Lang,
    hub: &Hub,
    hooks: bool,
) -> Result<(), Fail> {
    let mark = Mark::read(folder)?;
    let mut written = BTreeMap::new();
    for (name, text) in files(lang, hub) {
        let path = folder.join(name);
        let there = read(&path)?;
        let ours = |there: &str| {
            mark.as_ref().is_some_and(|mark| mark.knows(name, there)) || there == text
        };
        if there.as_deref().is_some_and(|there| !ours(there)) {
            return Err(wrong(
                &path,
                "is not as we wrote it; move it away first, nothing was changed",
            ));
        }
        written.insert(name.to_owned(), digest(&text));
        plan.change(&path, there, Some(text));
    }
    let path = folder.join(MARK);
    let mark = Mark {
        lang: lang.tag().into(),
        hooks,
        files: written,
    };
    let text = serde_json::to_string_pretty(&mark).map_err(|e| wrong(&path, e))?;
    plan.change(&path, read(&path)?, Some(text + "\n"));
    Ok(())
}

/// Plans to take our files away; what somebody changed stays, and is named.
pub fn uninstall(plan: &mut Plan, folder: &Path) -> Result<Vec<String>, Fail> {
    let mut kept = Vec::new();
    let Some(mark) = Mark::read(folder)? else {
        return Ok(kept);
    };
    for name in mark.files.keys() {
        let path = folder.join(name);
        match read(&path)? {
            Some(text) if mark.knows(name, &text) => plan.change(&path, Some(text), None),
            Some(_) => kept.push(path.display().to_string()),
            None => {}
        }
    }
    let path = folder.join(MARK);
    plan.change(&path, read(&path)?, None);
    Ok(kept)
}

/// The language of an installed skill and whether hooks came with it, or what is wrong with it.
pub fn state(folder: &Path) -> Result<(String, bool), String> {
    let shown = folder.display();
    let mark = Mark::read(folder).map_err(|_| format!("{shown}/{MARK} is not a mark of ours"))?;
    let mark = mark.ok_or_else(|| format!("there is no skill of ours in {shown}"))?;
    for name in mark.files.keys() {
        match read(&folder.join(name)) {
            Ok(Some(text)) if mark.knows(name, &text) => {}
            Ok(Some(_)) => return Err(format!("{shown}/{name} was changed since")),
            Ok(None) | Err(_) => return Err(format!("{shown}/{name} is missing")),
        }
    }
    Ok((mark.lang, mark.hooks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_placeholder_is_left_in_any_language() {
        let hub = Hub {
            url: "https://hub.example".into(),
            host: "hub".into(),
        };
        for lang in [Lang::En, Lang::ZhCn] {
            for (name, text) in files(lang, &hub) {
                assert!(
                    text.len() > 1_000 && !text.contains("{{"),
                    "{name} in {lang:?}"
                );
                assert!(
                    text.contains("https://hub.example/messages"),
                    "{name} in {lang:?}"
                );
            }
        }
    }

    // ENV-01…08: the envelope on the page is one.
    #[test]
    fn the_envelope_that_is_shown_is_valid() {
        let shown = TRANSPORT
            .split("```json\n")
            .nth(1)
            .and_then(|rest| rest.split("\n```").next())
            .unwrap();
        chorus_wire::envelope::Envelope::parse(&shown.replace("{{HOST}}", "hub")).unwrap();
    }
}
