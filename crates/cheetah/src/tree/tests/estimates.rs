//! Tests range estimates. If the pages are in memory, the error is at most a tenth at any width.
//! Otherwise the error is a little larger. Estimates read no page but the root.

use super::fixture::Fixture;
use crate::base::Config;
use crate::leaves::testing::Database;
use crate::leaves::Leaves;
use cheetah_io::rng::Rng;

const RECORDS: u64 = 30_000;

/// The distribution of keys and of record sizes.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Every key once.
    Dense,
    /// A few values, each with many records. One value has half of all records.
    Repeated,
    /// In some ranges of keys the payloads are twelve times as long as in others.
    Long,
    /// Runs of a thousand keys, a million apart.
    Runs,
    /// English words.
    Words,
}

const SHAPES: [Shape; 5] = [Shape::Dense, Shape::Repeated, Shape::Long, Shape::Runs, Shape::Words];

fn record(shape: Shape, number: u64, rng: &mut Rng) -> (Vec<u8>, Vec<u8>) {
    let key = |value: u64, tail: u64| [value.to_be_bytes(), tail.to_be_bytes()].concat();
    match shape {
        Shape::Dense => (key(number, 0), vec![7; 12]),
        Shape::Repeated if rng.below(2) == 0 => (key(50, number), vec![7; 12]),
        Shape::Repeated => (key(rng.below(100), number), vec![7; 12]),
        Shape::Long if number % 10_000 < 3000 => (key(number, 0), vec![7; 100]),
        Shape::Long => (key(number, 0), vec![7; 8]),
        Shape::Runs => (key(number % 1000 + number / 1000 * 1_000_000, 0), vec![7; 12]),
        Shape::Words => {
            let word: String =
                (0..3).map(|_| ["and ", "the ", "page ", "a ", "of "][rng.below(5) as usize]).collect();
            (format!("{word}{number:06}").into_bytes(), vec![7; rng.below(60) as usize])
        }
    }
}

fn filled(shape: Shape, mut fixture: Fixture) -> Fixture {
    let mut rng = Rng::new(3);
    for number in 0..RECORDS {
        let (key, payload) = record(shape, number, &mut rng);
        fixture.insert(&key, &payload);
    }
    fixture
}

/// The worst relative error for ranges of all `widths` within the first `part` of the keys. A
/// difference of one record does not count.
fn worst_error(fixture: &Fixture, widths: &[usize], part: f64) -> f64 {
    let keys: Vec<_> = fixture.model.keys().collect();
    let end = (keys.len() as f64 * part) as usize;
    let mut rng = Rng::new(9);
    let mut worst = 0.0_f64;
    for width in widths.iter().cycle().take(400) {
        let first = rng.below((end - width) as u64) as usize;
        let high = keys.get(first + width).map(|key| key.as_slice());
        let found = fixture.tree.count_between(keys[first], high, RECORDS).unwrap();
        let error = (found as f64 - *width as f64).abs() - 1.0;
        worst = worst.max(error / *width as f64);
    }
    worst
}

#[test]
fn estimates_over_pages_in_memory_are_within_a_tenth_at_any_width() {
    for shape in SHAPES {
        let config = Config { buffer_pool_bytes: 16 << 20, ..Config::tiny() };
        let fixture = filled(shape, Fixture::empty(Leaves::in_memory(&config)));
        let widths = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 20_000, fixture.model.len() - 1];
        let worst = worst_error(&fixture, &widths, 1.0);
        println!("{shape:?}: {worst:.3}");
        assert!(worst <= 0.1, "{shape:?}: {worst:.3}");
        let all = fixture.tree.count_between(b"", None, RECORDS).unwrap() as f64;
        assert!((all / fixture.model.len() as f64 - 1.0).abs() < 0.1, "{shape:?}: {all}");
        let leaves = fixture.tree.check(&mut |_, _| {}).unwrap().leaf_pages as f64;
        let estimate = fixture.tree.leaf_pages_estimate().unwrap() as f64;
        assert!((estimate / leaves - 1.0).abs() < 0.2, "{estimate} leaves for {leaves}");
    }
}

/// After a startup, only the root is in memory. The test omits the last child of the root, which
/// has no upper fence for the interpolation.
#[test]
fn estimates_read_nothing_and_know_a_range_by_its_keys() {
    for (shape, width, most) in
        [(Shape::Dense, 300, 0.1), (Shape::Dense, 20_000, 0.1), (Shape::Runs, 10_000, 0.2)]
    {
        let db = Database::new(&Config { buffer_pool_bytes: 16 << 20, ..Config::tiny() });
        let fixture = filled(shape, Fixture::empty(db.leaves.clone()));
        db.checkpoint().unwrap();
        let (def, model) = (*fixture.tree.def(), fixture.model.clone());
        drop(fixture);
        let disk = db.disk.clone();
        let db = db.crash(disk);
        let fixture = Fixture::open(db.leaves.clone(), def, model);
        fixture.tree.depth().unwrap();
        let before = db.pool.stats().flow.reads;
        let worst = worst_error(&fixture, &[width], 0.8);
        assert_eq!(db.pool.stats().flow.reads, before, "an estimate has read pages");
        println!("{shape:?}, {width}: {worst:.3}");
        assert!(worst <= most, "{shape:?}, {width} records: {worst:.3}");
    }
}
