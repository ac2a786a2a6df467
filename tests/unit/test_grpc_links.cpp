// SPDX-License-Identifier: Apache-2.0
// core/engine/grpc: who is let in, and who is not: strangers, other jobs, second starts, wrong certificates.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>

#include "core/engine/grpc/config.hpp"
#include "core/engine/grpc/link.hpp"
#include "tests/unit/grpc_support.hpp"

namespace dist {
namespace {

using End = Transfer::End;
using namespace grpc_link;

std::string why(const Transport& transport, int worker) {
  char text[512];
  transport.why_lost(worker, text, sizeof text);
  return text;
}

void await(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::yield();
}

#define assert_says(text, part)               \
  if ((text).find(part) == std::string::npos) \
  fail_msg("'%s' is not in: %s", std::string(part).c_str(), (text).c_str())

// A message from one to the other arrives.
void assert_speak(Transport& from, Transport& to, uint64_t number) {
  uint64_t got = 0;
  Transfer send;
  Transfer receive;
  to.receive(from.me(), {.number = number}, reinterpret_cast<std::byte*>(&got), sizeof got, receive);
  from.send(to.me(), {.number = number}, reinterpret_cast<const std::byte*>(&number), sizeof number, send);
  await([&] { return send.over() && receive.over(); });
  assert_true(send.end() == End::kDone && receive.end() == End::kDone && got == number);
}

// ---- A stranger, by sockets ----

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

// ---- A stranger, by gRPC ----

// One end of a link that says what a test lets it say.
struct Stranger final : LinkUser {
  Stranger(const GrpcWorkers& workers, int worker) {
    Config config;
    config.addresses.push_back(workers.address(worker));
    config.lease_ns = 1'000'000'000;
    config.credit = 4096;
    channel = make_channel(config, 0);
    link = std::make_shared<ClientLink>(*this, channel);
  }
  ~Stranger() {
    if (started) link->end("");
    link = nullptr;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return gone; });
  }
  void say(const void* bytes, std::size_t size) {
    link->put_raw(static_cast<const std::byte*>(bytes), size);
    if (!std::exchange(started, true)) {
      static_cast<ClientLink&>(*link).start();
    } else {
      link->flush();
    }
  }
  void say(const Hello& hello) {
    std::byte bytes[Hello::kBytes];
    hello.write(bytes);
    say(bytes, sizeof bytes);
  }
  // The next message; "": the link is over.
  std::string hear() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return !heard.empty() || ended; });
    if (heard.empty()) return "";
    std::string first = heard.front();
    heard.erase(heard.begin());
    return first;
  }
  std::string answer() {
    const std::string bytes = hear();
    Answer answer;
    if (bytes.size() != Answer::kBytes || !answer.read(reinterpret_cast<const std::byte*>(bytes.data())))
      return "";
    return answer.welcome ? "welcome" : answer.text;
  }
  std::string took(const LinkRef&, std::span<const grpc::Slice> message) noexcept override {
    const std::scoped_lock lock(mutex);
    std::string whole;
    for (const grpc::Slice& each : message)
      whole.append(reinterpret_cast<const char*>(each.begin()), each.size());
    heard.push_back(whole);
    changed.notify_all();
    return "";
  }
  bool more(Link&) noexcept override { return false; }
  void over(const LinkRef&, const std::string&, const std::string&) noexcept override {
    const std::scoped_lock lock(mutex);
    ended = true;
    changed.notify_all();
  }
  void destroyed() noexcept override {
    const std::scoped_lock lock(mutex);
    gone = true;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> heard;
  bool started = false;
  bool ended = false;
  bool gone = false;
  std::shared_ptr<grpc::Channel> channel;
  LinkRef link;
};

