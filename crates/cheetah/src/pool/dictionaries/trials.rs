//! Trials of dictionaries: a trial builds a dictionary from a tree's pages and decides whether the
//! dictionary pays (`payoff`).
//!
//! A tree that has grown is queued for a background thread. This thread makes the trial if it can
//! keep the tree from being dropped (D3). To do so it uses the tree's table, or the builder of the
//! tree has lent the tree. A caller that needs the outcome makes the trial itself.
//!
//! Invariants
//!   T1  No trial of a lent tree outlives its [`LentTree`].
//!   T2  The builder of a tree does not finish before the tree's first trial.
//! Locks     The lock of a lent tree, then the lock of trials, then the locks in the order given in
//!           `dictionaries`.

use super::payoff::{split_sample, Payoff, TrialDictionary, SAMPLE_PAGES, SAMPLE_PAGES_MIN};
use super::registry::{Due, Lent, GROWTH};
use crate::base::{sound, ErrorKind, Result, TreeId, TxnId};
use crate::format::image::{Compression, Primer};
use crate::format::page::{is_built, PageView};
use crate::pool::trees::{TreeDef, TreeState, PAGES_MIN};
use crate::pool::Pool;
use parking_lot::Mutex;
use std::any::Any;
use std::sync::Arc;

/// Maximum number of dictionaries of a tree. Old dictionaries stay (D2).
const VERSIONS_MAX: usize = 8;
/// A sample is taken from the `NEWEST_PAGES` newest pages of the tree, and stops after
/// [`SAMPLE_BYTES_MAX`] bytes of content.
const NEWEST_PAGES: usize = 512;
/// The maximum number of page numbers checked to find these pages, which takes about 20 ms. In a
/// huge database, a tree without recent pages may have no trial.
const NEWEST_LOOKS_MAX: usize = 1_000_000;
const SAMPLE_BYTES_MAX: usize = 2 << 20;
/// Each round of sampling takes every `SAMPLE_ROUNDS`th of the newest pages, spread over all of
/// them. A round with pages of the largest size fills the sample.
const SAMPLE_ROUNDS: usize = 16;

/// The number of pages from which on a load makes the first trial itself.
const EARLY_PAGES_MAX: u64 = 1024;

/// A tree that its builder lends to the background threads, so that they can make trials although
/// no table has the tree yet. Dropping this value ends the loan and waits for a trial in progress:
/// about 10 ms, or longer if memory is full.
#[derive(Debug)]
pub struct LentTree {
    pool: Arc<Pool>,
    lent: Arc<Lent>,
}

impl LentTree {
    /// Lets background threads make trials of a tree until the returned value is dropped. `keeper`
    /// keeps the tree from being dropped (D3), and is dropped with the returned value. Drop the
    /// returned value outside of mini-transactions and without latches.
    pub fn lend(pool: &Arc<Pool>, tree: TreeId, keeper: Arc<dyn Any + Send + Sync>) -> Self {
        let lent = Arc::new(Mutex::new(Some(keeper)));
        pool.dictionaries.lend(tree, &lent);
        Self { pool: Arc::clone(pool), lent }
    }

    #[cfg(test)]
    /// The guard that a background thread locks.
    pub(in crate::pool) fn lent(&self) -> Arc<Lent> {
        Arc::clone(&self.lent)
    }
}

impl Drop for LentTree {
    fn drop(&mut self) {
        if !sound!(true, "pool: keep a tree that was taken back") {
            return;
        }
        let kept = self.lent.lock().take();
        self.pool.dictionaries.return_lent(&self.lent);
        drop(kept);
    }
}

/// The trials of one tree.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'p> {
    pool: &'p Pool,
    tree: TreeId,
}

impl Pool {
    /// The trials of a tree.
    pub fn trial(&self, tree: TreeId) -> Trial<'_> {
        Trial { pool: self, tree }
    }
}

