// SPDX-License-Identifier: GPL-2.0-only
// Full-text indexes: writes the words of rows, and searches them.
//
// The server begins a search with `ft_init_ext` when it plans the statement. If the statement reads
// the table through this search, `ft_read` returns the rows in descending order of rank. Otherwise
// the server requests the rank of each row that it has read in another way. The same search may be
// used for both.
//
// In a locking read, the search finds the latest committed rows, regardless of the snapshot. If a
// row changed before it was locked, the search runs again for this row, so that the statement
// receives no row that no longer matches.
#include "engine.h"
#include "errors.h"
#include "handler/ha_cheetah.h"
#include "transactions/page_work.h"
#include "settings.h"

#include <ft_global.h>

using namespace cheetah;

namespace {

struct FreeMatches {
  void operator()(CheetahMatches *matches) const { cheetah_free_matches(matches); }
};

using MatchesHandle = std::unique_ptr<CheetahMatches, FreeMatches>;

}  // namespace

namespace cheetah {

// The server's handle of a search. The server uses the first two members.
struct FulltextSearch {
  _ft_vft *please;
  _ft_vft_ext *could_you;
  ha_cheetah *handler;
  uint key_no, flags;
  String text;
  MatchesHandle matches;
  float rank = 0;  // of the match read last
};

// Callbacks that split the texts of queries and rows into words for a search.
class SearchTexts final {
 public:
  SearchTexts(ha_cheetah *handler, WordCodec *index) : handler_(handler), index_(index) {}

  // Returns a search for `text` for the engine. The search points to this object and to `text`.
  CheetahSearch ask(const String &text, uint8_t mode, uint8_t read) {
    CheetahBytes query{reinterpret_cast<const uint8_t *>(text.ptr()), text.length()};
    return CheetahSearch{query, index_->end(), ft_result_cache_limit(), split, words_of_row, this, mode, read};
  }

  // Returns the charset in which queries are passed to the engine, which parses them by their
  // single-byte ASCII characters. If all characters of the index's charset have several bytes, this
  // is utf8mb4.
  static CHARSET_INFO *charset_of_queries(const WordCodec &index) {
    return index.charset()->mbminlen == 1 ? index.charset() : &my_charset_utf8mb4_bin;
  }

 private:
  static int32_t split(void *self, CheetahBytes text, CheetahWordSink *sink) {
    return static_cast<SearchTexts *>(self)->split_text(text, sink);
  }
  static int32_t words_of_row(void *self, CheetahBytes key, CheetahBytes row, CheetahWordSink *sink) {
    return static_cast<SearchTexts *>(self)->tell_row(key, row, sink);
  }

  int32_t split_text(CheetahBytes text, CheetahWordSink *sink) {
    CHARSET_INFO *from = charset_of_queries(*index_);
    if (from == index_->charset()) return index_->split(text, sink);
    uint errors;
    if (text_.copy(reinterpret_cast<const char *>(text.data), text.len, from, index_->charset(), &errors)) {
      return CHEETAH_CODE_LIMIT;
    }
    return index_->split(CheetahBytes{reinterpret_cast<const uint8_t *>(text_.ptr()), text_.length()}, sink);
  }

  int32_t tell_row(CheetahBytes key, CheetahBytes row, CheetahWordSink *sink) {
    if (interrupted(handler_->table->in_use)) return CHEETAH_CODE_INTERRUPTED;
    record_.resize(handler_->table->s->reclength);
    if (handler_->decode_whole_row(key, row, record_.data()) != 0) return CHEETAH_CODE_CORRUPTION;
    return index_->tell_words(record_.data(), sink);
  }

  ha_cheetah *handler_;
  WordCodec *index_;
  String text_;
  std::vector<uchar> record_;
};

}  // namespace cheetah

static FulltextSearch *search_of(FT_INFO *info) { return reinterpret_cast<FulltextSearch *>(info); }

static float rank_of_row(FT_INFO *info, uchar *record, uint) {
  FulltextSearch *search = search_of(info);
  return search->handler->rank_of(search, record);
}

static void close_search(FT_INFO *info) { delete search_of(info); }

static float rank_of_last(FT_INFO *info) {
  FulltextSearch *search = search_of(info);
  return search->handler->rank_of_last(search);
}

static void begin_again(FT_INFO *info) { cheetah_rewind_matches(search_of(info)->matches.get()); }

static _ft_vft search_functions = {nullptr, rank_of_row, close_search, rank_of_last, begin_again};

static uint extended_version() { return 2; }

static ulonglong extended_flags() { return FTS_ORDERED_RESULT; }

static ulonglong no_document_number(FT_INFO_EXT *) { return 0; }

