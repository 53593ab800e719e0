// SPDX-License-Identifier: GPL-2.0-only
#include "codec/key_codec.h"

#include "codec/columns.h"
#include "codec/key_text.h"

namespace cheetah {

// Returns whether the type is unsigned regardless of its flags.
static bool always_unsigned(const Field *field) {
  switch (field->real_type()) {
    case MYSQL_TYPE_YEAR:
    case MYSQL_TYPE_NEWDATE:
    case MYSQL_TYPE_ENUM:
    case MYSQL_TYPE_SET: return true;
    default: return false;
  }
}

void KeyPart::init(TABLE *table, const KEY_PART_INFO &part) {
  field_ = table->field[part.fieldnr - 1];
  offset_ = field_->offset(table->record[0]);
  width_ = field_->pack_length_in_rec();
  part_bytes_ = part.length;
  store_bytes_ = part.store_length;
  nullable_ = field_->real_maybe_null();
  if (nullable_) {
    null_offset_ = static_cast<uint>(field_->null_ptr - table->record[0]);
    null_bit_ = field_->null_bit;
  }
  invert_ = part.key_part_flag & HA_REVERSE_SORT ? 0xff : 0;
  whole_column_ = field_->key_length() == part.length && !(field_->flags & BLOB_FLAG);
  is_signed_ = !(field_->flags & UNSIGNED_FLAG);
  kind_ = kind_of(field_, whole_column_);
  flips_sign_ = flips_sign(field_, kind_);
  is_real_ = field_->real_type() == MYSQL_TYPE_DOUBLE || field_->real_type() == MYSQL_TYPE_FLOAT;
  if (kind_ == Kind::text) {
    CHARSET_INFO *cs = field_->charset();
    text_.init(cs, is_char(field_), part.length / cs->mbmaxlen);
  }
}

bool KeyPart::flips_sign(const Field *field, Kind kind) {
  return kind == Kind::integer && !(field->flags & UNSIGNED_FLAG) && !always_unsigned(field);
}

KeyPart::Kind KeyPart::kind_of(const Field *field, bool whole_column) {
  if (is_char(field) || is_varchar(field) || (field->flags & BLOB_FLAG)) {
    bool plain_bytes = is_char(field) && field->charset() == &my_charset_bin;
    return plain_bytes && whole_column ? Kind::raw : Kind::text;
  }
  switch (field->real_type()) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
    case MYSQL_TYPE_NEWDATE:
    case MYSQL_TYPE_ENUM:
    case MYSQL_TYPE_SET:
      return Kind::integer;
    case MYSQL_TYPE_NEWDECIMAL:
    case MYSQL_TYPE_TIMESTAMP2:
    case MYSQL_TYPE_DATETIME2:
    case MYSQL_TYPE_TIME2:
    case MYSQL_TYPE_BIT:
      return Kind::raw;
    default:
      return is_fixed_binary(field) ? Kind::raw : Kind::sort_string;
  }
}

void describe_kind(Field *field, Buffer *out) {
  if (field->flags & BLOB_FLAG) return;
  KeyPart::Kind kind = KeyPart::kind_of(field, true);
  out->append_varint(static_cast<uint>(kind));
  if (kind == KeyPart::Kind::text) {
    CHARSET_INFO *cs = field->charset();
    TextOrder order;
    order.init(cs, is_char(field), field->char_length());
    out->append_varint(cs->number);
    order.describe(out);
    return;
  }
  out->append_varint(field->pack_length_in_rec());
  if (kind == KeyPart::Kind::integer) {
    bool is_date = field->real_type() == MYSQL_TYPE_YEAR || field->real_type() == MYSQL_TYPE_NEWDATE;
    out->append_varint(KeyPart::flips_sign(field, kind));
    out->append_varint(is_date ? field->real_type() : 0);
    return;
  }
  // The bytes have the same meaning if the types and the numbers of decimals are equal.
  out->append_varint(field->real_type());
  out->append_varint(field->decimals());
  const LEX_CSTRING &name = field->type_handler()->name().lex_cstring();
  out->append(name.str, name.length);
}

