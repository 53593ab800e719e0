//! Tests that scrubbing reads all images and finds the damage in them.

use super::scrub::{Scrubbed, PASS_EVERY_NS};
use crate::base::planted::plant;
use crate::base::{Config, PageId};
use crate::format::ImageRef;
use crate::pool::testing::{Database, TREE};
use crate::pool::PageClass;
use cheetah_io::sim::Op;

const SECOND_NS: u64 = 1_000_000_000;

fn with_pages(count: u64) -> (Database, Vec<PageId>) {
    let db = Database::new(&Config::tiny());
    let pids = (0..count).map(|value| db.add(PageClass::Base, value)).collect();
    db.checkpoint().unwrap();
    (db, pids)
}

fn segment_of(image: &ImageRef) -> String {
    format!("seg/{:08}.seg", image.location.segment.0)
}

/// Scrubs until the end of a pass. Returns the damage found.
fn pass(db: &Database, mut now_ns: u64) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..10_000 {
        now_ns += SECOND_NS;
        match db.upkeep.scrub_step(now_ns).unwrap() {
            Scrubbed::Intact => {}
            Scrubbed::Damaged(tree, error) => found.push(format!("{tree}: {error}")),
            Scrubbed::Nothing | Scrubbed::PassEnded { .. } => return found,
        }
    }
    panic!("a pass does not end");
}

#[test]
fn a_pass_reads_all_and_finds_what_is_damaged() {
    let (db, pids) = with_pages(100);
    db.upkeep.set_scrub_rate(1 << 20);
    assert_eq!(pass(&db, 0), [""; 0]);
    let count = db.upkeep.scrubbing.images.get();
    assert!(count >= 100, "{count} images");
    // The next pass is due a day later, or when the rate is set.
    assert!(matches!(db.upkeep.scrub_step(1000 * SECOND_NS), Ok(Scrubbed::Nothing)));
    let image = db.pool.newest_image(pids[70]).unwrap();
    db.disk.flip(&segment_of(&image), u64::from(image.location.offset) + 60, 3).unwrap();
    db.upkeep.set_scrub_rate(1 << 20);
    let found = pass(&db, 0);
    assert!(found.len() == 1 && found[0].starts_with(&format!("{TREE}: ")), "{found:?}");
    assert_eq!(pass(&db, PASS_EVERY_NS).len(), 1);
    assert_eq!(db.upkeep.scrubbing.damaged.get(), 2);
}

/// Pages are added during a pass. The passes begin at different places.
#[test]
fn a_pass_reads_what_was_there_when_it_began() {
    for seed in 1..20 {
        let (db, pids) = with_pages(40);
        let damaged = pids[seed as usize * 2];
        let image = db.pool.newest_image(damaged).unwrap();
        db.disk.flip(&segment_of(&image), u64::from(image.location.offset) + 60, 3).unwrap();
        db.upkeep.set_scrub_rate(1 << 20);
        let mut found = 0;
        for step in 0..10 {
            let read = db.upkeep.scrub_step(seed * SECOND_NS + step * SECOND_NS).unwrap();
            found += usize::from(matches!(read, Scrubbed::Damaged(..)));
        }
        for value in 100..140 {
            db.add(PageClass::Base, value);
        }
        assert_eq!(found + pass(&db, 100 * SECOND_NS).len(), 1, "seed {seed}");
    }
}

#[test]
fn no_more_is_read_than_is_asked_for() {
    let (db, _) = with_pages(100);
    assert!(matches!(db.upkeep.scrub_step(SECOND_NS), Ok(Scrubbed::Nothing)));
    db.upkeep.set_scrub_rate(1000);
    let bytes = |db: &Database| db.upkeep.scrubbing.bytes.get();
    for now_ns in (100 * SECOND_NS..102 * SECOND_NS).step_by(1_000_000) {
        db.upkeep.scrub_step(now_ns).unwrap();
    }
    assert!((2000..3100).contains(&bytes(&db)), "{} bytes in two seconds", bytes(&db));
}

/// Returns whether the scrubber reports damage of an image that was replaced during the read.
fn told_of_a_replaced_image() -> bool {
    let (db, pids) = with_pages(1);
    let image = db.pool.newest_image(pids[0]).unwrap();
    db.disk.flip(&segment_of(&image), u64::from(image.location.offset) + 60, 3).unwrap();
    let hold = db.disk.hold(Op::Read, &segment_of(&image));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            hold.wait_until_reached();
            db.change(pids[0], 7);
            db.checkpoint().unwrap();
            drop(hold);
        });
        db.upkeep.scrub(&image).is_err()
    })
}

/// Breaks I5 of `pool/upkeep/mod.rs`: an image that was replaced during the read must not count as
/// damaged.
#[test]
fn what_is_replaced_meanwhile_is_not_damaged() {
    assert!(!told_of_a_replaced_image());
    let bug = plant("scrubbing: take what was replaced for damaged");
    assert!(told_of_a_replaced_image() && bug.reached_count() > 0);
}
