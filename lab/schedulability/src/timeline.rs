//! Schedule from the critical instant: all tasks are released together and as late as their jitter
//! allows.

use crate::Policy;
use crate::blocking::blocking;
use crate::task::TaskSet;

/// Schedule of one processor from the critical instant on. All times are ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Index of the task the instant is critical for: the lowest priority, or the latest deadline.
    pub critical: usize,
    /// Initial blocking of that task by lower-priority work.
    pub held_ns: u64,
    /// One row for each task of the processor, the one that runs first at the top.
    pub rows: Vec<Row>,
    /// End of the schedule.
    pub end_ns: u64,
}

/// Jobs and execution of one task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Index of the task.
    pub place: usize,
    /// Jobs, in order.
    pub jobs: Vec<Job>,
    /// Start and end of each time it runs, in order.
    pub slices: Vec<(u64, u64)>,
}

/// One job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Release, from which on it may run.
    pub release_ns: u64,
    /// Deadline.
    pub deadline_ns: u64,
    /// End, if it ended.
    pub end_ns: Option<u64>,
}

impl Timeline {
    /// Simulates a processor until every first job has ended and its deadline has passed, or for
    /// `longest` slices.
    ///
    /// Returns `None` if the processor has no task. `critical` is the task with simulated blocking;
    /// by default the task that runs last.
    #[must_use]
    pub fn of(set: &TaskSet, cpu: usize, critical: Option<usize>, longest: usize) -> Option<Self> {
        let mut order: Vec<usize> =
            (0..set.tasks.len()).filter(|&place| set.tasks[place].cpu == cpu).collect();
        match set.policy {
            Policy::FixedPriority => {
                order.sort_by_key(|&place| std::cmp::Reverse(set.tasks[place].priority))
            }
            _ => order.sort_by_key(|&place| set.tasks[place].deadline_ns),
        }
        let critical = critical.or(order.last().copied())?;
        let held_ns = match set.policy {
            Policy::FixedPriority => blocking(&set.tasks[critical], &set.tasks, set.protocol),
            _ => set.tasks[critical].blocking_ns,
        };
        let rows = order.into_iter().map(|place| Row { place, ..Row::default() }).collect();
        let mut timeline = Self { critical, held_ns, rows, end_ns: 0 };
        timeline.play(set, longest);
        Some(timeline)
    }

    fn play(&mut self, set: &TaskSet, longest: usize) {
        let mut players: Vec<Player> = self.rows.iter().map(|row| Player::new(set, row.place)).collect();
        let last_deadline = players.iter().map(|player| player.deadline(0)).max().unwrap_or(0);
        let mut now = self.held_ns;
        let mut running: Option<usize> = None;
        for _ in 0..longest {
            for (row, player) in self.rows.iter_mut().zip(&mut players) {
                player.release_until(now, &mut row.jobs);
            }
            let all_began =
                self.rows.iter().all(|row| row.jobs.first().is_some_and(|job| job.end_ns.is_some()));
            if all_began && now >= last_deadline {
                break;
            }
            let keeps = running.filter(|&place| !players[place].preemptive && players[place].left > 0);
            let chosen = keeps.or_else(|| choose(set.policy, &players));
            let next_release = players.iter().map(|player| player.next_release).min().unwrap_or(u64::MAX);
            let Some(chosen) = chosen else {
                if next_release == u64::MAX {
                    break;
                }
                now = next_release;
                running = None;
                continue;
            };
            let player = &mut players[chosen];
            let until = now.saturating_add(player.left).min(next_release);
            player.left -= until - now;
            let row = &mut self.rows[chosen];
            match row.slices.last_mut() {
                Some(last) if last.1 == now => last.1 = until,
                _ if until > now => row.slices.push((now, until)),
                _ => {}
            }
            if player.left == 0 {
                row.jobs[player.ended].end_ns = Some(until);
                player.end_one();
            }
            running = Some(chosen);
            now = until;
        }
        self.end_ns = now.max(last_deadline);
    }
}

struct Player {
    priority: u32,
    preemptive: bool,
    period: u64,
    cost: u64,
    deadline: u64,
    jitter: u64,
    released: usize,
    ended: usize,
    next_release: u64,
    left: u64,
}

