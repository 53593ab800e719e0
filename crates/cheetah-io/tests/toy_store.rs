//! Tests the crash harness itself, with a toy key-value store, an oracle and five planted bugs.
//! Each bug is typical of storage engines. The harness must find every bug, and must find nothing
//! in the correct store.
//!
//! The store has files `toy/<n>`. Each has a header sector {capacity} and records [len u32][sum
//! u32][payload]. The store syncs the header only after the file has that capacity. It acknowledges
//! a record after a sync. Every few commits, it starts a new file. The state is all records of all
//! files in order, up to the first torn record.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cheetah_io::sim::{explore, Failure, Plan, Report, SimDisk};
use cheetah_io::{Disk, File, Rng};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Bug {
    None,
    SkipFsync,
    SkipDirSync,
    HeaderBeforeExtend,
    AckBeforeSync,
    TrustTornTail,
}

const HEADER_BYTES: u64 = 512;
const GROW_BYTES: u64 = 2048;
const COMMITS_PER_FILE: u64 = 5;

type Model = BTreeMap<u8, Vec<u8>>;

struct Toy<'a> {
    disk: &'a SimDisk,
    bug: Bug,
    file: Arc<dyn File>,
    end: u64,
    capacity: u64,
    commits: u64,
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, b| (sum ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}

impl<'a> Toy<'a> {
    fn create(disk: &'a SimDisk, bug: Bug) -> io::Result<Self> {
        disk.create_dir("toy")?;
        disk.sync_dir("")?;
        let file = Self::start_file(disk, bug, 0)?;
        Ok(Self { disk, bug, file, end: HEADER_BYTES, capacity: HEADER_BYTES, commits: 0 })
    }

    fn start_file(disk: &SimDisk, bug: Bug, number: u64) -> io::Result<Arc<dyn File>> {
        let file = disk.create(&format!("toy/{number}"))?;
        file.write_at(0, &[&HEADER_BYTES.to_le_bytes()[..], &[0; 504]].concat())?;
        file.sync_data()?;
        if bug != Bug::SkipDirSync {
            disk.sync_dir("toy")?;
        }
        Ok(file)
    }

    fn grow(&mut self) -> io::Result<()> {
        self.capacity += GROW_BYTES;
        let header = self.capacity.to_le_bytes();
        if self.bug == Bug::HeaderBeforeExtend {
            self.file.write_at(0, &header)?;
            self.file.sync_data()?;
            return self.file.set_len(self.capacity);
        }
        self.file.set_len(self.capacity)?;
        self.file.sync_data()?;
        self.file.write_at(0, &header)
    }

    fn commit(&mut self, changes: &[(u8, Vec<u8>)]) -> io::Result<()> {
        let mut payload = Vec::new();
        for (key, value) in changes {
            payload.extend([*key, value.len() as u8]);
            payload.extend(value);
        }
        let mut record = (payload.len() as u32).to_le_bytes().to_vec();
        record.extend(sum(&payload).to_le_bytes());
        record.extend(payload);
        if self.commits > 0 && self.commits % COMMITS_PER_FILE == 0 {
            self.file = Self::start_file(self.disk, self.bug, self.commits / COMMITS_PER_FILE)?;
            (self.end, self.capacity) = (HEADER_BYTES, HEADER_BYTES);
        }
        while self.end + record.len() as u64 > self.capacity {
            self.grow()?;
        }
        self.file.write_at(self.end, &record)?;
        self.end += record.len() as u64;
        self.commits += 1;
        if self.bug == Bug::AckBeforeSync {
            self.disk.acknowledge(self.commits);
        }
        if self.bug != Bug::SkipFsync {
            self.file.sync_data()?;
        }
        self.disk.acknowledge(self.commits);
        Ok(())
    }

    /// Returns the state on the disk, or the reason why the store cannot be opened.
    fn read(disk: &SimDisk, bug: Bug) -> Result<Model, String> {
        let mut model = Model::new();
        for number in 0.. {
            let Ok(bytes) = disk.contents(&format!("toy/{number}")) else { return Ok(model) };
            let Some(capacity) = bytes.first_chunk::<8>().map(|c| u64::from_le_bytes(*c)) else {
                return Ok(model);
            };
            if (bytes.len() as u64) < capacity {
                return Err(format!("file {number}: {} bytes, but the header says {capacity}", bytes.len()));
            }
            let mut rest = bytes.get(HEADER_BYTES as usize..).unwrap_or_default();
            let mut records = 0;
            while let Some(payload) = next_record(&mut rest, bug) {
                apply(&mut model, payload);
                records += 1;
            }
            if records < COMMITS_PER_FILE {
                return Ok(model);
            }
        }
        unreachable!("the loop ends at the first missing file")
    }
}

fn next_record<'b>(rest: &mut &'b [u8], bug: Bug) -> Option<&'b [u8]> {
    let len = u32::from_le_bytes(*rest.first_chunk()?) as usize;
    let expected = u32::from_le_bytes(*rest.get(4..)?.first_chunk()?);
    let payload = rest.get(8..8 + len)?;
    if len == 0 || (sum(payload) != expected && bug != Bug::TrustTornTail) {
        return None;
    }
    *rest = &rest[8 + len..];
    Some(payload)
}

fn apply(model: &mut Model, mut payload: &[u8]) {
    while let [key, len, rest @ ..] = payload {
        let len = usize::from(*len).min(rest.len());
        model.insert(*key, rest[..len].to_vec());
        payload = &rest[len..];
    }
}

fn changes(rng: &mut Rng) -> Vec<(u8, Vec<u8>)> {
    let mut change = || {
        let len = 1 + rng.below(200) as usize;
        (rng.below(20) as u8, rng.bytes(len))
    };
    (0..6).map(|_| change()).collect()
}

fn run(bug: Bug, seed: u64) -> Result<Report, Failure> {
    let mut models = vec![Model::new()];
    let mut rng = Rng::new(seed);
    let commits: Vec<_> = (0..18).map(|_| changes(&mut rng)).collect();
    for commit in &commits {
        let mut model = models[models.len() - 1].clone();
        commit.iter().for_each(|(key, value)| {
            model.insert(*key, value.clone());
        });
        models.push(model);
    }
    let workload = |disk: &SimDisk| {
        let mut toy = Toy::create(disk, bug).unwrap();
        commits.iter().for_each(|commit| toy.commit(commit).unwrap());
    };
    explore(&Plan::new(seed), &SimDisk::new(), workload, |image| {
        let found = Toy::read(&image.disk, bug)?;
        match models[image.acknowledged as usize..].contains(&found) {
            true => Ok(()),
            false => Err("the state is that of no commit since the acknowledged one".to_owned()),
        }
    })
}

#[test]
fn the_correct_store_survives_every_image() {
    let mut report = Report::default();
    for seed in 0..5 {
        report += run(Bug::None, seed).unwrap_or_else(|failure| panic!("{failure}"));
    }
    assert!(report.images_count > 1000, "{report:?}");
}

#[test]
fn every_planted_bug_is_caught() {
    for bug in
        [Bug::SkipFsync, Bug::SkipDirSync, Bug::HeaderBeforeExtend, Bug::AckBeforeSync, Bug::TrustTornTail]
    {
        let caught = (0..5).find_map(|seed| run(bug, seed).err());
        assert!(caught.is_some(), "{bug:?} was not caught");
    }
}

#[test]
fn a_failure_is_found_again_with_the_same_seed() {
    let first = run(Bug::SkipFsync, 1).unwrap_err();
    assert_eq!(first.to_string(), run(Bug::SkipFsync, 1).unwrap_err().to_string());
}
