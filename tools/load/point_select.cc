// Runs point selects by primary key for a given time on several connections, each with one prepared
// statement. A single connection would measure how fast the system wakes threads up, which differs
// by a factor of two from run to run.
//
// Usage: point_select SOCKET DATABASE TABLE KEY_COLUMN KEY_MAX SECONDS CONNECTIONS
//
// Prints the number of queries per second of all connections together.

#include <mysql.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char *what, const char *why) {
  std::fprintf(stderr, "point_select: %s: %s\n", what, why);
  std::exit(1);
}

struct Load {
  const char *socket, *database;
  std::string query;
  unsigned int key_max;
  std::chrono::duration<double> limit;
};

// Runs the queries of one connection and adds their number to `total`.
void select_points(const Load &load, unsigned int seed, std::atomic<unsigned long long> &total) {
  MYSQL *connection = mysql_init(nullptr);
  if (!mysql_real_connect(connection, nullptr, "root", "", load.database, 0, load.socket, 0))
    fail("connect", mysql_error(connection));
  MYSQL_STMT *statement = mysql_stmt_init(connection);
  if (mysql_stmt_prepare(statement, load.query.c_str(), load.query.size()))
    fail("prepare", mysql_stmt_error(statement));

  unsigned int key = 0;
  MYSQL_BIND parameter;
  std::memset(&parameter, 0, sizeof parameter);
  parameter.buffer_type = MYSQL_TYPE_LONG;
  parameter.is_unsigned = 1;
  parameter.buffer = &key;
  if (mysql_stmt_bind_param(statement, &parameter)) fail("bind", mysql_stmt_error(statement));

  std::mt19937 random(seed);
  std::uniform_int_distribution<unsigned int> keys(1, load.key_max);
  unsigned long long count = 0;
  for (const auto start = Clock::now(); Clock::now() - start < load.limit; ++count) {
    key = keys(random);
    if (mysql_stmt_execute(statement) || mysql_stmt_store_result(statement))
      fail("execute", mysql_stmt_error(statement));
    mysql_stmt_free_result(statement);
  }
  total += count;
  mysql_stmt_close(statement);
  mysql_close(connection);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 8) fail("arguments", "SOCKET DATABASE TABLE KEY_COLUMN KEY_MAX SECONDS CONNECTIONS");
  const Load load{argv[1], argv[2],
                  std::string("SELECT * FROM `") + argv[3] + "` WHERE `" + argv[4] + "` = ?",
                  static_cast<unsigned int>(std::atoi(argv[5])),
                  std::chrono::duration<double>(std::atof(argv[6]))};
  if (mysql_library_init(0, nullptr, nullptr)) fail("start", "the client library refuses");
  std::atomic<unsigned long long> total{0};
  std::vector<std::thread> connections;
  const auto start = Clock::now();
  for (int i = 0; i < std::atoi(argv[7]); ++i)
    connections.emplace_back([&, i] { select_points(load, 7u + static_cast<unsigned int>(i), total); });
  for (std::thread &connection : connections) connection.join();
  const std::chrono::duration<double> spent = Clock::now() - start;
  std::printf("%.0f\n", static_cast<double>(total.load()) / spent.count());
}