impl Player {
    fn new(set: &TaskSet, place: usize) -> Self {
        let task = &set.tasks[place];
        Self {
            priority: task.priority,
            preemptive: task.preemptive,
            period: task.period_ns,
            cost: task.wcet_ns,
            deadline: task.deadline_ns,
            jitter: task.jitter_ns,
            released: 0,
            ended: 0,
            next_release: 0,
            left: 0,
        }
    }

    /// Releases the jobs due until `now`: job k at k P - J, the first ones together at 0.
    fn release_until(&mut self, now: u64, jobs: &mut Vec<Job>) {
        while self.next_release <= now && jobs.len() < MOST_JOBS {
            jobs.push(Job {
                release_ns: self.next_release,
                deadline_ns: self.deadline(self.released),
                end_ns: None,
            });
            if self.ready() == 0 {
                self.left = self.cost;
            }
            self.released += 1;
            self.next_release = self.grid(self.released);
        }
        if jobs.len() >= MOST_JOBS {
            self.next_release = u64::MAX;
        }
    }

    fn ready(&self) -> usize {
        self.released - self.ended
    }

    fn end_one(&mut self) {
        self.ended += 1;
        self.left = if self.ready() > 0 { self.cost } else { 0 };
    }

    fn grid(&self, job: usize) -> u64 {
        self.period.saturating_mul(job as u64).saturating_sub(self.jitter)
    }

    fn deadline(&self, job: usize) -> u64 {
        let due = self.period.saturating_mul(job as u64).saturating_add(self.deadline);
        due.saturating_sub(self.jitter)
    }
}

fn choose(policy: Policy, players: &[Player]) -> Option<usize> {
    let ready = players.iter().enumerate().filter(|(_, player)| player.ready() > 0);
    match policy {
        Policy::FixedPriority => ready.min_by_key(|(_, player)| std::cmp::Reverse(player.priority)),
        _ => ready.min_by_key(|(_, player)| player.deadline(player.ended)),
    }
    .map(|(place, _)| place)
}

/// Largest number of jobs of one task.
const MOST_JOBS: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;

    // feature(analyse): slack, exact and MAST's way: 39.45, 65.63, 24.61 %; Table 6 with 914.06 %
    #[test]
    fn the_two_tasks_of_the_controllers_paper() {
        let tasks = vec![Task::new("tau2", 80, 5_000, 1_500), Task::new("tau1", 99, 1_000, 500)];
        let timeline = Timeline::of(&TaskSet::new(tasks), 0, None, 1000).unwrap();
        assert_eq!((timeline.critical, timeline.end_ns), (0, 5_000));
        let [first, second] = &timeline.rows[..] else { panic!("two rows") };
        assert_eq!((first.place, second.place), (1, 0));
        assert_eq!(second.slices, [(500, 1_000), (1_500, 2_000), (2_500, 3_000)]);
        assert_eq!(second.jobs[0], Job { release_ns: 0, deadline_ns: 5_000, end_ns: Some(3_000) });
        assert_eq!(first.slices.len(), 5);
    }

    #[test]
    fn jitter_brings_the_second_job_closer_and_blocking_comes_first() {
        let mut tasks = vec![Task::new("a", 2, 10, 3), Task::new("b", 1, 20, 4)];
        tasks[0].jitter_ns = 4;
        tasks[1].blocking_ns = 1;
        let timeline = Timeline::of(&TaskSet::new(tasks), 0, None, 1000).unwrap();
        assert_eq!(timeline.held_ns, 1);
        assert_eq!(timeline.rows[0].jobs[1].release_ns, 6);
        assert_eq!(timeline.rows[1].jobs[0].end_ns, Some(11));
    }

    #[test]
    fn endless_sets_are_cut() {
        let tasks = vec![Task::new("a", 2, 1, 1), Task::new("b", 1, u64::MAX >> 8, 5)];
        let timeline = Timeline::of(&TaskSet::new(tasks), 0, None, 500).unwrap();
        assert!(timeline.rows[1].slices.is_empty());
        assert!(Timeline::of(&TaskSet::default(), 0, None, 500).is_none());
    }
}
