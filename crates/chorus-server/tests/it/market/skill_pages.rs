//! Lists of skills and of agents that offer them, page by page.

use super::skills::worker;
use serde_json::{Value, json};

story!(lists_of_the_market_continue_where_they_ended, |hub| async {
    //
    for (number, cost) in [0.3, 0.1, 0.2, 0.5, 0.4].into_iter().enumerate() {
        worker(
            &hub,
            &format!("w{number}"),
            &format!("skill &{number}"),
            cost,
        )
        .await;
    }
    for (path, list, name) in [
        ("/skills?limit=2", "skills", "/skill_name"),
        ("/discover?min_reputation=0&limit=2", "agents", "/agent_id"),
    ] {
        let whole = path.replace("limit=2", "limit=100");
        let listed = |page: &Value| -> Vec<Value> {
            let rows = page[list].as_array().unwrap();
            rows.iter()
                .map(|row| row.pointer(name).unwrap().clone())
                .collect()
        };
        let whole = hub.anonymous().get(&whole).await;
        assert_eq!(whole.header("link"), "");
        let mut seen = Vec::new();
        let mut next = path.to_owned();
        for size in [2, 2, 1] {
            let page = hub.anonymous().get(&next).await;
            assert_eq!(listed(&page.json()).len(), size, "{next}");
            seen.extend(listed(&page.json()));
            let link = page.header("link").to_owned();
            assert_eq!(link.is_empty(), size == 1, "{next}: {link}");
            let query = link.split(['<', '>']).nth(1).unwrap_or_default();
            next = format!("{}{query}", path.split('?').next().unwrap());
        }
        assert_eq!(seen, listed(&whole.json()), "{path}");
    }
    let other = hub
        .anonymous()
        .get("/discover?min_reputation=0&after=w1")
        .await;
    assert_eq!(
        (other.status, &other.json()["error_code"]),
        (400, &json!("ERR_VALIDATION"))
    );
});

story!(
    a_page_of_large_schemas_ends_at_its_bytes_and_the_next_one_continues,
    |hub| async {
        // what a stranger can make the hub hold for one answer is bounded, also in the market
        const WORKERS: usize = 40;
        for number in 0..WORKERS {
            let schema = json!({"type": "object", "description": "x".repeat(12_000)});
            let body = json!({"agent_id": format!("w{number}"), "agent_name": "w", "skills":
                [{"skill_name": format!("skill-{number}"), "cost_per_call": 0.1, "input_schema": schema}]});
            let answer = hub.anonymous().post("/register", &body).await;
            assert_eq!(answer.status, 201, "{answer:?}");
        }
        for (path, query, list) in [
            ("/skills", "?limit=100", "skills"),
            ("/discover", "?min_reputation=0&limit=100", "agents"),
        ] {
            let (mut row_count, mut page_count) = (0, 0);
            let mut next = Some(query.to_owned());
            while let Some(query) = next {
                let page = hub.anonymous().get(&format!("{path}{query}")).await;
                assert_eq!(page.status, 200, "{page:?}");
                assert!(page.text.len() < 257 * 1024, "{}", page.text.len());
                row_count += page.json()[list].as_array().unwrap().len();
                page_count += 1;
                let link = page.header("link");
                next = link.split(['<', '>']).nth(1).map(str::to_owned);
            }
            assert_eq!(row_count, WORKERS, "{path}");
            assert!(page_count >= 2, "{path}: {page_count}");
        }
    }
);
