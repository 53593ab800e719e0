//! The heap of the process: the memory of `malloc`.

/// Returns freed memory that the allocator keeps between blocks in use to the system, in whole
/// pages; the allocator does so only at the end of the heap. This searches the freed memory of all
/// threads, which cannot allocate from the arena being searched. It takes about 1 ms with 30 MB of
/// heap, and 60 ms with 2 GB in 100,000 holes (decision 21). Does nothing without glibc.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "a function of the C library")]
    // SAFETY: it may be called at any time and by any thread, and changes no memory in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    fn resident_bytes() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).map_or(0, |pages| pages * 4096)
    }

    /// The blocks are too small to be returned one by one, and the last block keeps the end of the
    /// heap.
    #[test]
    fn holes_between_what_is_in_use_are_given_back() {
        const BLOCKS: usize = 2000;
        let mut blocks: Vec<_> =
            (0..2 * BLOCKS).map(|no| vec![1u8; if no % 2 == 0 { 64 << 10 } else { 64 }]).collect();
        for block in blocks.iter_mut().step_by(2) {
            *block = Vec::new();
        }
        let before = resident_bytes();
        super::give_back();
        assert!(resident_bytes() + BLOCKS * (32 << 10) < before);
        assert!(blocks.iter().skip(1).step_by(2).all(|block| *block == [1; 64]));
    }
}
