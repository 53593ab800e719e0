// SPDX-License-Identifier: GPL-2.0-only
#include "codec/text_order.h"

namespace cheetah {

// An upper bound on the bytes of weights of one character in MariaDB's collations: U+FDFA has 18
// weights of two bytes.
static constexpr size_t weight_bytes_per_char_max = 40;

// The average number of weights per character that a full column may have. (Characters such as
// U+FDFA have up to 18 weights. A key with many such characters is refused as too long.)
static constexpr uint expansion_max = 3;

// Returns whether memcmp of the values themselves gives the collation's order, apart from trailing
// spaces.
static bool bytes_are_weights(CHARSET_INFO *cs) {
  if (cs == &my_charset_bin) return true;
  if (!(cs->state & MY_CS_BINSORT)) return false;
  return cs->mbmaxlen == 1 || (cs->state & MY_CS_UNICODE && cs->mbminlen == 1);
}

// Returns whether the collation compares two-byte characters by their codes. For big5_chinese_ci
// strnxfrm cannot be used: it returns stroke counts, which many characters share.
static bool compares_by_codes(const CHARSET_INFO *cs) {
  return strcmp(cs->coll_name.str, "big5_chinese_ci") == 0 || strcmp(cs->coll_name.str, "big5_chinese_nopad_ci") == 0;
}

static size_t append_codes(CHARSET_INFO *cs, const uchar *text, size_t length, uchar *weights) {
  for (size_t at = 0; at < length;) {
    int bytes = cs->charlen(text + at, text + length);
    if (bytes != 2) {
      weights[at] = cs->sort_order[text[at]];
      at++;
      continue;
    }
    memcpy(weights + at, text + at, 2);
    at += 2;
  }
  return length;
}

// Returns whether trailing spaces are ignored. With one weight per character, a CHAR of a NO PAD
// collation sorts like a CHAR of a PAD SPACE collation, because its width is always the same.
static bool pads(const CHARSET_INFO *cs, bool fixed_width) {
  if (cs == &my_charset_bin) return false;
  return !(cs->state & MY_CS_NOPAD) || (fixed_width && cs->uca == nullptr);
}

void TextOrder::init(CHARSET_INFO *charset, bool fixed_width, uint max_chars) {
  charset_ = charset;
  fixed_width_ = fixed_width;
  pads_ = pads(charset, fixed_width);
  max_chars_ = max_chars;
  raw_ = bytes_are_weights(charset);
  by_codes_ = compares_by_codes(charset);
  if (raw_) {
    level_count_ = 1;
    levels_[0] = Level{0, 1, pads_, {' '}};
    return;
  }
  add_levels();
}

void TextOrder::add_levels() {
  uint last_level = my_bit_log2_uint32(charset_->levels_for_order);
  bool one_level = last_level == 0;
  bool known = one_level || charset_->uca != nullptr;
  for (uint level = 0; known && level <= last_level && level < levels_max; level++) {
    if (!one_level && !(charset_->levels_for_order & (1U << level))) continue;
    known = add_level(one_level ? 0 : MY_STRXFRM_LEVEL1 << level);
  }
  if (known && level_count_ > 0) return;
  whole_ = true;
  whole_bytes_ = static_cast<uint>(charset_->strnxfrmlen(max_chars_ * charset_->mbmaxlen));
}

bool TextOrder::add_level(uint flag) {
  uchar space[8], weight[sizeof(Level::space) * 2];
  int space_bytes = charset_->wc_mb(' ', space, space + sizeof(space));
  if (space_bytes <= 0) return false;
  size_t unit = charset_->strnxfrm(weight, sizeof(weight), 1, space, space_bytes, flag);
  if (unit == 0 || unit > sizeof(Level::space)) return false;
  Level &level = levels_[level_count_];
  level.pads = pads_ || (level_count_ > 0 && !fixed_width_);
  level_count_++;
  level.flag = flag;
  level.unit = static_cast<uint>(unit);
  memcpy(level.space, weight, unit);
  return true;
}

size_t TextOrder::first_chars(const uchar *text, size_t length) const {
  if (charset_->mbmaxlen == 1) return length < max_chars_ ? length : max_chars_;
  if (length <= max_chars_ * charset_->mbminlen) return length;
  const char *start = reinterpret_cast<const char *>(text);
  size_t cut = charset_->charpos(start, start + length, max_chars_);
  return cut < length ? cut : length;
}

void TextOrder::append(const uchar *text, size_t length, Buffer *scratch, Buffer *out) const {
  length = first_chars(text, length);
  if (raw_) {
    append_level(levels_[0], text, length, out);
    return;
  }
  if (whole_) {
    if (pads_) length = charset_->lengthsp(reinterpret_cast<const char *>(text), length);
    uchar *place = out->reserve(whole_bytes_);
    memset(place, 0, whole_bytes_);
    charset_->strnxfrm(place, whole_bytes_, max_chars_ * charset_->strxfrm_multiply, text, length,
                       MY_STRXFRM_PAD_WITH_SPACE | MY_STRXFRM_PAD_TO_MAXLEN);
    out->advance(whole_bytes_);
    return;
  }
  size_t room = length * weight_bytes_per_char_max + 16;
  scratch->clear();
  uchar *weights = scratch->reserve(room);
  for (uint i = 0; i < level_count_; i++) {
    size_t used = by_codes_ ? append_codes(charset_, text, length, weights)
                            : charset_->strnxfrm(weights, room, static_cast<uint>(room), text, length, levels_[i].flag);
    append_level(levels_[i], weights, used, out);
  }
}

bool TextOrder::has_one_level(const CHARSET_INFO *charset) {
  return bytes_are_weights(charset) || my_bit_log2_uint32(charset->levels_for_order) == 0;
}

void TextOrder::append_beginning(const uchar *text, size_t length, Buffer *scratch, Buffer *out) const {
  size_t start = out->size(), end_bytes = levels_[0].pads ? levels_[0].unit + 1 : 2;
  append(text, length, scratch, out);
  out->truncate(out->size() - start > end_bytes ? out->size() - end_bytes : start);
}

void TextOrder::append_end(Buffer *out) const { append_end_of(levels_[0], out); }

void TextOrder::append_end_of(const Level &level, Buffer *out) {
  if (level.pads) {
    out->append(level.space, level.unit);
    out->append_byte(1);
  } else {
    out->append_zeroes(2);
  }
}

void TextOrder::append_level(const Level &level, const uchar *weights, size_t length, Buffer *out) const {
  if (level.pads) append_padded(level, weights, length, out);
  else append_unpadded(weights, length, out);
  append_end_of(level, out);
}

bool TextOrder::rest_is_below_spaces(const Level &level, const uchar *at, const uchar *end) {
  for (; at + level.unit <= end; at += level.unit) {
    int order = memcmp(at, level.space, level.unit);
    if (order != 0) return order < 0;
  }
  return false;
}

template <uint unit>
static const uchar *find_weight(const uchar *at, const uchar *end, const uchar *weight) {
  while (at < end && memcmp(at, weight, unit) != 0) at += unit;
  return at;
}

// Returns the first weight from `at` on that equals the space's, or `end`. Most collations have
// weights of one or two bytes, which need no call of memcmp.
const uchar *TextOrder::find_space(const Level &level, const uchar *at, const uchar *end) {
  if (at == end) return end;
  if (level.unit == 1) {
    const void *found = memchr(at, level.space[0], end - at);
    return found == nullptr ? end : static_cast<const uchar *>(found);
  }
  if (level.unit == 2) return find_weight<2>(at, end, level.space);
  while (at < end && memcmp(at, level.space, level.unit) != 0) at += level.unit;
  return at;
}

void TextOrder::append_padded(const Level &level, const uchar *weights, size_t length, Buffer *out) {
  const uint unit = level.unit;
  const uchar *at = weights, *end = weights + length - length % unit;
  while (end > at && memcmp(end - unit, level.space, unit) == 0) end -= unit;
  uchar *to = out->reserve(length + length / unit);
  uchar *start = to;
  while (at < end) {
    const uchar *space = find_space(level, at, end);
    if (space > at) memcpy(to, at, space - at);
    to += space - at;
    at = space;
    if (at == end) break;
    memcpy(to, at, unit);
    to += unit;
    at += unit;
    *to++ = rest_is_below_spaces(level, at, end) ? 0 : 2;
  }
  out->advance(to - start);
}

void TextOrder::append_unpadded(const uchar *weights, size_t length, Buffer *out) {
  uchar *to = out->reserve(length * 2);
  uchar *start = to;
  for (const uchar *at = weights; at < weights + length; at++) {
    *to++ = *at;
    if (*at == 0) *to++ = 0xff;
  }
  out->advance(to - start);
}

const uchar *TextOrder::skip(const uchar *at, const uchar *end, uchar invert) const {
  if (whole_) return at + whole_bytes_ <= end ? at + whole_bytes_ : nullptr;
  for (uint i = 0; i < level_count_ && at != nullptr; i++) {
    at = levels_[i].pads ? skip_level(levels_[i], at, end, invert) : skip_unpadded(at, end, invert);
  }
  return at;
}

const uchar *TextOrder::skip_level(const Level &level, const uchar *at, const uchar *end, uchar invert) const {
  uchar space[sizeof(level.space)];
  for (uint i = 0; i < level.unit; i++) space[i] = level.space[i] ^ invert;
  while (at + level.unit <= end) {
    bool is_space = memcmp(at, space, level.unit) == 0;
    at += level.unit;
    if (!is_space) continue;
    if (at == end) return nullptr;
    if ((*at++ ^ invert) == 1) return at;
  }
  return nullptr;
}

const uchar *TextOrder::skip_unpadded(const uchar *at, const uchar *end, uchar invert) {
  for (; at + 2 <= end; at++) {
    if ((*at ^ invert) != 0) continue;
    at++;
    if ((*at ^ invert) == 0) return at + 1;
  }
  return nullptr;
}

// Returns the weights of the only level, without the bytes that mark its end.
std::string TextOrder::weights_of(CheetahBytes encoding) const {
  const Level &level = levels_[0];
  std::string weights;
  const uchar *at = encoding.data, *end = encoding.data + encoding.len;
  uint unit = level.pads ? level.unit : 1;
  while (at + unit < end) {
    bool is_marked = level.pads ? memcmp(at, level.space, unit) == 0 : *at == 0;
    bool ends = is_marked && at[unit] == (level.pads ? 1 : 0);
    if (ends) break;
    weights.append(reinterpret_cast<const char *>(at), unit);
    at += unit + is_marked;
  }
  return weights;
}

// Appends a character with this weight, and returns whether one was found. In most collations
// without UCA a weight is the code of a character (of the capital letter if case is ignored).
// One-byte weights are looked up in the collation's table.
bool TextOrder::add_character_of(const uchar *weight, std::string *text) const {
  uint unit = levels_[0].unit;
  if (unit == 1 && charset_->sort_order != nullptr) {
    for (uint byte = 0; byte < 256; byte++) {
      if (charset_->sort_order[byte] != *weight) continue;
      *text += static_cast<char>(byte);
      return true;
    }
    return false;
  }
  my_wc_t code = 0;
  for (uint i = 0; i < unit; i++) code = code << 8 | weight[i];
  uchar bytes[8];
  int length = charset_->wc_mb(code, bytes, bytes + sizeof(bytes));
  if (length > 0) text->append(reinterpret_cast<const char *>(bytes), static_cast<size_t>(length));
  return length > 0;
}

bool TextOrder::find_text(CheetahBytes encoding, std::string *text) const {
  if (whole_ || level_count_ != 1) return false;
  std::string weights = weights_of(encoding);
  if (raw_) {
    *text = weights;
  } else {
    const uchar *at = reinterpret_cast<const uchar *>(weights.data()), *end = at + weights.size();
    for (; at + levels_[0].unit <= end; at += levels_[0].unit) {
      if (!add_character_of(at, text)) return false;
    }
  }
  Buffer scratch, again;
  append(reinterpret_cast<const uchar *>(text->data()), text->size(), &scratch, &again);
  return again.size() == encoding.len && memcmp(again.data(), encoding.data, encoding.len) == 0;
}

void TextOrder::describe_levels(std::vector<CheetahBytes> *levels) const {
  if (whole_) return;
  for (uint i = 0; i < level_count_; i++) {
    levels->push_back(CheetahBytes{levels_[i].space, levels_[i].pads ? levels_[i].unit : 0});
  }
}

void TextOrder::describe(Buffer *out) const {
  for (uint i = 0; i < level_count_; i++) out->append_byte(levels_[i].pads);
  if (whole_) out->append_varint(whole_bytes_);
}

uint TextOrder::max_bytes() const {
  if (whole_) return whole_bytes_;
  if (raw_) return max_chars_ * charset_->mbmaxlen * 2 + 2;
  uint expansion = charset_->strxfrm_multiply < expansion_max ? charset_->strxfrm_multiply : expansion_max;
  uint bytes = 0;
  for (uint i = 0; i < level_count_; i++) {
    const Level &level = levels_[i];
    // On a padded level each weight may be a space's, with one marker byte. On other levels a zero
    // byte takes two bytes; a two-byte weight has at most one zero byte.
    uint weight_bytes = level.pads || level.unit <= 2 ? level.unit + 1 : level.unit * 2;
    bytes += (max_chars_ * expansion + 1) * weight_bytes;
  }
  return bytes;
}

}  // namespace cheetah
