// SPDX-License-Identifier: GPL-2.0-only
// Failures of the engine as errors of the server.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

// Error numbers of our own, for failures that the server has none for; their text is the engine's
// message.
enum OwnError {
  own_error_limit = HA_ERR_LAST + 1,
  own_error_unsupported,
  own_error_stopped,
  own_error_io,
  own_error_reported,  // the message has been given already
  own_error_rollback,
  own_error_last = own_error_rollback
};

// The handler error for a CheetahCode. Failures whose server message would not say enough get the
// engine's message as a warning too; failures of storage also go to the error log. Marks the
// transaction of `thd` for rollback where the engine demands it.
int handler_error(int32_t code, THD *thd);

// The text of one of our own error numbers; false for others.
bool own_error_text(int error, String *text);

// As handler_error, for a rollback of a part of the transaction: when that fails, the server must
// roll back all of it.
int rollback_error(int32_t code, THD *thd);

// The engine's last message of this thread.
String last_message();

}  // namespace cheetah
