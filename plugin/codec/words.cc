// SPDX-License-Identifier: GPL-2.0-only
#include "codec/words.h"

namespace cheetah {

// Changes with every change of what follows it.
static constexpr uchar rules_version = 1;

// InnoDB's list.
static const char *const default_stop_words[] = {
    "a",   "about", "an",   "are",  "as",   "at",   "be",    "by",  "com",  "de",   "en", "for",
    "from", "how",  "i",    "in",   "is",   "it",   "la",    "of",  "on",   "or",   "that", "the",
    "this", "to",   "was",  "what", "when", "where", "who",  "will", "with", "und", "the",  "www"};

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
  stop_words_.clear();
  stop_word_chars_max_ = 0;
  if (!rules.has_stop_words) return;
  for (const char *word : default_stop_words) {
    uchar text[64];
    uint errors;
    uint bytes = my_convert(reinterpret_cast<char *>(text), sizeof(text), charset_, word,
                            static_cast<uint32>(strlen(word)), &my_charset_latin1, &errors);
    encode(text, bytes);
    stop_words_.insert(std::string(reinterpret_cast<const char *>(weights_.data()), weights_.size()));
    if (strlen(word) > stop_word_chars_max_) stop_word_chars_max_ = strlen(word);
  }
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

// Leaves the weights of the word in `weights_`. Where the collation tells the two cases apart, but
// is not a binary one, the word is in lower case, as InnoDB's are.
void WordCodec::encode(const uchar *word, size_t bytes) {
  lower_case_.clear();
  weights_.clear();
  if (charset_->state & MY_CS_BINSORT) {
    order_.append_beginning(word, bytes, &scratch_, &weights_);
    return;
  }
  size_t room = bytes * charset_->casedn_multiply() + 1;
  uchar *place = lower_case_.reserve(room);
  size_t lower_bytes = charset_->casedn(reinterpret_cast<const char *>(word), bytes, reinterpret_cast<char *>(place), room);
  order_.append_beginning(place, lower_bytes, &scratch_, &weights_);
}

// Of the word in `weights_`.
uint8_t WordCodec::kind_of(uint chars) const {
  if (chars < rules_.min_chars) return CHEETAH_WORD_TOO_SHORT;
  if (chars > rules_.max_chars || weights_.size() + end_.size() > cheetah_word_bytes_max()) return CHEETAH_WORD_TOO_LONG;
  if (chars > stop_word_chars_max_) return CHEETAH_WORD_INDEXED;
  std::string word(reinterpret_cast<const char *>(weights_.data()), weights_.size());
  return stop_words_.count(word) != 0 ? CHEETAH_WORD_STOP : CHEETAH_WORD_INDEXED;
}

static bool is_letter(int type, uchar first) { return (type & (_MY_U | _MY_L | _MY_NMR)) != 0 || first == '_'; }

// Calls `each(kind)` for every word of a text, with its weights in `weights_`, until it answers
// false. A single letter before an apostrophe is left out: "l'eau" is "eau".
template <typename Each>
bool WordCodec::each_word(const uchar *text, size_t length, Each each) {
  const uchar *at = text, *end = text + length;
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
    encode(start, at - start);
    if (!each(kind_of(chars))) return false;
  }
  return true;
}

// Calls `each(kind, ordinal, column)` for every word of the record.
template <typename Each>
bool WordCodec::each_word_of(const uchar *record, Each each) {
  uint32_t ordinal = 0;
  uint8_t column = 0;
  String text;
  for (Field *field : fields_) {
    const uchar *first_record = field->table->record[0];
    if (!field->is_real_null(record - first_record)) {
      const String *value = field->val_str(&text, record + field->offset(const_cast<uchar *>(first_record)));
      bool goes_on = each_word(reinterpret_cast<const uchar *>(value->ptr()), value->length(),
                               [&](uint8_t kind) { return each(kind, ordinal++, column); });
      if (!goes_on) return false;
    }
    column++;
  }
  return true;
}

void WordCodec::collect(const uchar *record, CheetahWords *words) {
  cheetah_clear_words(words);
  each_word_of(record, [&](uint8_t kind, uint32_t ordinal, uint8_t column) {
    if (kind != CHEETAH_WORD_INDEXED) return true;
    weights_.append(end_.data(), end_.size());
    cheetah_add_word(words, weights_.bytes(), ordinal, column);
    return true;
  });
}

int32_t WordCodec::tell_words(const uchar *record, CheetahWordSink *sink) {
  int32_t code = CHEETAH_OK;
  each_word_of(record, [&](uint8_t kind, uint32_t ordinal, uint8_t column) {
    code = cheetah_tell_word(sink, weights_.bytes(), kind, ordinal, column);
    return code == CHEETAH_OK;
  });
  return code;
}

int32_t WordCodec::split(CheetahBytes text, CheetahWordSink *sink) {
  int32_t code = CHEETAH_OK;
  each_word(text.data, text.len, [&](uint8_t kind) {
    code = cheetah_tell_word(sink, weights_.bytes(), kind, 0, 0);
    return code == CHEETAH_OK;
  });
  return code;
}

}  // namespace cheetah
