// Point selects by primary key with one prepared statement, for a given time.
// Usage: point_select SOCKET DATABASE TABLE KEY_COLUMN KEY_MAX SECONDS
// Prints the number of queries per second.

#include <mysql.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

namespace {

[[noreturn]] void fail(const char *what, const char *why) {
  std::fprintf(stderr, "point_select: %s: %s\n", what, why);
  std::exit(1);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 7) fail("arguments", "SOCKET DATABASE TABLE KEY_COLUMN KEY_MAX SECONDS");
  const std::string query = std::string("SELECT * FROM `") + argv[3] + "` WHERE `" + argv[4] + "` = ?";
  MYSQL *connection = mysql_init(nullptr);
  if (!mysql_real_connect(connection, nullptr, "root", "", argv[2], 0, argv[1], 0))
    fail("connect", mysql_error(connection));
  MYSQL_STMT *statement = mysql_stmt_init(connection);
  if (mysql_stmt_prepare(statement, query.c_str(), query.size())) fail("prepare", mysql_stmt_error(statement));

  unsigned int key = 0;
  MYSQL_BIND parameter;
  std::memset(&parameter, 0, sizeof parameter);
  parameter.buffer_type = MYSQL_TYPE_LONG;
  parameter.is_unsigned = 1;
  parameter.buffer = &key;
  if (mysql_stmt_bind_param(statement, &parameter)) fail("bind", mysql_stmt_error(statement));

  std::mt19937 random(7);
  std::uniform_int_distribution<unsigned int> keys(1, static_cast<unsigned int>(std::atoi(argv[5])));
  const auto start = std::chrono::steady_clock::now();
  const std::chrono::duration<double> limit(std::atof(argv[6]));
  unsigned long long count = 0;
  for (; std::chrono::steady_clock::now() - start < limit; ++count) {
    key = keys(random);
    if (mysql_stmt_execute(statement) || mysql_stmt_store_result(statement)) fail("execute", mysql_stmt_error(statement));
    mysql_stmt_free_result(statement);
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  std::printf("%.0f\n", static_cast<double>(count) / spent.count());
  mysql_stmt_close(statement);
  mysql_close(connection);
}
