// SPDX-License-Identifier: GPL-2.0-only
#include "ddl/table_codec.h"

#include "codec/columns.h"
#include "engine.h"

namespace cheetah {

// Longer payloads are omitted: reading the row costs less than index pages with only a few entries.
static constexpr size_t payload_bytes_max = 1500;
// With keys longer than this, a page has less space for payloads.
static constexpr uint long_key_bytes = 7000;
static constexpr size_t payload_bytes_max_of_long_keys = 500;
// Must change whenever an encoding changes.
static constexpr uint encoding_version = 1;
static constexpr uint hidden_key_bytes = 8;

void SecondaryCodec::init(TABLE *table, const KEY &key, const KeyCodec *clustered, const KEY *clustered_key) {
  key_.init(table, key, clustered_key);
  add_irreversible(key_);
  clustered_ = clustered;
  if (clustered != nullptr) add_irreversible(*clustered);
  uint stored_key_bytes = key_.max_bytes() + (clustered != nullptr ? clustered->max_bytes() : 0);
  payload_bytes_max_ = stored_key_bytes > long_key_bytes ? payload_bytes_max_of_long_keys : payload_bytes_max;
}

void SecondaryCodec::add_irreversible(const KeyCodec &codec) {
  for (const KeyPart &part : codec.parts()) {
    has_beginnings_ |= !part.whole_column();
    if (part.reversible() || !part.whole_column()) continue;
    bool known = false;
    for (const KeyPart *kept : kept_) known |= kept->field() == part.field();
    if (known) continue;
    kept_.push_back(&part);
    keeps_only_reals_ &= part.is_real();
  }
}

void SecondaryCodec::append_payload(const uchar *record, Buffer *out) const {
  if (has_beginnings_) return;
  bool stated = keeps_only_reals_;
  for (const KeyPart *part : kept_) {
    stated = stated && (part->is_null(record) || KeyPart::states(part->stored_bytes(record)));
  }
  if (stated) return;
  size_t start = out->size();
  out->append_byte(1);
  for (const KeyPart *part : kept_) {
    if (part->is_null(record)) continue;
    CheetahBytes value = part->stored_bytes(record);
    out->append_varint(value.len);
    out->append(value.data, value.len);
  }
  if (out->size() - start > payload_bytes_max_) out->truncate(start);
}

// Reads the next value of a payload. Returns false if the payload is too short.
static bool next_value(const uchar **at, const uchar *end, CheetahBytes *value) {
  ulonglong length;
  if (!read_varint(at, end, &length) || length > static_cast<ulonglong>(end - *at)) return false;
  *value = CheetahBytes{*at, static_cast<size_t>(length)};
  *at += length;
  return true;
}

bool SecondaryCodec::decode_entry(CheetahBytes key, CheetahBytes clustered, CheetahBytes payload, uchar *record) const {
  constexpr KeyCodec::Reals reals = KeyCodec::Reals::decode;
  if (has_beginnings_ || !key_.decode(key, record, reals)) return false;
  if (clustered_ != nullptr && !clustered_->decode(clustered, record, reals)) return false;
  return decode_payload(payload, record);
}

// Does not use a payload that repeats what the keys state.
bool SecondaryCodec::decode_payload(CheetahBytes payload, uchar *record) const {
  if (payload.len == 0) return keeps_only_reals_;
  if (repeats(payload)) return true;
  const uchar *at = payload.data + 1, *end = payload.data + payload.len;
  for (const KeyPart *part : kept_) {
    if (part->is_null(record)) continue;
    CheetahBytes value;
    if (!next_value(&at, end, &value)) return false;
    part->set_stored_bytes(record, value);
  }
  return true;
}

bool SecondaryCodec::repeats(CheetahBytes payload) const {
  if (payload.len == 0 || has_beginnings_) return true;
  if (!keeps_only_reals_) return false;
  const uchar *at = payload.data + 1, *end = payload.data + payload.len;
  CheetahBytes value;
  while (at < end) {
    if (!next_value(&at, end, &value) || !KeyPart::states(value)) return false;
  }
  return true;
}

void TableCodec::init(TABLE *table) {
  TABLE_SHARE *share = table->s;
  clustered_no_ = share->primary_key;
  const KEY *clustered_key = hidden_key() ? nullptr : &table->key_info[clustered_no_];
  if (!hidden_key()) clustered_.init(table, *clustered_key, nullptr);
  row_.init(table, hidden_key() ? nullptr : &clustered_);
  engine_indexes_.assign(share->keys, 0);
  key_numbers_.clear();
  fulltext_numbers_.clear();
  for (uint key_no = 0; key_no < share->keys; key_no++) {
    if (key_no == clustered_no_) continue;
    if (is_fulltext(table->key_info[key_no])) {
      engine_indexes_[key_no] = static_cast<uint>(fulltext_numbers_.size());
      fulltext_numbers_.push_back(key_no);
    } else {
      key_numbers_.push_back(key_no);
      engine_indexes_[key_no] = static_cast<uint>(key_numbers_.size());
    }
  }
  secondaries_.resize(key_numbers_.size());
  for (size_t i = 0; i < secondaries_.size(); i++) {
    const KEY &key = table->key_info[key_numbers_[i]];
    secondaries_[i].init(table, key, hidden_key() ? nullptr : &clustered_, clustered_key);
  }
}

void TableCodec::init_fulltext(TABLE *table, const WordRules &rules) {
  std::vector<WordCodec>(fulltext_numbers_.size()).swap(fulltext_);
  for (size_t i = 0; i < fulltext_.size(); i++) fulltext_[i].init(table, table->key_info[fulltext_numbers_[i]], rules);
}

bool TableCodec::init_fulltext(TABLE *table, const CheetahTable *engine_table) {
  if (cheetah_fulltext_count(engine_table) != fulltext_numbers_.size()) return false;
  std::vector<WordCodec>(fulltext_numbers_.size()).swap(fulltext_);
  for (size_t i = 0; i < fulltext_.size(); i++) {
    CheetahFulltextSpec index;
    WordRules rules;
    if (cheetah_fulltext_index(engine_table, i, &index) != CHEETAH_CODE_OK || !rules.read(index.extra)) return false;
    fulltext_[i].init(table, table->key_info[fulltext_numbers_[i]], rules);
    if (text_of(index.name) != fulltext_[i].name()) return false;
  }
  return true;
}

const KeyCodec &TableCodec::key_of(uint key_no) const {
  return key_no == clustered_no_ ? clustered_ : secondary_of(engine_index(key_no)).key();
}

void KeyEncodings::add_part(const KeyPart &part, bool is_counted) {
  CheetahKeyPartEncoding encoding = part.encoding(&levels_.emplace_back());
  encoding.is_counted = is_counted;
  parts_.back().push_back(encoding);
}

void KeyEncodings::add(const KeyCodec *key, const KeyCodec *behind) {
  parts_.emplace_back();
  if (key != nullptr) {
    for (const KeyPart &part : key->parts()) add_part(part, true);
  }
  if (behind != nullptr) {
    for (const KeyPart &part : behind->parts()) add_part(part, !key->has_column(part.field()));
  }
  keys_.push_back(CheetahKeyEncoding{parts_.back().data(), parts_.back().size()});
}

KeyEncodings TableCodec::key_encodings() const {
  KeyEncodings encodings;
  const KeyCodec *clustered = hidden_key() ? nullptr : &clustered_;
  encodings.add(clustered, nullptr);
  for (const SecondaryCodec &secondary : secondaries_) encodings.add(&secondary.key(), clustered);
  return encodings;
}

static CheetahIndexSpec index_spec(const char *name, const KeyCodec &key, bool unique) {
  return CheetahIndexSpec{bytes_of(name), key.max_bytes(), unique};
}

uint TableCodec::clustered_key_bytes_max() const { return hidden_key() ? hidden_key_bytes : clustered_.max_bytes(); }

std::vector<CheetahIndexSpec> TableCodec::index_specs(const TABLE *table) const {
  std::vector<CheetahIndexSpec> indexes;
  if (hidden_key()) indexes.push_back(CheetahIndexSpec{bytes_of("(hidden)"), hidden_key_bytes, true});
  else indexes.push_back(index_spec(table->key_info[clustered_no_].name.str, clustered_, true));
  for (const SecondaryCodec &secondary : secondaries_) {
    const KeyCodec &key = secondary.key();
    uint key_no = key_number(static_cast<uint>(indexes.size()));
    indexes.push_back(index_spec(table->key_info[key_no].name.str, key, key.unique()));
  }
  return indexes;
}

static void describe_key(const KeyCodec &key, Buffer *out) {
  out->append_varint(key.parts().size() << 1 | key.unique());
  for (const KeyPart &part : key.parts()) part.describe(out);
}

void TableCodec::append_fingerprint(Buffer *out) const {
  out->append_varint(encoding_version);
  row_.describe(out);
  out->append_varint(clustered_no_);
  if (!hidden_key()) describe_key(clustered_, out);
  for (const SecondaryCodec &secondary : secondaries_) describe_key(secondary.key(), out);
}

void TableCodec::append_names(const TABLE *table, Buffer *out) {
  for (Field **field = table->field; *field != nullptr; field++) {
    const LEX_CSTRING &name = (*field)->field_name;
    out->append_varint(name.length);
    out->append(name.str, name.length);
  }
}

// Compares names like the server: the case of a name may change without a call to the engine.
static bool has_columns(const TABLE *table, const uchar *names, const uchar *end) {
  for (Field **field = table->field; *field != nullptr; field++) {
    ulonglong length;
    if (!read_varint(&names, end, &length) || length > static_cast<ulonglong>(end - names)) return false;
    std::string name(reinterpret_cast<const char *>(names), static_cast<size_t>(length));
    if (!is_same_column((*field)->field_name.str, name.c_str())) return false;
    names += length;
  }
  return names == end;
}

bool TableCodec::describes(const TABLE *table, CheetahBytes kept) const {
  Buffer fingerprint;
  append_fingerprint(&fingerprint);
  size_t size = fingerprint.size();
  if (kept.len < size || memcmp(kept.data, fingerprint.data(), size) != 0) return false;
  return kept.len == size || has_columns(table, kept.data + size, kept.data + kept.len);
}

bool TableCodec::has_names(CheetahBytes kept) const {
  Buffer fingerprint;
  append_fingerprint(&fingerprint);
  return kept.len > fingerprint.size();
}

FulltextSpecs::FulltextSpecs(const TableCodec &codec) : rules_(codec.fulltext().size()) {
  for (size_t no = 0; no < rules_.size(); no++) {
    const WordCodec &index = codec.fulltext()[no];
    index.rules().describe(&rules_[no]);
    specs_.push_back(CheetahFulltextSpec{bytes_of(index.name()), rules_[no].bytes()});
  }
}

}  // namespace cheetah
