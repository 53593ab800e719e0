// SPDX-License-Identifier: GPL-2.0-only
#include "constraints/orphan_rows.h"

#include "constraints/foreign_keys.h"
#include "constraints/refusals.h"
#include "engine.h"
#include "transactions/session.h"

namespace cheetah {

int32_t OrphanSearch::run(CheetahTxn *txn, const CheetahTable *child, Orphans *orphans) {
  CheetahCursor *opened = nullptr;
  int32_t code = cheetah_open_parents(txn, list_, no_, &opened);
  parents_.reset(opened);
  if (code != CHEETAH_CODE_OK) return code;
  opened = nullptr;
  code = cheetah_open_cursor(txn, child, constraint_.child_key.index_no, CHEETAH_READ_CONSISTENT,
                             CHEETAH_ON_LOCKED_WAIT, &opened);
  children_.reset(opened);
  CheetahFound found = {};
  CheetahBytes no_key{nullptr, 0};
  if (code == CHEETAH_CODE_OK)
    code = cheetah_seek(children_.get(), CHEETAH_SEEK_FIRST, no_key, {CHEETAH_END_NONE, no_key}, &found);
  while (code == CHEETAH_CODE_OK) {
    if (interrupted(table_->in_use)) return CHEETAH_CODE_INTERRUPTED;
    code = look_at(found, orphans);
    if (code == CHEETAH_CODE_OK) code = cheetah_next(children_.get(), &found);
  }
  return code == CHEETAH_CODE_END ? CHEETAH_CODE_OK : code;
}

// Encodes the constraint's columns of a child's entry into `key_`, in the form of the parent's
// index. Returns the end of the columns in the entry; nullptr if a column is NULL.
const uchar *OrphanSearch::encode(CheetahBytes key) {
  const uchar *at = key.data, *end = key.data + key.len;
  key_.clear();
  for (size_t i = 0; i < constraint_.column_count && at != nullptr; i++) {
    const CheetahKeyColumn &column = constraint_.parent_key.columns[i];
    at = parts()[i].append_from_key(at, end, column.nullable != 0, column.descending != 0, &key_);
  }
  return at;
}

int32_t OrphanSearch::look_at(const CheetahFound &found, Orphans *orphans) {
  bool is_same = !last_.empty() && found.key.len >= last_.size() && memcmp(found.key.data, last_.data(), last_.size()) == 0;
  if (!is_same) {
    const uchar *end = encode(found.key);
    if (end == nullptr) return CHEETAH_CODE_OK;
    last_.assign(CheetahBytes{found.key.data, static_cast<size_t>(end - found.key.data)});
    int32_t code = search_parent();
    if (code != CHEETAH_CODE_OK) return code;
  }
  if (has_parent_) return CHEETAH_CODE_OK;
  orphans->rows++;
  return is_same ? CHEETAH_CODE_OK : tell(found, orphans);
}

int32_t OrphanSearch::search_parent() {
  CheetahFound found = {};
  int32_t code = cheetah_seek(parents_.get(), CHEETAH_SEEK_AT_LEAST, key_.bytes(), {CHEETAH_END_PREFIX, {nullptr, 0}}, &found);
  has_parent_ = code == CHEETAH_CODE_OK && found.key.len >= key_.size() && memcmp(found.key.data, key_.data(), key_.size()) == 0;
  return code == CHEETAH_CODE_END ? CHEETAH_CODE_OK : code;
}

int32_t OrphanSearch::tell(const CheetahFound &found, Orphans *orphans) {
  if (orphans->keys++ >= keys_told_max) return CHEETAH_CODE_OK;
  RowBuffer row(cheetah_new_buffer());
  CheetahBytes stored = found.value;
  if (constraint_.child_key.index_no != 0) {
    int32_t code = cheetah_current_row(children_.get(), row.get());
    if (code != CHEETAH_CODE_OK) return code;
    stored = cheetah_buffer_bytes(row.get());
  }
  uchar *record = table_->record[0];
  if (codec_->row().decode(stored, record, table_, RowCodec::Columns::all, large_) != 0) return CHEETAH_CODE_CORRUPTION;
  if (!codec_->hidden_key() && !codec_->clustered().decode(found.clustered, record)) return CHEETAH_CODE_CORRUPTION;
  if (table_->vfield != nullptr) table_->update_virtual_fields(table_->file, VCOL_UPDATE_FOR_READ);
  if (orphans->keys > 1) orphans->keys_text.append(STRING_WITH_LEN(", "));
  append_values(parts(), constraint_.column_count, record, &orphans->keys_text);
  return CHEETAH_CODE_OK;
}

}  // namespace cheetah
