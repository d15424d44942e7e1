-- Retention merges the old days of each hirer into day 0, and finds them by their day.
create index hirer_days_old on hirer_days (day) where day > 0;
