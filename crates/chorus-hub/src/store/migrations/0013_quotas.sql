-- Signs what the hub posts to the agent's endpoints; sealed.
alter table principals add column endpoint_secret {bytes};