void KeyPart::append(const uchar *record, Buffer *scratch, Buffer *out) const {
  size_t start = out->size();
  bool null = is_null(record);
  if (nullable_) out->append_byte(null ? 0 : 1);
  if (!null && kind_ != Kind::text) append_value(record + offset_, out);
  if (!null && kind_ == Kind::text) append_text(record + offset_, scratch, out);
  invert_from(start, invert_, out);
}

void KeyPart::append_text(const uchar *place, Buffer *scratch, Buffer *out) const {
  CheetahBytes text = text_of(place);
  text_.append(text.data, text.len, scratch, out);
}

void KeyPart::append_as(const uchar *record, bool nullable, bool descending, Buffer *scratch, Buffer *out) const {
  size_t start = out->size();
  if (nullable) out->append_byte(1);
  if (kind_ == Kind::text) append_text(record + offset_, scratch, out);
  else append_value(record + offset_, out);
  invert_from(start, descending ? 0xff : 0, out);
}

const uchar *KeyPart::append_from_key(const uchar *at, const uchar *end, bool nullable, bool descending,
                                      Buffer *out) const {
  const uchar *next = skip(at, end);
  if (next == nullptr || (nullable_ && (*at ^ invert_) == 0)) return nullptr;
  uchar invert = descending ? 0xff : 0;
  if (nullable) out->append_byte(1 ^ invert);
  size_t start = out->size();
  const uchar *value = at + nullable_;
  out->append(value, static_cast<size_t>(next - value));
  invert_from(start, invert ^ invert_, out);
  return next;
}

const uchar *KeyPart::append_image(const uchar *image, Buffer *scratch, Buffer *out) const {
  const uchar *next = image + store_bytes_;
  size_t start = out->size();
  bool null = nullable_ && *image;
  if (nullable_) out->append_byte(null ? 0 : 1);
  image += nullable_;
  if (!null && kind_ != Kind::text) append_value(image, out);
  if (!null && kind_ == Kind::text) {
    bool has_length = !is_char(field_);
    size_t length = has_length ? uint2korr(image) : part_bytes_;
    text_.append(image + (has_length ? HA_KEY_BLOB_LENGTH : 0), length, scratch, out);
  }
  invert_from(start, invert_, out);
  return next;
}

void KeyPart::append_value(const uchar *place, Buffer *out) const {
  switch (kind_) {
    case Kind::integer: append_integer(place, out); break;
    case Kind::raw: out->append(place, width_); break;
    case Kind::sort_string: append_sort_string(place, out); break;
    case Kind::text: break;
  }
}

void KeyPart::invert_from(size_t start, uchar invert, Buffer *out) const {
  if (invert == 0) return;
  for (uchar *at = out->data() + start; at < out->data() + out->size(); at++) *at ^= 0xff;
}

// A CHAR is truncated to the key part before its padding is removed: the record's bytes after the
// part may be undefined.
CheetahBytes KeyPart::text_of(const uchar *place) const {
  if (!is_char(field_)) return column_bytes(field_, place);
  CHARSET_INFO *cs = field_->charset();
  size_t length = part_bytes_ < width_ ? part_bytes_ : width_;
  if (!text_.counts_spaces()) length = cs->lengthsp(reinterpret_cast<const char *>(place), length);
  return CheetahBytes{place, length};
}

void KeyPart::append_integer(const uchar *value, Buffer *out) const {
  uchar *to = out->reserve(width_);
  for (uint i = 0; i < width_; i++) to[i] = value[width_ - 1 - i];
  if (flips_sign_) to[0] ^= 0x80;
  out->advance(width_);
}

void KeyPart::append_sort_string(const uchar *value, Buffer *out) const {
  uchar *to = out->reserve(width_);
  uchar *own = field_->ptr;
  field_->ptr = const_cast<uchar *>(value);
  field_->sort_string(to, width_);
  field_->ptr = own;
  out->advance(width_);
}

const uchar *KeyPart::skip(const uchar *at, const uchar *end) const {
  if (at == nullptr) return nullptr;
  if (nullable_) {
    if (at == end) return nullptr;
    if ((*at++ ^ invert_) == 0) return at;
  }
  if (kind_ == Kind::text) return text_.skip(at, end, invert_);
  return at + width_ <= end ? at + width_ : nullptr;
}

