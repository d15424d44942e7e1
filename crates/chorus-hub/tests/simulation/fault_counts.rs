//! How many faults of each kind histories had, so that a faster simulation is not one with less in it.

use std::fmt;
use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    pub crashes: usize,
    /// Commits that were delayed, rolled back, or whose answer was lost.
    pub commits: usize,
    pub outages: usize,
    /// Links to the bus that were cut.
    pub cuts: usize,
    pub clock_leaps: usize,
    /// Answers that did not reach their client.
    pub lost_answers: usize,
    /// Requests that a client sent again while the first one was under way.
    pub duplicates: usize,
    /// Posts to endpoints that were refused or lost, or whose answer was.
    pub posts: usize,
}

impl FaultCounts {
    pub fn total(self) -> usize {
        let Self {
            crashes,
            commits,
            outages,
            cuts,
            clock_leaps,
            lost_answers,
            duplicates,
            posts,
        } = self;
        crashes + commits + outages + cuts + clock_leaps + lost_answers + duplicates + posts
    }
}

impl AddAssign for FaultCounts {
    fn add_assign(&mut self, other: Self) {
        self.crashes += other.crashes;
        self.commits += other.commits;
        self.outages += other.outages;
        self.cuts += other.cuts;
        self.clock_leaps += other.clock_leaps;
        self.lost_answers += other.lost_answers;
        self.duplicates += other.duplicates;
        self.posts += other.posts;
    }
}

impl fmt::Display for FaultCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} crashes, {} failed or delayed commits, {} outages of the database, {} cut links, {} leaps of the clock, {} lost \
             answers, {} requests sent twice, {} failed posts",
            self.crashes,
            self.commits,
            self.outages,
            self.cuts,
            self.clock_leaps,
            self.lost_answers,
            self.duplicates,
            self.posts
        )
    }
}
