// SPDX-License-Identifier: Apache-2.0
// core/net/grpc: peers that connect to a worker's port but do not belong to the job, or that belong to it
// and violate the protocol.
#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/grpc_stranger.hpp"
#include "tests/unit/grpc_support.hpp"

namespace dist {
namespace {

using namespace grpc_link;

// ---- Strangers on sockets ----

int connect_to(const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str())));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  assert_int_equal(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}

void strangers_do_no_harm(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join(0);
  std::mt19937_64 random(7);
  std::vector<int> held;
  const auto say = [&](const std::string& text) {
    const int fd = connect_to(workers.address(0));
    (void)!::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    held.push_back(fd);
  };
  for (int i = 0; i < 40; ++i) {
    std::string noise(random() % 2000, '\0');
    for (char& each : noise) each = static_cast<char>(random());
    say(noise);
    say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + noise);
    say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    say("");
  }
  Transport& second = workers.join(1);
  assert_speak(second, first, 1);
  assert_speak(first, second, 2);
  for (const int fd : held) ::close(fd);
  assert_speak(second, first, 3);
  assert_false(first.lost(1) || second.lost(0));
  first.close();
  second.close();
}

// ---- Strangers at a worker's address ----

// A program that listens at the address of a worker.
class Impostor {
 public:
  enum class Kind { kSilent, kCloses, kHttp, kOtherProtocol, kNeverAccepts };

  Impostor(const std::string& address, Kind kind) : kind_(kind) {
    const int on = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str())));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(::bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    assert_int_equal(::listen(fd_, kind == Kind::kNeverAccepts ? 0 : 64), 0);
    if (kind == Kind::kNeverAccepts) {
      // The queue has room for one connection, so the system ignores others. It is full once the socket is
      // readable.
      queued_ = connect_to(address);
      pollfd readable{fd_, POLLIN, 0};
      assert_int_equal(::poll(&readable, 1, -1), 1);
    } else if (kind != Kind::kSilent) {
      // If the program should stay silent, the system accepts connections as long as the queue has room.
      answering_ = std::thread([this] { answer_all(); });
    }
  }
  ~Impostor() {
    // Makes accept() fail.
    ::shutdown(fd_, SHUT_RDWR);
    if (answering_.joinable()) answering_.join();
    ::close(fd_);
    if (queued_ >= 0) ::close(queued_);
  }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;

 private:
  void answer_all() const {
    for (;;) {
      const int one = ::accept(fd_, nullptr, nullptr);
      if (one < 0) return;
      if (kind_ == Kind::kHttp) {
        // An HTTP server reads the request first.
        char request[4096];
        (void)!::recv(one, request, sizeof request, 0);
        constexpr char kAnswer[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        (void)!::send(one, kAnswer, sizeof kAnswer - 1, MSG_NOSIGNAL);
      } else if (kind_ == Kind::kOtherProtocol) {
        constexpr char kGreeting[] = "SSH-2.0-OpenSSH_9.2\r\n";
        (void)!::send(one, kGreeting, sizeof kGreeting - 1, MSG_NOSIGNAL);
      }
      ::close(one);
    }
  }

  const Kind kind_;
  const int fd_ = socket(AF_INET, SOCK_STREAM, 0);
  int queued_ = -1;
  std::thread answering_;
};

// The text is available within one second. On a busy machine this may take several attempts, each with a
// worker that has just started.
void a_stranger_at_the_address_of_a_worker_is_named_soon(void**) {
  constexpr auto kDeadline = std::chrono::seconds(1);
  constexpr int kMostAttempts = 60;
  const struct {
    Impostor::Kind kind;
    const char* text;
  } table[] = {
      {Impostor::Kind::kSilent, "accepts connections, but does not answer as libdist"},
      {Impostor::Kind::kCloses, "closes connections without an answer, so it is not libdist or is ending"},
      {Impostor::Kind::kHttp, "is an HTTP server, not libdist"},
      {Impostor::Kind::kOtherProtocol, "is not libdist"},
      {Impostor::Kind::kNeverAccepts, "no connection to its address is accepted in time"},
  };
  for (const auto& each : table) {
    for (int me = 0; me < 2; ++me) {
      std::string text;
      bool named = false;
      for (int attempt = 0; attempt < kMostAttempts && !named; ++attempt) {
        GrpcWorkers workers(2, 4096);
        const Impostor impostor(workers.address(1 - me), each.kind);
        const auto until = std::chrono::steady_clock::now() + kDeadline;
        // A worker that ends waits until the lease expires.
        Transport& worker = workers.join_with(me, [](GrpcOptions& o) { o.lease_ns = 100'000'000; });
        while (!named && std::chrono::steady_clock::now() < until) {
          text = why(worker, 1 - me);
          named = text.find(each.text) != std::string::npos;
          std::this_thread::yield();
        }
        assert_false(worker.lost(1 - me));
        worker.close();
      }
      if (!named) fail_msg("worker %d: '%s' is not in: %s", me, each.text, text.c_str());
      assert_says(text, "worker " + std::to_string(1 - me) + " (127.0.0.1:");
      for (const char* const part : {"FD Shutdown", "ipv4:", "HTTP proxy", "Socket closed", "Expected '"}) {
        if (text.find(part) != std::string::npos) fail_msg("'%s' is in: %s", part, text.c_str());
      }
    }
  }
}

void worker_0_names_a_worker_that_has_not_joined(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join_with(0, [](GrpcOptions& o) { o.lease_ns = 100'000'000; });
  assert_string_equal(why(first, 1).c_str(),
                      ("worker 1 (" + workers.address(1) + ") has not joined").c_str());
  first.close();
}

// ---- Strangers that use gRPC ----

