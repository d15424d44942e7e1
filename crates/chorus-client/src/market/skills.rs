//! Lists, searches and publishes skills (JOB-11…15, lesson 14).

use crate::http::{ApiCall, encode_segment};
use crate::{Error, HubClient, Result, limits};
use chorus_wire::market::discover::{SkillSearch, SkillSearchResults};
use chorus_wire::market::reputation::ReputationReport;
use chorus_wire::market::skill::{SkillCatalogue, SkillOffer};

impl HubClient {
    /// All offered skills, page by page.
    pub async fn list_skills(&self) -> Result<SkillCatalogue> {
        let mut answer = self.send_with_retry(ApiCall::get("/skills")).await?;
        let mut next = answer.next_cursor.take();
        let mut catalogue: SkillCatalogue = answer.into_bare()?;
        for _ in 1..limits::MAX_DIRECTORY_PAGES {
            let Some(cursor) = next else {
                break;
            };
            let path = format!("/skills?after={cursor}");
            let mut answer = self.send_with_retry(ApiCall::get(path)).await?;
            next = answer.next_cursor.take();
            catalogue
                .skills
                .extend(answer.into_bare::<SkillCatalogue>()?.skills);
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
        if search.min_hirers > 0 {
            path.push_str(&format!("&min_hirers={}", search.min_hirers));
        }
        if !search.min_earned.is_zero() {
            path.push_str(&format!("&min_earned={}", search.min_earned));
        }
        let mut answer = self.send_with_retry(ApiCall::get(path.as_str())).await?;
        let mut next = answer.next_cursor.take();
        let mut found: SkillSearchResults = answer.into_bare()?;
        // A page of long rows ends before the limit.
        while let Some(cursor) = next.filter(|_| found.agents.len() < search.limit) {
            let call = ApiCall::get(format!("{path}&after={cursor}"));
            let mut answer = self.send_with_retry(call).await?;
            next = answer.next_cursor.take();
            let page: SkillSearchResults = answer.into_bare()?;
            found.agents.extend(page.agents);
        }
        found.agents.truncate(search.limit);
        Ok(found)
    }

    /// An agent's score and how it came about.
    pub async fn fetch_reputation(&self, agent: &str) -> Result<ReputationReport> {
        let path = format!("/reputation/{}", encode_segment(agent));
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
