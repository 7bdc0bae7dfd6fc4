//! Processor time of compute threads.

use rayon::ThreadPool;

/// Seconds that the threads of `pool` have run so far, without waiting and other
/// processes on their cores. 0 where the system does not report it.
pub(crate) fn seconds(pool: &ThreadPool) -> f64 {
    pool.broadcast(|_| own_seconds()).iter().sum()
}

#[cfg(target_os = "linux")]
fn own_seconds() -> f64 {
    use rustix::time::{ClockId, clock_gettime};

    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

#[cfg(not(target_os = "linux"))]
fn own_seconds() -> f64 {
    0.0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use gnarl_common::threads::pool;

    /// Sleeping threads take no processor time.
    #[test]
    fn work_counts_and_waiting_does_not() {
        let pool = pool(2).unwrap();
        let before = seconds(&pool);
        pool.install(|| std::thread::sleep(std::time::Duration::from_millis(200)));
        let slept = seconds(&pool) - before;
        assert!((0.0..0.1).contains(&slept), "{slept}");
        let busy = || {
            let start = own_seconds();
            while own_seconds() - start < 0.05 {
                std::hint::spin_loop();
            }
        };
        pool.install(busy);
        let worked = seconds(&pool) - before - slept;
        assert!(worked >= 0.05, "{worked}");
    }
}
