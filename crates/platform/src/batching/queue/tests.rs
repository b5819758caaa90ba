use std::pin::pin;
use std::sync::Arc;

use futures_util::poll;
use tokio::task::{JoinHandle, yield_now};

use super::*;

/// A name that starts with its owner, and a weight.
#[derive(Debug)]
struct TestJob(&'static str, usize);

impl Job for TestJob {
    fn owner(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }

    fn weight(&self) -> usize {
        self.1
    }
}

type Jobs = Arc<JobQueue<TestJob, String>>;

fn queue(max_batch: usize, max_queued: usize) -> Jobs {
    Arc::new(JobQueue::new(QueueLimits { max_batch, max_queued }))
}

/// Submits a job and lets it reach the queue.
#[expect(clippy::disallowed_methods, reason = "the tests join or abort what they start")]
async fn submit(
    jobs: &Jobs,
    job: &'static str,
    weight: usize,
) -> JoinHandle<Result<String, SubmitError>> {
    let jobs = jobs.clone();
    let task = tokio::spawn(async move {
        let submitted = jobs.submit(TestJob(job, weight)).await;
        submitted.map(|(_job, result)| result)
    });
    yield_now().await;
    task
}

fn names(batch: &[QueuedJob<TestJob, String>]) -> Vec<&'static str> {
    batch.iter().map(|write| write.job.0).collect()
}

#[tokio::test]
async fn a_batch_takes_queued_jobs_up_to_its_limit() {
    let jobs = queue(3, 100);
    for (job, weight) in [("a", 1), ("b", 2), ("c", 1), ("d", 9), ("e", 1)] {
        submit(&jobs, job, weight).await;
    }
    assert_eq!(names(&jobs.take_batch()), ["a", "b"]);
    assert_eq!(names(&jobs.take_batch()), ["c"]);
    assert_eq!(names(&jobs.take_batch()), ["d"]);
    assert_eq!(names(&jobs.take_batch()), ["e"]);
    assert_eq!((jobs.take_batch().len(), jobs.queued_weight()), (0, 0));
}

#[tokio::test]
async fn owners_take_turns_and_jobs_of_one_owner_stay_in_order() {
    let jobs = queue(4, 100);
    for job in ["a 1", "a 2", "a 3", "a 4", "a 5", "b 1", "c 1", "b 2"] {
        submit(&jobs, job, 1).await;
    }
    assert_eq!(names(&jobs.take_batch()), ["a 1", "b 1", "c 1", "a 2"]);
    submit(&jobs, "c 2", 1).await;
    assert_eq!(names(&jobs.take_batch()), ["b 2", "a 3", "c 2", "a 4"]);
    assert_eq!(names(&jobs.take_batch()), ["a 5"]);
}

/// A job that does not fit is next, or lighter jobs could delay it forever.
#[tokio::test]
async fn a_heavy_job_keeps_its_turn() {
    let jobs = queue(4, 100);
    for (job, weight) in [("a 1", 1), ("b heavy", 4), ("c 1", 1), ("a 2", 1)] {
        submit(&jobs, job, weight).await;
    }
    assert_eq!(names(&jobs.take_batch()), ["a 1"]);
    assert_eq!(names(&jobs.take_batch()), ["b heavy"]);
    assert_eq!(names(&jobs.take_batch()), ["c 1", "a 2"]);
}

#[tokio::test]
async fn a_batch_is_ready_with_its_first_job() {
    let jobs = queue(10, 100);
    let stop = CancellationToken::new();
    let mut next = pin!(jobs.next_batch(&stop));
    assert!(poll!(next.as_mut()).is_pending());
    submit(&jobs, "a", 1).await;
    assert_eq!(names(&next.await.unwrap()), ["a"]);
}

#[tokio::test]
async fn jobs_that_are_left_are_taken_before_the_end() {
    let jobs = queue(1, 100);
    let stop = CancellationToken::new();
    let mut waiting = pin!(jobs.next_batch(&stop));
    assert!(poll!(waiting.as_mut()).is_pending());
    stop.cancel();
    assert!(waiting.await.is_none());
    for job in ["a", "b"] {
        submit(&jobs, job, 1).await;
    }
    assert_eq!(names(&jobs.next_batch(&stop).await.unwrap()), ["a"]);
    assert_eq!(names(&jobs.next_batch(&stop).await.unwrap()), ["b"]);
    assert!(jobs.next_batch(&stop).await.is_none());
}

#[tokio::test]
async fn each_job_gets_its_own_result() {
    let jobs = queue(10, 100);
    let (a, b) = (submit(&jobs, "a", 1).await, submit(&jobs, "b", 1).await);
    for write in jobs.take_batch() {
        let result = format!("{} is done", write.job.0);
        write.finish(result);
    }
    assert_eq!(a.await.unwrap().unwrap(), "a is done");
    assert_eq!(b.await.unwrap().unwrap(), "b is done");
}

#[tokio::test]
async fn a_full_queue_rejects_jobs() {
    let jobs = queue(10, 4);
    let _waiting = submit(&jobs, "a", 3).await;
    assert_eq!(jobs.submit(TestJob("b", 2)).await.unwrap_err(), SubmitError::Full);
    assert_eq!(names(&jobs.take_batch()), ["a"]);
    let _large = submit(&jobs, "larger than the bound", 9).await;
    assert_eq!(names(&jobs.take_batch()), ["larger than the bound"]);
}

#[tokio::test]
async fn abandoned_jobs_are_dropped() {
    let jobs = queue(10, 100);
    let gone = submit(&jobs, "gone", 1).await;
    let _waiting = submit(&jobs, "waiting", 1).await;
    gone.abort();
    yield_now().await;
    assert_eq!(names(&jobs.take_batch()), ["waiting"]);
    assert_eq!(jobs.queued_weight(), 0);
}

#[tokio::test]
async fn dropping_a_batch_fails_its_jobs() {
    let jobs = queue(10, 100);
    let waiting = submit(&jobs, "a", 1).await;
    drop(jobs.take_batch());
    assert_eq!(waiting.await.unwrap(), Err(SubmitError::Stopped));
}