CheetahKeyPartEncoding KeyPart::encoding(std::vector<CheetahBytes> *levels) const {
  if (kind_ == Kind::text) text_.describe_levels(levels);
  uint bytes = kind_ == Kind::text ? text_.whole_bytes() : width_;
  return CheetahKeyPartEncoding{levels->data(), levels->size(), bytes, nullable_, descending(), true, shown_as(field_)};
}

const uchar *KeyPart::decode(const uchar *at, const uchar *end, uchar *record, bool *is_null) const {
  const uchar *next = skip(at, end);
  if (next == nullptr) return nullptr;
  *is_null = nullable_ && (*at ^ invert_) == 0;
  if (nullable_) {
    if (*is_null) record[null_offset_] |= null_bit_;
    else record[null_offset_] &= ~null_bit_;
    at++;
  }
  if (!*is_null && reversible()) decode_value(at, record + offset_);
  return next;
}

void KeyPart::decode_value(const uchar *at, uchar *value) const {
  if (kind_ == Kind::raw) {
    for (uint i = 0; i < width_; i++) value[i] = at[i] ^ invert_;
    return;
  }
  for (uint i = 0; i < width_; i++) value[width_ - 1 - i] = at[i] ^ invert_;
  if (flips_sign_) value[width_ - 1] ^= 0x80;
}

// The key of a FLOAT or DOUBLE has the bytes of the value in descending order. The first two bytes
// have the sign and the exponent. The server adds one to the exponent of a value above 0 and sets
// the sign bit, and inverts all bits of a negative value (Field_double::sort_string,
// Field_float::sort_string).
static uint exponent_step(size_t width) { return width == sizeof(double) ? 1U << 4 : 1U << 7; }

bool KeyPart::states(CheetahBytes value) {
  if (value.len != sizeof(double) && value.len != sizeof(float)) return false;
  uint head = value.data[value.len - 1] << 8 | value.data[value.len - 2];
  // The exponent of infinity and NaN would overflow.
  bool finite = (head & 0x7fff) + exponent_step(value.len) <= 0x7fff;
  bool negative_zero = head == 0x8000;
  for (size_t i = 0; i + 2 < value.len; i++) negative_zero &= value.data[i] == 0;
  return finite && !negative_zero;
}

void KeyPart::set_stated(const uchar *at, uchar *record) const {
  uchar *value = record + offset_;
  at += nullable_;
  for (uint i = 0; i < width_; i++) value[width_ - 1 - i] = at[i] ^ invert_;
  uint head = value[width_ - 1] << 8 | value[width_ - 2];
  if (!(head & 0x8000)) {
    for (uint i = 0; i < width_; i++) value[i] ^= 0xff;
    return;
  }
  head &= 0x7fff;
  bool zero = head == 0;
  for (uint i = 0; i + 2 < width_; i++) zero &= value[i] == 0;
  if (!zero) head -= exponent_step(width_);
  value[width_ - 1] = static_cast<uchar>(head >> 8);
  value[width_ - 2] = static_cast<uchar>(head);
}

CheetahBytes KeyPart::stored_bytes(const uchar *record) const {
  if (kind_ == Kind::text) return column_bytes(field_, record + offset_);
  return CheetahBytes{record + offset_, width_};
}

void KeyPart::set_stored_bytes(uchar *record, CheetahBytes value) const {
  if (value.len > width_) return;
  if (kind_ == Kind::text) set_column_bytes(field_, record + offset_, value);
  else memcpy(record + offset_, value.data, value.len);
}

bool KeyPart::set_value(uchar *record, CheetahBytes value) const {
  if (value.len > (kind_ == Kind::text ? field_->field_length : width_)) return false;
  if (kind_ == Kind::text) {
    const char *start = reinterpret_cast<const char *>(value.data);
    if (field_->charset()->numchars(start, start + value.len) > field_->char_length()) return false;
  }
  if (nullable_) record[null_offset_] &= ~null_bit_;
  set_stored_bytes(record, value);
  return true;
}

bool KeyPart::set_null(uchar *record) const {
  if (!nullable_) return false;
  field_->reset();
  record[null_offset_] |= null_bit_;
  return true;
}