// The hello of worker 1, as the network would say it.
Hello good_hello(const GrpcWorkers& workers, int num_workers) {
  Hello hello;
  std::strcpy(hello.version, DIST_GRPC_VERSION);
  hello.purpose = Purpose::kControl;
  hello.from = 1;
  hello.num_workers = num_workers;
  hello.credit = 4096;
  hello.lease_ns = static_cast<uint64_t>(GrpcNetwork::kDefaultLeaseNs);
  ClusterDigest digest;
  for (int w = 0; w < num_workers; ++w) digest.add(workers.address(w));
  digest.add("");
  hello.cluster = digest.take();
  return hello;
}

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
  assert_says(answer_to([](Hello& h) { std::strcpy(h.version, "9.9.9"); }), "libdist 9.9.9 there");
  assert_says(answer_to([](Hello& h) { h.num_workers = 3; }), "3 workers there, 2 here");
  assert_says(answer_to([](Hello& h) { h.cluster[0] ^= std::byte{1}; }), "another cluster");
  assert_says(answer_to([](Hello& h) { h.generation = 4; }), "generation 4 there, 0 here");
  assert_says(answer_to([](Hello& h) { h.to = 1; }), "it looks for worker 1, and this is 0");
  for (const int none : {0, -1, 2, 1 << 30})
    assert_says(answer_to([&](Hello& h) { h.from = none; }), "it says that it is worker");
  assert_says(answer_to([](Hello& h) { h.credit = 1; }), "a credit of 1 bytes there, 4096 here");
  assert_says(answer_to([](Hello& h) { h.lease_ns = 1'000'000; }), "a lease of 1 ms there, 10000 ms here");
  // None of them is worker 1.
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
  // One that says a good hello, and then guesses the proof, or frames.
  for (const std::size_t bytes : {kProofBytes, Frame::kBytes}) {
    Stranger stranger(workers, 0);
    stranger.say(good_hello(workers, 2));
    assert_string_equal(stranger.answer().c_str(), "welcome");
    stranger.say(noise.data(), bytes);
    const std::string verdict = stranger.hear();
    assert_int_equal(verdict.size(), Verdict::kBytes);
    assert_says(verdict, "does not know this job's secret");
    assert_string_equal(stranger.hear().c_str(), "");
  }
  assert_false(first.lost(1));
  first.close();
}

void unproven_links_are_few(void**) {
  // A short lease, and so little time to prove anything.
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
  // Those that prove nothing end, and who waited gets in.
  Transport& second = workers.join_with(1, short_lease);
  assert_speak(second, first, 1);
  for (const auto& each : strangers) assert_string_equal(each->hear().c_str(), "");
  first.close();
  second.close();
}

// One that knows all there is to know, and then breaks the protocol.
void who_breaks_the_protocol_loses_its_link(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join_with(0, [](GrpcOptions& o) { o.secret = "s3cret"; });
  Stranger stranger(workers, 0);
  const Hello hello = good_hello(workers, 2);
  stranger.say(hello);
  std::byte said[Hello::kBytes];
  hello.write(said);
  const std::string answer = stranger.hear();
  assert_int_equal(answer.size(), Answer::kBytes);
  const Digest proof =
      prove(Prover::kClient, "s3cret", said, reinterpret_cast<const std::byte*>(answer.data()));
  stranger.say(proof.data(), proof.size());
  assert_int_equal(stranger.hear().size(), Verdict::kBytes);
  assert_false(first.lost(1));
  std::byte frame[Frame::kBytes];
  Frame{.kind = FrameKind::kMessage}.write(frame);
  stranger.say(frame, sizeof frame);
  await([&] { return first.lost(1); });
  assert_says(why(first, 1), "breaks the protocol: a frame that has no place on a control link");
  first.close();
}

// ---- Other jobs, other starts ----

void another_secret_is_found_out(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join_with(0, [](GrpcOptions& o) { o.secret = "one"; });
  Transport& second = workers.join_with(1, [](GrpcOptions& o) { o.secret = "another"; });
  await([&] { return second.lost(0); });
  assert_says(why(second, 0), "it does not know this job's secret");
  assert_false(first.lost(1));
  first.close();
  second.close();
}

