// SPDX-License-Identifier: GPL-2.0-only
// Splits texts into the words of a full-text index, by InnoDB's rules (docs/users/fulltext.md).
#pragma once

#include "server.h"
#include "buffer.h"
#include "codec/text_order.h"

#include <vector>

namespace cheetah {

// The rules that select the words of an index. They are stored with the index when it is created.
struct WordRules {
  uint min_chars = 3;
  uint max_chars = 84;
  bool has_stop_words = true;

  // Write and read the stored form. `read` returns false if the bytes are invalid.
  void describe(Buffer *out) const;
  bool read(CheetahBytes kept);
};

// Encodes the words of one full-text index. An encoded word consists of its weights and an end,
// which is the same for all words of an index: so no encoded word is a prefix of another (T3).
class WordCodec {
 public:
  void init(TABLE *table, const KEY &key, const WordRules &rules);
  const char *name() const { return name_; }
  // Returns why the engine does not support the index; null if it does.
  const char *why_not() const;
  const WordRules &rules() const { return rules_; }
  // Replaces the rules. Words are still encoded by the old rules until `init` is called again.
  void set_rules(const WordRules &rules) { rules_ = rules; }
  CHARSET_INFO *charset() const { return charset_; }
  const std::vector<Field *> &fields() const { return fields_; }
  CheetahBytes end() const { return end_.bytes(); }

  // Puts the words of the record that belong into the index into the list.
  void collect(const uchar *record, CheetahWords *words);
  // Passes all words of the record to the sink, in order. Words that are too long for the index are
  // passed with all their weights, because phrases compare them completely.
  int32_t tell_words(const uchar *record, CheetahWordSink *sink);
  // Passes all words of a query's text to the sink.
  int32_t split(CheetahBytes text, CheetahWordSink *sink);
  // Returns whether a column of the index is in `columns`.
  bool touches(const MY_BITMAP *columns) const;

 private:
  // The part of a word to encode: up to the longest word of the index, or the whole word.
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
  // Buffers for the current word.
  Buffer lower_case_, scratch_, weights_;
};

}  // namespace cheetah
