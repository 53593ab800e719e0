//! Counts the images encoded and decoded, and the time taken, by length of the image and by tree.
//!
//! Encoding or decoding an image takes tens of microseconds. In comparison, the cost of two clock
//! readings and of shared counters is negligible.

use crate::pool::counters::Counter;
use cheetah_io::Clock;
use std::sync::Arc;

/// Upper bounds of image lengths. An image counts in the first class whose bound it does not
/// exceed; a longer image counts in the last class.
pub const IMAGE_BYTES_CLASSES: [u32; 7] = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

/// Images encoded and decoded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ImageWork {
    /// Images encoded: regrouped and compressed.
    pub encodes: u64,
    /// Time spent encoding.
    pub encode_ns: u64,
    /// Images decoded.
    pub decodes: u64,
    /// Time spent decoding.
    pub decode_ns: u64,
}

/// The counters of an [`ImageWork`]. The counters are read and reset one by one, so a concurrent
/// reset may fall after the count of an image and before its time.
#[derive(Default, Debug)]
pub(in crate::pool) struct WorkCounters {
    encodes: Counter,
    encode_ns: Counter,
    decodes: Counter,
    decode_ns: Counter,
}

impl WorkCounters {
    fn encoded(&self, ns: u64) {
        self.encodes.one();
        self.encode_ns.add(ns);
    }

    fn decoded(&self, ns: u64) {
        self.decodes.one();
        self.decode_ns.add(ns);
    }

    /// The counts. `restart` resets the counters.
    pub(in crate::pool) fn read(&self, restart: bool) -> ImageWork {
        let read = if restart { Counter::take } else { Counter::get };
        ImageWork {
            encodes: read(&self.encodes),
            encode_ns: read(&self.encode_ns),
            decodes: read(&self.decodes),
            decode_ns: read(&self.decode_ns),
        }
    }
}

/// See the module.
pub(in crate::pool) struct ImageCounters {
    clock: Arc<dyn Clock>,
    by_length: [WorkCounters; IMAGE_BYTES_CLASSES.len()],
}

impl std::fmt::Debug for ImageCounters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageCounters").field("by_length", &self.by_length).finish_non_exhaustive()
    }
}

impl ImageCounters {
    pub(in crate::pool) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, by_length: Default::default() }
    }

    /// Returns the time at which work begins, to be passed to [`encoded`](Self::encoded) or
    /// [`decoded`](Self::decoded).
    pub(in crate::pool) fn begin_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Counts an encoded image.
    pub(in crate::pool) fn encoded(&self, tree: &WorkCounters, image_bytes: usize, begin_ns: u64) {
        let ns = self.clock.now_ns().saturating_sub(begin_ns);
        self.of_length(image_bytes).encoded(ns);
        tree.encoded(ns);
    }

    /// Counts a decoded image.
    pub(in crate::pool) fn decoded(&self, tree: &WorkCounters, image_bytes: usize, begin_ns: u64) {
        let ns = self.clock.now_ns().saturating_sub(begin_ns);
        self.of_length(image_bytes).decoded(ns);
        tree.decoded(ns);
    }

    /// The counts in each of [`IMAGE_BYTES_CLASSES`]. `restart` resets the counters.
    pub(in crate::pool) fn read(&self, restart: bool) -> [ImageWork; IMAGE_BYTES_CLASSES.len()] {
        std::array::from_fn(|class| self.by_length[class].read(restart))
    }

    fn of_length(&self, image_bytes: usize) -> &WorkCounters {
        let fits = IMAGE_BYTES_CLASSES.iter().position(|bytes| image_bytes <= *bytes as usize);
        &self.by_length[fits.unwrap_or(IMAGE_BYTES_CLASSES.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Config;
    use crate::pool::testing::{Database, TREE};
    use crate::pool::PageClass;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// A clock that advances by a nanosecond with each reading.
    #[derive(Default)]
    struct Ticks(AtomicU64);

    impl Clock for Ticks {
        fn now_ns(&self) -> u64 {
            self.0.fetch_add(1, Relaxed)
        }
        fn sleep_ns(&self, ns: u64) {
            self.0.fetch_add(ns, Relaxed);
        }
        fn unique(&self) -> [u8; 16] {
            [0; 16]
        }
        fn random(&self) -> std::io::Result<[u8; 16]> {
            Ok([0; 16])
        }
    }

    #[test]
    fn images_are_counted_by_length_and_by_tree_until_the_counters_start_again() {
        let counters = ImageCounters::new(Arc::new(Ticks::default()));
        let tree = WorkCounters::default();
        for image_bytes in [64, 1024, 1088, 16 << 10, 64 << 10, 72 << 10] {
            let begin_ns = counters.begin_ns();
            counters.encoded(&tree, image_bytes, begin_ns);
        }
        let begin_ns = counters.begin_ns();
        counters.decoded(&tree, 5000, begin_ns);
        let encodes = |work: &[ImageWork]| work.iter().map(|work| work.encodes).collect::<Vec<_>>();
        assert_eq!(encodes(&counters.read(false)), [2, 1, 0, 0, 1, 0, 2]);
        let all = ImageWork { encodes: 6, encode_ns: 6, decodes: 1, decode_ns: 1 };
        assert_eq!(tree.read(false), all);
        let taken = counters.read(true);
        assert_eq!((encodes(&taken), taken[3].decodes), (vec![2, 1, 0, 0, 1, 0, 2], 1));
        assert_eq!(counters.read(false), [ImageWork::default(); 7]);
        assert_eq!(tree.read(true), all, "each tree has its own counts");
        assert_eq!(tree.read(true), ImageWork::default());
    }

    #[test]
    fn each_page_that_is_written_or_read_is_counted_once() {
        let db = Database::new(&Config::tiny());
        let pids: Vec<_> = (0..5).map(|value| db.add(PageClass::Base, value)).collect();
        db.checkpoint().unwrap();
        let sum = |db: &Database| {
            let work = db.pool.image_work(false);
            let sum = |part: fn(&ImageWork) -> u64| work.iter().map(part).sum::<u64>();
            (sum(|work| work.encodes), sum(|work| work.decodes))
        };
        let of_tree = |db: &Database| {
            let work = db.pool.tree_image_work(TREE, false);
            (work.encodes, work.decodes)
        };
        assert_eq!((sum(&db), of_tree(&db)), ((5, 0), (5, 0)));
        let disk = db.disk.clone();
        let db = db.crash(disk);
        pids.iter().for_each(|pid| assert!(db.value(*pid).is_some()));
        pids.iter().for_each(|pid| assert!(db.value(*pid).is_some()));
        assert_eq!((sum(&db), of_tree(&db)), ((0, 5), (0, 5)));
    }
}
