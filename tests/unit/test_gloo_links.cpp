// SPDX-License-Identifier: Apache-2.0
// core/engine/gloo: which connections are accepted, what is sent over them, and which data cannot use them.
#include <dirent.h>
#include <gloo/transport/tcp/pair.h>
#include <linux/filter.h>
#include <malloc.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/engine/gloo/carrier.hpp"
#include "core/engine/gloo/guarded.hpp"
#include "tests/unit/grpc_support.hpp"

namespace dist {
namespace {

using End = Transfer::End;

// ---- What the options say ----

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
  assert_says(std::string(last_error().message), "TLS certificates are set");
  options = workers.options(0);
  const char* const far[] = {"10.0.0.1:4000", "10.0.0.2:4000"};
  options.addresses = far;
  assert_int_equal(create(options).code(), DIST_FAILED_PRECONDITION);
  assert_says(std::string(last_error().message), "DIST_PLAINTEXT=1");
  options.allow_plaintext = true;
  assert_int_equal(create(options).code(), DIST_FAILED_PRECONDITION);
  assert_says(std::string(last_error().message), "DIST_JOB_SECRET");
  options.secret = "known to all";
  assert_true(create(options).ok());
}

void a_library_that_is_not_there_is_named(void**) {
  const GrpcWorkers workers(2, 4096);
  GrpcOptions options = workers.options(0);
  options.module = "/nowhere/libdist-gloo.so";
  assert_int_equal(create(options).code(), DIST_UNAVAILABLE);
  assert_says(std::string(last_error().message), "libdist-gloo.so was not found");
  assert_says(std::string(last_error().message), "libgloo-dev");
  // The other library is none.
  options.module = GRPC_MODULE;
  assert_int_equal(create(options).code(), DIST_UNAVAILABLE);
  assert_says(std::string(last_error().message), "is not a libdist-gloo.so module");
}

void workers_with_other_transports_refuse_each_other(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join(0);
  Transport& second = workers.join_with(1, [](GrpcOptions& options) {
    options.gloo = false;
    options.module = GRPC_MODULE;
  });
  await([&] { return second.lost(0); });
  assert_says(why(second, 0),
              "uses the transport grpc, but worker 0 uses the transport gloo. Set the same DIST_TRANSPORT");
  first.close();
  second.close();
}

// ---- What goes over them ----

std::vector<std::byte> numbers(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> all(bytes);
  std::mt19937 random(seed);
  for (std::byte& each : all) each = static_cast<std::byte>(random());
  return all;
}

void messages_of_all_sizes_arrive_both_ways_at_once(void**) {
  // Around what a header, a carried message and the credit are.
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

// Receives that begin, are cancelled or are forgotten while their message comes in pieces.
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
  // One ends in the middle of it.
  Transfer send;
  first.send(1, {.run = run, .number = 1000}, given.data(), kBytes, send);
  second.close();
  await([&] { return send.over(); });
  first.close();
}

// ---- Who comes to their ports ----

// Ports on which this process listens, but those.
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

// The head of a message of Gloo's for a buffer that nobody has posted.
struct Unasked {
  std::size_t bytes = sizeof(Unasked) + 8;
  std::size_t kind = 1;
  std::size_t tag = 1234;
  std::size_t offset = 0;
  std::size_t length = 8;
  std::size_t remote_offset = 0;
};

// The other end hears of a connection that is no more.
void reset(int fd) {
  const linger at_once{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(fd);
}

// A stranger takes each port that waits for a worker before that comes. It says nothing, or nonsense, or what Gloo does not
// expect, or is gone at once; not for ever.
void who_takes_the_place_of_a_worker_is_found_out(void**) {
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
  // Nobody waits at a port any more.
  assert_true(listening(known).empty());
  first.close();
  second.close();
}

// ---- Their ends ----

// From now on, the system drops everything that arrives at this process's TCP connections, except those with a `known`
// port at one end. Returns how many there are.
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

// The control links, which are not affected, do not tell that data is lost.
void a_connection_that_loses_its_packets_ends_within_the_lease(void**) {
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

// ---- What carries ----

// Gloo's class, from which the guarded one is derived, is as its headers say here.
void pairs_are_as_large_as_the_library_makes_them(void**) {
  namespace tcp = gloo::transport::tcp;
  const auto device = tcp::CreateDevice(tcp::attr("127.0.0.1"));
  const auto context = device->createContext(0, 2);
  const std::size_t usable = malloc_usable_size(dynamic_cast<void*>(context->createPair(1).get()));
  assert_in_range(usable, sizeof(tcp::Pair), sizeof(tcp::Pair) + 2 * sizeof(void*) + 8);
}

std::atomic<int> broken_pipes{0};

// Keeps Gloo's thread from seeing what happens.
struct Busy final : gloo::transport::tcp::Handler {
  explicit Busy(gloo::transport::tcp::Device& owner) : device(owner), fd(eventfd(1, EFD_CLOEXEC)) {
    device.registerDescriptor(fd, EPOLLIN, this);
    await([this] { return here.load(); });
  }
  ~Busy() override {
    done = true;
    device.unregisterDescriptor(fd, this);
    ::close(fd);
  }
  void handleEvents(int) override {
    here = true;
    await([this] { return done.load(); });
  }
  gloo::transport::tcp::Device& device;
  const int fd;
  std::atomic<bool> here{false};
  std::atomic<bool> done{false};
};

void a_write_to_a_connection_that_is_gone_sends_no_signal(void**) {
  const auto before = ::signal(SIGPIPE, [](int) { ++broken_pipes; });
  std::array<std::shared_ptr<grpc_link::GuardedDevice>, 2> devices;
  std::array<std::shared_ptr<grpc_link::GuardedContext>, 2> ends;
  std::array<std::vector<char>, 2> addresses;
  for (std::size_t i = 0; i < 2; ++i) {
    devices[i] = std::make_shared<grpc_link::GuardedDevice>("127.0.0.1");
    ends[i] = std::make_shared<grpc_link::GuardedContext>(devices[i], static_cast<int>(i), nullptr);
    ends[i]->setTimeout(std::chrono::seconds(60));
    addresses[i] = ends[i]->createPair(static_cast<int>(1 - i))->address().bytes();
  }
  std::thread other([&] { ends[1]->getPair(0)->connect(addresses[0]); });
  ends[0]->getPair(1)->connect(addresses[1]);
  other.join();
  char byte = 0;
  const auto buffer = ends[0]->createUnboundBuffer(&byte, 1);
  {
    const Busy busy(*devices[0]->get());
    ends[1].reset();
    // The answer to the first says that nobody is there.
    for (uint64_t tag = 0; tag < 3; ++tag) buffer->send(1, tag);
  }
  ::signal(SIGPIPE, before);
  assert_int_equal(broken_pipes, 0);
}

// It comes, and is gone before Gloo's thread looks at it.
void a_connection_that_is_reset_at_once_fails_alone(void**) {
  const auto device = std::make_shared<grpc_link::GuardedDevice>("127.0.0.1");
  const auto context = std::make_shared<grpc_link::GuardedContext>(device, 0, nullptr);
  const std::vector<char> bytes = context->createPair(1)->address().bytes();
  sockaddr_in address;
  std::memcpy(&address, bytes.data(), sizeof address);
  {
    const Busy busy(*device->get());
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    reset(fd);
  }
  { const Busy afterwards(*device->get()); }
  char byte = 0;
  const auto buffer = context->createUnboundBuffer(&byte, 1);
  try {
    buffer->recv(1, 1);
  } catch (const std::exception& error) {
    assert_says(std::string(error.what()), "getpeername");
    return;
  }
  fail_msg("nothing has failed");
}

struct NoUser final : grpc_link::CarrierUser {
  bool carried(const grpc_link::LinkRef&, const grpc_link::Carrier&) noexcept override {
    return ++calls != 0;
  }
  std::string took_carried(const grpc_link::LinkRef&, std::span<const std::byte>) noexcept override {
    ++calls;
    return "";
  }
  bool more(grpc_link::Link&) noexcept override { return ++calls == 0; }
  bool next_apart(grpc_link::Link&, grpc_link::Piece*) noexcept override { return ++calls == 0; }
  const char* begin_apart(grpc_link::Link&, const grpc_link::Piece&) noexcept override {
    return ++calls == 0 ? "" : nullptr;
  }
  std::ptrdiff_t send_apart(grpc_link::Link&, int, std::span<const std::byte>) noexcept override {
    return ++calls;
  }
  std::ptrdiff_t receive_apart(grpc_link::Link&, int, std::size_t, const char**) noexcept override {
    return ++calls;
  }
  void moved_apart(const grpc_link::LinkRef&) noexcept override { ++calls; }
  void carrier_over(const grpc_link::LinkRef&, const grpc_link::Carrier&,
                    const std::string&) noexcept override {
    ++calls;
  }
  std::atomic<int> calls{0};
};

// Whoever ends it may have forgotten it: nothing runs afterwards that nobody waits for.
void one_that_has_ended_does_not_start(void**) {
  CountingMemory memory;
  grpc_link::GlooCarriers carriers(*memory);
  assert_string_equal(carriers.start("127.0.0.1").c_str(), "");
  NoUser user;
  std::string why;
  const grpc_link::CarrierRef carrier = carriers.make(user, true, 1, "127.0.0.1", kDefaultLeaseNs, &why);
  assert_non_null(carrier.get());
  carrier->end();
  assert_true(carrier->over());
  grpc_link::Carrier::Meeting meeting;
  meeting.address = carrier->address();
  assert_true(carrier->start(std::move(meeting)));
  carrier->join();
  assert_int_equal(user.calls, 0);
}

// Before the carrier has started, and so before the client has proven who it is.
void a_stranger_sends_no_piece(void**) {
  CountingMemory memory;
  grpc_link::GlooCarriers carriers(*memory);
  assert_string_equal(carriers.start("127.0.0.1").c_str(), "");
  NoUser user;
  std::string why;
  const grpc_link::CarrierRef carrier = carriers.make(user, false, 1, "127.0.0.1", kDefaultLeaseNs, &why);
  assert_non_null(carrier.get());
  sockaddr_in address;
  std::memcpy(&address, carrier->address().data(), sizeof address);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  Unasked piece;
  piece.kind = 0;
  piece.tag = 1000;
  assert_int_equal(::send(fd, &piece, sizeof piece, MSG_NOSIGNAL), sizeof piece);
  char byte;
  assert_true(::recv(fd, &byte, 1, 0) <= 0);  // it closes the connection
  ::close(fd);
  carrier->end();
  assert_int_equal(user.calls, 0);
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
      cmocka_unit_test(pairs_are_as_large_as_the_library_makes_them),
      cmocka_unit_test(a_write_to_a_connection_that_is_gone_sends_no_signal),
      cmocka_unit_test(a_connection_that_is_reset_at_once_fails_alone),
      cmocka_unit_test(one_that_has_ended_does_not_start),
      cmocka_unit_test(a_stranger_sends_no_piece),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