void another_cluster_is_found_out(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join_with(0, [](GrpcOptions& o) { o.digest = "2 replicas each"; });
  Transport& second = workers.join_with(1, [](GrpcOptions& o) { o.digest = "3 replicas each"; });
  Transfer receive;
  std::byte got;
  second.receive(0, {}, &got, 1, receive);
  await([&] { return receive.over(); });
  assert_true(receive.end() == End::kLost);
  assert_says(why(second, 0), "refuses this worker: another cluster");
  first.close();
  second.close();
}

void a_second_start_is_refused(void**) {
  GrpcWorkers workers(3, 4096);
  const std::string elsewhere = free_addresses(1)[0];
  const auto aside = [&](GrpcOptions& o) { o.bind_address = elsewhere.c_str(); };
  Transport& first = workers.join(0);
  Transport& second = workers.join(1);
  Transport& third = workers.join(2);
  assert_speak(second, first, 1);
  Transport& again = workers.join_with(1, aside);
  await([&] { return again.lost(0) && again.lost(2); });
  assert_says(why(again, 0), "a second start: worker 1 has joined already, and lives");
  assert_speak(second, third, 2);
  again.close();
  // The same number of a worker that is over.
  second.close();
  await([&] { return first.lost(1) && third.lost(1); });
  assert_says(why(first, 1), "has left");
  assert_says(why(third, 1), "has left");
  workers.end(3);
  Transport& late = workers.join_with(1, aside);
  await([&] { return late.lost(0); });
  assert_says(why(late, 0), "is over in this generation");
  assert_speak(third, first, 3);
  first.close();
  third.close();
  late.close();
}

void an_address_in_use_is_an_error_at_once(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join(0);
  Ref<GrpcNetwork> network;
  assert_true(GrpcNetwork::create({}, workers.options(0), &network).ok());
  Transport* transport = nullptr;
  assert_int_equal(network->join(0, &transport).code(), DIST_UNAVAILABLE);
  assert_says(std::string(last_error().message), "cannot listen on " + workers.address(0));
  assert_null(transport);
  assert_int_equal(network->join(1, &transport).code(), DIST_INVALID_ARGUMENT);
  first.close();
}

// ---- Options ----

void options_are_checked(void**) {
  const auto code_of = [](const std::function<void(GrpcOptions&)>& change,
                          std::vector<const char*> addresses = {"127.0.0.1:1", "localhost:2"}) {
    GrpcOptions options;
    options.addresses = addresses;
    options.module = GRPC_MODULE;
    change(options);
    Ref<GrpcNetwork> network;
    return GrpcNetwork::create({}, options, &network).code();
  };
  const auto nothing = [](GrpcOptions&) {};
  assert_int_equal(code_of(nothing), DIST_OK);
  assert_int_equal(code_of(nothing, {"[::1]:1", "127.9.9.9:65535"}), DIST_OK);
  for (const char* const bad : {"", ":1", "host", "host:", "host:0", "host:65536", "host:-1", "host:1x",
                                "::1:5", "a/b:1", "unix:1:2", "a,b:1", "host:000001", "h\n:1"}) {
    if (code_of(nothing, {bad, "127.0.0.1:2"}) != DIST_INVALID_ARGUMENT) fail_msg("taken: %s", bad);
  }
  assert_int_equal(code_of(nothing, {"127.0.0.1:1", "127.0.0.1:1"}), DIST_INVALID_ARGUMENT);
  assert_int_equal(code_of(nothing, {}), DIST_INVALID_ARGUMENT);
  assert_int_equal(code_of([](GrpcOptions& o) { o.me = 2; }), DIST_INVALID_ARGUMENT);
  assert_int_equal(code_of([](GrpcOptions& o) { o.lease_ns = 99'999'999; }), DIST_INVALID_ARGUMENT);
  assert_int_equal(code_of([](GrpcOptions& o) { o.credit = 63; }), DIST_INVALID_ARGUMENT);
  assert_int_equal(code_of([](GrpcOptions& o) { o.secret = ""; }), DIST_INVALID_ARGUMENT);
  assert_int_equal(code_of([](GrpcOptions& o) { o.ca = "x"; }), DIST_INVALID_ARGUMENT);
  // Plain text, off loopback.
  for (const char* const far : {"10.0.0.1:1", "127.example.org:1", "localhost.example.org:1", "0.0.0.0:1"}) {
    assert_int_equal(code_of(nothing, {far}), DIST_FAILED_PRECONDITION);
    assert_int_equal(code_of([](GrpcOptions& o) { o.allow_plaintext = true; }, {far}),
                     DIST_FAILED_PRECONDITION);
    assert_int_equal(code_of([](GrpcOptions& o) { o.secret = "s"; }, {far}), DIST_FAILED_PRECONDITION);
    assert_int_equal(code_of(
                         [](GrpcOptions& o) {
                           o.allow_plaintext = true;
                           o.secret = "s";
                         },
                         {far}),
                     DIST_OK);
  }
  assert_int_equal(code_of([](GrpcOptions& o) { o.bind_address = "0.0.0.0:1"; }), DIST_FAILED_PRECONDITION);
}

