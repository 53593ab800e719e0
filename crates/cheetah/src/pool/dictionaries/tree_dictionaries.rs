//! The dictionaries of trees: chooses the dictionary with which a page is written, loads
//! dictionaries, and performs the queued background work. Invariants D1 to D5 are at the head of
//! `dictionaries`.

use super::registry::{Due, GROWTH};
use crate::base::{sound, Epoch, ErrorKind, PageId, Result, TreeId};
use crate::format::image::{Dictionary, Primer};
use crate::format::page::{build_content, content_capacity, PageKind};
use crate::pool::trees::{TreeState, Version};
use crate::pool::{PageClass, Pool};
use std::collections::HashMap;
use std::sync::Arc;

/// The outcome of one step of work on dictionaries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DictionaryDue {
    /// Nothing was due.
    Nothing,
    /// Some work was done.
    Done,
    /// Like `Done`, but another dictionary was dropped from memory, because memory cannot hold all
    /// dictionaries in use.
    Replaced,
    /// The tree has grown. A caller that keeps it from being dropped should call
    /// [`Trial::run_due`](crate::pool::Trial::run_due). If the tree is not found, call
    /// [`Trial::try_if_lent`](crate::pool::Trial::try_if_lent).
    Trial(TreeId),
}

impl Pool {
    /// The primer for images of `epoch` (D1), if it is in memory (D4).
    pub(in crate::pool) fn primer_for(
        &self,
        tree: TreeId,
        state: &TreeState,
        epoch: Epoch,
    ) -> Option<Arc<Primer>> {
        let is_sound = sound!(true, "pool: name a dictionary of the next epoch");
        let page = state.dictionary_in(if is_sound { epoch } else { Epoch(u64::MAX) })?;
        let compression = state.def().map(|def| def.compression).filter(|wanted| Primer::suits(*wanted))?;
        let found = self.dictionaries.to_write.get(tree, page);
        let found = found.filter(|primer| primer.compression() == compression);
        if found.is_none() {
            self.counters.dictionary_misses.one();
            self.dictionaries.ask(Due::Load(tree, page));
        }
        found
    }

    /// Returns the dictionary in a page of `tree`, from memory or from disk. Fails with
    /// `Corruption` if the page is no dictionary or was freed.
    pub(in crate::pool) fn dictionary(&self, tree: TreeId, page: PageId) -> Result<Arc<Dictionary>> {
        if let Some(found) = self.dictionaries.to_read.get(tree, page) {
            return Ok(found);
        }
        let _one = self.dictionaries.load(page);
        if let Some(found) = self.dictionaries.to_read.get(tree, page) {
            return Ok(found);
        }
        let content = self.dictionary_content(tree, page)?;
        let dictionary = Dictionary::new(page, &content)?;
        let bytes = dictionary.memory_bytes();
        self.counters.dictionary_loads.one();
        Ok(self.dictionaries.to_read.keep(tree, page, dictionary, bytes).0)
    }

    fn dictionary_content(&self, tree: TreeId, page: PageId) -> Result<Vec<u8>> {
        let gone =
            || crate::base::Error::corrupt(format!("dictionary {page} of tree {tree}"), "the page is gone");
        self.read_dictionary(tree, page)?.ok_or_else(gone)
    }

    /// Loads a primer, unless the tree was dropped or its compression does not use one. Also
    /// returns whether other primers were dropped from memory for it.
    pub(in crate::pool) fn load_primer(
        &self,
        tree: TreeId,
        page: PageId,
    ) -> Result<(Option<Arc<Primer>>, bool)> {
        let compression = self.trees.known(tree).and_then(|state| Some(state.def()?.compression));
        let Some(compression) = compression.filter(|wanted| Primer::suits(*wanted)) else {
            return Ok((None, false));
        };
        let found = self.dictionaries.to_write.get(tree, page);
        if let Some(found) = found.filter(|primer| primer.compression() == compression) {
            return Ok((Some(found), false));
        }
        let made =
            self.dictionary_content(tree, page).and_then(|content| Primer::new(page, &content, compression));
        if matches!(&made, Err(error) if error.kind() == ErrorKind::Corruption) {
            self.trees.get(tree).give_up_dictionary(page);
        }
        let primer = made?;
        let bytes = primer.memory_bytes();
        self.counters.dictionary_loads.one();
        let (primer, is_crowded) = self.dictionaries.to_write.keep(tree, page, primer, bytes);
        Ok((Some(primer), is_crowded))
    }