impl<'p> Trial<'p> {
    /// Makes a due trial of a lent tree. Returns whether it made the trial, or `None` if the tree
    /// is not lent. Blocks, and reads up to 96 pages.
    pub fn try_if_lent(&self) -> Result<Option<bool>> {
        let Some(lent) = self.pool.dictionaries.lent(self.tree) else { return Ok(None) };
        let kept = lent.lock();
        match kept.is_some() {
            true if self.is_due() => self.run_due().map(Some),
            true => Ok(Some(false)),
            false => Ok(None),
        }
    }

    /// Queues a trial when the tree has grown enough for a dictionary. The engine's own trees have
    /// no dictionaries.
    pub(in crate::pool) fn note_growth(&self, state: &TreeState) {
        if self.tree >= TreeId::FIRST_USER && state.note_growth() {
            self.pool.dictionaries.ask(Due::Trial(self.tree));
        }
    }

    /// Returns whether the tree has grown enough since the last trial.
    pub fn is_due(&self) -> bool {
        self.pool.trees.get(self.tree).is_trial_due()
    }

    /// Returns whether a dictionary was tried for the tree since startup, or the tree has one.
    pub fn has_been_made(&self) -> bool {
        self.pool.trees.get(self.tree).has_tried()
    }

    /// Returns whether the tree is large enough for a dictionary, or a dictionary was tried. If so,
    /// its pages may be [noted](Pool::note_finished) to be written.
    pub fn may_write_early(&self) -> bool {
        let state = self.pool.trees.get(self.tree);
        state.has_tried() || state.awaits_first_trial()
    }

    /// Like [`finish`](Self::finish), for the builder of a complete tree. Does nothing if a trial
    /// was already made.
    pub fn finish_first(&self) -> Result<()> {
        match self.pool.trees.get(self.tree).awaits_first_trial() {
            true => self.finish(),
            false => Ok(()),
        }
    }

    /// Like [`finish_first`](Self::finish_first), for a builder that is still adding pages. Does
    /// nothing unless the tree is far beyond the size for its first trial.
    pub fn finish_late(&self) -> Result<()> {
        match self.pool.trees.get(self.tree).bytes().pages > EARLY_PAGES_MAX {
            true => self.finish_first(),
            false => Ok(()),
        }
    }

    /// Like [`run`](Self::run), but does not wait for a trial in progress, and returns only an
    /// error that stops the engine.
    pub fn run_in_passing(&self) -> Result<()> {
        self.unless_fatal(self.run_unless_busy())
    }

    /// Makes the trial that is due before pages are written, or waits for the thread that makes it.
    /// Errors are those of [`run_in_passing`](Self::run_in_passing).
    pub fn finish(&self) -> Result<()> {
        let _one = self.lock().lock();
        match self.is_due() {
            true => self.unless_fatal(self.try_now()),
            false => Ok(()),
        }
    }

