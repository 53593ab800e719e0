//! Compares sorting with a model: any order, any lengths, in memory and spilled.

use super::runs::RunFile;
use super::{Filling, Merge, SortMemory, Sorter, TempFiles};
use crate::base::planted::plant;
use crate::base::{statement_threads, Error, Health, Result};
use crate::durable::Durable;
use crate::format::encryption::Key;
use crate::keys::Keys;
use crate::memory::{MemoryBudget, MemoryUse};
use cheetah_io::sim::{Fault, Op, SimClock, SimDisk};
use cheetah_io::{Disk, Rng};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

struct Fixture {
    disk: SimDisk,
    files: Arc<TempFiles>,
    memory: Arc<SortMemory>,
    budget: Arc<MemoryBudget>,
}

fn files(disk: &SimDisk) -> Arc<TempFiles> {
    let durable = Durable::new(Arc::new(disk.clone()), Arc::new(Health::default()));
    let keys = Keys::none(Arc::new(SimClock::default()), [0; 16]);
    TempFiles::open(Arc::new(durable), keys, |_| Ok(())).unwrap()
}

/// Temporary files of an encrypted database. The disk refuses space for them while `is_full`.
fn closed_files(disk: &SimDisk, is_full: Arc<AtomicBool>) -> Arc<TempFiles> {
    let durable = Durable::new(Arc::new(disk.clone()), Arc::new(Health::default()));
    let keys = Keys::none(Arc::new(SimClock::default()), [0; 16]);
    keys.serve(Arc::new(Key::new(1, 1, vec![7; 32].into(), &[0; 16])));
    let space = move |_| match is_full.load(Relaxed) {
        true => Err(Error::DiskFull("tmp".into())),
        false => Ok(()),
    };
    TempFiles::open(Arc::new(durable), keys, space).unwrap()
}

fn fixture(limit: usize) -> Fixture {
    let disk = SimDisk::new();
    let budget = Arc::new(MemoryBudget::new(1 << 30));
    let memory = SortMemory::with_limit(Arc::clone(&budget), limit);
    Fixture { files: files(&disk), disk, memory, budget }
}

impl Fixture {
    fn used(&self) -> usize {
        self.budget.used(MemoryUse::Sort)
    }

    fn peak(&self) -> usize {
        self.memory.peak_bytes.load(Relaxed)
    }

    fn sorters(&self, count: usize) -> Vec<Sorter> {
        let shares = self.memory.join(count).unwrap();
        shares.into_iter().map(|share| Sorter::new(&self.files, share)).collect()
    }
}

fn records(count: usize, key_bytes: u64, value_bytes: u64, seed: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut rng = Rng::new(seed);
    let mut bytes = |most: u64| (0..rng.below(most + 1)).map(|_| rng.below(4) as u8).collect::<Vec<u8>>();
    (0..count).map(|_| (bytes(key_bytes), bytes(value_bytes))).collect()
}

fn sorted(sorter: Sorter) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    all_of(sorter.finish()?)
}

fn all_of(mut merge: Merge) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut found = Vec::new();
    while merge.advance()? {
        let (key, value) = merge.record();
        found.push((key.to_vec(), value.to_vec()));
    }
    Ok(found)
}