void without_the_module_it_says_so(void**) {
  const char* const addresses[] = {"127.0.0.1:1"};
  GrpcOptions options;
  options.addresses = addresses;
  Ref<GrpcNetwork> network;
  const auto says = [&](const char* module, const char* part) {
    options.module = module;
    assert_int_equal(GrpcNetwork::create({}, options, &network).code(), DIST_UNAVAILABLE);
    assert_says(std::string(last_error().message), part);
  };
  says("/nowhere/libdist-grpc.so", "libdist-grpc.so is not installed (looked for /nowhere/libdist-grpc.so)");
  says("/dev/null", "cannot be loaded");
  // Another library altogether.
  says(OTHER_LIBRARY, "is no libdist-grpc.so");
}

// Beside libdist, which is this program here, in `dist/` and without it.
void the_module_is_found_beside_libdist(void**) {
  char program[4096] = "";
  assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
  const std::string folder = std::string(program).substr(0, std::string(program).rfind('/'));
  const char* const addresses[] = {"127.0.0.1:1"};
  GrpcOptions options;
  options.addresses = addresses;
  Ref<GrpcNetwork> network;
  const auto create = [&] { return GrpcNetwork::create({}, options, &network).code(); };
  std::filesystem::create_directory(folder + "/dist");
  const std::string link = folder + "/dist/libdist-grpc.so";
  std::filesystem::remove(link);
  // What is first found must be good: nothing is looked for behind it.
  std::filesystem::create_symlink(OTHER_LIBRARY, link);
  assert_int_equal(create(), DIST_UNAVAILABLE);
  assert_says(std::string(last_error().message), link + " is no libdist-grpc.so");
  std::filesystem::remove(link);
  std::filesystem::create_symlink(GRPC_MODULE, link);
  assert_int_equal(create(), DIST_OK);
  std::filesystem::remove(link);
}

// ---- TLS ----

struct Certificates {
  Certificates() {
    char name[] = "/tmp/dist-certificates-XXXXXX";
    if (mkdtemp(name) == nullptr) return;
    folder = name;
    there =
        run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out "
            "ca.pem "
            "-days 2 -subj /CN=ca");
    for (const char* const host : {"localhost", "other.example"}) {
      const std::string of = host;
      std::ofstream(folder + "/" + of + ".ext") << "subjectAltName=DNS:" << of << "\n";
      there =
          there &&
          run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout " + of +
              ".key -out " + of + ".csr -subj /CN=" + of) &&
          run("openssl x509 -req -in " + of + ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out " +
              of + ".pem -extfile " + of + ".ext");
    }
  }
  ~Certificates() {
    if (!folder.empty()) (void)!std::system(("rm -rf '" + folder + "'").c_str());
  }
  bool run(const std::string& command) const {
    return std::system(("cd '" + folder + "' && " + command + " >/dev/null 2>&1").c_str()) == 0;
  }
  std::string read(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(folder + "/" + name).rdbuf();
    return text.str();
  }
  std::string folder;
  bool there = false;
};

