// SPDX-License-Identifier: GPL-2.0-only
#include "codec/words.h"

#include <unordered_set>

namespace cheetah {

// Must change whenever the bytes that follow it change.
static constexpr uchar rules_version = 1;

// InnoDB's list.
static const char *const stop_words[] = {
    "a",   "about", "an",   "are",  "as",   "at",   "be",    "by",  "com",  "de",   "en", "for",
    "from", "how",  "i",    "in",   "is",   "it",   "la",    "of",  "on",   "or",   "that", "the",
    "this", "to",   "was",  "what", "when", "where", "who",  "will", "with", "und", "the",  "www"};

static constexpr size_t stop_word_bytes_max = 5;

// Compares like InnoDB, which treats the bytes as latin1 regardless of the index's character set.
// So case is ignored even if the collation is binary, and accents of multi-byte letters are
// significant.
static uint64_t stop_word_key(CheetahBytes word) {
  uint64_t key = 0;
  for (size_t at = 0; at < word.len; at++) key = key << 8 | my_charset_latin1.sort_order[word.data[at]];
  return key;
}

void WordRules::describe(Buffer *out) const {
  out->append_byte(rules_version);
  out->append_varint(min_chars);
  out->append_varint(max_chars);
  out->append_byte(has_stop_words);
}

bool WordRules::read(CheetahBytes kept) {
  const uchar *at = kept.data, *end = kept.data + kept.len;
  ulonglong min = 0, max = 0;
  if (at == end || *at++ != rules_version) return false;
  if (!read_varint(&at, end, &min) || !read_varint(&at, end, &max) || at + 1 != end) return false;
  min_chars = static_cast<uint>(min);
  max_chars = static_cast<uint>(max);
  has_stop_words = *at != 0;
  return true;
}

void WordCodec::init(TABLE *table, const KEY &key, const WordRules &rules) {
  name_ = key.name.str;
  has_parser_ = key.flags & HA_USES_PARSER;
  rules_ = rules;
  fields_.clear();
  for (uint i = 0; i < key.user_defined_key_parts; i++) fields_.push_back(table->field[key.key_part[i].fieldnr - 1]);
  charset_ = fields_.front()->charset();
  order_.init(charset_, false, rules.max_chars);
  end_.clear();
  order_.append_end(&end_);
}

const char *WordCodec::why_not() const {
  if (has_parser_) return "WITH PARSER is not supported";
  if (!TextOrder::has_one_level(charset_)) return "its collation compares on several levels, which is not supported";
  for (const Field *field : fields_) {
    if (!field->stored_in_db()) return "it has a virtual column, which is not supported";
  }
  return nullptr;
}

bool WordCodec::touches(const MY_BITMAP *columns) const {
  for (const Field *field : fields_) {
    if (bitmap_is_set(columns, field->field_index)) return true;
  }
  return false;
}

// Writes the word in lower case to `place`. `room` must be one byte larger than the result. Like
// InnoDB, keeps the case of multi-byte letters in multi-byte character sets that are not Unicode.
static size_t put_in_lower_case(CHARSET_INFO *charset, const uchar *word, size_t bytes, char *place, size_t room) {
  if (charset->mbminlen != 1 || charset->mbmaxlen == 1 || charset->casedn_multiply() != 1) {
    return charset->casedn(reinterpret_cast<const char *>(word), bytes, place, room);
  }
  memcpy(place, word, bytes);
  for (char *at = place, *end = place + bytes; at < end;) {
    uint length = my_ismbchar(charset, at, end);
    if (length == 0) *at = static_cast<char>(charset->to_lower[static_cast<uchar>(*at)]);
    at += std::max(length, 1U);
  }
  return bytes;
}

// Puts the weights of the word into `weights_`. Unless the collation is binary, the word is first
// converted to lower case, as in InnoDB. Returns the word that has these weights.
CheetahBytes WordCodec::encode(const uchar *word, size_t bytes, Length length) {
  lower_case_.clear();
  weights_.clear();
  if (charset_->state & MY_CS_BINSORT) {
    append_weights(word, bytes, length);
    return {word, bytes};
  }
  size_t room = bytes * charset_->casedn_multiply() + 1;
  uchar *place = lower_case_.reserve(room);
  size_t lower_bytes = put_in_lower_case(charset_, word, bytes, reinterpret_cast<char *>(place), room);
  append_weights(place, lower_bytes, length);
  return {place, lower_bytes};
}

// Encodes the word in pieces, because `order_` takes at most `max_chars` characters at a time.
void WordCodec::append_weights(const uchar *word, size_t bytes, Length length) {
  size_t taken = 0;
  do {
    word += taken;
    bytes -= taken;
    taken = order_.first_chars(word, bytes);
    order_.append_beginning(word, taken, &scratch_, &weights_);
  } while (length == Length::whole && taken > 0 && taken < bytes);
}

// Classifies the word whose weights are in `weights_`.
uint8_t WordCodec::kind_of(uint chars, CheetahBytes word) const {
  if (chars < rules_.min_chars) return CHEETAH_WORD_KIND_TOO_SHORT;
  if (chars > rules_.max_chars || weights_.size() + end_.size() > cheetah_word_bytes_max()) return CHEETAH_WORD_KIND_TOO_LONG;
  return rules_.has_stop_words && is_stop_word(word) ? CHEETAH_WORD_KIND_STOP : CHEETAH_WORD_KIND_INDEXED;
}

bool WordCodec::is_stop_word(CheetahBytes word) {
  static const std::unordered_set<uint64_t> keys = [] {
    std::unordered_set<uint64_t> made;
    for (const char *stop_word : stop_words) {
      made.insert(stop_word_key({reinterpret_cast<const uint8_t *>(stop_word), strlen(stop_word)}));
    }
    return made;
  }();
  return word.len <= stop_word_bytes_max && keys.count(stop_word_key(word)) != 0;
}

static bool is_letter(int type, uchar first) { return (type & (_MY_U | _MY_L | _MY_NMR)) != 0 || first == '_'; }

// Calls `each(kind)` for every word of a text, with the word's weights in `weights_`, until `each`
// returns false. A single letter before an apostrophe is skipped: "l'eau" becomes "eau".
template <typename Each>
bool WordCodec::each_word(const uchar *text, size_t bytes_of_text, Length length, Each each) {
  const uchar *at = text, *end = text + bytes_of_text;
  int type = 0;
  auto step = [&](const uchar *place) {
    int bytes = charset_->ctype(&type, place, end);
    return bytes > 0 ? bytes : bytes < 0 ? -bytes : 1;
  };
  while (at < end) {
    int bytes = step(at);
    if (!is_letter(type, *at)) {
      at += bytes;
      continue;
    }
    const uchar *start = at;
    uint chars = 0;
    while (at < end) {
      bytes = step(at);
      bool is_of_word = is_letter(type, *at);
      if (!is_of_word && (chars != 1 || *at != '\'')) break;
      at += bytes;
      chars++;
      if (is_of_word) continue;
      start = at;
      chars = 0;
    }
    if (chars == 0) continue;
    if (at > end) at = end;
    CheetahBytes word = encode(start, at - start, length);
    if (!each(kind_of(chars, word))) return false;
  }
  return true;
}

// Calls `each(kind, ordinal, column)` for every word of the record.
template <typename Each>
bool WordCodec::each_word_of(const uchar *record, Length length, Each each) {
  uint32_t ordinal = 0;
  uint8_t column = 0;
  String text;
  for (Field *field : fields_) {
    const uchar *first_record = field->table->record[0];
    if (!field->is_real_null(record - first_record)) {
      const String *value = field->val_str(&text, record + field->offset(const_cast<uchar *>(first_record)));
      bool goes_on = each_word(reinterpret_cast<const uchar *>(value->ptr()), value->length(), length,
                               [&](uint8_t kind) { return each(kind, ordinal++, column); });
      if (!goes_on) return false;
    }
    column++;
  }
  return true;
}

void WordCodec::collect(const uchar *record, CheetahWords *words) {
  cheetah_clear_words(words);
  each_word_of(record, Length::of_index, [&](uint8_t kind, uint32_t ordinal, uint8_t column) {
    if (kind != CHEETAH_WORD_KIND_INDEXED) return true;
    weights_.append(end_.data(), end_.size());
    cheetah_add_word(words, weights_.bytes(), ordinal, column);
    return true;
  });
}

int32_t WordCodec::tell_words(const uchar *record, CheetahWordSink *sink) {
  int32_t code = CHEETAH_CODE_OK;
  each_word_of(record, Length::whole, [&](uint8_t kind, uint32_t ordinal, uint8_t column) {
    code = cheetah_tell_word(sink, weights_.bytes(), kind, ordinal, column);
    return code == CHEETAH_CODE_OK;
  });
  return code;
}

int32_t WordCodec::split(CheetahBytes text, CheetahWordSink *sink) {
  int32_t code = CHEETAH_CODE_OK;
  each_word(text.data, text.len, Length::whole, [&](uint8_t kind) {
    code = cheetah_tell_word(sink, weights_.bytes(), kind, 0, 0);
    return code == CHEETAH_CODE_OK;
  });
  return code;
}

}  // namespace cheetah
