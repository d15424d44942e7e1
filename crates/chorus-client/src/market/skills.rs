//! Lists, searches and publishes skills (JOB-11…15, lesson 14).

use crate::http::{ApiCall, encode_segment};
use crate::{Error, HubClient, Result, limits};
use chorus_wire::market::discover::{SkillSearch, SkillSearchResults};
use chorus_wire::market::skill::{SkillCatalogue, SkillOffer};

impl HubClient {
    /// All offered skills, page by page.
    pub async fn list_skills(&self) -> Result<SkillCatalogue> {
        let mut catalogue: SkillCatalogue = self
            .send_with_retry(ApiCall::get("/skills"))
            .await?
            .into_bare()?;
        for _ in 1..limits::MAX_DIRECTORY_PAGES {
            let Some(last) = catalogue.skills.last().filter(|_| {
                catalogue
                    .skills
                    .len()
                    .is_multiple_of(limits::DIRECTORY_PAGE_SIZE)
            }) else {
                break;
            };
            let path = format!("/skills?after={}", encode_segment(&last.skill_name));
            let page: SkillCatalogue = self
                .send_with_retry(ApiCall::get(path))
                .await?
                .into_bare()?;
            if page.skills.is_empty() {
                break;
            }
            catalogue.skills.extend(page.skills);
        }
        Ok(catalogue)
    }

    /// The agents that offer a skill, best first.
    pub async fn search_offers(&self, search: &SkillSearch) -> Result<SkillSearchResults> {
        let mut path = format!(
            "/discover?limit={}&min_reputation={}",
            search.limit, search.min_reputation
        );
        if let Some(skill) = &search.skill {
            path.push_str(&format!("&skill={}", encode_segment(skill)));
        }
        if let Some(cost) = search.max_cost {
            path.push_str(&format!("&max_cost={cost}"));
        }
        self.send_with_retry(ApiCall::get(path)).await?.into_bare()
    }

    /// Offers or changes a skill. The call is idempotent, so it is retried.
    pub async fn publish_skill(&self, skill: &SkillOffer) -> Result<SkillOffer> {
        let body = serde_json::to_string(skill).map_err(|e| Error::Input(e.to_string()))?;
        let path = format!("/skills/{}", encode_segment(&skill.skill_name));
        self.send_with_retry(ApiCall::put(path, body))
            .await?
            .into_bare()
    }

    /// Takes a skill off the market.
    pub async fn withdraw_skill(&self, skill_name: &str) -> Result<()> {
        self.send_with_retry(ApiCall::delete(format!(
            "/skills/{}",
            encode_segment(skill_name)
        )))
        .await
        .map(drop)
    }
}
