// SPDX-License-Identifier: GPL-2.0-only
// Strings as bytes whose memcmp order is the collation's.
#pragma once

#include "server.h"
#include "buffer.h"

#include <string>
#include <vector>

namespace cheetah {

// Encodes values of one string key part. Invariants:
//   T1  Two values are equal under the collation exactly when their encodings are equal.
//   T2  memcmp of two encodings orders as the collation does.
//   T3  No encoding is a proper prefix of another (so parts can be put one after the other).
//
// A value becomes its collation weights, level by level, each level ended in one of two ways:
//   PAD SPACE Behind the last weight that is not the space's, comparison goes on with spaces for
//   ever. Each space
//              weight inside is followed by one byte: 0 when the rest sorts before spaces, 2 when
//              after; the end is a space weight followed by 1. (MyRocks does the same for fixed
//              chunks; here only spaces cost a byte.)
//   NO PAD A zero byte is written as 00 FF; the end is 00 00. The server does so for the first
//   level only (so that
//              letters that differ in nothing but accents are equal where accents do not count),
//              but for a CHAR, whose spaces up to its full width belong to it, on every level.
// Collations with weights that cannot be told apart that way are padded to the full width of the
// column (`whole_`).
class TextOrder {
 public:
  // `fixed_width`: a CHAR. `max_chars`: the characters that the key part holds; longer values are
  // cut.
  void init(CHARSET_INFO *charset, bool fixed_width, uint max_chars);

  // Whether a CHAR is to be given with all its spaces.
  bool counts_spaces() const { return !pads_; }

  void append(const uchar *text, size_t length, Buffer *scratch, Buffer *out) const;

  // Whether the collation compares on one level. Then an encoding is the weights of the text, and
  // an end that is the same for all texts but those that end in spaces; the weights of the
  // beginning of a text begin those of the text, as far as characters are compared one by one.
  static bool has_one_level(const CHARSET_INFO *charset);
  // The two parts of `append`, where that is so.
  void append_beginning(const uchar *text, size_t length, Buffer *scratch, Buffer *out) const;
  void append_end(Buffer *out) const;
  // Bytes of the first `max_chars` characters.
  size_t first_chars(const uchar *text, size_t length) const;

  // The end of the encoding that starts at `at`, or nullptr when it does not end before `end`.
  // `invert`: 0xff for a descending part, otherwise 0.
  const uchar *skip(const uchar *at, const uchar *end, uchar invert) const;

  // A text with that encoding, perhaps in other letters than the one that was encoded; false where
  // the weights do not lead back to one.
  bool find_text(CheetahBytes encoding, std::string *text) const;

  // For the engine: of each level the weight of the space, or nothing where it is not padded; none
  // where every encoding has `whole_bytes`.
  void describe_levels(std::vector<CheetahBytes> *levels) const;
  uint whole_bytes() const { return whole_bytes_; }

  // Bytes that are equal for two orders of a collation exactly when they encode values alike, as
  // long as these fit both.
  void describe(Buffer *out) const;

  // Bytes that an encoding has at most, short of values with extraordinary expansions.
  uint max_bytes() const;

 private:
  struct Level {
    uint flag;
    uint unit;  // bytes of the space's weight
    bool pads;
    uchar space[8];
  };
  static constexpr uint levels_max = 6;

  std::string weights_of(CheetahBytes encoding) const;
  bool add_character_of(const uchar *weight, std::string *text) const;
  void add_levels();
  bool add_level(uint flag);
  void append_level(const Level &level, const uchar *weights, size_t length, Buffer *out) const;
  static const uchar *find_space(const Level &level, const uchar *at, const uchar *end);
  static void append_padded(const Level &level, const uchar *weights, size_t length, Buffer *out);
  static void append_unpadded(const uchar *weights, size_t length, Buffer *out);
  static void append_end_of(const Level &level, Buffer *out);
  static bool rest_is_below_spaces(const Level &level, const uchar *at, const uchar *end);
  const uchar *skip_level(const Level &level, const uchar *at, const uchar *end, uchar invert) const;
  static const uchar *skip_unpadded(const uchar *at, const uchar *end, uchar invert);

  CHARSET_INFO *charset_ = nullptr;
  bool pads_ = false;  // trailing spaces do not count
  bool fixed_width_ = false;
  bool raw_ = false;    // the bytes are the weights
  bool whole_ = false;  // padded to `whole_bytes_`
  bool by_codes_ = false;  // strnxfrm gives other weights than those that comparison goes by
  uint max_chars_ = 0;
  uint whole_bytes_ = 0;
  uint level_count_ = 0;
  Level levels_[levels_max];
};

}  // namespace cheetah