uint KeyPart::max_bytes() const {
  return nullable_ + (kind_ == Kind::text ? text_.max_bytes() : width_);
}

void KeyPart::describe(Buffer *out) const {
  uint charset = kind_ == Kind::text ? field_->charset()->number : 0;
  uint words[] = {field_->field_index, static_cast<uint>(kind_), width_, nullable_, invert_, is_signed_, charset,
                  max_bytes()};
  for (uint word : words) out->append_varint(word);
}

// A text column may have become longer: `max_bytes` is the length of the text in the key.
bool KeyPart::same_encoding(const KeyPart &other, const std::vector<uint> &was) const {
  bool text = kind_ == Kind::text;
  return was[field_->field_index] == other.field_->field_index && kind_ == other.kind_ && nullable_ == other.nullable_ &&
         invert_ == other.invert_ && is_signed_ == other.is_signed_ && whole_column_ == other.whole_column_ &&
         max_bytes() == other.max_bytes() && (text || width_ == other.width_) &&
         (!text || (field_->charset() == other.field_->charset() && is_char(field_) == is_char(other.field_)));
}

void KeyCodec::init(TABLE *table, const KEY &key, const KEY *clustered) {
  unique_ = key.flags & HA_NOSAME;
  parts_.resize(key.user_defined_key_parts);
  for (uint i = 0; i < key.user_defined_key_parts; i++) parts_[i].init(table, key.key_part[i]);
  if (clustered == nullptr) return;
  for (uint i = 0; i < clustered->user_defined_key_parts; i++) {
    const KEY_PART_INFO &part = clustered->key_part[i];
    behind_.emplace_back().init(table, part);
    uint own = 0;
    while (own < parts_.size() && key.key_part[own].fieldnr != part.fieldnr) own++;
    own_parts_.push_back(own < parts_.size() ? own : no_part);
  }
}

void KeyCodec::append(const uchar *record, Buffer *scratch, Buffer *out) const {
  for (const KeyPart &part : parts_) part.append(record, scratch, out);
}

void KeyCodec::append_image(const uchar *image, key_part_map map, Buffer *scratch, Buffer *out) const {
  const uchar *images[MAX_REF_PARTS];
  uint part_no = 0;
  for (const KeyPart &part : parts_) {
    if (!(map & 1)) return;
    images[part_no++] = image;
    image = part.append_image(image, scratch, out);
    map >>= 1;
  }
  for (size_t i = 0; i < behind_.size() && map != 0; i++) {
    if (own_parts_[i] != no_part) {
      behind_[i].append_image(images[own_parts_[i]], scratch, out);
      continue;
    }
    image = behind_[i].append_image(image, scratch, out);
    map >>= 1;
  }
}

bool KeyCodec::has_column(const Field *field) const {
  for (const KeyPart &part : parts_) {
    if (part.field() == field) return true;
  }
  return false;
}

bool KeyCodec::decode(CheetahBytes key, uchar *record, Reals reals) const {
  const uchar *at = key.data, *end = key.data + key.len;
  for (const KeyPart &part : parts_) {
    bool is_null;
    const uchar *next = part.decode(at, end, record, &is_null);
    if (next == nullptr) return false;
    if (reals == Reals::decode && part.is_real() && !is_null) part.set_stated(at, record);
    at = next;
  }
  return true;
}

bool KeyCodec::same_encoding(const KeyCodec &other, const std::vector<uint> &was) const {
  if (unique_ != other.unique_ || parts_.size() != other.parts_.size()) return false;
  for (size_t i = 0; i < parts_.size(); i++) {
    if (!parts_[i].same_encoding(other.parts_[i], was)) return false;
  }
  return true;
}

bool KeyCodec::has_null(const uchar *record) const {
  for (const KeyPart &part : parts_) {
    if (part.is_null(record)) return true;
  }
  return false;
}

uint KeyCodec::max_bytes() const {
  uint bytes = 0;
  for (const KeyPart &part : parts_) bytes += part.max_bytes();
  return bytes;
}

bool KeyCodec::touches(const MY_BITMAP *columns) const {
  for (const KeyPart &part : parts_) {
    if (bitmap_is_set(columns, part.field()->field_index)) return true;
  }
  return false;
}

}  // namespace cheetah
