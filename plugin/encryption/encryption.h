// SPDX-License-Identifier: GPL-2.0-only
// Encryption at rest: the server's keys for the engine, and the settings.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

// InnoDB's variables for this, with their meanings.
extern st_mysql_sys_var *const sysvar_default_encryption_key_id;
extern st_mysql_sys_var *const sysvar_encrypt_tables;
extern st_mysql_sys_var *const sysvar_encrypt_log;
extern st_mysql_sys_var *const sysvar_encryption_rotate_key_age;

// A CheetahNewestKeyVersion and a CheetahKeyBytes: the server's key service.
uint32_t newest_key_version(uint32_t id);
size_t key_bytes(uint32_t id, uint32_t version, uint8_t *buffer, size_t buffer_bytes);

// The encryption parameters to open the engine: keys and settings.
void set_encryption(CheetahConfig *config);
// Tells the open engine what the variables say of rotation.
void tell_rotation();

// Whether a table with these options is encrypted; warns of options that cannot be had, or have no
// effect. 0 or an error of the handler.
int choose_encryption(THD *thd, uint encrypted, ulonglong key_id, CheetahEncryption *encryption);

}  // namespace cheetah
