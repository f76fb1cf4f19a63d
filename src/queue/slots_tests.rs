//! The queue with many holders: of one process, and of real processes that are killed.

use super::*;
use crate::error::Failure as _;
use crate::sandbox::outcome::CancelCause;

const LONG: Duration = Duration::from_secs(600);

fn queue(folder: &Path, running: u16, waiting: u16) -> Queue {
    Queue::of(Some(folder), Subject::Command, Figures { running, waiting }).unwrap()
}

async fn enter(queue: &Queue) -> Result<HeldSlot, QueueError> {
    let (_canceller, mut cancel) = Cancel::pair();
    queue.enter(LONG, &mut cancel, &mut None).await
}

/// Enters in the background and waits until it stands in the queue.
async fn waiting(
    queue: &Queue,
    behind: u16,
) -> tokio::task::JoinHandle<Result<HeldSlot, QueueError>> {
    let own = queue.clone();
    let task = tokio::spawn(async move { enter(&own).await });
    while queue.taken("waiting", queue.figures.waiting) <= behind {
        tokio::time::sleep(LOOK).await;
    }
    task
}

impl Queue {
    /// How many block on the lock of a file, as the kernel lists them.
    fn blocked(&self, name: &str) -> usize {
        let file = self.folder.join(name).metadata().unwrap();
        let about = format!(":{} ", std::os::unix::fs::MetadataExt::ino(&file));
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().filter(|line| line.contains("->") && line.contains(&about)).count()
    }

    /// How many files of a kind somebody holds.
    fn taken(&self, kind: &str, count: u16) -> u16 {
        let held = |number: &u16| {
            let file = self.open(&format!("{kind}.{number}")).unwrap();
            matches!(self.try_take::<Exclusive>(file).unwrap(), Attempt::Busy(_))
        };
        u16::try_from((0..count).filter(held).count()).unwrap()
    }
}

#[tokio::test]
async fn so_many_run_so_many_wait_and_the_next_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let queue = queue(folder.path(), 2, 1);
    let first = enter(&queue).await.unwrap();
    let _second = enter(&queue).await.unwrap();
    let third = waiting(&queue, 0).await;
    let fourth = enter(&queue).await.unwrap_err();
    assert_eq!((fourth.code().as_str(), fourth.kind()), ("busy", crate::exit::Kind::Busy));
    assert!(fourth.to_string().contains("2 are running and 1 is waiting"), "{fourth}");
    drop(first);
    let third = third.await.unwrap().unwrap();
    assert!(third.queued() > Duration::ZERO);
    // Its waiting place is free again.
    assert_eq!((queue.taken("running", 2), queue.taken("waiting", 1)), (2, 0));
}

#[tokio::test]
async fn who_came_first_goes_first_and_nobody_overtakes() {
    let folder = tempfile::tempdir().unwrap();
    let queue = queue(folder.path(), 1, 10);
    let mut running = enter(&queue).await.unwrap();
    let mut line = Vec::new();
    for behind in 0..5 {
        line.push(waiting(&queue, behind).await);
        // Until it stands behind those before it: the first has the head, the others block in the kernel.
        let is_free = |name: &str| {
            let attempt = queue.try_take::<Shared>(queue.open(name).unwrap()).unwrap();
            matches!(attempt, Attempt::Taken(_))
        };
        while is_free(HEAD) || queue.blocked(LINE) + queue.blocked(HEAD) < usize::from(behind) {
            tokio::time::sleep(LOOK).await;
        }
    }
    for next in line {
        drop(running);
        // Whoever comes now finds somebody waiting, though a slot is free.
        let (_canceller, mut cancel) = Cancel::pair();
        let late = queue.enter(Duration::from_millis(1), &mut cancel, &mut None).await;
        assert!(matches!(late, Err(QueueError::Timeout { .. })), "{late:?}");
        running = next.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_wait_ends_when_somebody_cancels_it_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let queue = queue(folder.path(), 1, 1);
    let running = enter(&queue).await.unwrap();
    let (canceller, mut cancel) = Cancel::pair();
    let own = queue.clone();
    let task = tokio::spawn(async move { own.enter(LONG, &mut cancel, &mut None).await });
    while queue.taken("waiting", 1) == 0 {
        tokio::time::sleep(LOOK).await;
    }
    canceller.cancel(CancelCause::Interrupt);
    let error = task.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), crate::exit::Kind::Interrupted);
    assert_eq!(queue.taken("waiting", 1), 0);
    drop(running);
    let _next = enter(&queue).await.unwrap();
}

#[tokio::test]
async fn a_long_wait_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let queue = queue(folder.path(), 1, 1);
    let _running = enter(&queue).await.unwrap();
    let (sink, mut heard) = tokio::io::duplex(1 << 10);
    let mut told: Sink = Some(Box::pin(sink));
    let (_canceller, mut cancel) = Cancel::pair();
    let most = QUIET * 3;
    let error = queue.enter(most, &mut cancel, &mut told).await.unwrap_err();
    assert_eq!(error.code(), "timeout");
    drop(told);
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut heard, &mut text).await.unwrap();
    assert_eq!(text, "runner: the call waits in the queue: 1 calls of `exec` may run at once\n");
}

#[tokio::test]
async fn a_tool_with_commands_never_waits_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let figures = Figures { running: 1, waiting: 50 };
    let name: ToolName = "exec".parse().unwrap();
    let tool = Queue::of(Some(folder.path()), Subject::Tool(&name), figures).unwrap();
    let command = queue(folder.path(), 1, 50);
    // Each holds a tool's slot and takes a command's, with one of both for all; commands come from elsewhere too.
    let calls = (0..20).map(|at| {
        let (tool, command) = (tool.clone(), command.clone());
        tokio::spawn(async move {
            let _outer = if at % 2 == 0 { Some(enter(&tool).await.unwrap()) } else { None };
            for _ in 0..3 {
                let _inner = enter(&command).await.unwrap();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
}

#[tokio::test]
async fn the_kernel_frees_what_a_killed_process_held() {
    let folder = tempfile::tempdir().unwrap();
    let queue = queue(folder.path(), 2, 2);
    let mut holders = Vec::new();
    for name in ["running.0", "running.1", "waiting.0", "waiting.1", LINE] {
        let path = queue.folder.join(name);
        queue.open(name).unwrap();
        let mut command = std::process::Command::new("flock");
        holders.push(command.arg("--close").arg(path).args(["sleep", "600"]).spawn().unwrap());
    }
    while (queue.taken("running", 2), queue.taken("waiting", 2)) != (2, 2)
        || queue.at_once().unwrap().is_some()
    {
        tokio::time::sleep(LOOK).await;
    }
    assert_eq!(enter(&queue).await.unwrap_err().code(), "busy");
    for mut holder in holders {
        let pid = rustix::process::Pid::from_child(&holder);
        let children = format!("/proc/{0}/task/{0}/children", pid.as_raw_nonzero());
        let children = std::fs::read_to_string(children).unwrap();
        holder.kill().unwrap();
        holder.wait().unwrap();
        for child in children.split_whitespace() {
            let child = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
            rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
        }
    }
    let _one = enter(&queue).await.unwrap();
    let _two = enter(&queue).await.unwrap();
}

#[tokio::test]
async fn without_a_crowd_a_place_costs_microseconds() {
    let folder = tempfile::tempdir().unwrap();
    let queue = queue(folder.path(), 10, 100);
    drop(enter(&queue).await.unwrap());
    let begun = Instant::now();
    for _ in 0..1_000 {
        drop(enter(&queue).await.unwrap());
    }
    println!("a place without a crowd: {:?}", begun.elapsed() / 1_000);
}
