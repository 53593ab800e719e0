// SPDX-License-Identifier: GPL-2.0-only
// Computes the index entries that a stored row should have. The engine cannot compute them, because
// it knows neither collations nor expressions.
#pragma once

#include "server.h"
#include "buffer.h"
#include "cheetah.h"
#include "engine.h"
#include "errors.h"
#include "transactions/session.h"
#include "ddl/table_codec.h"

#include <vector>

namespace cheetah {

class RowEntries {
 public:
  // `wanted`: for each index of the engine, whether to compute its entries.
  RowEntries(TABLE *table, TableCodec *codec, LargeValues *large, std::vector<bool> wanted)
      : table_(table), codec_(codec), large_(large), wanted_(std::move(wanted)) {}

  static int32_t of_row(void *self, CheetahBytes key, CheetahBytes row, CheetahEntrySink *sink) {
    return static_cast<RowEntries *>(self)->add(key, row, sink);
  }
  static uint8_t repeats(void *self, uint32_t index_no, CheetahBytes payload) {
    return static_cast<RowEntries *>(self)->codec_->secondary_of(index_no).repeats(payload);
  }

 private:
  int32_t add(CheetahBytes key, CheetahBytes row, CheetahEntrySink *sink) {
    if (interrupted(table_->in_use)) return CHEETAH_CODE_INTERRUPTED;
    uchar *record = table_->record[0];
    if (codec_->row().decode(row, record, table_, RowCodec::Columns::all, large_) != 0) return CHEETAH_CODE_CORRUPTION;
    if (!codec_->hidden_key() && !codec_->clustered().decode(key, record)) return CHEETAH_CODE_CORRUPTION;
    if (table_->vfield != nullptr) table_->update_virtual_fields(table_->file, VCOL_UPDATE_FOR_READ);
    for (unsigned i = 1; i <= codec_->secondaries().size(); i++) {
      if (!wanted_[i]) continue;
      const SecondaryCodec &index = codec_->secondary_of(i);
      entry_.clear();
      index.key().append(record, &scratch_, &entry_);
      size_t payload_start = entry_.size();
      index.append_payload(record, &entry_);
      cheetah_expect_entry(sink, i, entry_.bytes(0, payload_start), entry_.bytes(payload_start, entry_.size()));
    }
    return CHEETAH_CODE_OK;
  }

  TABLE *table_;
  TableCodec *codec_;
  LargeValues *large_;
  std::vector<bool> wanted_;
  Buffer scratch_, entry_;
};

}  // namespace cheetah
