//! Commits in groups: while the writer is busy, jobs wait and go into the next group together.
//!
//! A job is answered after the group it went into was dealt with, never before. Nothing waits for
//! company: when the writer is free it takes what is there. While it is not, it can ask for a group
//! that is worth having ready. There is one writer: what it wants to be told of is one figure. What
//! waits is bounded, and past the bound a job is refused at once.
//!
//! Owners take turns: one who hands in thousands of jobs waits for them, and nobody else does.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

/// What can wait.
pub(crate) trait Job {
    /// Whose it is; those of one owner are done in the order in which they came.
    fn owner(&self) -> &str;
    /// How much there is to do.
    fn weight(&self) -> usize;
}

/// Jobs that wait for the writer.
pub(crate) struct Group<J, A> {
    waiting: Mutex<Waiting<J, A>>,
    arrived: Notify,
    bounds: Bounds,
}

/// How much waits and how much goes together, by weight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// In one group; a job with more of its own is a group by itself.
    pub(crate) together: usize,
    /// What may wait.
    pub(crate) waiting: usize,
}

struct Waiting<J, A> {
    /// By owner; none is empty.
    queues: HashMap<String, VecDeque<Ticket<J, A>>>,
    /// The owners in the order of their turns, each once.
    turns: VecDeque<String>,
    weight: usize,
    /// So much is worth telling the writer of.
    wanted: usize,
}

/// One job of a group, and the one who waits for its answer.
pub(crate) struct Ticket<J, A> {
    pub(crate) job: J,
    answer: oneshot::Sender<(J, A)>,
}

impl<J, A> Ticket<J, A> {
    /// Answers the job; nobody may be listening any more. The job goes back with the answer: it is
    /// cheaper to clear away on the thread it was made on, and the writer has other things to do.
    pub(crate) fn answer(self, answer: A) {
        drop(self.answer.send((self.job, answer)));
    }

    /// Whether nobody waits for the answer any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }
}

/// Why a job has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("too many orders wait to be stored")]
    Full,
    #[error("the writer ended before the orders were stored")]
    Lost,
}

