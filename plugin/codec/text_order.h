// SPDX-License-Identifier: GPL-2.0-only
// Encodes strings as bytes whose memcmp order is the collation's order.
#pragma once

#include "server.h"
#include "buffer.h"

#include <string>
#include <vector>

namespace cheetah {

// Encodes values of one string key part. Invariants:
//   T1  Two values are equal under the collation exactly when their encodings are equal.
//   T2  memcmp of two encodings orders as the collation does.
//   T3  No encoding is a proper prefix of another (so parts can be concatenated).
//
// A value is encoded as its collation weights, level by level. A level is ended in one of two ways:
//   PAD SPACE  Trailing space weights are dropped: the value compares as if followed by endless
//              spaces. Each remaining space weight is followed by one byte: 0 if the rest sorts
//              before spaces, 2 if it sorts after them. The end is a space weight followed by 1.
//              (MyRocks does the same for fixed-size chunks; here only spaces cost a byte.)
//   NO PAD     A zero byte is written as 00 FF, and the end is 00 00.
// A PAD SPACE collation uses PAD SPACE on every level. A NO PAD collation uses NO PAD on the first
// level, and PAD SPACE on the others, like the server. For a CHAR column, whose value includes the
// spaces up to its full width, it uses NO PAD on every level.
// Collations whose weights cannot be separated this way are padded to the full width of the column
// (`whole_`).
class TextOrder {
 public:
  // `fixed_width`: the column is a CHAR. `max_chars`: the length of the key part; longer values are
  // truncated.
  void init(CHARSET_INFO *charset, bool fixed_width, uint max_chars);

  // Returns whether a CHAR must be passed with all its trailing spaces.
  bool counts_spaces() const { return !pads_; }

  void append(const uchar *text, size_t length, Buffer *scratch, Buffer *out) const;

  // Returns whether the collation compares on one level. Then an encoding consists of the weights
  // of the text and an end that is the same for all texts (except texts that end in spaces). The
  // weights of a prefix of a text are a prefix of its weights, if the collation compares character
  // by character.
  static bool has_one_level(const CHARSET_INFO *charset);
  // Append the two parts of the encoding that `append` appends, for a collation with one level.
  void append_beginning(const uchar *text, size_t length, Buffer *scratch, Buffer *out) const;
  void append_end(Buffer *out) const;
  // Returns the size in bytes of the first `max_chars` characters.
  size_t first_chars(const uchar *text, size_t length) const;

  // Returns the end of the encoding that starts at `at`, or nullptr if it does not end before
  // `end`. `invert`: 0xff for a descending part, otherwise 0.
  const uchar *skip(const uchar *at, const uchar *end, uchar invert) const;

  // Finds a text with this encoding. It may differ from the original text, for example in case.
  // Returns false if no text can be derived from the weights.
  bool find_text(CheetahBytes encoding, std::string *text) const;

  // Describes the levels to the engine: the space's weight of each padded level, empty bytes for
  // other levels. Adds no levels if every encoding has `whole_bytes`.
  void describe_levels(std::vector<CheetahBytes> *levels) const;
  uint whole_bytes() const { return whole_bytes_; }

  // Appends a description. Two orders of a collation have equal descriptions exactly if they encode
  // alike all values that fit both orders.
  void describe(Buffer *out) const;

  // Returns the maximum size of an encoding, except for values with extraordinarily many weights.
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
  bool pads_ = false;  // trailing spaces are ignored
  bool fixed_width_ = false;
  bool raw_ = false;    // the bytes are the weights
  bool whole_ = false;  // padded to `whole_bytes_`
  bool by_codes_ = false;  // strnxfrm does not match the collation's comparison; use character codes
  uint max_chars_ = 0;
  uint whole_bytes_ = 0;
  uint level_count_ = 0;
  Level levels_[levels_max];
};

}  // namespace cheetah
