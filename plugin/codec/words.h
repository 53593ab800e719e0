// SPDX-License-Identifier: GPL-2.0-only
// Words of texts, as a full-text index has them. The rules are InnoDB's (docs/users/fulltext.md).
#pragma once

#include "server.h"
#include "buffer.h"
#include "codec/text_order.h"

#include <vector>

namespace cheetah {

// Which words an index has. Kept with the index from its creation on.
struct WordRules {
  uint min_chars = 3;
  uint max_chars = 84;
  bool has_stop_words = true;

  // As an index keeps them; false when these are no such bytes.
  void describe(Buffer *out) const;
  bool read(CheetahBytes kept);
};

// The texts of one full-text index. An encoded word is its weights and an end, which is the same
// for all words of an index: so no word is the beginning of another one (T3).
class WordCodec {
 public:
  void init(TABLE *table, const KEY &key, const WordRules &rules);
  const char *name() const { return name_; }
  // Null if the engine can have the index.
  const char *why_not() const;
  const WordRules &rules() const { return rules_; }
  // In place of those that it has; its words are as before until it is initialised again.
  void set_rules(const WordRules &rules) { rules_ = rules; }
  CHARSET_INFO *charset() const { return charset_; }
  const std::vector<Field *> &fields() const { return fields_; }
  CheetahBytes end() const { return end_.bytes(); }

  // Puts the words of the record into the list that the index has.
  void collect(const uchar *record, CheetahWords *words);
  // Tells all words of the record, in order: those that are too long for the index with all their
  // weights, as a phrase compares them whole.
  int32_t tell_words(const uchar *record, CheetahWordSink *sink);
  // Tells all words of a query's text.
  int32_t split(CheetahBytes text, CheetahWordSink *sink);
  // Whether a column of the index is in `columns`.
  bool touches(const MY_BITMAP *columns) const;

 private:
  // Of which part of a word that is too long for the index the weights are wanted.
  enum class Length { of_index, whole };

  template <typename Each>
  bool each_word(const uchar *text, size_t bytes_of_text, Length length, Each each);
  template <typename Each>
  bool each_word_of(const uchar *record, Length length, Each each);
  CheetahBytes encode(const uchar *word, size_t bytes, Length length);
  void append_weights(const uchar *word, size_t bytes, Length length);
  uint8_t kind_of(uint chars, CheetahBytes word) const;
  static bool is_stop_word(CheetahBytes word);

  const char *name_ = "";
  bool has_parser_ = false;
  WordRules rules_;
  CHARSET_INFO *charset_ = nullptr;
  std::vector<Field *> fields_;
  TextOrder order_;
  Buffer end_;
  // Of the word at hand.
  Buffer lower_case_, scratch_, weights_;
};

}  // namespace cheetah