void a_hello_that_does_not_fit_is_answered_by_what_differs(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join(0);
  const Hello good = good_hello(workers, 2);
  const auto answer_to = [&](const std::function<void(Hello&)>& change) {
    Stranger stranger(workers, 0);
    Hello hello = good;
    change(hello);
    stranger.say(hello);
    return stranger.answer();
  };
  assert_string_equal(answer_to([](Hello&) {}).c_str(), "welcome");
  assert_says(answer_to([](Hello& h) { h.protocol = 9; }), "protocol 9");
  assert_says(answer_to([](Hello& h) { std::strcpy(h.version, "9.9.9"); }),
              "worker 1 uses libdist 9.9.9, but worker 0 uses libdist ");
  assert_says(answer_to([](Hello& h) { h.num_workers = 3; }),
              "worker 1 has a cluster of 3 workers, but worker 0 has a cluster of 2 workers. Give");
  assert_says(answer_to([](Hello& h) { h.cluster[0] ^= std::byte{1}; }), "differs from the one at worker");
  assert_string_equal(answer_to([](Hello& h) { h.forms = 2; }).c_str(), "");
  assert_says(answer_to([](Hello& h) { h.to = 1; }), "it expects worker 1, but this is worker 0");
  for (const int none : {0, -1, 2, 1 << 30})
    assert_says(answer_to([&](Hello& h) { h.from = none; }), "it claims to be worker");
  assert_says(answer_to([](Hello& h) { h.credit = 1; }),
              "worker 1 has a credit of 1 bytes, but worker 0 has");
  assert_says(answer_to([](Hello& h) { h.lease_ns = 1'000'000; }),
              "worker 1 has a lease of 1 ms, but worker 0 has a lease of 10 s. Set the same "
              "DIST_LEASE_SECONDS for all workers.");
  // None of these failures makes worker 1 count as lost.
  assert_false(first.lost(1));
  Transport& second = workers.join(1);
  assert_speak(second, first, 1);
  first.close();
  second.close();
}

void what_is_no_hello_ends_the_link(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join(0);
  const std::string noise(3'000'000, 'x');
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, Hello::kBytes - 1, Hello::kBytes,
                                  Hello::kBytes + 1, std::size_t{100'000}, std::size_t{3'000'000}}) {
    Stranger stranger(workers, 0);
    stranger.say(noise.data(), bytes);
    assert_string_equal(stranger.hear().c_str(), "");
  }
  // A peer that sends a valid hello, and then a wrong proof, or frames.
  for (const std::size_t bytes : {kProofBytes, Frame::kBytes}) {
    Stranger stranger(workers, 0);
    stranger.say(good_hello(workers, 2));
    assert_string_equal(stranger.answer().c_str(), "welcome");
    stranger.say(noise.data(), bytes);
    const std::string admission = stranger.hear();
    assert_int_equal(admission.size(), Admission::kBytes);
    assert_says(admission, "its DIST_JOB_SECRET differs");
    assert_string_equal(stranger.hear().c_str(), "");
  }
  assert_false(first.lost(1));
  first.close();
}

void unproven_links_are_few(void**) {
  // With a short lease, there is little time for a proof.
  constexpr int64_t kLease = 1'000'000'000;
  const auto short_lease = [](GrpcOptions& options) { options.lease_ns = kLease; };
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join_with(0, short_lease);
  Hello hello = good_hello(workers, 2);
  hello.lease_ns = kLease;
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int i = 0; i < 4 * 2 + 16; ++i) {
    strangers.push_back(std::make_unique<Stranger>(workers, 0));
    strangers.back()->say(hello);
    assert_string_equal(strangers.back()->answer().c_str(), "welcome");
  }
  {
    Stranger one_more(workers, 0);
    one_more.say(hello);
    assert_string_equal(one_more.hear().c_str(), "");
  }
  // Peers that prove nothing are disconnected, and then the waiting worker gets in.
  Transport& second = workers.join_with(1, short_lease);
  assert_speak(second, first, 1);
  for (const auto& each : strangers) assert_string_equal(each->hear().c_str(), "");
  first.close();
  second.close();
}

// A peer that knows the secret and then violates the protocol.
void who_breaks_the_protocol_loses_its_link(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join_with(0, [](GrpcOptions& o) { o.secret = "s3cret"; });
  Stranger stranger(workers, 0, "s3cret");
  const Hello hello = good_hello(workers, 2);
  stranger.say(hello);
  std::byte said[Hello::kBytes];
  hello.write(said);
  const std::string answer = stranger.hear();
  assert_int_equal(answer.size(), Answer::kBytes);
  const Digest proof =
      prove(Prover::kClient, "s3cret", said, reinterpret_cast<const std::byte*>(answer.data()));
  stranger.say(proof.data(), proof.size());
  assert_int_equal(stranger.hear().size(), Admission::kBytes);
  assert_false(first.lost(1));
  std::byte frame[Frame::kBytes];
  Frame{.kind = FrameKind::kMessage}.write(frame);
  stranger.say(frame, sizeof frame);
  await([&] { return first.lost(1); });
  assert_says(why(first, 1), "violated the protocol: a frame that does not belong on a control link");
  first.close();
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(strangers_do_no_harm),
      cmocka_unit_test(a_stranger_at_the_address_of_a_worker_is_named_soon),
      cmocka_unit_test(worker_0_names_a_worker_that_has_not_joined),
      cmocka_unit_test(a_hello_that_does_not_fit_is_answered_by_what_differs),
      cmocka_unit_test(what_is_no_hello_ends_the_link),
      cmocka_unit_test(unproven_links_are_few),
      cmocka_unit_test(who_breaks_the_protocol_loses_its_link),
  };
  return cmocka_run_group_tests_name("grpc_strangers", tests, nullptr, nullptr);
}
