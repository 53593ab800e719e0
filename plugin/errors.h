// SPDX-License-Identifier: GPL-2.0-only
// Converts failures of the engine to errors of the server.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

// Our own error numbers, for failures that have no error number in the server. Their text is the
// engine's message.
enum OwnError {
  own_error_limit = HA_ERR_LAST + 1,
  own_error_unsupported,
  own_error_stopped,
  own_error_io,
  own_error_reported,  // my_error was already called
  own_error_rollback,
  own_error_last = own_error_rollback
};

// Returns the handler error for a CheetahCode. If the server's message is not specific enough, the
// engine's message is added as a warning. Storage failures also go to the error log. Marks the
// transaction of `thd` for rollback where the engine requires it.
int handler_error(int32_t code, THD *thd);

// Sets `text` to the message of one of our own error numbers. Returns false for other numbers.
bool own_error_text(int error, String *text);

// Like `handler_error`, for a rollback of a part of the transaction. If the partial rollback fails,
// the server must roll back the whole transaction.
int rollback_error(int32_t code, THD *thd);

// Returns the engine's last message in this thread.
String last_message();

}  // namespace cheetah