void certificates_are_for_the_host_of_the_address(void**) {
  const Certificates files;
  if (!files.there) {
    print_message("# openssl is not there to make certificates with\n");
    skip();
  }
  const std::string ca = files.read("ca.pem");
  const auto tls = [&](GrpcOptions& options, const std::string& certificate, const std::string& key) {
    options.ca = ca.c_str();
    options.certificate = certificate.c_str();
    options.key = key.c_str();
  };
  const std::string good[] = {files.read("localhost.pem"), files.read("localhost.key")};
  const std::string bad[] = {files.read("other.example.pem"), files.read("other.example.key")};
  // Each address is "localhost:port".
  const auto join = [&](GrpcWorkers& workers, int worker, const std::string(&pair)[2],
                        std::vector<std::string>& texts) -> Transport& {
    return workers.join_with(worker, [&](GrpcOptions& options) {
      static std::vector<const char*> addresses;
      addresses.clear();
      for (const std::string& each : texts) addresses.push_back(each.c_str());
      options.addresses = addresses;
      tls(options, pair[0], pair[1]);
    });
  };
  const auto names = [](const GrpcWorkers& workers) {
    std::vector<std::string> texts;
    for (int w = 0; w < 2; ++w) {
      texts.push_back("localhost" + workers.address(w).substr(workers.address(w).rfind(':')));
    }
    return texts;
  };
  {
    GrpcWorkers workers(2, 4096);
    auto texts = names(workers);
    Transport& first = join(workers, 0, good, texts);
    Transport& second = join(workers, 1, good, texts);
    assert_speak(first, second, 1);
    assert_speak(second, first, 2);
    // Who has no certificate is not heard.
    Stranger stranger(workers, 0);
    stranger.say(good_hello(workers, 2));
    assert_string_equal(stranger.hear().c_str(), "");
    first.close();
    second.close();
  }
  {
    GrpcWorkers workers(2, 4096);
    auto texts = names(workers);
    Transport& first = join(workers, 0, good, texts);
    Transport& second = join(workers, 1, bad, texts);
    await([&] { return second.lost(0); });
    assert_says(why(second, 0), "its certificate is not for localhost");
    assert_false(first.lost(1));
    first.close();
    second.close();
  }
  {
    GrpcWorkers workers(2, 4096);
    auto texts = names(workers);
    Transport& first = join(workers, 0, bad, texts);
    Transport& second = join(workers, 1, good, texts);
    await([&] { return second.lost(0); });
    assert_says(why(second, 0), "cannot be reached");
    first.close();
    second.close();
  }
}

}  // namespace
}  // namespace dist

// Debian's c-ares keeps some bytes of each name that gRPC asks it for.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libcares"; }

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(strangers_do_no_harm),
      cmocka_unit_test(a_hello_that_does_not_fit_is_answered_by_what_differs),
      cmocka_unit_test(what_is_no_hello_ends_the_link),
      cmocka_unit_test(unproven_links_are_few),
      cmocka_unit_test(who_breaks_the_protocol_loses_its_link),
      cmocka_unit_test(another_secret_is_found_out),
      cmocka_unit_test(another_cluster_is_found_out),
      cmocka_unit_test(a_second_start_is_refused),
      cmocka_unit_test(an_address_in_use_is_an_error_at_once),
      cmocka_unit_test(options_are_checked),
      cmocka_unit_test(without_the_module_it_says_so),
      cmocka_unit_test(the_module_is_found_beside_libdist),
      cmocka_unit_test(certificates_are_for_the_host_of_the_address),
  };
  return cmocka_run_group_tests_name("grpc_links", tests, nullptr, nullptr);
}
