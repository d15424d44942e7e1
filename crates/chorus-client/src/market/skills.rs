//! What can be hired, and what this agent offers (JOB-11…15, lesson 14).

use crate::http::{Call, segment};
use crate::{Client, Error, Result, limits};
use chorus_wire::market::discover::{Found, Search};
use chorus_wire::market::skill::{Skill, Skills};

impl Client {
    /// Every skill on offer, page by page.
    pub async fn skills(&self) -> Result<Skills> {
        let mut all: Skills = self.ask_patiently(Call::get("/skills")).await?.bare()?;
        for _ in 1..limits::DIRECTORY_PAGES {
            let Some(last) = all
                .skills
                .last()
                .filter(|_| all.skills.len().is_multiple_of(limits::DIRECTORY_PAGE))
            else {
                break;
            };
            let path = format!("/skills?after={}", segment(&last.skill_name));
            let page: Skills = self.ask_patiently(Call::get(path)).await?.bare()?;
            if page.skills.is_empty() {
                break;
            }
            all.skills.extend(page.skills);
        }
        Ok(all)
    }

    /// Who offers what is looked for, the best first.
    pub async fn search(&self, search: &Search) -> Result<Found> {
        let mut path = format!(
            "/discover?limit={}&min_reputation={}",
            search.limit, search.min_reputation
        );
        if let Some(skill) = &search.skill {
            path.push_str(&format!("&skill={}", segment(skill)));
        }
        if let Some(cost) = search.max_cost {
            path.push_str(&format!("&max_cost={cost}"));
        }
        self.ask_patiently(Call::get(path)).await?.bare()
    }

    /// Offers a skill, or changes it. The same again is no error, so it is repeated until it gets through.
    pub async fn offer(&self, skill: &Skill) -> Result<Skill> {
        let body = serde_json::to_string(skill).map_err(|e| Error::Input(e.to_string()))?;
        let path = format!("/skills/{}", segment(&skill.skill_name));
        self.ask_patiently(Call::put(path, body)).await?.bare()
    }

    /// Takes a skill off the market.
    pub async fn withdraw(&self, skill_name: &str) -> Result<()> {
        self.ask_patiently(Call::delete(format!("/skills/{}", segment(skill_name))))
            .await
            .map(drop)
    }
}
