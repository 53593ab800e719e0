//! Time, and random bytes, for the engine.

use std::io::{self, Read};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A monotonic clock.
pub trait Clock: Send + Sync {
    /// Returns the nanoseconds since an arbitrary start.
    fn now_ns(&self) -> u64;
    /// Sleeps for about `ns` nanoseconds. A simulated clock advances instead.
    fn sleep_ns(&self, ns: u64);
    /// Returns bytes that no other call returns, on any machine: the identity of a new database.
    fn unique(&self) -> [u8; 16];
    /// Returns unpredictable bytes, for secrets. If this fails, there is no other source.
    fn random(&self) -> io::Result<[u8; 16]>;
}

/// The clock of the operating system.
#[derive(Debug)]
pub struct RealClock(Instant);

impl Default for RealClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RealClock {
    fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
    fn sleep_ns(&self, ns: u64) {
        std::thread::sleep(std::time::Duration::from_nanos(ns));
    }
    /// Falls back to the time of day and the process ID if the system has no random bytes.
    fn unique(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let random = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
        if random.is_err() {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos());
            bytes = (now << 32 | u128::from(std::process::id())).to_le_bytes();
        }
        bytes
    }
    /// Asks the operating system each time.
    fn random(&self) -> io::Result<[u8; 16]> {
        let mut bytes = [0; 16];
        let count = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        match count == bytes.len() {
            true => Ok(bytes),
            false => Err(io::Error::other(format!("only {count} random bytes"))),
        }
    }
}