#[test]
fn what_comes_in_any_order_goes_in_that_of_its_keys() {
    for (limit, count, key_bytes, value_bytes) in [
        (1 << 20, 0, 9, 9),
        (1 << 20, 3000, 12, 40),
        (4096, 3000, 12, 40),
        (2048, 200, 30, 700),
        (4096, 20_000, 5, 3),
    ] {
        let fixture = fixture(limit);
        let mut expected = records(count, key_bytes, value_bytes, limit as u64 + count as u64);
        let mut sorter = fixture.sorters(1).remove(0);
        for (key, value) in &expected {
            let (start, end) = key.split_at(key.len() / 2);
            sorter.push(&[start, end], &[value]).unwrap();
        }
        let spills = sorter.spilled_bytes() > 0;
        assert_eq!(spills, limit < 1 << 20, "{limit} bytes, {count} records");
        let mut found = sorted(sorter).unwrap();
        assert!(found.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{limit} bytes, {count} records");
        expected.sort();
        found.sort();
        assert!(found == expected, "{limit} bytes, {count} records");
        assert_eq!(fixture.used(), 0);
    }
}

/// Uses one thread per processor. With one processor, this test equals the previous one.
#[test]
fn threads_that_write_parts_of_the_buffer_lose_nothing_and_tell_of_errors() {
    // The second case stays in memory.
    for (limit, count) in [(16 << 10, 20_000), (1 << 20, 9000)] {
        let fixture = fixture(limit);
        let mut expected = records(count, 12, 20, 4);
        let mut sorter = fixture.sorters(1).remove(0).with_threads_for_each(1024);
        for (key, value) in &expected {
            sorter.push(&[key], &[value]).unwrap();
        }
        assert_eq!(sorter.spilled_bytes() > 0, count == 20_000);
        assert_eq!(sorter.has_two_buffers(), count == 20_000 && statement_threads() > 1);
        let mut found = sorted(sorter).unwrap();
        assert!(found.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        expected.sort();
        found.sort();
        assert!(found == expected);
        let most = fixture.peak();
        assert!(most <= limit + 1024 && fixture.used() == 0, "{most} bytes of {limit}");
    }
    let fixture = fixture(16 << 10);
    fixture.disk.set_space(Some(fixture.disk.used_bytes() + (16 << 10)));
    let mut sorter = fixture.sorters(1).remove(0).with_threads_for_each(1024);
    let refused =
        records(200_000, 40, 40, 5).iter().find_map(|(key, value)| sorter.push(&[key], &[value]).err());
    assert!(matches!(refused, Some(Error::DiskFull(_))), "{refused:?}");
}

#[test]
fn sorters_together_stay_within_their_memory() {
    // With 1024 bytes, other threads write runs while the sorters take more records.
    for thread_bytes in [usize::MAX, 1024] {
        check_memory_of_sorters(thread_bytes);
    }
}

fn check_memory_of_sorters(thread_bytes: usize) {
    let limit = 64 << 10;
    let fixture = fixture(limit);
    let more = |count| {
        let sorters = fixture.sorters(count).into_iter();
        sorters.map(|sorter| sorter.with_threads_for_each(thread_bytes)).collect::<Vec<_>>()
    };
    let mut sorters = more(1);
    let pushes = records(6000, 20, 60, 5);
    for (no, (key, value)) in pushes.iter().enumerate() {
        if no % 1500 == 1499 {
            sorters.extend(more(3));
        }
        for sorter in &mut sorters {
            sorter.push(&[key], &[value]).unwrap();
        }
    }
    // The limit does not include the places of the first records (S1).
    let most = fixture.peak();
    assert!(most <= limit + sorters.len() * 1024 && most > limit / 2, "{most} bytes of {limit}");
    assert!(fixture.memory.join(100).is_none());
    let counts = sorters.into_iter().map(|sorter| sorted(sorter).unwrap().len()).collect::<Vec<_>>();
    assert_eq!(counts, [6000, 4501, 4501, 4501, 3001, 3001, 3001, 1501, 1501, 1501, 1, 1, 1]);
    assert_eq!(fixture.used(), 0);
}

#[test]
fn a_full_disk_is_told() {
    let fixture = fixture(4096);
    fixture.disk.set_space(Some(fixture.disk.used_bytes() + (16 << 10)));
    let mut sorter = fixture.sorters(1).remove(0);
    let mut rng = Rng::new(1);
    let refused = (0..100_000).find_map(|_| {
        let key: Vec<u8> = (0..40).map(|_| rng.below(256) as u8).collect();
        sorter.push(&[&key], &[]).err()
    });
    assert!(matches!(refused, Some(Error::DiskFull(_))), "{refused:?}");
}

/// The first sorter stays in memory. The second sorter spills if memory is small.
#[test]
fn sorters_that_a_thread_fills_have_what_was_pushed_and_merge_ahead() {
    for (limit, thread_from) in [(4 << 20, 0), (4 << 20, usize::MAX), (8 << 10, 0), (8 << 10, 100_000)] {
        let fixture = fixture(limit);
        let mut filling = Filling::new(fixture.sorters(2)).with_thread_from(thread_from);
        let mut expected = [records(7, 9, 9, 1), records(9000, 12, 20, 2)];
        for (no, records) in expected.iter().enumerate() {
            for (key, value) in records {
                let (start, end) = key.split_at(key.len() / 2);
                filling.push(no, &[start, end], &[value]).unwrap();
            }
        }
        let sorters = filling.finish().unwrap();
        assert_eq!(sorters[1].spilled_bytes() > 0, limit < 4 << 20);
        for (sorter, expected) in sorters.into_iter().zip(&mut expected) {
            let mut found = all_of(sorter.finish_ahead().unwrap()).unwrap();
            assert!(found.windows(2).all(|pair| pair[0].0 <= pair[1].0));
            expected.sort();
            found.sort();
            assert!(found == *expected, "{limit} bytes, a thread from {thread_from} on");
        }
        assert_eq!(fixture.used(), 0);
    }
}

#[test]
fn a_thread_that_fills_or_merges_ends_with_its_caller_and_tells_of_errors() {
    let fixture = fixture(8 << 10);
    let many = records(200_000, 40, 40, 5);
    let fill = |count: usize| {
        let mut filling = Filling::new(fixture.sorters(1)).with_thread_from(0);
        for (key, value) in many.iter().take(count) {
            filling.push(0, &[key], &[value])?;
        }
        Ok::<_, Error>(filling)
    };
    drop(fill(5000).unwrap());
    assert_eq!(fixture.used(), 0);
    let mut merge = fill(5000).unwrap().finish().unwrap().remove(0).finish_ahead().unwrap();
    assert!(merge.advance().unwrap());
    drop(merge);
    assert_eq!(fixture.used(), 0);
    // The error may come at the end or before, depending on the progress of the thread.
    fixture.disk.set_space(Some(fixture.disk.used_bytes() + (16 << 10)));
    for count in [1000, 200_000] {
        let refused = fill(count).and_then(Filling::finish).err();
        assert!(matches!(refused, Some(Error::DiskFull(_))), "{refused:?}");
    }
    fixture.disk.set_space(None);
    let sorter = fill(5000).unwrap().finish().unwrap().remove(0);
    fixture.disk.inject(Fault::on(Op::Read).after(100).forever());
    let refused = sorter.finish_ahead().and_then(all_of);
    assert!(matches!(refused, Err(Error::Io { .. })), "{:?}", refused.err());
    assert_eq!(fixture.used(), 0);
}

#[test]
fn files_have_no_names_and_a_startup_removes_what_has() {
    let fixture = fixture(4096);
    let mut sorter = fixture.sorters(1).remove(0);
    records(2000, 9, 9, 3).iter().for_each(|(key, value)| sorter.push(&[key], &[value]).unwrap());
    assert!(sorter.spilled_bytes() > 0);
    assert_eq!(fixture.disk.list("tmp").unwrap(), Vec::<String>::new());
    fixture.disk.put("tmp/7.run", b"left by a crash").unwrap();
    files(&fixture.disk);
    assert_eq!(fixture.disk.list("tmp").unwrap(), Vec::<String>::new());
}

#[test]
fn runs_of_an_encrypted_database_read_back() {
    let (disk, is_full) = (SimDisk::new(), Arc::new(AtomicBool::new(false)));
    let plain = fixture(4096);
    let mut sorted = Vec::new();
    for files in [closed_files(&disk, is_full), Arc::clone(&plain.files)] {
        let fixture = Fixture { files, ..fixture(4096) };
        let mut sorter = fixture.sorters(1).remove(0);
        records(2000, 9, 30, 3).iter().for_each(|(key, value)| sorter.push(&[key], &[value]).unwrap());
        assert!(sorter.spilled_bytes() > 0);
        sorted.push(all_of(sorter.finish().unwrap()).unwrap());
    }
    assert!(sorted[0].len() == 2000 && sorted[0] == sorted[1]);
}

/// Continues a sort after the database receives its first key. Returns whether the sort then writes
/// plain text.
fn goes_on_in_plain_text() -> bool {
    let (disk, keys) = (SimDisk::new(), Keys::none(Arc::new(SimClock::default()), [0; 16]));
    let durable = Durable::new(Arc::new(disk), Arc::new(Health::default()));
    let files = TempFiles::open(Arc::new(durable), Arc::clone(&keys), |_| Ok(())).unwrap();
    let fixture = Fixture { files, ..fixture(4096) };
    let mut sorter = fixture.sorters(1).remove(0);
    let mut all = records(4000, 9, 30, 3);
    let push = |sorter: &mut Sorter, part: &[(Vec<u8>, Vec<u8>)]| {
        part.iter().for_each(|(key, value)| sorter.push(&[key], &[value]).unwrap());
        sorter.spilled_bytes()
    };
    let before = push(&mut sorter, &all[..2000]);
    assert!(before > 0 && sorter.writes_plain_text());
    keys.serve(Arc::new(Key::new(1, 1, vec![7; 32].into(), &[0; 16])));
    assert!(push(&mut sorter, &all[2000..]) > before);
    let is_plain = sorter.writes_plain_text();
    all.sort();
    let mut found = sorted(sorter).unwrap();
    assert!(found.is_sorted_by_key(|(key, _)| key));
    found.sort();
    assert!(found == all);
    is_plain
}

#[test]
fn e3_a_sort_writes_no_more_plain_text_when_there_is_a_key() {
    assert!(!goes_on_in_plain_text());
    let _bug = plant("encryption: go on with a plain file of runs");
    assert!(goes_on_in_plain_text());
}

#[test]
fn e3_a_block_that_could_not_be_written_takes_its_number_with_it() {
    let numbers = || {
        let (disk, is_full) = (SimDisk::new(), Arc::new(AtomicBool::new(true)));
        let mut file = RunFile::create(&closed_files(&disk, Arc::clone(&is_full)), 100).unwrap();
        let before = file.next_block;
        assert!(file.push(&[1; 60], &[2; 60]).is_err());
        (before, file.next_block)
    };
    let (before, after) = numbers();
    assert!(after > before);
    let _bug = plant("encryption: keep the number of a block that failed");
    let (before, after) = numbers();
    assert_eq!(after, before);
}