static ulonglong count_matches(FT_INFO_EXT *info) {
  return cheetah_match_count(search_of(reinterpret_cast<FT_INFO *>(info))->matches.get());
}

static _ft_vft_ext extended_functions = {extended_version, extended_flags, no_document_number, count_matches};

static uint8_t mode_of(uint flags) {
  if (flags & FT_BOOL) return CHEETAH_SEARCH_MODE_BOOLEAN;
  return flags & FT_EXPAND ? CHEETAH_SEARCH_MODE_QUERY_EXPANSION : CHEETAH_SEARCH_MODE_NATURAL_LANGUAGE;
}

FT_INFO *ha_cheetah::ft_init_ext(uint flags, uint key_no, String *text) {
  CountedWork counted(handler_stats);
  if (key_no >= table->s->keys || !is_fulltext(table->key_info[key_no])) {
    my_error(ER_TABLE_HAS_NO_FT, MYF(0));
    return nullptr;
  }
  // The rank of a row is looked up by its clustered key, so the key's columns must be read.
  for (const KeyPart &part : codec_.clustered().parts()) bitmap_set_bit(table->read_set, part.field()->field_index);
  auto search = std::make_unique<FulltextSearch>();
  search->please = &search_functions;
  search->could_you = &extended_functions;
  search->handler = this;
  search->key_no = key_no;
  search->flags = flags;
  CHARSET_INFO *charset = SearchTexts::charset_of_queries(codec_.fulltext()[codec_.fulltext_index(key_no)]);
  uint errors;
  if (search->text.copy(text->ptr(), text->length(), text->charset(), charset, &errors)) return nullptr;
  CheetahMatches *matches = nullptr;
  int error = search_words(*search, &matches);
  if (error != 0) {
    if (!ha_thd()->is_error()) print_error(error, MYF(0));
    return nullptr;
  }
  search->matches.reset(matches);
  return reinterpret_cast<FT_INFO *>(search.release());
}

int ha_cheetah::search_words(const FulltextSearch &search, CheetahMatches **matches) {
  int error = begin_unlocked(false);
  if (error != 0) return error;
  size_t no = codec_.fulltext_index(search.key_no);
  SearchTexts texts(this, &codec_.fulltext()[no]);
  CheetahSearch asked = texts.ask(search.text, mode_of(search.flags), static_cast<uint8_t>(read_));
  return handler_error(cheetah_search(txn_, engine_table_.get(), no, &asked, matches), ha_thd());
}

// Returns the rank of one row in the search through `rank`; 0 if the row does not match.
int ha_cheetah::rank_now(FulltextSearch *search, CheetahBytes key, float *rank) {
  int error = begin_unlocked(false);
  if (error != 0) return error;
  size_t no = codec_.fulltext_index(search->key_no);
  SearchTexts texts(this, &codec_.fulltext()[no]);
  CheetahSearch asked = texts.ask(search->text, mode_of(search->flags), static_cast<uint8_t>(read_));
  int32_t code = cheetah_rank_now(txn_, engine_table_.get(), no, &asked, search->matches.get(), key, rank);
  return code == CHEETAH_CODE_ROW_NOT_FOUND ? 0 : handler_error(code, ha_thd());
}

int ha_cheetah::ft_init() {
  if (ft_handler == nullptr) return HA_ERR_INITIALIZATION;
  begin_again(ft_handler);
  return 0;
}

void ha_cheetah::ft_end() {
  ft_handler = nullptr;
  read_search_ = nullptr;
}

int ha_cheetah::ft_read(uchar *record) {
  CountedWork counted(handler_stats);
  FulltextSearch *search = search_of(ft_handler);
  read_search_ = search;
  size_t no = codec_.fulltext_index(search->key_no);
  SearchTexts texts(this, &codec_.fulltext()[no]);
  CheetahSearch asked = texts.ask(search->text, mode_of(search->flags), static_cast<uint8_t>(read_));
  CheetahBytes key;
  int32_t code = cheetah_next_match(txn_, engine_table_.get(), no, &asked, search->matches.get(), skips_locked_,
                                    row_.get(), &key, &search->rank);
  if (code != CHEETAH_CODE_OK) return handler_error(code, ha_thd());
  read_key_.assign(key);
  remember_position(key);
  return decode_row(key, cheetah_buffer_bytes(row_.get()), record);
}

float ha_cheetah::rank_of_key(FulltextSearch *search, CheetahBytes key) {
  float rank = 0;
  int error = rank_now(search, key, &rank);
  if (error != 0 && !ha_thd()->is_error()) print_error(error, MYF(0));
  return rank;
}