    /// Loads the newest primers of trees until memory is full. Otherwise the primers would be
    /// missing when the first pages after startup are written. If a primer cannot be read, the next
    /// writer requests it again.
    pub fn load_primers(&self) {
        let newest: HashMap<_, _> = self.trees.dictionaries().into_iter().collect();
        for (tree, page) in newest {
            let loaded = self.load_primer(tree, page);
            let bytes = loaded.ok().and_then(|(primer, _)| Some(primer?.memory_bytes())).unwrap_or(0);
            if !self.dictionaries.to_write.has_room(bytes) {
                return;
            }
        }
    }

    /// Returns all dictionaries, sorted by tree and by age, for the epoch state. Must be called at
    /// the epoch switch, when no mini-transaction is open (D3).
    pub fn dictionaries(&self) -> Vec<(TreeId, PageId)> {
        self.trees.dictionaries()
    }

    /// Registers the dictionaries that the epoch state lists, except freed dictionaries. The
    /// dictionaries of a tree that was being freed may already be freed.
    pub fn adopt_dictionaries(&self, listed: &[(TreeId, PageId)]) {
        for &(tree, page) in listed.iter().filter(|&&(tree, page)| self.owner(page) == Some(tree)) {
            let state = self.trees.get(tree);
            state.add_dictionary(Version { page, made_in: Epoch(0), is_given_up: false });
            state.next_trial_at(GROWTH * state.bytes().pages);
        }
    }

    /// Returns the pages of a tree's dictionaries and the number of its pages, consistent with each
    /// other.
    pub fn dictionaries_and_pages(&self, tree: TreeId) -> (Vec<PageId>, u64) {
        let _making = self.dictionaries.make();
        let state = self.trees.get(tree);
        (state.dictionary_pages(), state.bytes().pages)
    }

    /// Checks a dictionary of a tree on disk, even if it is in memory. Fails with `Corruption` if
    /// its page is no dictionary.
    pub fn check_dictionary(&self, tree: TreeId, page: PageId) -> Result<()> {
        self.check_image(page)?;
        self.dictionary(tree, page).map(drop)
    }

    /// Performs one step of due work: loads a primer that a writer missed, which blocks, or returns
    /// a tree that has grown.
    pub fn dictionary_due(&self) -> Result<DictionaryDue> {
        match self.dictionaries.take_due() {
            None => Ok(DictionaryDue::Nothing),
            Some(Due::Trial(tree)) => Ok(DictionaryDue::Trial(tree)),
            Some(Due::Load(tree, page)) => match self.load_primer(tree, page) {
                // The dictionary was freed with its tree.
                Err(_) if self.owner(page) != Some(tree) => Ok(DictionaryDue::Done),
                Ok((_, true)) => Ok(DictionaryDue::Replaced),
                loaded => loaded.map(|_| DictionaryDue::Done),
            },
        }
    }

    /// Adds a dictionary page with `content` to the tree, which later images use (D1, D3).
    pub(in crate::pool) fn add_dictionary(
        &self,
        tree: TreeId,
        state: &TreeState,
        content: &[u8],
        primer: Primer,
    ) -> Result<()> {
        self.make_room(PageClass::Large.bytes(self.page_bytes) / self.page_bytes as usize)?;
        let class = PageClass::ALL
            .into_iter()
            .find(|class| content_capacity(class.bytes(self.page_bytes)) >= content.len())
            .expect("a dictionary fits the largest page");
        let _making = self.dictionaries.make();
        let mtr = self.enter();
        let page = self.allocate(&mtr, tree, class);
        {
            let mut bytes = page.write(&mtr);
            let mut built = build_content(&mut bytes, PageKind::Dictionary, tree, PageId::NONE, 0);
            built.append_content(content).expect("the class was chosen for it");
        }
        let bytes = primer.memory_bytes();
        self.dictionaries.to_write.keep(tree, page.pid(), primer.in_page(page.pid()), bytes);
        state.add_dictionary(Version { page: page.pid(), made_in: mtr.epoch(), is_given_up: false });
        Ok(())
    }

    /// Removes a tree's dictionaries from memory.
    pub(in crate::pool) fn forget_dictionaries(&self, tree: TreeId) {
        self.dictionaries.to_read.forget(tree);
        self.dictionaries.to_write.forget(tree);
    }
}
