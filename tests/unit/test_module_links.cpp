// SPDX-License-Identifier: Apache-2.0
// Link modules: which connections are accepted, what is sent over them, and which data cannot use them.
#include <dirent.h>
#include <dist/experimental/links.h>
#include <linux/filter.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/net/grpc/carrier.hpp"
#include "tests/skip.h"
#include "tests/unit/grpc_support.hpp"
#include "tests/unit/plain_error.hpp"

namespace dist {
namespace {

using End = Transfer::End;

// ---- Options ----

Status create(const GrpcOptions& options) {
  Ref<GrpcNetwork> network;
  return GrpcNetwork::create({}, options, &network);
}

void data_in_plain_text_are_refused_where_they_may_not_be(void**) {
  const GrpcWorkers workers(2, 4096);
  GrpcOptions options = workers.options(0);
  assert_true(create(options).ok());
  options.ca = options.certificate = "-----BEGIN CERTIFICATE-----";
  options.key = "-----BEGIN PRIVATE KEY-----";
  assert_int_equal(create(options).code(), DIST_FAILED_PRECONDITION);
  assert_says(std::string(last_message()), "TLS certificates are set");
  options = workers.options(0);
  const char* const far[] = {"10.0.0.1:4000", "10.0.0.2:4000"};
  options.addresses = far;
  assert_int_equal(create(options).code(), DIST_FAILED_PRECONDITION);
  assert_says(std::string(last_message()), "DIST_PLAINTEXT=1");
  options.allow_plaintext = true;
  assert_int_equal(create(options).code(), DIST_FAILED_PRECONDITION);
  assert_says(std::string(last_message()), "DIST_JOB_SECRET");
  options.secret = "known to all";
  assert_true(create(options).ok());
}

void a_library_that_is_not_there_is_named(void**) {
  const dist_link_functions* links = nullptr;
  assert_int_equal(find_link_module(LINK_MODULE, "/nowhere", &links).code(), DIST_UNAVAILABLE);
  assert_says(std::string(last_message()), "libdist-" LINK_MODULE ".so was not found at /nowhere/");
  assert_int_equal(find_link_module("gloo", "/nowhere", &links).code(), DIST_UNAVAILABLE);
  assert_says(std::string(last_message()), "libgloo-dev");
  // Another library, which is no link module.
  const std::string folder = "/tmp/dist-modules-" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink(MODULE_FOLDER "/libdist-grpc.so", folder + "/libdist-" LINK_MODULE ".so");
  assert_int_equal(find_link_module(LINK_MODULE, folder.c_str(), &links).code(), DIST_UNAVAILABLE);
  assert_says(std::string(last_message()), "is not a libdist-" LINK_MODULE ".so module");
  std::filesystem::remove_all(folder);
}

void workers_with_other_transports_refuse_each_other(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join(0);
  Transport& second = workers.join_with(1, [](GrpcOptions& options) { options.links = nullptr; });
  await([&] { return second.lost(0); });
  assert_says(why(second, 0), "uses the transport grpc, but worker 0 uses the transport " LINK_MODULE
                              ". Set the same DIST_TRANSPORT");
  first.close();
  second.close();
}

// ---- Messages ----

std::vector<std::byte> numbers(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> all(bytes);
  std::mt19937 random(seed);
  for (std::byte& each : all) each = static_cast<std::byte>(random());
  return all;
}

void messages_of_all_sizes_arrive_both_ways_at_once(void**) {
  // Sizes around those of a header, a carried message and the credit.
  constexpr std::size_t kCredit = 1 << 20;
  std::vector<std::size_t> sizes = {0, 1, 55, 56, 57, 4096, 16384, 131072, 1048576, 1048577, 5000011};
  for (const std::size_t around : {4096u - 56, 4096u, 131072u - 56, 131072u, 131072u + 56, 2 * 131072u}) {
    for (int d = -1; d <= 1; ++d) sizes.push_back(around + static_cast<std::size_t>(d));
  }
  GrpcWorkers workers(2, kCredit);
  Transport* const both[] = {&workers.join(0), &workers.join(1)};
  const std::size_t n = sizes.size() * 3;
  std::vector<std::vector<std::byte>> given[2];
  std::vector<std::vector<std::byte>> got[2];
  std::vector<Transfer> sends[2] = {std::vector<Transfer>(n), std::vector<Transfer>(n)};
  std::vector<Transfer> receives[2] = {std::vector<Transfer>(n), std::vector<Transfer>(n)};
  for (int w = 0; w < 2; ++w) {
    for (std::size_t i = 0; i < n; ++i) {
      given[w].push_back(
          numbers(sizes[i % sizes.size()], static_cast<unsigned>(2 * i) + static_cast<unsigned>(w)));
      got[w].emplace_back(sizes[i % sizes.size()]);
    }
  }
  std::thread other([&] {
    for (std::size_t i = n; i-- > 0;) {
      both[1]->receive(0, {.number = i}, got[1][i].data(), got[1][i].size(), receives[1][i]);
      both[1]->send(0, {.number = i}, given[1][i].data(), given[1][i].size(), sends[1][i]);
    }
  });
  for (std::size_t i = 0; i < n; ++i) {
    both[0]->send(1, {.number = i}, given[0][i].data(), given[0][i].size(), sends[0][i]);
    both[0]->receive(1, {.number = i}, got[0][i].data(), got[0][i].size(), receives[0][i]);
  }
  other.join();
  for (int w = 0; w < 2; ++w) {
    for (std::size_t i = 0; i < n; ++i) {
      await([&] { return sends[w][i].over() && receives[w][i].over(); });
      assert_true(sends[w][i].end() == End::kDone && receives[w][i].end() == End::kDone);
      assert_true(got[w][i] == given[1 - w][i]);
    }
  }
  both[0]->close();
  both[1]->close();
}

// Receives are posted, cancelled or forgotten while their message arrives in pieces.
void receives_come_and_go_between_the_pieces(void**) {
  constexpr std::size_t kBytes = 900'000;
  GrpcWorkers workers(2, 1 << 20);
  Transport& first = workers.join(0);
  Transport& second = workers.join(1);
  const std::vector<std::byte> given = numbers(kBytes, 5);
  std::mt19937 random(11);
  uint32_t run = 1;
  for (uint64_t i = 1; i <= 200; ++i) {
    const MessageKey key{.run = run, .number = i};
    Transfer send;
    Transfer receive;
    auto got = std::make_unique<std::byte[]>(kBytes);
    first.send(1, key, given.data(), kBytes, send);
    for (unsigned k = random() % 2000; k != 0; --k) std::this_thread::yield();
    const unsigned what = random() % 4;
    if (what == 3) {
      second.forget(0, ++run);
    } else {
      second.receive(0, key, got.get(), kBytes, receive);
      if (what == 2) second.cancel(receive);
      await([&] { return receive.over(); });
      if (receive.end() == End::kCancelled) {
        got.reset();
      } else {
        assert_true(receive.end() == End::kDone && std::memcmp(got.get(), given.data(), kBytes) == 0);
      }
      if (receive.end() == End::kCancelled) second.forget(0, ++run);
    }
    await([&] { return send.over(); });
    assert_true(send.end() == End::kDone);
  }
  // The receiver ends in the middle of a message.
  Transfer send;
  first.send(1, {.run = run, .number = 1000}, given.data(), kBytes, send);
  second.close();
  await([&] { return send.over(); });
  first.close();
}

// ---- Strangers at their ports ----

// Returns the ports on which this process listens, except those in `but`.
std::set<int> listening(const std::set<int>& but) {
  std::set<std::string> own;
  DIR* const folder = opendir("/proc/self/fd");
  for (const dirent* each = readdir(folder); each != nullptr; each = readdir(folder)) {
    char target[64] = "";
    const std::string name = std::string("/proc/self/fd/") + each->d_name;
    if (readlink(name.c_str(), target, sizeof target - 1) > 0 && std::strncmp(target, "socket:[", 8) == 0) {
      own.insert(std::string(target + 8, std::strlen(target + 8) - 1));
    }
  }
  closedir(folder);
  std::set<int> ports;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    unsigned address = 0;
    unsigned port = 0;
    unsigned state = 0;
    char inode[32] = "";
    if (std::sscanf(line.c_str(), " %*u: %x:%x %*x:%*x %x %*s %*s %*s %*s %*s %31s", &address, &port, &state,
                    inode) == 4 &&
        state == 0x0A && own.count(inode) == 1 && but.count(static_cast<int>(port)) == 0) {
      assert_int_equal(address, htonl(INADDR_LOOPBACK));
      ports.insert(static_cast<int>(port));
    }
  }
  return ports;
}

// The header of a Gloo message for a buffer that has not been posted.
struct Unasked {
  std::size_t bytes = sizeof(Unasked) + 8;
  std::size_t kind = 1;
  std::size_t tag = 1234;
  std::size_t offset = 0;
  std::size_t length = 8;
  std::size_t remote_offset = 0;
};

// Closes the connection with a reset.
void reset(int fd) {
  const linger at_once{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(fd);
}

// A stranger connects to each port that waits for a worker, a limited number of times. It sends nothing,
// text, or a message that Gloo does not expect, or it resets the connection.
void who_takes_the_place_of_a_worker_is_found_out(void**) {
  if (LINK_HAS_PORTS == 0) skip_because("this module has no ports");
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join(0);
  Transport& second = workers.join(1);
  std::set<int> known;
  for (int w = 0; w < 2; ++w) {
    known.insert(std::atoi(workers.address(w).substr(workers.address(w).rfind(':') + 1).c_str()));
  }
  std::atomic<bool> enough{false};
  std::atomic<int> taken{0};
  std::thread stranger([&] {
    std::vector<int> held;
    constexpr int kMost = 5;
    while (!enough && taken < kMost) {
      for (const int port : listening(known)) {
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(static_cast<uint16_t>(port));
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
          const Unasked unasked;
          switch (taken++ % 4) {
            case 0: reset(fd); continue;
            case 1: (void)!::send(fd, "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL); break;
            case 2: (void)!::send(fd, &unasked, sizeof unasked, MSG_NOSIGNAL); break;
            default: break;
          }
        }
        held.push_back(fd);
      }
    }
    await([&] { return enough.load(); });
    for (const int fd : held) ::close(fd);
  });
  assert_speak(first, second, 1);
  assert_speak(second, first, 2);
  enough = true;
  stranger.join();
  assert_false(first.lost(1) || second.lost(0));
  // No port is open for a worker any more.
  assert_true(listening(known).empty());
  first.close();
  second.close();
}

// ---- Lost connections ----

// From now on, the system drops everything that arrives at this process's TCP connections, except those with
// a `known` port at one end. Returns how many there are.
int lose_packets(const std::set<int>& known) {
  sock_filter drop{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog all{1, &drop};
  const auto is_tcp = [](int fd) {
    int protocol = 0;
    socklen_t size = sizeof protocol;
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == IPPROTO_TCP;
  };
  const auto port = [](int fd, decltype(getsockname)& of) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (of(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    return static_cast<int>(ntohs(address.ss_family == AF_INET6
                                      ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                      : reinterpret_cast<const sockaddr_in&>(address).sin_port));
  };
  int lost = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    if (!is_tcp(fd)) continue;
    const int peer = port(fd, getpeername);
    if (peer == 0 || known.contains(peer) || known.contains(port(fd, getsockname))) continue;
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof all), 0);
    ++lost;
  }
  return lost;
}

// The control links are not affected, so they do not show that data is lost.
void a_connection_that_loses_its_packets_ends_within_the_lease(void**) {
  if (LINK_HAS_PORTS == 0) skip_because("this module has no connections of its own");
  GrpcWorkers workers(2, 4096);
  const auto briefly = [](GrpcOptions& options) { options.lease_ns = 1'000'000'000; };
  Transport& first = workers.join_with(0, briefly);
  Transport& second = workers.join_with(1, briefly);
  assert_speak(first, second, 1);
  std::set<int> known;
  for (int w = 0; w < 2; ++w) {
    known.insert(std::atoi(workers.address(w).substr(workers.address(w).rfind(':') + 1).c_str()));
  }
  assert_int_equal(lose_packets(known), 2);
  std::byte byte{1};
  std::byte got{0};
  Transfer send;
  Transfer receive;
  second.receive(0, {.number = 2}, &got, 1, receive);
  first.send(1, {.number = 2}, &byte, 1, send);
  await([&] { return receive.over() && first.lost(1) && second.lost(0); });
  assert_true(receive.end() == End::kLost);
  first.close();
  second.close();
}

void networks_end_while_they_meet(void**) {
  for (int i = 0; i < 20; ++i) {
    GrpcWorkers workers(2, 4096);
    const auto briefly = [](GrpcOptions& options) { options.lease_ns = 1'000'000'000; };
    Transport& first = workers.join_with(0, briefly);
    workers.join_with(1, briefly);
    std::byte byte{1};
    Transfer send;
    first.send(1, {.number = 1}, &byte, 1, send);
    first.close();
    workers.end(static_cast<std::size_t>(i % 2));
  }
}

// ---- The module by itself ----

// One end of a link, as libdist sees it.
struct LinkEnd : dist_link {
  explicit LinkEnd(const dist_link_functions& given) : functions(given) {}
  void listen(void* module, bool initiates) {
    const dist_link_options options = {sizeof options, initiates ? 1 : 0, "127.0.0.1", this};
    char text[256] = "";
    std::size_t bytes = 0;
    address.resize(DIST_LINK_MAX_ADDRESS_BYTES);
    if (functions.listen(module, &options, &connection, address.data(), &bytes, text, sizeof text) !=
        DIST_OK) {
      fail_msg("%s", text);
    }
    address.resize(bytes);
  }
  void connect(const LinkEnd& other) {
    functions.connect(connection, other.address.data(), other.address.size());
  }
  // Moves up to `most` bytes, in as many blocks as they have.
  std::ptrdiff_t move(bool out, std::byte* data, std::size_t most) {
    dist_link_block blocks[DIST_LINK_MAX_BLOCKS];
    std::size_t n = 0;
    for (std::size_t at = 0; at < most; ++n) {
      const std::size_t some =
          n + 1 == DIST_LINK_MAX_BLOCKS ? most - at : std::min<std::size_t>(most - at, 7);
      blocks[n] = {data + at, some};
      at += some;
    }
    return out ? functions.write(connection, blocks, n) : functions.read(connection, blocks, n);
  }
  void destroy() {
    functions.destroy(connection);
    connection = nullptr;
  }

  const dist_link_functions& functions;
  void* connection = nullptr;
  std::string address;
  std::atomic<int> ready{0};
  std::atomic<int> ended{0};
  std::function<void()> then;  // called when it ends
};

const dist_link_callbacks kCounts = {sizeof kCounts, 0,
                                     [](dist_link* link) { ++static_cast<LinkEnd*>(link)->ready; },
                                     [](dist_link* link, const char*) {
                                       LinkEnd& end = *static_cast<LinkEnd*>(link);
                                       if (end.then) end.then();
                                       ++end.ended;
                                     }};

struct OpenedModule {
  OpenedModule() {
    GrpcOptions options;
    use_module(options);
    functions = options.links;
    const dist_link_module_options given = {sizeof given, 0, "127.0.0.1", kDefaultLeaseNs, &kCounts};
    char text[256] = "";
    if (functions->open(&given, &module, text, sizeof text) != DIST_OK) fail_msg("%s", text);
  }
  ~OpenedModule() { functions->close(module); }
  const dist_link_functions* functions = nullptr;
  void* module = nullptr;
};

void a_connection_moves_bytes_in_order_both_ways(void**) {
  const OpenedModule opened;
  LinkEnd ends[2] = {LinkEnd(*opened.functions), LinkEnd(*opened.functions)};
  for (int e = 0; e < 2; ++e) ends[e].listen(opened.module, e == 0);
  for (int e = 0; e < 2; ++e) ends[e].connect(ends[1 - e]);
  constexpr std::size_t kBytes = 3'000'000;
  std::vector<std::byte> given[2] = {numbers(kBytes, 1), numbers(kBytes, 2)};
  std::vector<std::byte> got[2] = {std::vector<std::byte>(kBytes), std::vector<std::byte>(kBytes)};
  std::size_t out[2] = {};
  std::size_t in[2] = {};
  std::mt19937 random(3);
  await([&] {
    for (std::size_t e = 0; e < 2; ++e) {
      const auto some = [&](std::size_t left) { return std::min<std::size_t>(left, 1 + random() % 100'000); };
      // The bytes that follow a write() that moved less may come in other blocks.
      if (out[e] < kBytes) {
        const std::ptrdiff_t went = ends[e].move(true, given[e].data() + out[e], some(kBytes - out[e]));
        assert_true(went >= 0);
        out[e] += static_cast<std::size_t>(went);
      }
      if (in[e] < kBytes) {
        const std::ptrdiff_t came = ends[e].move(false, got[e].data() + in[e], some(kBytes - in[e]));
        assert_true(came >= 0);
        in[e] += static_cast<std::size_t>(came);
      }
    }
    return in[0] == kBytes && in[1] == kBytes;
  });
  assert_true(got[0] == given[1] && got[1] == given[0]);
  assert_true(ends[0].ready > 0 && ends[1].ready > 0);
  // Bytes that were sent before the connection ended still arrive.
  std::byte last[100] = {std::byte{42}};
  assert_int_equal(ends[0].move(true, last, sizeof last), sizeof last);
  ends[0].functions.cut(ends[0].connection);
  await([&] { return ends[0].ended == 1; });
  ends[0].destroy();
  std::byte read[100];
  std::size_t n = 0;
  await([&] {
    const std::ptrdiff_t came = ends[1].move(false, read + n, sizeof read - n);
    if (came > 0) n += static_cast<std::size_t>(came);
    return n == sizeof read || came < 0;
  });
  assert_int_equal(n, sizeof read);
  assert_memory_equal(read, last, sizeof last);
  await([&] { return ends[1].move(false, read, sizeof read) < 0; });
  ends[1].destroy();
  assert_true(ends[0].ended == 1 && ends[1].ended == 1);
}

void a_connection_ends_once_whenever_it_is_cut(void**) {
  const OpenedModule opened;
  for (int round = 0; round < 40; ++round) {
    LinkEnd ends[2] = {LinkEnd(*opened.functions), LinkEnd(*opened.functions)};
    for (int e = 0; e < 2; ++e) ends[e].listen(opened.module, e == 0);
    const bool before = round % 4 == 0;
    const bool never = round % 4 == 1;
    if (before) ends[0].functions.cut(ends[0].connection);
    if (!never) ends[0].connect(ends[1]);
    if (round % 4 != 2) ends[1].connect(ends[0]);
    if (round % 8 == 3) await([&] { return ends[1].ready > 0; });
    for (int i = 0; i < 3; ++i) ends[0].functions.cut(ends[0].connection);
    if (round % 2 == 0) await([&] { return ends[0].ended == 1; });
    for (LinkEnd& end : ends) end.destroy();
    assert_int_equal(ends[0].ended, never ? 0 : 1);
    assert_int_equal(ends[1].ended, round % 4 != 2 ? 1 : 0);
  }
}

// Like libdist, which tries again at once, on the module's thread.
void a_connection_begins_when_another_one_ends(void**) {
  const OpenedModule opened;
  LinkEnd first(*opened.functions);
  LinkEnd second(*opened.functions);
  LinkEnd peer(*opened.functions);
  peer.listen(opened.module, false);
  first.listen(opened.module, true);
  first.then = [&] {
    second.listen(opened.module, true);
    second.connect(peer);
    peer.connect(second);
  };
  first.connect(peer);
  first.functions.cut(first.connection);
  await([&] { return first.ended == 1 && second.ready > 0 && peer.ready > 0; });
  for (LinkEnd* const end : {&first, &second, &peer}) end->destroy();
}

// Nothing listens at that address any more.
void a_connection_to_nobody_ends(void**) {
  const OpenedModule opened;
  LinkEnd gone(*opened.functions);
  gone.listen(opened.module, false);
  gone.destroy();
  LinkEnd end(*opened.functions);
  end.listen(opened.module, true);
  end.connect(gone);
  // Like libdist, which cuts a connection that takes too long or whose write() fails.
  end.functions.cut(end.connection);
  await([&] { return end.ended == 1; });
  end.destroy();
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(data_in_plain_text_are_refused_where_they_may_not_be),
      cmocka_unit_test(a_library_that_is_not_there_is_named),
      cmocka_unit_test(workers_with_other_transports_refuse_each_other),
      cmocka_unit_test(messages_of_all_sizes_arrive_both_ways_at_once),
      cmocka_unit_test(receives_come_and_go_between_the_pieces),
      cmocka_unit_test(who_takes_the_place_of_a_worker_is_found_out),
      cmocka_unit_test(a_connection_that_loses_its_packets_ends_within_the_lease),
      cmocka_unit_test(networks_end_while_they_meet),
      cmocka_unit_test(a_connection_moves_bytes_in_order_both_ways),
      cmocka_unit_test(a_connection_ends_once_whenever_it_is_cut),
      cmocka_unit_test(a_connection_begins_when_another_one_ends),
      cmocka_unit_test(a_connection_to_nobody_ends),
  };
  return cmocka_run_group_tests_name(LINK_MODULE "_links", tests, nullptr, nullptr);
}
