//! The wall clock, beside the clock that runs since the machine started.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time since 1970.
#[must_use]
pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The wall clock in seconds, and where it stood when the machine started, in nanoseconds. The second changes
/// only when the wall clock is set, and with each start of the machine.
#[must_use]
pub fn clocks() -> Option<(i64, i64)> {
    let wall = read(libc::CLOCK_REALTIME)?;
    let running = read(libc::CLOCK_BOOTTIME)?;
    let nanoseconds =
        |time: &libc::timespec| time.tv_sec.checked_mul(1_000_000_000)?.checked_add(time.tv_nsec);
    Some((wall.tv_sec, nanoseconds(&wall)?.checked_sub(nanoseconds(&running)?)?))
}

/// Processor time that this process has used, all its threads together.
#[must_use]
pub fn processor_time() -> Option<Duration> {
    let time = read(libc::CLOCK_PROCESS_CPUTIME_ID)?;
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
}

#[expect(unsafe_code, reason = "these clocks are not in the standard library")]
fn read(clock: libc::clockid_t) -> Option<libc::timespec> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer, and is not read unless the call says that it filled it.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then_some(time)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_distance_between_the_clocks_stays() {
        let (wall, first) = super::clocks().unwrap();
        let (_, second) = super::clocks().unwrap();
        assert!(wall > 1_700_000_000);
        assert!(first.abs_diff(second) < 1_000_000_000);
    }
}