impl<J: Job, A> Group<J, A> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let waiting =
            Waiting { queues: HashMap::new(), turns: VecDeque::new(), weight: 0, wanted: 1 };
        Self { waiting: Mutex::new(waiting), arrived: Notify::new(), bounds }
    }

    /// Hands in a job and waits for its answer.
    pub(crate) async fn submit(&self, job: J) -> Result<A, Refused> {
        let (answer, answered) = oneshot::channel();
        let enough = {
            let mut waiting = self.lock();
            // An empty queue takes any job, or one above the bound could never be done.
            if waiting.weight > 0 && waiting.weight + job.weight() > self.bounds.waiting {
                return Err(Refused::Full);
            }
            waiting.push(Ticket { job, answer });
            waiting.weight >= waiting.wanted
        };
        if enough {
            self.arrived.notify_one();
        }
        let (job, answer) = answered.await.map_err(|_gone| Refused::Lost)?;
        drop(job);
        Ok(answer)
    }

    /// The next group, as soon as so much waits. Dropping the future loses nothing.
    pub(crate) async fn next(&self, wanted: usize) -> Vec<Ticket<J, A>> {
        loop {
            if self.is_there(wanted) {
                let group = self.take();
                if !group.is_empty() {
                    return group;
                }
            }
            self.arrived.notified().await;
        }
    }

    /// Whether so much waits; who hands in a job tells when it does.
    fn is_there(&self, wanted: usize) -> bool {
        let mut waiting = self.lock();
        waiting.wanted = wanted;
        waiting.weight >= wanted
    }

    /// The next group, empty when nothing waits. Jobs that nobody waits for any more are dropped.
    pub(crate) fn take(&self) -> Vec<Ticket<J, A>> {
        let mut waiting = self.lock();
        let mut group = Vec::new();
        let mut weight = 0;
        while let Some(next) = waiting.front() {
            let next_weight = next.job.weight();
            if next.is_abandoned() {
                drop(waiting.pop());
            } else if group.is_empty() || weight + next_weight <= self.bounds.together {
                weight += next_weight;
                group.extend(waiting.pop());
            } else {
                break;
            }
        }
        group
    }

    /// What waits for the writer.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().weight
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<J, A>> {
        // The queue is consistent between any two statements that could panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J: Job, A> Waiting<J, A> {
    fn push(&mut self, ticket: Ticket<J, A>) {
        self.weight += ticket.job.weight();
        match self.queues.get_mut(ticket.job.owner()) {
            Some(queue) => queue.push_back(ticket),
            None => {
                let owner = ticket.job.owner().to_owned();
                self.turns.push_back(owner.clone());
                self.queues.insert(owner, VecDeque::from([ticket]));
            }
        }
    }

    /// The job whose turn it is.
    fn front(&self) -> Option<&Ticket<J, A>> {
        self.queues.get(self.turns.front()?)?.front()
    }

    /// Takes that job out; then it is somebody else's turn.
    fn pop(&mut self) -> Option<Ticket<J, A>> {
        let owner = self.turns.pop_front()?;
        let queue = self.queues.get_mut(&owner)?;
        let ticket = queue.pop_front()?;
        self.weight -= ticket.job.weight();
        if queue.is_empty() {
            self.queues.remove(&owner);
        } else {
            self.turns.push_back(owner);
        }
        Some(ticket)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;

    use futures_util::poll;
    use tokio::task::{JoinHandle, yield_now};

    use super::*;

    /// A name, which begins with its owner's, and a weight.
    #[derive(Debug)]
    struct Errand(&'static str, usize);

    impl Job for Errand {
        fn owner(&self) -> &str {
            self.0.split(' ').next().unwrap_or_default()
        }

        fn weight(&self) -> usize {
            self.1
        }
    }

    type Jobs = Arc<Group<Errand, String>>;

    fn group(together: usize, waiting: usize) -> Jobs {
        Arc::new(Group::new(Bounds { together, waiting }))
    }

    /// Hands in a job and lets it reach the queue.
    #[expect(clippy::disallowed_methods, reason = "the tests join or abort what they start")]
    async fn submit(
        jobs: &Jobs,
        job: &'static str,
        weight: usize,
    ) -> JoinHandle<Result<String, Refused>> {
        let jobs = jobs.clone();
        let task = tokio::spawn(async move { jobs.submit(Errand(job, weight)).await });
        yield_now().await;
        task
    }

    fn names(group: &[Ticket<Errand, String>]) -> Vec<&'static str> {
        group.iter().map(|ticket| ticket.job.0).collect()
    }

    #[tokio::test]
    async fn what_waits_goes_together_up_to_the_bound() {
        let jobs = group(3, 100);
        for (job, weight) in [("a", 1), ("b", 2), ("c", 1), ("d", 9), ("e", 1)] {
            submit(&jobs, job, weight).await;
        }
        assert_eq!(names(&jobs.take()), ["a", "b"]);
        assert_eq!(names(&jobs.take()), ["c"]);
        assert_eq!(names(&jobs.take()), ["d"]);
        assert_eq!(names(&jobs.take()), ["e"]);
        assert_eq!((jobs.take().len(), jobs.waiting()), (0, 0));
    }

    #[tokio::test]
    async fn owners_take_turns_and_each_one_s_jobs_stay_in_order() {
        let jobs = group(4, 100);
        for job in ["a 1", "a 2", "a 3", "a 4", "a 5", "b 1", "c 1", "b 2"] {
            submit(&jobs, job, 1).await;
        }
        assert_eq!(names(&jobs.take()), ["a 1", "b 1", "c 1", "a 2"]);
        submit(&jobs, "c 2", 1).await;
        assert_eq!(names(&jobs.take()), ["b 2", "a 3", "c 2", "a 4"]);
        assert_eq!(names(&jobs.take()), ["a 5"]);
    }

    /// What does not fit is next, or it would wait for ever behind what does.
    #[tokio::test]
    async fn a_heavy_job_keeps_its_turn() {
        let jobs = group(4, 100);
        for (job, weight) in [("a 1", 1), ("b heavy", 4), ("c 1", 1), ("a 2", 1)] {
            submit(&jobs, job, weight).await;
        }
        assert_eq!(names(&jobs.take()), ["a 1"]);
        assert_eq!(names(&jobs.take()), ["b heavy"]);
        assert_eq!(names(&jobs.take()), ["c 1", "a 2"]);
    }

    #[tokio::test]
    async fn a_group_is_had_once_it_is_as_large_as_asked_for() {
        let jobs = group(10, 100);
        submit(&jobs, "a", 2).await;
        let mut next = pin!(jobs.next(4));
        assert!(poll!(next.as_mut()).is_pending());
        submit(&jobs, "b", 1).await;
        assert!(poll!(next.as_mut()).is_pending());
        submit(&jobs, "c", 1).await;
        assert_eq!(names(&next.await), ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn each_job_gets_its_own_answer() {
        let jobs = group(10, 100);
        let (a, b) = (submit(&jobs, "a", 1).await, submit(&jobs, "b", 1).await);
        for ticket in jobs.next(1).await {
            let answer = format!("{} is done", ticket.job.0);
            ticket.answer(answer);
        }
        assert_eq!(a.await.unwrap().unwrap(), "a is done");
        assert_eq!(b.await.unwrap().unwrap(), "b is done");
    }

    #[tokio::test]
    async fn past_the_bound_a_job_is_refused_at_once() {
        let jobs = group(10, 4);
        let _waiting = submit(&jobs, "a", 3).await;
        assert_eq!(jobs.submit(Errand("b", 2)).await, Err(Refused::Full));
        assert_eq!(names(&jobs.take()), ["a"]);
        let _large = submit(&jobs, "larger than the bound", 9).await;
        assert_eq!(names(&jobs.take()), ["larger than the bound"]);
    }

    #[tokio::test]
    async fn a_job_nobody_waits_for_is_not_done() {
        let jobs = group(10, 100);
        let gone = submit(&jobs, "gone", 1).await;
        let _waiting = submit(&jobs, "waiting", 1).await;
        gone.abort();
        yield_now().await;
        assert_eq!(names(&jobs.next(1).await), ["waiting"]);
        assert_eq!(jobs.waiting(), 0);
    }

    #[tokio::test]
    async fn a_writer_that_drops_its_group_is_noticed() {
        let jobs = group(10, 100);
        let waiting = submit(&jobs, "a", 1).await;
        drop(jobs.take());
        assert_eq!(waiting.await.unwrap(), Err(Refused::Lost));
    }
}
