//! Commits in groups: while the writer is busy, jobs wait and go into the next group together.
//!
//! A job is answered after the group it went into was dealt with, never before. Nothing waits for
//! company: when the writer is free it takes what is there. While it is not, it can ask for a group
//! that is worth having ready. There is one writer: what it wants to be told of is one figure. The
//! number of waiting rows is bounded, and past the bound a job is refused at once.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

/// Jobs that wait for the writer.
pub(crate) struct Group<J, A> {
    waiting: Mutex<Waiting<J, A>>,
    arrived: Notify,
    bounds: Bounds,
}

/// How much waits and how much goes together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Rows in one group; a job with more of its own is a group by itself.
    pub(crate) group_rows: usize,
    /// Rows that may wait.
    pub(crate) waiting_rows: usize,
}

struct Waiting<J, A> {
    tickets: VecDeque<Ticket<J, A>>,
    rows: usize,
    /// So many rows are worth telling the writer of.
    wanted: usize,
}

/// One job of a group, and the one who waits for its answer.
pub(crate) struct Ticket<J, A> {
    pub(crate) job: J,
    rows: usize,
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

impl<J, A> Group<J, A> {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let waiting = Waiting { tickets: VecDeque::new(), rows: 0, wanted: 1 };
        Self { waiting: Mutex::new(waiting), arrived: Notify::new(), bounds }
    }

    /// Hands in a job of so many rows and waits for its answer.
    pub(crate) async fn submit(&self, job: J, rows: usize) -> Result<A, Refused> {
        let (answer, answered) = oneshot::channel();
        let enough = {
            let mut waiting = self.lock();
            // An empty queue takes any job, or one above the bound could never be done.
            if waiting.rows > 0 && waiting.rows + rows > self.bounds.waiting_rows {
                return Err(Refused::Full);
            }
            waiting.rows += rows;
            waiting.tickets.push_back(Ticket { job, rows, answer });
            waiting.rows >= waiting.wanted
        };
        if enough {
            self.arrived.notify_one();
        }
        let (job, answer) = answered.await.map_err(|_gone| Refused::Lost)?;
        drop(job);
        Ok(answer)
    }

    /// The next group, as soon as so many rows wait. Dropping the future loses nothing.
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

    /// Whether so many rows wait; who hands in a job tells when they do.
    fn is_there(&self, wanted: usize) -> bool {
        let mut waiting = self.lock();
        waiting.wanted = wanted;
        waiting.rows >= wanted
    }

    /// The next group, empty when nothing waits. Jobs that nobody waits for any more are dropped.
    pub(crate) fn take(&self) -> Vec<Ticket<J, A>> {
        let mut waiting = self.lock();
        let mut group = Vec::new();
        let mut rows = 0;
        while let Some(next) = waiting.tickets.front() {
            let abandoned = next.is_abandoned();
            if !abandoned && !group.is_empty() && rows + next.rows > self.bounds.group_rows {
                break;
            }
            let Some(ticket) = waiting.tickets.pop_front() else { break };
            waiting.rows -= ticket.rows;
            if !abandoned {
                rows += ticket.rows;
                group.push(ticket);
            }
        }
        group
    }

    /// Rows that wait for the writer.
    pub(crate) fn waiting_rows(&self) -> usize {
        self.lock().rows
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<J, A>> {
        // The queue is consistent between any two statements that could panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;

    use futures_util::poll;
    use tokio::task::{JoinHandle, yield_now};

    use super::*;

    type Jobs = Arc<Group<&'static str, String>>;

    fn group(group_rows: usize, waiting_rows: usize) -> Jobs {
        Arc::new(Group::new(Bounds { group_rows, waiting_rows }))
    }

    /// Hands in a job and lets it reach the queue.
    #[expect(clippy::disallowed_methods, reason = "the tests join or abort what they start")]
    async fn submit(
        jobs: &Jobs,
        job: &'static str,
        rows: usize,
    ) -> JoinHandle<Result<String, Refused>> {
        let jobs = jobs.clone();
        let task = tokio::spawn(async move { jobs.submit(job, rows).await });
        yield_now().await;
        task
    }

    fn names(group: &[Ticket<&'static str, String>]) -> Vec<&'static str> {
        group.iter().map(|ticket| ticket.job).collect()
    }

    #[tokio::test]
    async fn what_waits_goes_together_up_to_the_bound() {
        let jobs = group(3, 100);
        for (job, rows) in [("a", 1), ("b", 2), ("c", 1), ("d", 9), ("e", 1)] {
            submit(&jobs, job, rows).await;
        }
        assert_eq!(names(&jobs.take()), ["a", "b"]);
        assert_eq!(names(&jobs.take()), ["c"]);
        assert_eq!(names(&jobs.take()), ["d"]);
        assert_eq!(names(&jobs.take()), ["e"]);
        assert_eq!((jobs.take().len(), jobs.waiting_rows()), (0, 0));
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
            let answer = format!("{} is done", ticket.job);
            ticket.answer(answer);
        }
        assert_eq!(a.await.unwrap().unwrap(), "a is done");
        assert_eq!(b.await.unwrap().unwrap(), "b is done");
    }

    #[tokio::test]
    async fn past_the_bound_a_job_is_refused_at_once() {
        let jobs = group(10, 4);
        let _waiting = submit(&jobs, "a", 3).await;
        assert_eq!(jobs.submit("b", 2).await, Err(Refused::Full));
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
        assert_eq!(jobs.waiting_rows(), 0);
    }

    #[tokio::test]
    async fn a_writer_that_drops_its_group_is_noticed() {
        let jobs = group(10, 100);
        let waiting = submit(&jobs, "a", 1).await;
        drop(jobs.take());
        assert_eq!(waiting.await.unwrap(), Err(Refused::Lost));
    }
}
