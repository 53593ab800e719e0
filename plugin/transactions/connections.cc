// SPDX-License-Identifier: GPL-2.0-only
#include "transactions/connections.h"

#include <sql_show.h>

namespace cheetah {

static constexpr size_t description_bytes_max = 2048;
static constexpr size_t described_query_bytes_max = 1024;

// Keeps a connection from ending for the lifetime of this object.
class Held {
 public:
  explicit Held(uint64_t connection) : thd_(find_thread_by_id(static_cast<longlong>(connection))) {}
  ~Held() {
    if (thd_ != nullptr) mysql_mutex_unlock(&thd_->LOCK_thd_kill);
  }
  Held(const Held &) = delete;
  Held &operator=(const Held &) = delete;

  THD *thd() const { return thd_; }

 private:
  THD *thd_;
};

bool find_connection(uint64_t number, size_t bytes_max, Connection *connection) {
  Held held(number);
  THD *thd = held.thd();
  if (thd == nullptr) return false;
  std::string buffer(bytes_max + 1, '\0');
  buffer.resize(thd_query_safe(thd, buffer.data(), buffer.size()));
  connection->statement = std::move(buffer);
  connection->charset = thd->charset();
  connection->commits_itself = !thd_test_options(thd, OPTION_NOT_AUTOCOMMIT | OPTION_BEGIN);
  connection->only_reads = thd_tx_is_read_only(thd);
  connection->checks_unique = !thd_test_options(thd, OPTION_RELAXED_UNIQUE_CHECKS);
  connection->checks_foreign_keys = !thd_test_options(thd, OPTION_NO_FOREIGN_KEY_CHECKS);
  return true;
}

void describe_connection(void *, uint64_t connection, CheetahTextSink sink, void *context) {
  Held held(connection);
  if (held.thd() == nullptr) return;
  char buffer[description_bytes_max];
  const char *text = thd_get_error_context_description(held.thd(), buffer, sizeof(buffer), described_query_bytes_max);
  sink(context, CheetahBytes{reinterpret_cast<const uint8_t *>(text), strlen(text)});
}

}  // namespace cheetah