float ha_cheetah::rank_of(FulltextSearch *search, const uchar *record) {
  if (codec_.hidden_key()) return rank_of_key(search, current_key_.bytes());
  encode_clustered_key(record, &key_);
  return rank_of_key(search, key_.bytes());
}

// Returns the rank of the row that was read last. With partitions and several searches, the server
// may pass a different search than the one through which it reads.
float ha_cheetah::rank_of_last(FulltextSearch *search) {
  return search == read_search_ ? search->rank : rank_of_key(search, read_key_.bytes());
}

int ha_cheetah::decode_whole_row(CheetahBytes key, CheetahBytes row, uchar *record) {
  int error = codec_.row().decode(row, record, table, RowCodec::Columns::all, this);
  if (error != 0 || codec_.hidden_key()) return error;
  return codec_.clustered().decode(key, record) ? 0 : HA_ERR_CRASHED;
}

int32_t ha_cheetah::check_words(CheetahTextSink sink, void *context) {
  int32_t code = CHEETAH_CODE_OK;
  for (size_t no = 0; no < codec_.fulltext().size() && code == CHEETAH_CODE_OK; no++) {
    WordCodec &index = codec_.fulltext()[no];
    SearchTexts texts(this, &index);
    CheetahSearch asked = texts.ask(String(), CHEETAH_SEARCH_MODE_NATURAL_LANGUAGE, CHEETAH_READ_CONSISTENT);
    code = cheetah_check_words(txn_, engine_table_.get(), no, &asked, sink, context);
  }
  return code;
}

// Adds the columns of full-text indexes to the read set if the clustered key may change, because
// then all words of the row are written again.
void ha_cheetah::column_bitmaps_signal() {
  handler::column_bitmaps_signal();
  if (codec_.fulltext().empty() || !writes_clustered_columns()) return;
  for (const WordCodec &index : codec_.fulltext()) {
    for (const Field *field : index.fields()) bitmap_set_bit(table->read_set, field->field_index);
  }
}

// The following functions write the words of a row that is inserted, deleted or changed. The key of
// the row is in `key_`, and the previous key in `old_key_`.

CheetahWords *ha_cheetah::words(WordList *list) {
  if (!*list) list->reset(cheetah_new_words());
  return list->get();
}

int ha_cheetah::insert_words(const uchar *record) {
  for (size_t no = 0; no < codec_.fulltext().size(); no++) {
    CheetahWords *list = words(&words_);
    codec_.fulltext()[no].collect(record, list);
    CheetahLoad *load = no < word_loads_.size() ? word_loads_[no].get() : nullptr;
    int32_t code = load != nullptr ? cheetah_load_words(txn_, load, key_.bytes(), list)
                                   : cheetah_insert_words(txn_, engine_table_.get(), no, key_.bytes(), list);
    if (code != CHEETAH_CODE_OK) return words_failed(code);
  }
  return 0;
}

int ha_cheetah::delete_words(const uchar *record) {
  for (size_t no = 0; no < codec_.fulltext().size(); no++) {
    CheetahWords *list = words(&words_);
    codec_.fulltext()[no].collect(record, list);
    int32_t code = cheetah_delete_words(txn_, engine_table_.get(), no, key_.bytes(), list);
    if (code != CHEETAH_CODE_OK) return handler_error(code, ha_thd());
  }
  return 0;
}

int ha_cheetah::change_words(const uchar *old_record, const uchar *new_record) {
  bool moves = old_key_.size() != key_.size() || memcmp(old_key_.data(), key_.data(), key_.size()) != 0;
  for (size_t no = 0; no < codec_.fulltext().size(); no++) {
    WordCodec &index = codec_.fulltext()[no];
    if (!moves && !index.touches(table->write_set)) continue;
    CheetahWords *old_list = words(&old_words_), *list = words(&words_);
    index.collect(old_record, old_list);
    index.collect(new_record, list);
    int32_t code =
        cheetah_change_words(txn_, engine_table_.get(), no, old_key_.bytes(), old_list, key_.bytes(), list);
    if (code != CHEETAH_CODE_OK) return handler_error(code, ha_thd());
  }
  return 0;
}

// Begins loads for the words of loaded rows. If the engine returns no load for an index, its words
// are written row by row.
int ha_cheetah::begin_word_loads() {
  word_loads_.clear();
  for (size_t no = 0; no < codec_.fulltext().size(); no++) {
    CheetahLoad *load = nullptr;
    int32_t code = cheetah_begin_load_of_words(txn_, engine_table_.get(), no, !copies_, &load);
    word_loads_.emplace_back(load);
    if (code != CHEETAH_CODE_OK) return handler_error(code, ha_thd());
  }
  return 0;
}
