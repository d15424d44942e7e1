//! Installs the skill texts for a host, with a mark file that records which files are ours (SKL-34).

use super::change_plan::{ChangePlan, file_error, read_file};
use crate::fail::Fail;
use chorus_server::TRANSPORT_TEXT;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// The mark file: which files were installed, with their hashes.
const MARK_FILE: &str = ".chorus-skill.json";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum SkillLanguage {
    #[default]
    #[value(name = "en")]
    En,
    #[value(name = "zh-CN")]
    ZhCn,
}

impl SkillLanguage {
    pub fn language_tag(self) -> &'static str {
        match self {
            SkillLanguage::En => "en",
            SkillLanguage::ZhCn => "zh-CN",
        }
    }

    pub fn from_tag(tag: &str) -> Option<Self> {
        [SkillLanguage::En, SkillLanguage::ZhCn]
            .into_iter()
            .find(|lang| lang.language_tag() == tag)
    }
}

/// The hub's names for the texts.
#[derive(Clone, Debug)]
pub struct HubNames {
    pub url: String,
    pub host: String,
}

impl HubNames {
    /// Placeholders, where no hub is known.
    pub fn unknown() -> Self {
        Self {
            url: "<hub_url>".into(),
            host: "<host>".into(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct SkillMark {
    lang: String,
    /// Whether hooks were installed too; if not, `verify` does not miss them.
    #[serde(default)]
    hooks: bool,
    files: BTreeMap<String, String>,
}

impl SkillMark {
    fn read_from(folder: &Path) -> Result<Option<Self>, Fail> {
        let path = folder.join(MARK_FILE);
        let text = read_file(&path)?;
        let mark_error = |e| {
            file_error(
                &path,
                format!("is not a mark of ours ({e}); move it away first"),
            )
        };
        text.map(|text| serde_json::from_str(&text).map_err(mark_error))
            .transpose()
    }

    /// Whether a file is unchanged since it was installed.
    fn has_file(&self, name: &str, text: &str) -> bool {
        self.files
            .get(name)
            .is_some_and(|hash| *hash == text_digest(text))
    }
}

fn text_digest(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A text with the hub's names filled in.
fn fill_names(text: &str, hub: &HubNames) -> String {
    text.replace("{{HUB_URL}}", &hub.url)
        .replace("{{HOST}}", &hub.host)
}

/// The skill text of a language.
pub fn skill_text(lang: SkillLanguage, hub: &HubNames) -> String {
    let text = chorus_server::SKILL_TEXTS
        .iter()
        .find(|(tag, _)| *tag == lang.language_tag())
        .map_or("", |(_, text)| text);
    fill_names(text, hub)
}

/// The files of a language, with the hub's names filled in.
/// A host reads `SKILL.md`, so that is the chosen language; the other one lies beside it (SKL-34).
pub fn skill_files(lang: SkillLanguage, hub: &HubNames) -> Vec<(&'static str, String)> {
    let other = match lang {
        SkillLanguage::En => ("SKILL.zh-CN.md", skill_text(SkillLanguage::ZhCn, hub)),
        SkillLanguage::ZhCn => ("SKILL.en.md", skill_text(SkillLanguage::En, hub)),
    };
    vec![
        ("SKILL.md", skill_text(lang, hub)),
        other,
        ("TRANSPORT.md", fill_names(TRANSPORT_TEXT, hub)),
        ("envelope.schema.json", envelope_schema()),
    ]
}

/// The JSON Schema of an envelope, by which a program checks one without a hub.
fn envelope_schema() -> String {
    let schemas = chorus_wire::schemas::request_schemas("#/$defs/");
    let schema = schemas.get("Envelope").cloned().unwrap_or_default();
    format!("{schema:#}\n")
}

/// Plans the skill's files. A file that was not installed by us, or was changed since, is an error.
pub fn install_skill(
    plan: &mut ChangePlan,
    folder: &Path,
    lang: SkillLanguage,
    hub: &HubNames,
    hooks: bool,
) -> Result<(), Fail> {
    let mark = SkillMark::read_from(folder)?;
    let mut written = BTreeMap::new();
    for (name, text) in skill_files(lang, hub) {
        let path = folder.join(name);
        let existing = read_file(&path)?;
        let is_ours = |existing: &str| {
            mark.as_ref()
                .is_some_and(|mark| mark.has_file(name, existing))
                || existing == text
        };
        if existing
            .as_deref()
            .is_some_and(|existing| !is_ours(existing))
        {
            return Err(file_error(
                &path,
                "is not as we wrote it; move it away first, nothing was changed",
            ));
        }
        written.insert(name.to_owned(), text_digest(&text));
        plan.add_change(&path, existing, Some(text));
    }
    // What an earlier version or another language installed and this one does not.
    let installed_before = mark.iter().flat_map(|mark| mark.files.keys());
    for name in installed_before.filter(|name| !written.contains_key(*name)) {
        let path = folder.join(name);
        let existing = read_file(&path)?;
        let is_unchanged =
            |text: &String| mark.as_ref().is_some_and(|mark| mark.has_file(name, text));
        if existing.as_ref().is_some_and(is_unchanged) {
            plan.add_change(&path, existing, None);
        }
    }
    let path = folder.join(MARK_FILE);
    let mark = SkillMark {
        lang: lang.language_tag().into(),
        hooks,
        files: written,
    };
    let text = serde_json::to_string_pretty(&mark).map_err(|e| file_error(&path, e))?;
    plan.add_change(&path, read_file(&path)?, Some(text + "\n"));
    Ok(())
}

/// Plans to remove our files; returns the changed ones, which stay.
pub fn uninstall_skill(plan: &mut ChangePlan, folder: &Path) -> Result<Vec<String>, Fail> {
    let mut kept_files = Vec::new();
    let Some(mark) = SkillMark::read_from(folder)? else {
        return Ok(kept_files);
    };
    for name in mark.files.keys() {
        let path = folder.join(name);
        match read_file(&path)? {
            Some(text) if mark.has_file(name, &text) => plan.add_change(&path, Some(text), None),
            Some(_) => kept_files.push(path.display().to_string()),
            None => {}
        }
    }
    let path = folder.join(MARK_FILE);
    plan.add_change(&path, read_file(&path)?, None);
    Ok(kept_files)
}

/// The language of an installed skill and whether it has hooks, or its fault.
pub fn check_skill(folder: &Path) -> Result<(String, bool), String> {
    let folder_name = folder.display();
    let mark = SkillMark::read_from(folder)
        .map_err(|_| format!("{folder_name}/{MARK_FILE} is not a mark of ours"))?;
    let mark = mark.ok_or_else(|| format!("there is no skill of ours in {folder_name}"))?;
    for name in mark.files.keys() {
        match read_file(&folder.join(name)) {
            Ok(Some(text)) if mark.has_file(name, &text) => {}
            Ok(Some(_)) => return Err(format!("{folder_name}/{name} was changed since")),
            Ok(None) | Err(_) => return Err(format!("{folder_name}/{name} is missing")),
        }
    }
    Ok((mark.lang, mark.hooks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_placeholder_is_left_in_any_language() {
        let hub = HubNames {
            url: "https://hub.example".into(),
            host: "hub".into(),
        };
        for lang in [SkillLanguage::En, SkillLanguage::ZhCn] {
            for (name, text) in skill_files(lang, &hub) {
                if name == "envelope.schema.json" {
                    assert!(text.contains("original_text"), "{text}");
                    continue;
                }
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

    // ENV-01…08
    #[test]
    fn the_example_envelope_is_valid() {
        let example = TRANSPORT_TEXT
            .split("```json\n")
            .nth(1)
            .and_then(|rest| rest.split("\n```").next())
            .unwrap();
        chorus_wire::envelope::Envelope::parse(&example.replace("{{HOST}}", "hub")).unwrap();
    }
}