    fn unless_fatal(&self, tried: Result<bool>) -> Result<()> {
        match tried {
            Err(error) if error.kind() == ErrorKind::Stopped => Err(error),
            Err(error) => {
                self.pool.health.background_errors().note("making dictionaries", &error);
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// Like [`run`](Self::run), but returns `false` if another thread is making a trial, possibly
    /// of another tree.
    fn run_unless_busy(&self) -> Result<bool> {
        let Some(_one) = self.lock().try_lock() else { return Ok(false) };
        self.try_now().map(|_| true)
    }

    /// Makes a due trial. Returns `false` if the trial is postponed because another thread is
    /// making a trial.
    pub fn run_due(&self) -> Result<bool> {
        let is_done = self.run_unless_busy()?;
        if !is_done {
            self.pool.dictionaries.ask(Due::Trial(self.tree));
        }
        Ok(is_done)
    }

    pub(in crate::pool) fn lock(&self) -> &'p Mutex<()> {
        self.pool.dictionaries.trial_of(self.tree)
    }

    /// Makes a dictionary from some of the tree's pages, if tests with other pages show that the
    /// dictionary pays. Returns whether it made one. The caller must keep the tree from being
    /// dropped (D3), be outside of mini-transactions, and hold no latches. Reads up to 96 pages.
    /// Only one trial of a tree runs at a time.
    pub fn run(&self) -> Result<bool> {
        let _one = self.lock().lock();
        self.try_now()
    }

    fn try_now(&self) -> Result<bool> {
        let state = self.pool.trees.get(self.tree);
        let pages = state.bytes().pages;
        state.put_trial_off(pages + PAGES_MIN);
        let versions = state.dictionary_pages().len();
        let def = state.def().filter(|def| Primer::suits(def.compression));
        let def = def.filter(|_| pages >= PAGES_MIN && versions < VERSIONS_MAX);
        let made = def.map_or(Ok(false), |def| self.trial(&def, &state, pages));
        state.next_trial_at(match made {
            Ok(made) => pages * if made || versions > 0 { GROWTH } else { 2 },
            // The next trial after an error is postponed, so that not every new page repeats it.
            Err(_) => pages + PAGES_MIN,
        });
        made
    }

    /// Returns the contents, before compression, of a sample of the tree's newest pages.
    fn sample(&self, def: &TreeDef) -> Result<Vec<Vec<u8>>> {
        let newest = self.pool.newest_pages_of(def.id, NEWEST_PAGES, NEWEST_LOOKS_MAX);
        let rounds = (0..SAMPLE_ROUNDS).flat_map(|round| newest.iter().skip(round).step_by(SAMPLE_ROUNDS));
        let (mut contents, mut bytes_count) = (Vec::new(), 0);
        for pid in rounds.take(SAMPLE_PAGES) {
            let page = match self.pool.fetch_for_scan(*pid) {
                Ok(Some(page)) => page,
                Err(error) if error.kind() == ErrorKind::Stopped => return Err(error),
                // The page was freed, or the next reader of it reports the error.
                Ok(None) | Err(_) => continue,
            };
            let bytes = page.read();
            if is_built(&bytes) && Primer::serves(PageView::new(&bytes).kind()) {
                let content = self.pool.scratch.with_encoder(|workspace| {
                    workspace.content(&bytes, &def.row_format, TxnId(u64::MAX)).to_vec()
                });
                bytes_count += content.len();
                contents.push(content);
            }
            if bytes_count > SAMPLE_BYTES_MAX {
                break;
            }
        }
        Ok(contents)
    }

    /// Makes a dictionary if one pays for a tree of `pages` pages.
    fn trial(&self, def: &TreeDef, state: &TreeState, pages: u64) -> Result<bool> {
        let contents = self.sample(def)?;
        if contents.len() < SAMPLE_PAGES_MIN {
            return Ok(false);
        }
        let sampled_bytes = contents.iter().map(Vec::len).sum();
        let (sources, tested) = split_sample(contents.iter().map(Vec::as_slice));
        let new = TrialDictionary::of(&sources, sampled_bytes, def.compression, self.pool.page_bytes)?;
        let now = state.dictionary_in(self.pool.epoch()).map(|page| self.pool.load_primer(def.id, page));
        // A dictionary that cannot be read is useless. The next reader of it reports the error.
        let now = now.and_then(|loaded| loaded.ok()?.0);
        let outcome = Payoff {
            before: self.images_bytes(&tested, def.compression, now.as_deref()),
            after: self.images_bytes(&tested, def.compression, Some(&new.primer)),
            pages: tested.len(),
            own: self.images_bytes(&[&new.content], def.compression, None),
        };
        let pays = outcome.pays(pages, def.compression);
        if pays {
            self.pool.add_dictionary(def.id, state, &new.content, new.primer)?;
        }
        Ok(pays)
    }

    fn images_bytes(&self, contents: &[&[u8]], compression: Compression, primer: Option<&Primer>) -> usize {
        let bytes_of = |content: &&[u8]| {
            self.pool.scratch.with_encoder(|workspace| workspace.image_bytes(content, compression, primer))
        };
        contents.iter().map(bytes_of).sum()
    }
}
